// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude/transcript"
)

var storeKey = transcript.Key{ProjectKey: "-p", SessionID: id1}

func raw(lines ...string) []json.RawMessage {
	var list []json.RawMessage
	for _, l := range lines {
		list = append(list, json.RawMessage(l))
	}
	return list
}

func mustAppend(t testing.TB, s transcript.Store, key transcript.Key, lines ...string) {
	t.Helper()
	if err := s.Append(context.Background(), key, raw(lines...)); err != nil {
		t.Fatal(err)
	}
}

func TestFileStore_TornLastLine(t *testing.T) {
	tests := []struct{ name, file, loaded, appended string }{
		{"torn", `{"a":1}` + "\n" + `{"b":`, `{"a":1}`, `{"a":1} {"c":3}`},
		{"only a torn line", `{"b":`, ``, `{"c":3}`},
		{"whole but without newline", `{"a":1}` + "\n" + `{"b":2}`, `{"a":1} {"b":2}`, `{"a":1} {"b":2} {"c":3}`},
		{"zeros after a power loss", `{"a":1}` + "\n\x00\x00\x00", `{"a":1}`, `{"a":1} {"c":3}`},
		{"torn inside a long line", `{"a":1}` + "\n" + `{"b":"` + strings.Repeat("x", 300_000), `{"a":1}`, `{"a":1} {"c":3}`},
		{"clean", `{"a":1}` + "\n", `{"a":1}`, `{"a":1} {"c":3}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "-p", id1+".jsonl"), tt.file)
			s := newFileStore(t, dir)
			loaded := func() string {
				t.Helper()
				got, err := s.Load(t.Context(), storeKey)
				if err != nil {
					t.Fatal(err)
				}
				var list []string
				for _, e := range got {
					list = append(list, string(e))
				}
				return strings.Join(list, " ")
			}
			if got := loaded(); got != tt.loaded {
				t.Errorf("Load = %.200s, want %s", got, tt.loaded)
			}
			mustAppend(t, s, storeKey, `{"c":3}`)
			if got := loaded(); got != tt.appended {
				t.Errorf("Load after Append = %.200s, want %s", got, tt.appended)
			}
		})
	}
}

func TestFileStore_ReportsDamage(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "-p", id1+".jsonl"), "{}\ndamage\n{}\n")
	_, err := newFileStore(t, dir).Load(t.Context(), storeKey)
	if err == nil || !strings.Contains(advice.Text(err), "line 2") {
		t.Errorf("Load = %v, want an error that names line 2", err)
	}
}

func TestFileStore_RefusesNonObjects(t *testing.T) {
	s := newFileStore(t, t.TempDir())
	for _, line := range []string{``, `[]`, `"x"`, `{`, `{}{}`, `{"a":1}` + "\n" + `{"b":2}`} {
		if err := s.Append(t.Context(), storeKey, raw(`{}`, line)); err == nil {
			t.Errorf("Append(%q) = nil, want an error", line)
		}
	}
	if got, err := s.Load(t.Context(), storeKey); err != nil || len(got) != 0 {
		t.Errorf("Load = %v, %v, want nothing of a refused batch", got, err)
	}
}

func TestFileStore_FilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here: run on Linux or macOS")
	}
	dir := filepath.Join(t.TempDir(), "store")
	s := newFileStore(t, dir)
	mustAppend(t, s, transcript.Key{ProjectKey: "-p", SessionID: id1, Subpath: "subagents/agent-a"}, `{}`)
	mustAppend(t, s, storeKey, `{}`)
	filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			t.Fatal(err)
		}
		info, _ := d.Info()
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
}

func TestFileStore_LinksOutOfTheFolderAreRefused(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, id1+".jsonl"), "{}\n")
	if err := os.Symlink(outside, filepath.Join(dir, "-p")); err != nil {
		t.Skipf("%v: run where it can be done", err)
	}
	s := newFileStore(t, dir)
	if err := s.Append(t.Context(), storeKey, raw(`{}`)); err == nil {
		t.Error("Append through a link = nil, want an error")
	}
	if got, err := s.Load(t.Context(), storeKey); err == nil {
		t.Errorf("Load through a link = %s, want an error", got)
	}
}

// TestMain lets this binary be the second process of a test, and looks for goroutines left behind.
func TestMain(m *testing.M) {
	if dir := os.Getenv("TRANSCRIPT_TEST_APPEND"); dir != "" {
		os.Exit(appendAsChild(dir, os.Getenv("TRANSCRIPT_TEST_NAME")))
	}
	goleak.VerifyTestMain(m)
}

const childBatches, childBatchSize = 40, 5

func appendAsChild(dir, name string) int {
	limitFileSize(os.Getenv("TRANSCRIPT_TEST_LIMIT"))
	s, err := transcript.NewFileStore(dir)
	if err != nil {
		return 3
	}
	for b := range childBatches {
		var lines []string
		for i := range childBatchSize {
			lines = append(lines, fmt.Sprintf(`{"child":%q,"batch":%d,"i":%d,"pad":%q}`, name, b, i, strings.Repeat("x", 997*i)))
		}
		if err := s.Append(context.Background(), storeKey, raw(lines...)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 4
		}
	}
	return 0
}

func child(t *testing.T, dir, name string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(append(os.Environ(), "TRANSCRIPT_TEST_APPEND="+dir, "TRANSCRIPT_TEST_NAME="+name), env...)
	return cmd
}

func TestFileStore_ManyProcessesAppend(t *testing.T) {
	dir := t.TempDir()
	var cmds []*exec.Cmd
	for i := range 4 {
		cmd := child(t, dir, fmt.Sprint("c", i))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	got, err := newFileStore(t, dir).Load(t.Context(), storeKey)
	if err != nil || len(got) != 4*childBatches*childBatchSize {
		t.Fatalf("Load = %d entries, %v, want %d", len(got), err, 4*childBatches*childBatchSize)
	}
	next := map[string]int{}
	for batch := range slices.Chunk(got, childBatchSize) {
		var first struct {
			Child string
			Batch int
		}
		for i, e := range batch {
			var l struct {
				Child    string
				Batch, I int
			}
			if err := json.Unmarshal(e, &l); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first.Child, first.Batch = l.Child, l.Batch
			}
			if l.Child != first.Child || l.Batch != first.Batch || l.I != i || l.Batch != next[l.Child] {
				t.Fatalf("entry %+v in the batch of %+v, next is %d", l, first, next[l.Child])
			}
		}
		next[first.Child]++
	}
}
