// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/transcript"
)

// FuzzReader gives arbitrary bytes to everything that reads a session: no panic, and nothing outside
// the projects directory is touched.
func FuzzReader(f *testing.F) {
	real, err := filepath.Glob("testdata/real/*/projects/*/*.jsonl")
	if err != nil || len(real) == 0 {
		f.Fatal("no real sessions: ", err)
	}
	for _, path := range real {
		f.Add([]byte(read(f, path)), "agent", "title")
	}
	for _, text := range []string{
		"", "{", "[]", "null\n", `{"type":"user"`, `{"type":"user","message":{"content":[{"type":"text","text":"\u`, "\xff\xfe\n{}\n",
		link("user", "a", "a"), `{"type":"tag","tag":` + "\n" + `{"":{"":[{`, `{"uuid":"../../x","type":"user"}`, `{"a":"\\\"}`,
		`{"type":"user","uuid":"a","logicalParentUuid":"b","type":"progress"}` + "\n" + `{,"type":"user"}`,
	} {
		f.Add([]byte(text), "../../escape", "t\x00\u202e")
	}
	base := f.TempDir()
	outside := filepath.Join(base, "outside")
	write(f, outside, "untouched")
	f.Fuzz(func(t *testing.T, data []byte, agent, title string) {
		dir := filepath.Join(base, "config")
		defer os.RemoveAll(dir)
		write(t, filepath.Join(dir, "projects", "p", id1+".jsonl"), string(data))
		write(t, filepath.Join(dir, "projects", "p", id1, "subagents", "agent-a.jsonl"), string(data))
		write(t, filepath.Join(dir, "projects", "p", id1, "subagents", "agent-a.meta.json"), string(data))
		write(t, filepath.Join(dir, "projects", "p", id1, "archived.json"), string(data))
		useEverything(t.Context(), t, dir, agent, title)
		entries, err := os.ReadDir(base)
		if err != nil || len(entries) != 2 || read(t, outside) != "untouched" {
			t.Errorf("something was written outside: %v, %v", entries, err)
		}
	})
}

func useEverything(ctx context.Context, t *testing.T, dir, agent, title string) {
	opts := transcript.Options{Dir: dir}
	transcript.List(ctx, transcript.ListOptions{Options: opts})
	transcript.Get(ctx, agent, opts)
	entries, _ := transcript.Entries(ctx, id1, opts)
	for _, e := range entries {
		if !json.Valid(e.Raw) {
			t.Errorf("entry is not JSON: %q", e.Raw)
		}
	}
	messages, _ := transcript.Messages(ctx, id1, transcript.MessagesOptions{Options: opts, System: true})
	if len(messages) > len(entries) {
		t.Errorf("%d messages of %d entries", len(messages), len(entries))
	}
	transcript.SubagentMessages(ctx, id1, "a", transcript.MessagesOptions{Options: opts})
	transcript.SubagentMessages(ctx, id1, agent, transcript.MessagesOptions{Options: opts})
	if id, err := transcript.Fork(ctx, id1, transcript.ForkOptions{Options: opts, Title: title}); err == nil {
		for line := range strings.Lines(read(t, filepath.Join(dir, "projects", "p", id+".jsonl"))) {
			if !json.Valid([]byte(line)) {
				t.Errorf("fork has a line that is not JSON: %q", line)
			}
		}
	}
	renamed := transcript.Rename(ctx, id1, title, opts) == nil
	if info, err := transcript.Get(ctx, id1, opts); renamed && err == nil && info.Title != strings.TrimSpace(strings.ToValidUTF8(title, "\uFFFD")) {
		t.Errorf("title = %q, want %q", info.Title, strings.TrimSpace(title))
	}
	transcript.Tag(ctx, id1, title, opts)
	store := transcript.NewMemoryStore()
	if key, err := transcript.Import(ctx, store, id1, opts); err == nil {
		if r, err := transcript.Materialise(ctx, store, key, transcript.ResumeOptions{TempDir: dir}); err == nil {
			r.Close()
		}
	}
}

// FuzzKey checks that a key which passes names a file below its directory, on every system.
func FuzzKey(f *testing.F) {
	f.Add("-p", id1, "subagents/agent-a")
	f.Add("..", id1, "../x")
	f.Fuzz(func(t *testing.T, project, id, sub string) {
		key := transcript.Key{ProjectKey: project, SessionID: id, Subpath: sub}
		if key.Validate() != nil {
			return
		}
		if path := filepath.Join("/root", key.String()); !strings.HasPrefix(path, filepath.FromSlash("/root/"+project+"/"+id)) || strings.ContainsAny(key.String(), "\\:\x00") {
			t.Errorf("key %q leads to %q", key, path)
		}
		got, err := transcript.KeyOfFile("/root", "/root/"+key.String()+".jsonl")
		if err == nil && got != key {
			t.Errorf("KeyOfFile = %+v, want %+v", got, key)
		}
	})
}
