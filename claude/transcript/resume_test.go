// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/claude/transcript/storetest"
)

// tree returns the files below dir with their contents.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = read(t, path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func subKey(sub string) transcript.Key {
	return transcript.Key{ProjectKey: storeKey.ProjectKey, SessionID: storeKey.SessionID, Subpath: sub}
}

func TestMaterialise_WritesTheSessionOnly(t *testing.T) {
	// A home directory with everything that must not be copied.
	home := t.TempDir()
	for _, name := range []string{".claude/.credentials.json", ".claude/settings.json", ".claude.json"} {
		write(t, filepath.Join(home, name), `{"secret":"of the home directory"}`)
	}
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(home, ".claude"))
	store := transcript.NewMemoryStore()
	mustAppend(t, store, storeKey, `{"type":"user", "n":1}`, `{"type":"future","n":12345678901234567890}`)
	mustAppend(t, store, subKey("subagents/agent-a"), `{"type":"agent_metadata","agentType":"old"}`, `{"n":1}`, `{"type":"agent_metadata","agentType":"Plan","toolUseId":"t"}`)
	mustAppend(t, store, subKey("subagents/workflows/r/agent-b"), `{"n":2}`)
	mustAppend(t, store, subKey("subagents/agent-c"), `{"type":"agent_metadata","agentType":"Empty"}`)
	temp := t.TempDir()
	r, err := transcript.Materialise(t.Context(), store, storeKey, transcript.ResumeOptions{TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"projects/-p/" + id1 + ".jsonl":                               `{"type":"user","n":1}` + "\n" + `{"type":"future","n":12345678901234567890}` + "\n",
		"projects/-p/" + id1 + "/subagents/agent-a.jsonl":             `{"n":1}` + "\n",
		"projects/-p/" + id1 + "/subagents/agent-a.meta.json":         `{"agentType":"Plan","toolUseId":"t"}`,
		"projects/-p/" + id1 + "/subagents/workflows/r/agent-b.jsonl": `{"n":2}` + "\n",
		"projects/-p/" + id1 + "/subagents/agent-c.meta.json":         `{"agentType":"Empty"}`,
	}
	if diff := cmp.Diff(want, tree(t, r.Dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(filepath.Base(r.Dir), "drover-resume-") {
		t.Errorf("directory %s, want drover-resume-*", r.Dir)
	}
	checkModes(t, r.Dir)
	if err := errors.Join(r.Close(), r.Close()); err != nil {
		t.Errorf("Close = %v", err)
	}
	empty(t, temp)
}

func checkModes(t *testing.T, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		info, err := d.Info()
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]os.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode().Perm(), want)
		}
		return nil
	})
}

// The settings of a named config directory come along, the refresh token does not.
func TestMaterialise_CopiesSettingsOnlyFromANamedDirectory(t *testing.T) {
	host := t.TempDir()
	write(t, filepath.Join(host, ".credentials.json"), `{"claudeAiOauth":{"accessToken":"A","refreshToken":"R","list":[{"refreshToken":"R2"}],"expiresAt":12345678901234567890},"refreshToken":"R3"}`)
	write(t, filepath.Join(host, "settings.json"), "\xef\xbb\xbf"+`{"model":"m","enabledPlugins":{"x":true},"extraKnownMarketplaces":{},"additionalMarketplaces":[],"env":{"enabledPlugins":"kept"}}`)
	write(t, filepath.Join(host, "cowork_settings.json"), `{"enabledPlugins":{}}`)
	write(t, filepath.Join(host, "history.jsonl"), `not copied`)
	state := filepath.Join(t.TempDir(), ".claude.json")
	write(t, state, `{"userID":"u"}`)
	store := transcript.NewMemoryStore()
	mustAppend(t, store, storeKey, `{}`)
	r, err := transcript.Materialise(t.Context(), store, storeKey, transcript.ResumeOptions{HostConfigDir: host, HostStateFile: state, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	want := map[string]string{
		"projects/-p/" + id1 + ".jsonl": "{}\n",
		".credentials.json":             `{"claudeAiOauth":{"accessToken":"A","list":[{}],"expiresAt":12345678901234567890}}`,
		"settings.json":                 `{"model":"m","env":{"enabledPlugins":"kept"}}`,
		"cowork_settings.json":          `{}`,
		".claude.json":                  `{"userID":"u"}`,
	}
	if diff := cmp.Diff(want, tree(t, r.Dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	checkModes(t, r.Dir)
}

// A failingStore answers with the result of load.
type failingStore struct {
	load    func(ctx context.Context, key transcript.Key) ([]json.RawMessage, error)
	subkeys []string
}

func (s failingStore) Append(context.Context, transcript.Key, []json.RawMessage) error { return nil }

func (s failingStore) Load(ctx context.Context, key transcript.Key) ([]json.RawMessage, error) {
	return s.load(ctx, key)
}

func (s failingStore) ListSubkeys(context.Context, transcript.Key) ([]string, error) {
	return s.subkeys, nil
}

func loads(lines ...string) func(context.Context, transcript.Key) ([]json.RawMessage, error) {
	return func(context.Context, transcript.Key) ([]json.RawMessage, error) { return raw(lines...), nil }
}

// After every failure the directory with the copied login is gone.
func TestMaterialise_FailureLeavesNothing(t *testing.T) {
	broken := errors.New("broken")
	host, badHost := t.TempDir(), t.TempDir()
	write(t, filepath.Join(host, ".credentials.json"), `{"accessToken":"A"}`)
	write(t, filepath.Join(badHost, ".credentials.json"), `{"accessToken":"secret-value"`)
	tests := []struct {
		name  string
		store transcript.Store
		host  string
		want  error
	}{
		{"store fails", failingStore{load: func(context.Context, transcript.Key) ([]json.RawMessage, error) { return nil, broken }}, host, broken},
		{"unknown session", failingStore{load: loads()}, host, transcript.ErrNotFound},
		{"entry is no object", failingStore{load: loads(`[]`)}, host, nil},
		{"subagent fails", failingStore{subkeys: []string{"subagents/a"}, load: func(_ context.Context, k transcript.Key) ([]json.RawMessage, error) {
			if k.Subpath != "" {
				return nil, broken
			}
			return raw(`{}`), nil
		}}, host, broken},
		{"malformed login", failingStore{load: loads(`{}`)}, badHost, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			temp := t.TempDir()
			_, err := transcript.Materialise(t.Context(), tt.store, storeKey, transcript.ResumeOptions{HostConfigDir: tt.host, TempDir: temp})
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) || strings.Contains(advice.Text(err), "secret-value") {
				t.Errorf("Materialise = %v, want %v", err, tt.want)
			}
			empty(t, temp)
		})
	}
}

func TestMaterialise_IsBoundedAndCancellable(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // of the caller's context
		want  error
		took  time.Duration
	}{
		{"store hangs", time.Hour, context.DeadlineExceeded, time.Minute},
		{"caller gives up", time.Second, context.DeadlineExceeded, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			temp := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				store := failingStore{load: func(context.Context, transcript.Key) ([]json.RawMessage, error) { <-release; return nil, nil }}
				ctx, cancel := context.WithTimeout(t.Context(), tt.after)
				defer cancel()
				begin := time.Now()
				_, err := transcript.Materialise(ctx, store, storeKey, transcript.ResumeOptions{TempDir: temp})
				if took := time.Since(begin); !errors.Is(err, tt.want) || took != tt.took {
					t.Errorf("Materialise = %v after %v, want %v after %v", err, took, tt.want, tt.took)
				}
				close(release)
			})
			empty(t, temp)
		})
	}
}

func TestMaterialise_RefusesHostileSubpaths(t *testing.T) {
	for _, sub := range []string{"", "/etc/x", "..", "../../x", "subagents/../../../x", `..\x`, "a\x00", "a//b", ".", "C:/x"} {
		temp := t.TempDir()
		store := failingStore{load: loads(`{}`), subkeys: []string{"subagents/agent-a", sub}}
		_, err := transcript.Materialise(t.Context(), store, storeKey, transcript.ResumeOptions{TempDir: temp})
		if !errors.Is(err, transcript.ErrBadKey) {
			t.Errorf("subpath %q: Materialise = %v, want ErrBadKey", sub, err)
		}
		empty(t, temp)
	}
	for _, key := range storetest.HostileKeys() {
		key.Subpath = ""
		if key.Validate() == nil {
			continue // only its subpath was hostile
		}
		temp := t.TempDir()
		_, err := transcript.Materialise(t.Context(), failingStore{load: loads(`{}`)}, key, transcript.ResumeOptions{TempDir: temp})
		if !errors.Is(err, transcript.ErrBadKey) {
			t.Errorf("key %q: Materialise = %v, want ErrBadKey", key, err)
		}
		empty(t, temp)
	}
}

// listerOnly hides all optional interfaces but SessionLister.
type listerOnly struct {
	transcript.Store
	transcript.SessionLister
}

func TestNewest_OfTheProject(t *testing.T) {
	memory := transcript.NewMemoryStore()
	for i, line := range []string{`{"n":"old"}`, `{"n":"new"}`, `{"isSidechain":true,"n":"subagent's"}`} {
		mustAppend(t, memory, transcript.Key{ProjectKey: "-p", SessionID: []string{id1, id2, id3}[i]}, line)
	}
	mustAppend(t, memory, transcript.Key{ProjectKey: "-q", SessionID: id1}, `{"n":"elsewhere"}`)
	for name, store := range map[string]transcript.Store{"summaries": memory, "sessions": listerOnly{memory, memory}} {
		t.Run(name, func(t *testing.T) {
			if got, err := transcript.Newest(t.Context(), store, "-p", 0); err != nil || got != (transcript.Key{ProjectKey: "-p", SessionID: id2}) {
				t.Errorf("Newest = %s, %v, want %s", got, err, id2)
			}
			if _, err := transcript.Newest(t.Context(), store, "-none", 0); !errors.Is(err, transcript.ErrNotFound) {
				t.Errorf("Newest in an unknown project = %v, want ErrNotFound", err)
			}
		})
	}
	if _, err := transcript.Newest(t.Context(), bare{memory}, "-p", 0); err == nil {
		t.Error("Newest of a store that cannot list = nil, want an error")
	}
}

func TestImport_RoundTripWithMaterialise(t *testing.T) {
	side := `,"isSidechain":true`
	var text strings.Builder
	for i := range 1203 {
		fmt.Fprintf(&text, `{"type":"user","uuid":"u%d","message":{"content":"x"}}`+"\n", i)
	}
	files := map[string]string{
		"-p/" + id1 + ".jsonl":                       text.String(),
		"-p/" + id1 + "/subagents/agent-a.jsonl":     strings.TrimSpace(link("user", "a", "", side)) + "\n",
		"-p/" + id1 + "/subagents/agent-a.meta.json": `{"agentType":"Plan","toolUseId":"t"}`,
	}
	dir := configDir(t, files)
	store := &counting{MemoryStore: transcript.NewMemoryStore()}
	opts := transcript.Options{Dir: dir}
	key, err := transcript.Import(t.Context(), store, id1, opts)
	if err != nil || key != storeKey {
		t.Fatalf("Import = %v, %v", key, err)
	}
	if diff := cmp.Diff([]int{2, 500, 500, 203}, store.sizes); diff != "" {
		t.Errorf("sizes of appends (-want +got):\n%s", diff)
	}
	if _, err := transcript.Import(t.Context(), store, id1, opts); !errors.Is(err, transcript.ErrExists) {
		t.Errorf("second Import = %v, want ErrExists", err)
	}
	r, err := transcript.Materialise(t.Context(), store, key, transcript.ResumeOptions{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if diff := cmp.Diff(files, tree(t, r.ProjectsDir())); diff != "" {
		t.Errorf("materialised (-want +got):\n%s", diff)
	}
}

type counting struct {
	*transcript.MemoryStore
	sizes []int
}

func (c *counting) Append(ctx context.Context, key transcript.Key, entries []json.RawMessage) error {
	c.sizes = append(c.sizes, len(entries))
	return c.MemoryStore.Append(ctx, key, entries)
}
