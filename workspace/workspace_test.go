// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
)

// host makes a folder with files that have their own names as content. A name that ends in a slash is a
// folder.
func host(t testing.TB, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, name := range names {
		full := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(full, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		must(t, os.WriteFile(full, []byte(name), 0o644))
	}
	return dir
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// opened opens a workspace without checkpoints for the time of a test, in a folder of the test.
func opened(t testing.TB, opts Options) *Workspace {
	t.Helper()
	if opts.TempDir == "" {
		opts.TempDir = t.TempDir()
	}
	opts.NoCheckpoints = true
	w, err := Open(t.Context(), &opts)
	must(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// tree lists what is below a folder. Folders end in a slash.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	found := []string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.IsDir() {
			rel += "/"
		}
		found = append(found, filepath.ToSlash(rel))
		return nil
	}))
	slices.Sort(found)
	return found
}

func TestOpen_CopiesEachMountToItsPath(t *testing.T) {
	dir := host(t, "project/main.go", "project/src/a.go", "project/vendor/x.go", "notes.txt", "data/deep/1.csv")
	must(t, os.Symlink("data", filepath.Join(dir, "today")))
	w := opened(t, Options{
		AllowedHostRoots: []string{dir},
		Mounts: []HostMount{
			{HostPath: filepath.Join(dir, "project"), Exclude: []string{"vendor/"}},
			{HostPath: filepath.Join(dir, "notes.txt"), MountPath: "docs/read me.txt"},
			{HostPath: filepath.Join(dir, "today"), MountPath: "./in/x/../put/", Include: []string{"**/*.csv"}},
		},
	})
	want := []string{
		"docs/", "docs/read me.txt", "in/", "in/put/", "in/put/deep/", "in/put/deep/1.csv",
		"project/", "project/main.go", "project/src/", "project/src/a.go",
	}
	if diff := cmp.Diff(want, tree(t, w.Root())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	previews := []Preview{
		{
			HostPath: dir + "/project", ResolvedHost: dir + "/project", MountPath: "project", Directory: true,
			Entries: []string{"main.go", "src/a.go"}, Files: 2, Folders: 1, BytesCopied: 31,
		},
		{
			HostPath: dir + "/notes.txt", ResolvedHost: dir + "/notes.txt", MountPath: "docs/read me.txt",
			Entries: []string{"notes.txt"}, Files: 1, BytesCopied: 9,
		},
		{
			HostPath: dir + "/today", ResolvedHost: dir + "/data", MountPath: "in/put", Directory: true,
			Entries: []string{"deep/1.csv"}, Files: 1, Folders: 1, BytesCopied: 15,
		},
	}
	if diff := cmp.Diff(previews, w.Previews()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	must(t, os.WriteFile(filepath.Join(w.Root(), "project/main.go"), []byte("changed"), 0o644))
	must(t, os.WriteFile(filepath.Join(w.Root(), "new"), nil, 0o644)) // beside the mounts
	if content, _ := os.ReadFile(filepath.Join(dir, "project/main.go")); string(content) != "project/main.go" {
		t.Errorf("the host's file has become %q", content)
	}
}

func TestWorkspace_KeepOnCloseRemovesCheckpoints(t *testing.T) {
	temp := t.TempDir()
	w, err := Open(t.Context(), &Options{TempDir: temp, KeepOnClose: true})
	must(t, err)
	must(t, w.Close())
	if left := tree(t, temp); len(left) != 1 || left[0] != filepath.Base(w.Root())+"/" {
		t.Errorf("%q is left, want the folder alone", left)
	}
}

// A workspace that an earlier version was killed over had another prefix.
func TestOpen_RemovesWorkspacesUnderTheFormerPrefix(t *testing.T) {
	const text = "The folder of this name without .lock is a workspace of Drover, and that with .store has its checkpoints.\n" +
		"All are removed when the workspace is closed, or by a later one when the program was killed.\n"
	temp := t.TempDir()
	left := filepath.Join(temp, "wink-sdk-NAMEOFAFOLDER234")
	must(t, os.Mkdir(left, 0o700))
	must(t, os.Mkdir(left+".store", 0o700))
	must(t, os.WriteFile(left+".lock", []byte(text), 0o600))
	for _, prefix := range []string{"", "mine-"} {
		opened(t, Options{TempDir: temp, Prefix: prefix})
		if found, _ := filepath.Glob(left + "*"); len(found) > 0 {
			t.Errorf("with the prefix %q %q are left", prefix, found)
		}
		must(t, os.Mkdir(left, 0o700))
		must(t, os.WriteFile(left+".lock", []byte(text), 0o600))
	}
}

func TestWorkspace_IsAPrivateFolderThatCloseRemoves(t *testing.T) {
	for _, c := range []struct {
		name, prefix, want string
		keep               bool
	}{
		{"by default", "", "drover-workspace-", false},
		{"with a prefix", "mine-", "mine-", false},
		{"kept", "", "drover-workspace-", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			w := opened(t, Options{TempDir: temp, Prefix: c.prefix, KeepOnClose: c.keep})
			info, err := os.Stat(w.Root())
			if err != nil || !strings.HasPrefix(info.Name(), c.want) || info.Mode().Perm() != 0o700 || !filepath.IsAbs(w.Root()) {
				t.Errorf("the folder is %s with %v: %v", w.Root(), info.Mode(), err)
			}
			shut := filepath.Join(w.Root(), "shut")
			must(t, os.MkdirAll(filepath.Join(shut, "in"), 0o700))
			must(t, os.Chmod(shut, 0))
			for range 2 {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}
			_ = os.Chmod(shut, 0o700)
			left, _ := os.ReadDir(temp)
			if c.keep != (len(left) == 1) || c.keep && left[0].Name() != filepath.Base(w.Root()) {
				t.Errorf("%d entries are left: %v", len(left), left)
			}
		})
	}
}

func TestClose_MissingFolderIsNoError(t *testing.T) {
	w := opened(t, Options{})
	must(t, os.RemoveAll(w.Root()))
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

func TestWorkspace_UnreachableWorkspaceIsRemoved(t *testing.T) {
	temp := t.TempDir()
	root := func() string {
		w, err := Open(t.Context(), &Options{TempDir: temp})
		must(t, err)
		return w.Root()
	}()
	for range 100 {
		runtime.GC()
		if left, _ := os.ReadDir(temp); len(left) == 0 {
			if _, known := openWorkspaces.Load(root); known {
				t.Error("it is still listed as open")
			}
			return
		}
		time.Sleep(10 * time.Millisecond) // the collector works on its own
	}
	t.Error("the folder is still there")
}

func TestWorkspace_BaseHasTheMountedFiles(t *testing.T) {
	dir := host(t, "a.txt", "d/b.txt")
	temp := t.TempDir()
	w, err := Open(t.Context(), &Options{TempDir: temp, AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: dir, MountPath: "m"}}})
	must(t, err)
	files, err := w.Base().Files()
	must(t, err)
	var got []string
	for _, f := range files {
		got = append(got, f.Path)
	}
	if diff := cmp.Diff([]string{"m", "m/a.txt", "m/d", "m/d/b.txt"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	must(t, os.WriteFile(filepath.Join(w.Root(), "m/a.txt"), []byte("changed"), 0o644))
	must(t, os.RemoveAll(filepath.Join(w.Root(), "m/d")))
	_, err = w.Tree().Rollback(t.Context(), w.Base(), nil)
	must(t, err)
	for _, name := range []string{"a.txt", "d/b.txt"} {
		if content, _ := os.ReadFile(filepath.Join(w.Root(), "m", name)); string(content) != name {
			t.Errorf("%s is %q after the rollback", name, content)
		}
	}
	must(t, w.Close())
	if left := tree(t, temp); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
	if _, err := w.Tree().Checkpoint(t.Context()); err == nil {
		t.Error("the tree of a closed workspace is still open")
	}
}

func TestWorkspace_WithoutCheckpointsHasNoTree(t *testing.T) {
	if w := opened(t, Options{}); w.Tree() != nil || w.Base() != nil {
		t.Errorf("it has %v and %v", w.Tree(), w.Base())
	}
}

func TestWorkspace_ReachableWorkspaceIsNotRemoved(t *testing.T) {
	w := opened(t, Options{})
	for range 3 {
		runtime.GC()
	}
	if _, err := os.Stat(w.Root()); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(w)
}

type attachment struct{ closed int }

func (a *attachment) Close() error { a.closed++; return nil }

func TestWorkspace_AttachmentIsClosedOnce(t *testing.T) {
	w := opened(t, Options{NoCheckpoints: true})
	attach := func(key any, a *attachment, err error) (io.Closer, error) {
		return w.Attach(key, func() (io.Closer, error) { return a, err })
	}
	var first, second, other attachment
	if _, err := attach("a", &first, errors.New("not yet")); err == nil {
		t.Error("an attachment that failed to open is there")
	}
	if got, err := attach("a", &first, nil); got != &first || err != nil {
		t.Errorf("Attach = %v, %v", got, err)
	}
	if got, err := attach("a", &second, nil); got != &first || err != nil {
		t.Errorf("the second Attach = %v, %v, want the first", got, err)
	}
	if got, err := attach("b", &other, nil); got != &other || err != nil {
		t.Errorf("Attach of another key = %v, %v", got, err)
	}
	must(t, w.Close())
	must(t, w.Close())
	if first.closed != 1 || other.closed != 1 || second.closed != 0 {
		t.Errorf("closed %d, %d and %d times, want 1, 1 and 0", first.closed, other.closed, second.closed)
	}
	if _, err := attach("a", &first, nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Attach to a closed workspace: %v", err)
	}
}

func TestOpen_DispatchesARecordToTheSession(t *testing.T) {
	dir := host(t, "a.txt")
	s := session.New(&session.Options{ID: "session-1"})
	before := time.Now().Add(-time.Second)
	w := opened(t, Options{Session: s, AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: dir + "/a.txt"}}})
	record, ok := session.Query[Record](s).Latest()
	if !ok || record.TempDir != w.Root() || record.SessionID != "session-1" || record.CreatedAt.Before(before) {
		t.Errorf("the record is %+v", record)
	}
	if diff := cmp.Diff(w.Previews(), record.Previews); diff != "" {
		t.Error(diff)
	}
	if place, _ := session.Query[session.Workspace](s).Latest(); place.Root != w.Root() {
		t.Errorf("the session works in %q, want %q", place.Root, w.Root())
	}
	raw, err := json.Marshal(record)
	must(t, err)
	var again Record
	must(t, json.Unmarshal(raw, &again))
	if diff := cmp.Diff(record, again); diff != "" {
		t.Errorf("the record does not survive: %s", diff)
	}
	second := opened(t, Options{Session: s})
	if latest, _ := session.Query[Record](s).Latest(); latest.TempDir != second.Root() {
		t.Errorf("the latest record is of %q, want %q", latest.TempDir, second.Root())
	}
}

func TestOpen_FailureLeavesNothingBehind(t *testing.T) {
	dir := host(t, "good/a.txt", "good/b.txt", "large", "bad/")
	must(t, os.Symlink("/etc", filepath.Join(dir, "bad/link")))
	closed := session.New(nil)
	must(t, closed.Close())
	good := HostMount{HostPath: filepath.Join(dir, "good")}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		opts Options
		want error
	}{
		{"a link that leads out", t.Context(), Options{Mounts: []HostMount{good, {HostPath: filepath.Join(dir, "bad")}}}, ErrSecurity},
		{"over the budget", t.Context(), Options{Mounts: []HostMount{good, {HostPath: filepath.Join(dir, "large"), MaxBytes: new(int64(1))}}}, ErrBudget},
		{"a mount that is missing", t.Context(), Options{Mounts: []HostMount{good, {HostPath: filepath.Join(dir, "missing")}}}, fs.ErrNotExist},
		{"a glob that cannot be read", t.Context(), Options{Mounts: []HostMount{good, {HostPath: dir, MountPath: "x", Exclude: []string{"["}}}}, nil},
		{"no host path", t.Context(), Options{Mounts: []HostMount{good, {}}}, nil},
		{"a root that is missing", t.Context(), Options{Mounts: []HostMount{good}, AllowedHostRoots: []string{dir, dir + "/missing"}}, fs.ErrNotExist},
		{"an empty root", t.Context(), Options{Mounts: []HostMount{good}, AllowedHostRoots: []string{""}}, nil},
		{"a canceled context", canceled, Options{Mounts: []HostMount{good}}, context.Canceled},
		{"a canceled context without mounts", canceled, Options{}, context.Canceled},
		{"a session that is closed", t.Context(), Options{Mounts: []HostMount{good}, Session: closed}, nil},
		{"contents that the store has no room for", t.Context(), Options{Mounts: []HostMount{good}, Tree: TreeOptions{MaxDisk: 1}}, ErrBudget},
		{"a prefix with a slash", t.Context(), Options{Prefix: "../x"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			c.opts.TempDir = temp
			if c.opts.AllowedHostRoots == nil {
				c.opts.AllowedHostRoots = []string{dir}
			}
			w, err := Open(c.ctx, &c.opts)
			if err == nil {
				_ = w.Close()
				t.Fatal("it was opened")
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("it failed with %v, want %v", err, c.want)
			}
			if left := tree(t, temp); len(left) > 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
	if _, err := Open(t.Context(), &Options{TempDir: filepath.Join(dir, "missing"), NoCheckpoints: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder was made in one that is missing: %v", err)
	}
}

// Sessions run code of the program's, which may end the goroutine, as a test does that fails.
func TestOpen_GoexitLeavesNothingBehind(t *testing.T) {
	temp := t.TempDir()
	s := session.New(nil)
	session.Reduce(s, func(n int, _ Record) int { runtime.Goexit(); return n })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if w, err := Open(context.Background(), &Options{TempDir: temp, Session: s}); err == nil {
			_ = w.Close()
			t.Error("it returned")
		}
	}()
	<-ended
	if left := tree(t, temp); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

func TestWorkspace_CopiesItsMounts(t *testing.T) {
	dir := host(t, "a.txt")
	m := HostMount{HostPath: dir, MountPath: "m", Include: []string{"a*"}, Exclude: []string{"b"}, MaxBytes: new(int64(100))}
	w := opened(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{m}})
	before := w.Fingerprint()
	m.Include[0], m.Exclude[0], *m.MaxBytes = "x", "y", 1
	if after := w.Fingerprint(); after != before {
		t.Errorf("the fingerprint is %s after the caller changed its own mounts, want %s", after, before)
	}
}

func TestFingerprint_CoversEveryFieldOfTheMounts(t *testing.T) {
	plain := HostMount{HostPath: "a", MountPath: "b", Include: []string{"c"}, Exclude: []string{"d"}, MaxBytes: new(int64(1)), FollowSymlinks: true}
	change := func(f func(m *HostMount)) []HostMount {
		m := plain
		f(&m)
		return []HostMount{m}
	}
	seen := map[string]string{fingerprintOf([]HostMount{plain}): "the plain one", fingerprintOf(nil): "none"}
	for name, mounts := range map[string][]HostMount{
		"host path":         change(func(m *HostMount) { m.HostPath = "A" }),
		"mount path":        change(func(m *HostMount) { m.MountPath = "" }),
		"include":           change(func(m *HostMount) { m.Include = nil }),
		"include and d":     change(func(m *HostMount) { m.Include = []string{"c", "d"} }),
		"include of spaces": change(func(m *HostMount) { m.Include = []string{`c" "d`} }),
		"exclude":           change(func(m *HostMount) { m.Exclude = nil }),
		"no limit":          change(func(m *HostMount) { m.MaxBytes = nil }),
		"limit of zero":     change(func(m *HostMount) { m.MaxBytes = new(int64(0)) }),
		"links":             change(func(m *HostMount) { m.FollowSymlinks = false }),
		"twice":             {plain, plain},
	} {
		got := fingerprintOf(mounts)
		if seen[got] != "" || len(got) != 64 {
			t.Errorf("%s has the fingerprint %s of %s", name, got, seen[got])
		}
		seen[got] = name
	}
	dir := host(t, "f")
	opts := Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: dir + "/f"}}}
	first := opened(t, opts).Fingerprint()
	must(t, os.WriteFile(dir+"/f", []byte("other"), 0o644))
	if again := opened(t, opts).Fingerprint(); again != first {
		t.Errorf("the fingerprint depends on what the files hold: %s, %s", first, again)
	}
}

func TestFrom_FindsTheWorkspaceInTheContext(t *testing.T) {
	w := opened(t, Options{})
	if _, ok := From(t.Context()); ok {
		t.Error("there is one where none was put")
	}
	if got, ok := From(With(t.Context(), w)); !ok || got != w {
		t.Errorf("found %v, %v", got, ok)
	}
}

func TestPreviews_ReturnsACopy(t *testing.T) {
	dir := host(t, "a.txt")
	w := opened(t, Options{AllowAnyRoot: true, Mounts: []HostMount{{HostPath: dir, MountPath: "m"}}})
	w.Previews()[0].Entries[0] = "changed"
	if got := w.Previews()[0].Entries[0]; got != "a.txt" {
		t.Errorf("it has become %q", got)
	}
}
