// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drover-agents/drover/advice"
)

// refused opens a workspace that must be refused, and checks that nothing is left.
func refused(t *testing.T, opts Options, reason string) {
	t.Helper()
	opts.TempDir, opts.NoCheckpoints = t.TempDir(), true
	w, err := Open(t.Context(), &opts)
	if err == nil {
		t.Errorf("it was opened with %q", tree(t, w.Root()))
		_ = w.Close()
	}
	security, ok := errors.AsType[*SecurityError](err)
	if !ok || !errors.Is(err, ErrSecurity) || !strings.Contains(security.Reason, reason) || security.Next == "" {
		t.Errorf("got %v, want a SecurityError that says %q, and what to do", err, reason)
	}
	if left := tree(t, opts.TempDir); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

func TestMount_HostPathOutsideTheRootsIsRefused(t *testing.T) {
	dir := host(t, "allowed/a.txt", "allowed/d/b.txt", "allowed-too/c.txt", "secret/key")
	link := func(target, name string) {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	link("../secret", "allowed/out")
	link("../secret/key", "allowed/key")
	link("allowed", "alias")
	roots := []string{filepath.Join(dir, "allowed")}
	const outside = "outside of the allowed roots"
	for _, c := range []struct {
		name, path string
		roots      []string
		follow     bool
		reason     string // empty: it is allowed
	}{
		{"inside", "allowed/d", roots, false, ""},
		{"the root itself", "allowed-too", []string{dir + "/allowed-too"}, false, ""},
		{"through a link to the root", "alias/d", roots, false, ""},
		{"a root that is a link", "allowed/d", []string{dir + "/alias"}, false, ""},
		{"a second root", "allowed-too", append([]string{dir + "/secret"}, dir+"/allowed-too"), false, ""},
		{"beside", "secret", roots, false, outside},
		{"a name that begins like the root's", "allowed-too", roots, false, outside},
		{"above", ".", roots, false, outside},
		{"climbing", "allowed/../secret", roots, false, outside},
		{"a link in the path", "allowed/out/key", roots, false, outside},
		{"a link to a folder", "allowed/out", roots, true, outside},
		{"a link to a file", "allowed/key", roots, true, outside},
		{"a link to a file that is not followed", "allowed/key", roots, false, "is a link"},
		{"no roots at all", "allowed/d", nil, false, "no folder of the host is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := Options{
				AllowedHostRoots: c.roots,
				Mounts:           []HostMount{{HostPath: dir + "/" + c.path, MountPath: "m", FollowSymlinks: c.follow}},
			}
			if c.reason == "" {
				opened(t, opts)
				return
			}
			refused(t, opts, c.reason)
		})
	}
	opened(t, Options{AllowAnyRoot: true, Mounts: []HostMount{{HostPath: dir + "/secret"}}})
}

func TestMount_LinkToAFileNeedsFollowSymlinks(t *testing.T) {
	dir := host(t, "a.txt")
	must(t, os.Symlink("a.txt", filepath.Join(dir, "link")))
	must(t, os.Symlink("missing", filepath.Join(dir, "dangling")))
	m := HostMount{HostPath: filepath.Join(dir, "link")}
	refused(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{m}}, "is a link")
	refused(t, Options{AllowAnyRoot: true, Mounts: []HostMount{{HostPath: filepath.Join(dir, "dangling")}}}, "is a link")
	m.FollowSymlinks = true
	w := opened(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{m}})
	info, err := os.Lstat(filepath.Join(w.Root(), "link"))
	if err != nil || !info.Mode().IsRegular() {
		t.Errorf("it is %v (%v), want a file", info, err)
	}
	if got := w.Previews()[0].ResolvedHost; got != filepath.Join(dir, "a.txt") {
		t.Errorf("it leads to %q", got)
	}
}

func TestMount_PathOutsideTheWorkspaceIsRefused(t *testing.T) {
	dir := host(t, "a.txt")
	for path, reason := range map[string]string{
		"/etc":           "absolute",
		"//":             "absolute",
		"..":             "leads out",
		"../x":           "leads out",
		"a/../../x":      "leads out",
		"a/b/../../../c": "leads out",
		".":              "names nothing",
		"./":             "names nothing",
		"a/..":           "names nothing",
		"a\x00b":         "leads out",
	} {
		t.Run(path, func(t *testing.T) {
			refused(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: dir, MountPath: path}}}, reason)
		})
	}
	for _, path := range []string{"...", "a/...b", "..a", "~", "$HOME", "not utf-8 \xff", "a/./b//c/"} {
		if runtime.GOOS != "linux" && !utf8.ValidString(path) {
			continue // other systems have no such names
		}
		w := opened(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: dir, MountPath: path}}})
		if _, err := os.Stat(filepath.Join(w.Root(), path, "a.txt")); err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
	refused(t, Options{AllowAnyRoot: true, Mounts: []HostMount{{HostPath: "/"}}}, "no base name")
}

func TestMount_CollidingPathsAreRefused(t *testing.T) {
	dir := host(t, "a/x", "b/x", "c/a/x")
	for name, mounts := range map[string][]HostMount{
		"the same path":              {{HostPath: dir + "/a", MountPath: "m"}, {HostPath: dir + "/b", MountPath: "./m"}},
		"the same base name":         {{HostPath: dir + "/a"}, {HostPath: dir + "/c/a"}},
		"inside of another":          {{HostPath: dir + "/a", MountPath: "m"}, {HostPath: dir + "/b", MountPath: "m/n/o"}},
		"around another":             {{HostPath: dir + "/a", MountPath: "m/n"}, {HostPath: dir + "/b", MountPath: "m"}},
		"the same thing once more":   {{HostPath: dir + "/a"}, {HostPath: dir + "/a"}},
		"a folder where a file will": {{HostPath: dir + "/a/x"}, {HostPath: dir + "/b", MountPath: "x/y"}},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, Options{AllowedHostRoots: []string{dir}, Mounts: mounts}, "collides")
		})
	}
	opened(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: dir + "/a", MountPath: "m/a"}, {HostPath: dir + "/a", MountPath: "m/ab"}}})
}

func TestMount_KeepsToItsByteBudget(t *testing.T) {
	dir := host(t, "d/12345", "d/e/678")
	for _, c := range []struct {
		name, path string
		limit      int64
		want       string
	}{
		{"a folder", "d", 13, "Mount exceeds byte budget: 14 > 13"},
		{"a folder with no room", "d", 0, "Mount exceeds byte budget: 14 > 0"},
		{"a file", "d/12345", 6, "Mount exceeds byte budget: 7 > 6"},
		{"enough for a folder", "d", 14, ""},
		{"enough for a file", "d/12345", 7, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			temp := t.TempDir()
			path := filepath.Join(dir, c.path)
			opts := Options{TempDir: temp, NoCheckpoints: true, AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: path, MaxBytes: &c.limit}}}
			w, err := Open(t.Context(), &opts)
			if c.want == "" {
				must(t, err)
				must(t, w.Close())
				return
			}
			budget, ok := errors.AsType[*BudgetError](err)
			if !ok || !errors.Is(err, ErrBudget) || !strings.Contains(advice.Text(err), c.want) || budget.Path != path || budget.Limit != c.limit {
				t.Errorf("got %v, want a BudgetError of %s with %q", err, path, c.want)
			}
			if left := tree(t, temp); len(left) > 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

func TestMount_FollowedLinksBecomeTheirTargets(t *testing.T) {
	dir := host(t, "m/a.txt", "m/deep/b.txt", "shared/s.txt", "shared/skip.md", "shared/more/t.txt", "other/o.txt")
	for name, target := range map[string]string{
		"m/to file": "deep/b.txt", "m/to folder": dir + "/shared", "m/chain": "to folder/more", "shared/more/further": "../../other",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	m := HostMount{HostPath: filepath.Join(dir, "m"), FollowSymlinks: true, Exclude: []string{"to folder/*.md"}}
	w := opened(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{m}})
	want := []string{
		"m/", "m/a.txt", "m/chain/", "m/chain/further/", "m/chain/further/o.txt", "m/chain/t.txt", "m/deep/", "m/deep/b.txt", "m/to file",
		"m/to folder/", "m/to folder/more/", "m/to folder/more/further/", "m/to folder/more/further/o.txt", "m/to folder/more/t.txt", "m/to folder/s.txt",
	}
	if got := tree(t, w.Root()); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
	if p := w.Previews()[0]; p.Links != 0 || p.Files != 8 {
		t.Errorf("the preview has %d links and %d files, want 0 and 8", p.Links, p.Files)
	}
	// Without the other roots the same links lead out.
	refused(t, Options{AllowedHostRoots: []string{filepath.Join(dir, "m")}, Mounts: []HostMount{m}}, "outside of the allowed roots")
	m.FollowSymlinks = false
	refused(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{m}}, "leads out")
}

func TestMount_CircularLinksAreRefused(t *testing.T) {
	for name, links := range map[string][]string{
		"to itself":          {"m/self", "."},
		"up":                 {"m/d/up", ".."},
		"to above the mount": {"m/d/up", "../.."},
		"by way of another":  {"m/d/x", "../../other", "other/back", "../m"},
		"two in turns":       {"m/d/x", "../../other/y", "other/y/z", "../../other"},
		"only links":         {"m/a", "b", "m/b", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := host(t, "m/d/f", "other/y/g")
			for i := 0; i < len(links); i += 2 {
				must(t, os.Symlink(links[i+1], filepath.Join(dir, links[i])))
			}
			temp := t.TempDir()
			opts := Options{TempDir: temp, NoCheckpoints: true, AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: dir + "/m", FollowSymlinks: true}}}
			if _, err := Open(t.Context(), &opts); err == nil || !strings.Contains(advice.Text(err), "next: ") {
				t.Errorf("it ended with %v", err)
			}
			if left := tree(t, temp); len(left) > 0 {
				t.Errorf("%q is left", left)
			}
		})
	}
}

// Each folder has two links to the next: thirty of them are a billion copies of the last.
func TestMount_LinksThatMultiplyAreRefused(t *testing.T) {
	dir := host(t, "29/")
	for i := range 29 {
		this, next := filepath.Join(dir, string(rune('a'+i))), filepath.Join("..", string(rune('a'+i+1)))
		must(t, os.MkdirAll(this, 0o755))
		must(t, os.Symlink(next, filepath.Join(this, "x")))
		must(t, os.Symlink(next, filepath.Join(this, "y")))
	}
	must(t, os.MkdirAll(filepath.Join(dir, string(rune('a'+29))), 0o755))
	refused(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: dir + "/a", FollowSymlinks: true}}}, "too many links")
}

func TestMount_WorkspaceInsideTheMountIsNotCopied(t *testing.T) {
	dir := host(t, "a.txt", "tmp/")
	w := opened(t, Options{TempDir: filepath.Join(dir, "tmp"), AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: dir, MountPath: "m"}}})
	if got := tree(t, w.Root()); strings.Join(got, " ") != "m/ m/a.txt m/tmp/" {
		t.Errorf("it has %q", got)
	}
}
