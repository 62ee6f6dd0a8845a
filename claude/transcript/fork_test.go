// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/claude/transcript"
	_ "github.com/drover-agents/drover/internal/testkit"
)

const forkID = "f0000000-0000-4000-8000-000000000000"

// forkOptions have a fixed clock and count the ids; the first is the new session's.
func forkOptions(dir string) transcript.ForkOptions {
	n := -1
	return transcript.ForkOptions{
		Options: transcript.Options{Dir: dir},
		Now:     func() time.Time { return time.Date(2030, 1, 2, 3, 4, 5, 678e6, time.UTC) },
		NewID:   func() string { n++; return fmt.Sprintf("f0000000-0000-4000-8000-%012d", n) },
	}
}

func old(n int) string   { return fmt.Sprintf("a0000000-0000-4000-8000-%012d", n) }
func fresh(n int) string { return fmt.Sprintf("f0000000-0000-4000-8000-%012d", n) }

func TestFork_Golden(t *testing.T) {
	lines := []string{
		`{"type":"mode","mode":"normal","sessionId":"` + id1 + `"}`,
		`{"parentUuid":null,"type":"user","uuid":"` + old(1) + `","sessionId":"` + id1 + `","timestamp":"T1","teamName":"t","agentName":"n","slug":"s","x":{"kept":1.0},"message":{"content":"ask <b>"}}`,
		`{"parentUuid":"` + old(1) + `","type":"progress","uuid":"` + old(2) + `","sessionId":"` + id1 + `"}`,
		`{"parentUuid":"` + old(2) + `","type":"assistant","uuid":"` + old(3) + `","sessionId":"` + id1 + `","timestamp":"T3"}`,
		`{"parentUuid":"` + old(3) + `","isSidechain":true,"type":"user","uuid":"` + old(4) + `"}`,
		`{"parentUuid":"` + old(3) + `","type":"user","uuid":"` + old(5) + `","sourceToolAssistantUUID":"` + old(3) + `","toolUseResult":"` + old(3) + `"}`,
		`{"parentUuid":null,"logicalParentUuid":"` + old(5) + `","type":"system","subtype":"compact_boundary","uuid":"` + old(6) + `","compactMetadata":{"preservedSegment":{"headUuid":"` + old(3) + `"}}}`,
		`{"type":"content-replacement","sessionId":"` + id1 + `","replacements":[{"a":1}]}`,
		`{"type":"content-replacement","sessionId":"` + id2 + `","replacements":[{"b":1}]}`,
		`{"type":"content-replacement","sessionId":"` + id1 + `","replacements":[{"c":1}]}`,
		`{"type":"last-prompt","lastPrompt":"ask","leafUuid":"` + old(6) + `"}`,
	}
	dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": strings.Join(lines, "\n") + "\n"})
	got, err := transcript.Fork(t.Context(), id1, forkOptions(dir))
	if err != nil || got != forkID {
		t.Fatalf("Fork = %q, %v", got, err)
	}
	from := func(n int) string { return `"forkedFrom":{"sessionId":"` + id1 + `","messageUuid":"` + old(n) + `"}` }
	want := []string{
		`{"parentUuid":null,"type":"user","uuid":"` + fresh(1) + `","sessionId":"` + forkID + `","timestamp":"T1","x":{"kept":1.0},"message":{"content":"ask <b>"},"isSidechain":false,` + from(1) + `}`,
		`{"parentUuid":"` + fresh(1) + `","type":"assistant","uuid":"` + fresh(3) + `","sessionId":"` + forkID + `","timestamp":"T3","isSidechain":false,` + from(3) + `}`,
		`{"parentUuid":"` + fresh(3) + `","type":"user","uuid":"` + fresh(5) + `","toolUseResult":"` + old(3) + `","sessionId":"` + forkID + `","isSidechain":false,` + from(5) + `}`,
		`{"parentUuid":null,"logicalParentUuid":"` + fresh(5) + `","type":"system","subtype":"compact_boundary","uuid":"` + fresh(6) + `","compactMetadata":{"preservedSegment":{"headUuid":"` + fresh(3) + `"}},"sessionId":"` + forkID + `","isSidechain":false,"timestamp":"2030-01-02T03:04:05.678Z",` + from(6) + `}`,
		`{"type":"content-replacement","sessionId":"` + forkID + `","replacements":[{"a":1},{"c":1}]}`,
		`{"type":"custom-title","customTitle":"ask <b> (fork)","sessionId":"` + forkID + `"}`,
	}
	path := filepath.Join(dir, "projects", "p", forkID+".jsonl")
	if diff := cmp.Diff(want, strings.Split(strings.TrimSpace(read(t, path)), "\n")); diff != "" {
		t.Errorf("fork (-want +got):\n%s", diff)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v, want 0600", st.Mode(), err)
	}
	if read(t, filepath.Join(dir, "projects", "p", id1+".jsonl")) != strings.Join(lines, "\n")+"\n" {
		t.Error("the source was changed")
	}
}

func TestFork_UpToAndErrors(t *testing.T) {
	text := link("user", old(1), "") + link("assistant", old(2), old(1)) + link("user", old(3), old(2))
	dir := configDir(t, map[string]string{
		"p/" + id1 + ".jsonl": text,
		"p/" + id2 + ".jsonl": `{"type":"mode"}` + "\n",
	})
	opts := forkOptions(dir)
	opts.UpTo, opts.Title = old(2), " Mine "
	if _, err := transcript.Fork(t.Context(), id1, opts); err != nil {
		t.Fatal(err)
	}
	got, err := transcript.Messages(t.Context(), forkID, transcript.MessagesOptions{Options: opts.Options})
	if uuids(got) != fresh(1)+" "+fresh(2) || err != nil {
		t.Errorf("messages = %q, %v, want the first two", uuids(got), err)
	}
	if info, err := transcript.Get(t.Context(), forkID, opts.Options); info.Title != "Mine" || err != nil {
		t.Errorf("title = %q, %v, want Mine", info.Title, err)
	}
	again := forkOptions(dir)
	if _, err := transcript.Fork(t.Context(), id1, again); err == nil {
		t.Error("Fork onto an existing session = nil, want an error")
	}
	opts.UpTo = old(9)
	if _, err := transcript.Fork(t.Context(), id1, opts); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("Fork up to an unknown message = %v, want ErrNotFound", err)
	}
	if _, err := transcript.Fork(t.Context(), id2, transcript.ForkOptions{Options: transcript.Options{Dir: dir}}); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("Fork of a session without messages = %v, want ErrNotFound", err)
	}
}

// For any transcript: the copy is the same conversation, all its ids are fresh, and nothing in it
// but forkedFrom points to the source.
func TestFork_CopyIsTheSameConversationWithNewIDs(t *testing.T) {
	base := t.TempDir()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		dir := filepath.Join(base, fmt.Sprint(run))
		n := rapid.IntRange(1, 30).Draw(rt, "entries")
		var lines []string
		kept := 0
		for i := range n {
			kind := rapid.SampledFrom([]string{"user", "assistant", "system", "attachment", "progress", "progress", "future"}).Draw(rt, "type")
			side := rapid.IntRange(0, 5).Draw(rt, "side") == 0
			e := map[string]any{
				"type": kind, "uuid": old(i), "sessionId": id1, "isSidechain": side,
				"message": map[string]any{"content": fmt.Sprint("m", i)}, "parentUuid": nil,
			}
			if p := rapid.IntRange(-1, i-1).Draw(rt, "parent"); p >= 0 {
				e["parentUuid"] = old(p)
				e["logicalParentUuid"] = old(rapid.IntRange(0, n-1).Draw(rt, "logical"))
				e["nested"] = []any{map[string]any{"u": old(rapid.IntRange(0, n-1).Draw(rt, "nested"))}}
			}
			if kind != "progress" && kind != "future" && !side {
				kept++
			}
			line, _ := json.Marshal(e)
			lines = append(lines, string(line))
		}
		write(t, filepath.Join(dir, "projects", "p", id1+".jsonl"), strings.Join(lines, "\n"))
		opts := transcript.Options{Dir: dir}
		newID, err := transcript.Fork(t.Context(), id1, transcript.ForkOptions{Options: opts})
		if kept == 0 {
			if !errors.Is(err, transcript.ErrNotFound) {
				rt.Fatalf("Fork of nothing = %v, want ErrNotFound", err)
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		checkFork(rt, dir, newID, kept)
	})
}

type forkLine struct {
	Type, UUID, SessionID string
	ParentUUID            *string
	LogicalParentUUID     *string
	ForkedFrom            *struct{ SessionID, MessageUUID string }
	Message               struct{ Content string }
}

func checkFork(t *rapid.T, dir, newID string, kept int) {
	data, err := os.ReadFile(filepath.Join(dir, "projects", "p", newID+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	source, _ := os.ReadFile(filepath.Join(dir, "projects", "p", id1+".jsonl"))
	parents, kinds := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(source)) {
		e, err := transcript.ParseEntry([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if !e.IsSidechain && e.Type != "future" {
			parents[e.UUID], kinds[e.UUID] = e.ParentUUID, e.Type
		}
	}
	origin := map[string]string{} // new uuid to old
	var links []forkLine
	for line := range strings.Lines(string(data)) {
		var l forkLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.SessionID != newID {
			t.Fatalf("session id %q, want %q", l.SessionID, newID)
		}
		if l.Type == "custom-title" {
			continue
		}
		rest := strings.ReplaceAll(line, `"messageUuid":"`+l.ForkedFrom.MessageUUID+`"`, "")
		if strings.Contains(rest, "a0000000-") {
			t.Fatalf("line points to the source: %s", line)
		}
		if origin[l.UUID] != "" || l.ForkedFrom.SessionID != id1 {
			t.Fatalf("uuid %s comes twice, or forkedFrom is wrong: %s", l.UUID, line)
		}
		origin[l.UUID] = l.ForkedFrom.MessageUUID
		links = append(links, l)
	}
	if len(links) != kept {
		t.Fatalf("%d entries, want %d", len(links), kept)
	}
	for _, l := range links {
		want := parents[l.ForkedFrom.MessageUUID]
		for kinds[want] == "progress" {
			want = parents[want]
		}
		if _, ok := kinds[want]; !ok {
			want = "" // the parent is not in the copy
		}
		got := ""
		if l.ParentUUID != nil {
			got = origin[*l.ParentUUID]
		}
		if got != want {
			t.Fatalf("parent of %s comes from %q, want %q", l.ForkedFrom.MessageUUID, got, want)
		}
		if l.LogicalParentUUID != nil && origin[*l.LogicalParentUUID] == "" {
			t.Fatalf("logical parent of %s is not in the copy", l.UUID)
		}
	}
}
