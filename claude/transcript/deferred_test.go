// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/transcript"
)

// mark is the line by which the CLI remembers a deferred call.
func mark(uuid, parent, call string) string {
	return `{"parentUuid":"` + parent + `","attachment":{"type":"hook_deferred_tool","toolUseID":"` + call + `"},"type":"attachment","uuid":"` + uuid + `"}` + "\n"
}

func TestMaterialise_LeavesOutDeferrals(t *testing.T) {
	text := link("user", old(1), "") + link("assistant", old(2), old(1)) + mark(old(3), old(2), "toolu_1") + mark(old(4), old(3), "toolu_2") +
		link("user", old(5), old(4)) + `{"type":"last-prompt","leafUuid":"` + old(4) + `"}` + "\n"
	store := transcript.NewMemoryStore()
	key := transcript.Key{ProjectKey: "p", SessionID: id1}
	sub := transcript.Key{ProjectKey: "p", SessionID: id1, Subpath: "subagents/agent-a"}
	for _, k := range []transcript.Key{key, sub} {
		for line := range strings.Lines(text) {
			if err := store.Append(t.Context(), k, []json.RawMessage{json.RawMessage(line)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, keep := range []bool{false, true} {
		r, err := transcript.Materialise(t.Context(), store, key, transcript.ResumeOptions{TempDir: t.TempDir(), KeepDeferred: keep})
		if err != nil {
			t.Fatal(err)
		}
		want := text
		if !keep {
			want = link("user", old(1), "") + link("assistant", old(2), old(1)) + link("user", old(5), old(2)) + `{"type":"last-prompt","leafUuid":"` + old(2) + `"}` + "\n"
		}
		for _, name := range []string{id1 + ".jsonl", id1 + "/subagents/agent-a.jsonl"} {
			if got := read(t, filepath.Join(r.ProjectsDir(), "p", name)); got != want {
				t.Errorf("keep %t: %s is\n%swant\n%s", keep, name, got, want)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A mark is found in every spelling that the CLI may read as one, and in no text of the conversation.
func TestDeferred_Spellings(t *testing.T) {
	plain := mark(old(3), old(2), "toolu_1")
	answer := `{"type":"user","uuid":"` + old(5) + `","message":{"content":[{"tool_use_id":"toolu_1","type":"tool_result"}]}}` + "\n"
	for name, x := range map[string]struct {
		lines string
		want  []string
	}{
		"plain":              {plain, []string{"toolu_1"}},
		"answered":           {plain + answer, nil},
		"answered before":    {answer + plain, []string{"toolu_1"}},
		"answered in spaces": {plain + strings.ReplaceAll(answer, `":"`, `": "`), []string{"toolu_1"}},
		"escaped":            {strings.ReplaceAll(plain, "hook_deferred", `hook\u005fdeferred`), []string{"toolu_1"}},
		"hidden by case":     {strings.Replace(plain, "}", `},"Attachment":{"type":"x"}`, 1), []string{"toolu_1"}},
		"hidden by order":    {strings.Replace(plain, "}", `,"type":"x"}`, 1), []string{"toolu_1"}},
		"too deep":           {strings.Replace(plain, `"toolUseID"`, `"toolInput":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+`,"toolUseID"`, 1), []string{""}},
		"words":              {`{"type":"user","message":{"content":"{\"attachment\":{\"type\":\"hook_deferred_tool\"}}"}}` + "\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": x.lines})
			for _, id := range []string{id1, ""} {
				if got, err := transcript.Deferred(t.Context(), id, transcript.Options{Dir: dir}); err != nil || !slices.Equal(got, x.want) {
					t.Errorf("Deferred(%q) = %q, %v; want %q", id, got, err, x.want)
				}
			}
		})
	}
}

func TestDeferred_FilesElsewhere(t *testing.T) {
	if got, err := transcript.Deferred(t.Context(), id1, transcript.Options{Dir: t.TempDir()}); err != nil || got != nil {
		t.Errorf("without projects: %q, %v; want nothing", got, err)
	}
	dir := configDir(t, map[string]string{"p/" + id2 + ".jsonl": mark(old(3), old(2), "toolu_1")})
	if got, err := transcript.Deferred(t.Context(), id1, transcript.Options{Dir: dir}); err != nil || got != nil {
		t.Errorf("another session: %q, %v; want nothing", got, err)
	}
	out := filepath.Join(t.TempDir(), "out.jsonl")
	write(t, out, mark(old(3), old(2), "toolu_1"))
	if err := os.Symlink(out, filepath.Join(dir, "projects", "p", id1+".jsonl")); err != nil {
		t.Fatal(err)
	}
	if got, err := transcript.Deferred(t.Context(), id1, transcript.Options{Dir: dir}); err == nil {
		t.Errorf("a link out of the projects: %q, want an error", got)
	}
	if _, err := transcript.Deferred(t.Context(), "../x", transcript.Options{Dir: dir}); err == nil {
		t.Error("an invalid id: want an error")
	}
}

func TestFork_LeavesOutDeferrals(t *testing.T) {
	dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": link("user", old(1), "") + mark(old(2), old(1), "toolu_1") + link("user", old(3), old(2))})
	id, err := transcript.Fork(t.Context(), id1, forkOptions(dir))
	if err != nil {
		t.Fatal(err)
	}
	got := read(t, filepath.Join(dir, "projects", "p", id+".jsonl"))
	if strings.Contains(got, "hook_deferred_tool") || !strings.Contains(got, `"parentUuid":"`+fresh(1)+`"`) {
		t.Errorf("the fork is\n%s", got)
	}
}
