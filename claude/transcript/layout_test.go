// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude/transcript"
)

const (
	id1 = "11111111-0000-4000-8000-000000000001"
	id2 = "22222222-0000-4000-8000-000000000002"
	id3 = "33333333-0000-4000-8000-000000000003"
)

// configDir makes a config directory; files are named below its projects directory.
func configDir(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, "projects", name), text)
	}
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// userLine is the least that makes a session.
func userLine(id, text string) string {
	return `{"type":"user","uuid":"u-` + text + `","parentUuid":null,"sessionId":"` + id + `","isSidechain":false,` +
		`"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"` + text + `"}}` + "\n"
}

func TestProjectKey_Names(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths below are of Unix: run on Linux or macOS")
	}
	long := "/no/such/" + strings.Repeat("é/", 120)
	tests := []struct{ name, cwd, want string }{
		{"plain", "/no/such/dir", "-no-such-dir"},
		{"every other character is a dash", "/no/such/a b_c.d-1", "-no-such-a-b-c-d-1"},
		{"two units outside the basic plane", "/no/such/😀", "-no-such---"},
		{"decomposed letters stay decomposed", "/no/such/e\u0301", "-no-such-e-"},
		// The CLI made a directory of this name.
		{
			"long path as the CLI hashed it", "/tmp/texp-claude-code/" + strings.Repeat("a", 120) + "/" + strings.Repeat("bé", 60),
			"-tmp-texp-claude-code-" + strings.Repeat("a", 120) + "-" + strings.Repeat("b-", 28) + "b" + "-shkccd",
		},
		{"200 units are not cut", "/" + strings.Repeat("x", 199), "-" + strings.Repeat("x", 199)},
		{"long and not existing", strings.TrimSuffix(long, "/"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := transcript.ProjectKey(tt.cwd)
			if tt.want == "" {
				if len(got) < 202 || got[200] != '-' {
					t.Errorf("ProjectKey = %q, want 200 units, a dash and a hash", got)
				}
				return
			}
			if got != tt.want {
				t.Errorf("ProjectKey(%q)\n got %q\nwant %q", tt.cwd, got, tt.want)
			}
		})
	}
}

func TestProjectKey_ResolvesLinks(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skipf("%v: run where links can be made", err)
	}
	if got, want := transcript.ProjectKey(link), transcript.ProjectKey(dir); got != want {
		t.Errorf("ProjectKey(link) = %q, want %q", got, want)
	}
}

func TestConfigDir_Order(t *testing.T) {
	t.Setenv("HOME", "/home/nobody")
	t.Setenv("USERPROFILE", "/home/nobody")
	for _, tt := range []struct{ name, explicit, variable, want string }{
		{"explicit goes first", "/x", "/y", "/x"},
		{"then the variable", "", "/y", "/y"},
		{"then the home directory", "", "", "/home/nobody/.claude"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("CLAUDE_CONFIG_DIR", tt.variable)
			got, err := transcript.ConfigDir(tt.explicit)
			if filepath.ToSlash(got) != tt.want || err != nil {
				t.Errorf("ConfigDir = %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestProject_DirectoryNameCanBeOverridden(t *testing.T) {
	dir := configDir(t, map[string]string{
		"named/" + id1 + ".jsonl":        userLine(id1, "named"),
		"-no-such-dir/" + id2 + ".jsonl": userLine(id2, "derived"),
	})
	for _, tt := range []struct{ name, variable, want string }{
		{"override", "named", id1},
		{"invalid override is ignored", "../named", id2},
		{"device name is ignored", "con", id2},
		{"none", "", id2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("CLAUDE_CODE_PROJECT_DIR_NAME", tt.variable)
			got := list(t, transcript.ListOptions{Options: transcript.Options{Dir: dir, Project: "/no/such/dir"}})
			if diff := cmp.Diff([]string{tt.want}, ids(got)); diff != "" {
				t.Errorf("sessions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProject_LongNameWithAnotherHash(t *testing.T) {
	cwd := "/no/such/" + strings.Repeat("long", 60)
	key := transcript.ProjectKey(cwd)
	dir := configDir(t, map[string]string{
		key[:201] + "otherhash/" + id1 + ".jsonl":    userLine(id1, "one"),
		key + "/" + id2 + ".jsonl":                   userLine(id2, "two"),
		key[:199] + "-no-" + "/" + id3 + ".jsonl":    userLine(id3, "three"),
		"-no-such-" + "/" + id3 + ".jsonl":           userLine(id3, "four"),
		transcript.ProjectKey(cwd[:50]) + "/x.jsonl": "",
	})
	got := ids(list(t, transcript.ListOptions{Options: transcript.Options{Dir: dir, Project: cwd}}))
	if len(got) != 2 {
		t.Errorf("sessions = %v, want those of both directories that begin with the cut key", got)
	}
}

func TestProject_IncludesItsWorktrees(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git: install it")
	}
	base := t.TempDir()
	repo, tree := filepath.Join(base, "repo"), filepath.Join(base, "tree")
	for _, args := range [][]string{
		{"init", "-q", repo},
		{"-C", repo, "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", repo, "worktree", "add", "-q", tree},
	} {
		cmd := exec.Command("git", args...)
		cmd.Env = append(os.Environ(), "HOME="+base, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	dir := configDir(t, map[string]string{
		transcript.ProjectKey(repo) + "/" + id1 + ".jsonl": userLine(id1, "repo"),
		transcript.ProjectKey(tree) + "/" + id2 + ".jsonl": userLine(id2, "tree"),
		"-elsewhere/" + id3 + ".jsonl":                     userLine(id3, "elsewhere"),
	})
	opts := transcript.Options{Dir: dir, Project: repo}
	if got := ids(list(t, transcript.ListOptions{Options: opts})); len(got) != 2 {
		t.Errorf("sessions = %v, want those of both worktrees", got)
	}
	opts.NoWorktrees = true
	if got := ids(list(t, transcript.ListOptions{Options: opts})); !cmp.Equal(got, []string{id1}) {
		t.Errorf("sessions without worktrees = %v, want %s", got, id1)
	}
	if _, err := transcript.Get(t.Context(), id2, transcript.Options{Dir: dir, Project: repo}); err != nil {
		t.Errorf("Get of a session in another worktree = %v", err)
	}
}

// A session id never becomes a path before it was checked.
func TestSessionID_IsNotAPath(t *testing.T) {
	dir := configDir(t, map[string]string{"p/" + id1 + ".jsonl": userLine(id1, "x")})
	write(t, filepath.Join(dir, "secret.jsonl"), userLine(id1, "secret"))
	opts := transcript.Options{Dir: dir}
	calls := map[string]func(ctx context.Context, id string) error{
		"Get":     func(ctx context.Context, id string) error { _, err := transcript.Get(ctx, id, opts); return err },
		"Entries": func(ctx context.Context, id string) error { _, err := transcript.Entries(ctx, id, opts); return err },
		"Messages": func(ctx context.Context, id string) error {
			_, err := transcript.Messages(ctx, id, transcript.MessagesOptions{Options: opts})
			return err
		},
		"Subagents": func(ctx context.Context, id string) error { _, err := transcript.Subagents(ctx, id, opts); return err },
		"SubagentMessages": func(ctx context.Context, id string) error {
			_, err := transcript.SubagentMessages(ctx, id, "a", transcript.MessagesOptions{Options: opts})
			return err
		},
		"Rename":    func(ctx context.Context, id string) error { return transcript.Rename(ctx, id, "t", opts) },
		"Tag":       func(ctx context.Context, id string) error { return transcript.Tag(ctx, id, "t", opts) },
		"Delete":    func(ctx context.Context, id string) error { return transcript.Delete(ctx, id, opts) },
		"Archive":   func(ctx context.Context, id string) error { return transcript.Archive(ctx, id, opts) },
		"Unarchive": func(ctx context.Context, id string) error { return transcript.Unarchive(ctx, id, opts) },
		"Fork": func(ctx context.Context, id string) error {
			_, err := transcript.Fork(ctx, id, transcript.ForkOptions{Options: opts})
			return err
		},
		"Import": func(ctx context.Context, id string) error {
			_, err := transcript.Import(ctx, transcript.NewMemoryStore(), id, opts)
			return err
		},
	}
	for name, call := range calls {
		for _, id := range []string{"", "../secret", "../../secret", "/etc/passwd", id1 + "/..", id1 + "\x00", "*", strings.Repeat("a", 36)} {
			if err := call(t.Context(), id); !errors.Is(err, transcript.ErrBadID) {
				t.Errorf("%s(%q) = %v, want ErrBadID", name, id, err)
			}
		}
		if err := call(t.Context(), id2); !errors.Is(err, transcript.ErrNotFound) {
			t.Errorf("%s(unknown id) = %v, want ErrNotFound", name, err)
		}
	}
}

func TestLayout_LinksOutOfTheFolderAreRefused(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, id1+".jsonl"), userLine(id1, "secret"))
	write(t, filepath.Join(outside, id2, "subagents", "agent-x.jsonl"), userLine(id2, "secret"))
	dir := configDir(t, map[string]string{"p/" + id2 + ".jsonl": userLine(id2, "x")})
	p := filepath.Join(dir, "projects", "p")
	for link, target := range map[string]string{
		filepath.Join(p, id1+".jsonl"):      filepath.Join(outside, id1+".jsonl"),
		filepath.Join(dir, "projects", "q"): outside,
		filepath.Join(p, id2):               filepath.Join(outside, id2),
		filepath.Join(p, id3+".jsonl"):      "../../../" + filepath.Base(outside) + "/" + id1 + ".jsonl",
	} {
		if err := os.Symlink(target, link); err != nil {
			t.Skipf("%v: run where links can be made", err)
		}
	}
	opts := transcript.Options{Dir: dir}
	if got := ids(list(t, transcript.ListOptions{Options: opts})); !cmp.Equal(got, []string{id2}) {
		t.Errorf("sessions = %v, want only %s", got, id2)
	}
	if _, err := transcript.Get(t.Context(), id1, opts); err == nil {
		t.Error("Get through a link = nil, want an error")
	}
	if got, err := transcript.Subagents(t.Context(), id2, opts); err == nil {
		t.Errorf("Subagents through a link = %v, want an error", got)
	}
	if err := transcript.Archive(t.Context(), id2, opts); err == nil {
		t.Error("Archive through a link = nil, want an error")
	}
	if err := transcript.Delete(t.Context(), id2, opts); err != nil {
		t.Errorf("Delete = %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, id2, "subagents", "agent-x.jsonl")); err != nil {
		t.Errorf("Delete went through the link: %v", err)
	}
}

func list(t testing.TB, opts transcript.ListOptions) []transcript.Info {
	t.Helper()
	got, err := transcript.List(context.Background(), opts)
	if err != nil {
		t.Fatalf("List = %v", err)
	}
	return got
}

func ids(infos []transcript.Info) []string {
	var list []string
	for _, i := range infos {
		list = append(list, i.SessionID)
	}
	return list
}

func touch(t testing.TB, path string, when time.Time) {
	t.Helper()
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}
