// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-agents/drover/claude/transcript"
)

// prompt is a user line with this JSON as its message content.
func prompt(content string, more ...string) string {
	return `{"type":"user","uuid":"u","isSidechain":false` + strings.Join(more, "") + `,"message":{"role":"user","content":` + content + `}}` + "\n"
}

func TestList_DescribesSessions(t *testing.T) {
	title := `{"type":"custom-title","customTitle":"Mine","sessionId":"s"}` + "\n"
	aiTitle := `{"type":"ai-title","aiTitle":"Model's","sessionId":"s"}` + "\n"
	last := `{"type":"last-prompt","lastPrompt":"the last","sessionId":"s"}` + "\n"
	summary := `{"type":"summary","summary":"a summary","leafUuid":"u"}` + "\n"
	filler := strings.Repeat(`{"type":"progress","data":"`+strings.Repeat("x", 1000)+`"}`+"\n", 200)
	tests := []struct {
		name, text string
		want       transcript.Info
	}{
		{"first prompt", prompt(`"hello"`), transcript.Info{Summary: "hello", FirstPrompt: "hello"}},
		{"title goes first", prompt(`"hello"`) + title + aiTitle + last + summary, transcript.Info{Summary: "Mine", Title: "Mine", FirstPrompt: "hello"}},
		{"then the model's title", prompt(`"hello"`) + last + aiTitle, transcript.Info{Summary: "Model's", Title: "Model's", FirstPrompt: "hello"}},
		{"then the last prompt", prompt(`"hello"`) + summary + last, transcript.Info{Summary: "the last", FirstPrompt: "hello"}},
		{"then the summary", summary + prompt(`"hello"`), transcript.Info{Summary: "a summary", FirstPrompt: "hello"}},
		{"last title wins", title + prompt(`"hello"`) + strings.Replace(title, "Mine", "Later", 1), transcript.Info{Summary: "Later", Title: "Later", FirstPrompt: "hello"}},
		{"title only in the head of a long file", title + prompt(`"hello"`) + filler, transcript.Info{Summary: "Mine", Title: "Mine", FirstPrompt: "hello"}},
		{"title only in the tail of a long file", prompt(`"hello"`) + filler + title, transcript.Info{Summary: "Mine", Title: "Mine", FirstPrompt: "hello"}},
		{"what the end of a long file has is not the first", filler + prompt(`"late"`, `,"cwd":"/late","timestamp":"2026-01-01T00:00:00Z"`) + last, transcript.Info{Summary: "the last"}},
		{
			"tool result, hidden and generated texts are no prompt",
			prompt(`[{"type":"text","text":"no"},{"type":"tool_result","tool_use_id":"t","content":"no"}]`) + prompt(`"no"`, `,"isMeta":true`) + prompt(`"no"`, `,"isCompactSummary":true`) +
				prompt(`"[Request interrupted by user for tool use]"`) + prompt(`"<local-command-stdout>x</local-command-stdout>"`) +
				prompt(`[{"type":"text","text":"<ide_opened_file>f</ide_opened_file>"},{"type":"image"},{"type":"text","text":"two\nlines"}]`),
			transcript.Info{Summary: "two lines", FirstPrompt: "two lines"},
		},
		{"command is used without a prompt", prompt(`"<command-name>/init</command-name><command-message>x"`) + prompt(`"<tick>1"`), transcript.Info{Summary: "/init", FirstPrompt: "/init"}},
		{"command gives way", prompt(`"<command-name>/init</command-name>"`) + prompt(`"real"`), transcript.Info{Summary: "real", FirstPrompt: "real"}},
		{"bash input", prompt(`"<bash-input>ls -l</bash-input>"`), transcript.Info{Summary: "! ls -l", FirstPrompt: "! ls -l"}},
		{"200 characters", prompt(`"` + strings.Repeat("é", 201) + `"`), transcript.Info{Summary: strings.Repeat("é", 200) + "…", FirstPrompt: strings.Repeat("é", 200) + "…"}},
		{
			"prompt that is longer than the window", prompt(`"` + strings.Repeat("wort ", 40000) + `"`),
			transcript.Info{Summary: strings.Repeat("wort ", 39) + "wort…", FirstPrompt: strings.Repeat("wort ", 39) + "wort…"},
		},
		{
			"tag, branch, directory", prompt(`"hello"`, `,"cwd":"/first","gitBranch":"main","entrypoint":"cli"`) + `{"type":"tag","tag":"a"}` + "\n" +
				prompt(`"again"`, `,"cwd":"/second","gitBranch":"topic"`) + `{"type":"tag","tag":"b"}` + "\n",
			transcript.Info{Summary: "hello", FirstPrompt: "hello", Tag: "b", CWD: "/first", GitBranch: "topic", Entrypoint: "cli"},
		},
		{
			"tag taken away in the tail", `{"type":"tag","tag":"a"}` + "\n" + prompt(`"hello"`) + filler + `{"type":"tag","tag":""}` + "\n",
			transcript.Info{Summary: "hello", FirstPrompt: "hello"},
		},
		{
			"a tool's tag is no tag", prompt(`"hello"`) + `{"type":"assistant","tag":"x","message":{"content":[{"type":"tool_use","input":{"tag":"y"}}]}}` + "\n",
			transcript.Info{Summary: "hello", FirstPrompt: "hello"},
		},
		{"torn lines", "\x00\x00{{{\n" + prompt(`"hello"`) + `{"type":"custom-title","customTitle":"to`, transcript.Info{Summary: "hello", FirstPrompt: "hello"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": tt.text})
			got := list(t, transcript.ListOptions{Options: transcript.Options{Dir: dir}})
			tt.want.SessionID, tt.want.ProjectKey, tt.want.Size = id1, "p", int64(len(tt.text))
			tt.want.Path = filepath.Join(dir, "projects", "p", id1+".jsonl")
			diff := cmp.Diff([]transcript.Info{tt.want}, got, cmpopts.IgnoreFields(transcript.Info{}, "LastModified"))
			if diff != "" {
				t.Errorf("List (-want +got):\n%s", diff)
			}
		})
	}
}

func TestList_LeavesOutOtherFiles(t *testing.T) {
	dir := configDir(t, map[string]string{
		"p/" + id1 + ".jsonl":             strings.Replace(userLine(id1, "sub"), `"isSidechain":false`, `"isSidechain":true`, 1),
		"p/" + id2 + ".jsonl":             `{"type":"mode","mode":"normal"}` + "\n",
		"p/" + id3 + ".jsonl":             "",
		"p/not-a-uuid.jsonl":              userLine(id1, "x"),
		"p/" + id1 + ".txt":               userLine(id1, "x"),
		"p/" + id1 + ".jsonl.jsonl":       userLine(id1, "x"),
		"p/" + id1 + "/" + id2 + ".jsonl": userLine(id1, "x"),
		id1 + ".jsonl":                    userLine(id1, "x"),
	})
	if got := list(t, transcript.ListOptions{Options: transcript.Options{Dir: dir}}); len(got) != 0 {
		t.Errorf("List = %+v, want none", got)
	}
	if got := list(t, transcript.ListOptions{Options: transcript.Options{Dir: t.TempDir()}}); len(got) != 0 {
		t.Errorf("List of an empty config directory = %+v, want none", got)
	}
	if _, err := transcript.Get(t.Context(), id1, transcript.Options{Dir: dir}); !errors.Is(err, transcript.ErrNotFound) {
		t.Errorf("Get of a subagent's file = %v, want ErrNotFound", err)
	}
}

// The time of creation is found although the first lines do not have one.
func TestCreatedAt_IsReadFromTheFirstLines(t *testing.T) {
	dir := configDir(t, map[string]string{
		"p/" + id1 + ".jsonl": `{"type":"mode","mode":"normal"}` + "\n" + `{"type":"x","timestamp":17}` + "\n" + userLine(id1, "x"),
		"p/" + id2 + ".jsonl": prompt(`"no time at all"`),
	})
	for id, want := range map[string]time.Time{id1: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), id2: {}} {
		got, err := transcript.Get(t.Context(), id, transcript.Options{Dir: dir})
		if err != nil || !got.CreatedAt.Equal(want) {
			t.Errorf("CreatedAt of %s = %v, %v, want %v", id, got.CreatedAt, err, want)
		}
	}
}

func TestList_OrderPagesAndDuplicates(t *testing.T) {
	files := map[string]string{}
	id := func(i int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", i) }
	for i := range 10 {
		files["p/"+id(i)+".jsonl"] = userLine(id(i), fmt.Sprint("n", i))
	}
	files["q/"+id(3)+".jsonl"] = userLine(id(3), "newer copy")
	dir := configDir(t, files)
	base := time.Now().Add(-time.Hour)
	for i := range 10 {
		touch(t, filepath.Join(dir, "projects", "p", id(i)+".jsonl"), base.Add(time.Duration(i)*time.Minute))
	}
	touch(t, filepath.Join(dir, "projects", "q", id(3)+".jsonl"), base.Add(time.Hour))
	for _, tt := range []struct {
		name          string
		limit, offset int
		want          []int
	}{
		{"all", 0, 0, []int{3, 9, 8, 7, 6, 5, 4, 2, 1, 0}},
		{"first page", 3, 0, []int{3, 9, 8}},
		{"second page", 3, 3, []int{7, 6, 5}},
		{"last page", 3, 8, []int{1, 0}},
		{"beyond", 3, 20, nil},
		{"negative offset", 1, -5, []int{3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := list(t, transcript.ListOptions{Options: transcript.Options{Dir: dir}, Limit: tt.limit, Offset: tt.offset})
			var want []string
			for _, i := range tt.want {
				want = append(want, id(i))
			}
			if diff := cmp.Diff(want, ids(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tt.offset == 0 && got[0].Summary != "newer copy" {
				t.Errorf("of a session in two places got %q, want the newer copy", got[0].Summary)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := transcript.List(ctx, transcript.ListOptions{Options: transcript.Options{Dir: dir}}); !errors.Is(err, context.Canceled) {
		t.Errorf("List with an ended context = %v, want Canceled", err)
	}
}

func TestList_Filters(t *testing.T) {
	dir := configDir(t, map[string]string{
		"p/" + id1 + ".jsonl": prompt(`"a"`, `,"entrypoint":"cli"`),
		"p/" + id2 + ".jsonl": prompt(`"b"`, `,"entrypoint":"sdk-go"`),
		"p/" + id3 + ".jsonl": prompt(`"c"`, `,"entrypoint":"cli"`),
	})
	opts := transcript.Options{Dir: dir}
	if err := transcript.Archive(t.Context(), id3, opts); err != nil {
		t.Fatal(err)
	}
	got := list(t, transcript.ListOptions{Options: opts, NoProgrammatic: true, NoArchived: true})
	if diff := cmp.Diff([]string{id1}, ids(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func BenchmarkList1000(b *testing.B) {
	files := map[string]string{}
	filler := strings.Repeat(`{"type":"assistant","uuid":"u","gitBranch":"main","message":{"content":[{"type":"text","text":"`+strings.Repeat("x", 2000)+`"}]}}`+"\n", 100)
	for i := range 1000 {
		id := fmt.Sprintf("%08d-0000-4000-8000-000000000000", i)
		files[fmt.Sprintf("p%d/%s.jsonl", i%10, id)] = userLine(id, "hello") + filler + `{"type":"last-prompt","lastPrompt":"bye"}` + "\n"
	}
	dir := configDir(b, files)
	for _, limit := range []int{0, 20} {
		b.Run(fmt.Sprint("limit=", limit), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				list(b, transcript.ListOptions{Options: transcript.Options{Dir: dir}, Limit: limit})
			}
		})
	}
}
