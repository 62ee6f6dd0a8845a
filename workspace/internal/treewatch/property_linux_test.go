// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/internal/testkit"
)

// A model is the knowledge of a tree of a reader that only looks at reported paths.
type model struct {
	t       testing.TB
	dir     string
	w       *Watcher
	entries map[string]string // path to all that can be seen
	inodes  map[string]uint64 // of files
	many    map[uint64]bool   // those that ever had several names
}

func newModel(t testing.TB, dir string) *model {
	w, err := New(dir, nil)
	must(t, err)
	m := &model{t: t, dir: dir, w: w}
	m.scanAll()
	return m
}

func (m *model) scanAll() {
	m.entries, m.inodes, m.many = make(map[string]string), make(map[string]uint64), make(map[uint64]bool)
	m.scan(".")
}

// refresh looks at what is reported, and at files with several names.
func (m *model) refresh() (overflow bool) {
	hints := take(m.t, m.w)
	if hints.Overflow {
		m.scanAll()
		return true
	}
	for path, hint := range hints.Files {
		if hint != Opened {
			m.look(path)
		}
	}
	for path := range hints.Dirs {
		m.forget(path)
		m.scan(path)
	}
	for path, file := range m.inodes {
		if m.many[file] {
			m.look(path)
		}
	}
	return false
}

func (m *model) scan(path string) {
	must(m.t, m.w.Add(path)) // before looking at it: its times may change at once
	if m.look(path) != fs.ModeDir {
		return
	}
	names, err := os.ReadDir(filepath.Join(m.dir, path))
	if err != nil && !gone(err) {
		m.t.Fatal(err)
	}
	for _, name := range names {
		m.scan(filepath.Join(path, name.Name()))
	}
}

// look notes what is at a path, and returns its type. It follows no links.
func (m *model) look(path string) fs.FileMode {
	var st unix.Stat_t
	fd, err := unix.Openat2(unix.AT_FDCWD, filepath.Join(m.dir, path), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
	if err == nil {
		defer unix.Close(fd)
		must(m.t, unix.Fstat(fd, &st))
	}
	kind := st.Mode & unix.S_IFMT
	if err != nil || kind != unix.S_IFDIR {
		m.forget(path)
	}
	if err != nil {
		if !gone(err) {
			m.t.Fatal(err)
		}
		return fs.ModeIrregular
	}
	text := fmt.Sprintf("%o %d %d.%09d %d", st.Mode, st.Ino, st.Mtim.Sec, st.Mtim.Nsec, st.Uid)
	switch kind {
	case unix.S_IFDIR:
		m.entries[path] = text
		return fs.ModeDir
	case unix.S_IFLNK:
		target := make([]byte, 100)
		n, err := unix.Readlinkat(fd, "", target)
		must(m.t, err)
		m.entries[path] = text + " " + string(target[:n])
		return fs.ModeSymlink
	}
	content, err := os.ReadFile("/proc/self/fd/" + itoa(fd))
	if err != nil && !gone(err) {
		m.t.Fatal(err)
	}
	m.entries[path] = text + " " + string(content)
	m.inodes[path] = st.Ino
	if st.Nlink > 1 {
		m.many[st.Ino] = true
	}
	return 0
}

func (m *model) forget(path string) {
	for known := range m.entries {
		if known == path || strings.HasPrefix(known, path+"/") {
			delete(m.entries, known)
			delete(m.inodes, known)
		}
	}
}

// truth is what is in the tree, seen without a watcher.
func (m *model) truth() map[string]string {
	w, err := New(m.dir, nil)
	must(m.t, err)
	defer w.Close()
	fresh := &model{t: m.t, dir: m.dir, w: w}
	fresh.scanAll()
	return fresh.entries
}

func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// aScript draws commands for a shell. Most of them fail now and then, which is of no matter.
func aScript(rt *rapid.T) string {
	path := rapid.Custom(func(rt *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 3).Draw(rt, "path"), "/")
	})
	command := rapid.SampledFrom([]string{
		"mkdir -p %s", "mkdir %s", "rmdir %s", "rm -rf %s", "rm -f %s",
		"mv -T %s %s", "mv -T %s %s", "mv -T %s %s", "mv --exchange -T %s %s",
		"echo one >%s", "echo two >>%s", "printf x | dd of=%s conv=notrunc status=none", "truncate -s 5 %s",
		"ln %s %s", "ln -s a %s", "ln -sfT b %s", "cp -r %s %s", "cp -a %s %s",
		"chmod 700 %s", "chmod 755 %s", "touch -d '2001-01-01' %s", "touch %s",
		"mv -T %s ../out", "mv -T ../out %s", "cat %s", "ls -R %s",
	})
	var script strings.Builder
	for range rapid.IntRange(1, 25).Draw(rt, "commands") {
		line := command.Draw(rt, "command")
		args := make([]any, strings.Count(line, "%s"))
		for i := range args {
			args[i] = path.Draw(rt, "path")
		}
		fmt.Fprintf(&script, line+"\n", args...)
	}
	return script.String()
}

func shell(t testing.TB, dir, script string) *exec.Cmd {
	cmd := exec.Command("/bin/bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	must(t, cmd.Start())
	return cmd
}

// A reader that looks only at the reported paths knows the tree at any time, whatever another process does
// to it.
func TestHints_SufficeToFollowTheTree(t *testing.T) {
	for _, tt := range []struct {
		name       string
		whileItRun bool
	}{{"asked after each script", false}, {"asked while a script runs", true}} {
		t.Run(tt.name, func(t *testing.T) {
			parent := t.TempDir()
			n, overflows := 0, 0
			rapid.Check(t, func(rt *rapid.T) {
				if n++; n > testkit.Size(40, 400) {
					return // each costs dozens of processes
				}
				dir := filepath.Join(parent, itoa(n), "tree")
				must(t, os.MkdirAll(dir, 0o755))
				m := newModel(t, dir)
				defer m.w.Close()
				for range rapid.IntRange(1, 3).Draw(rt, "rounds") {
					script := aScript(rt)
					ended := make(chan struct{})
					cmd := shell(t, dir, script)
					go func() { _ = cmd.Wait(); close(ended) }()
					for running := tt.whileItRun; running; {
						select {
						case <-ended:
							running = false
						default:
							if m.refresh() {
								overflows++
							}
						}
					}
					<-ended
					if m.refresh() {
						overflows++
					}
					if diff := cmp.Diff(m.truth(), m.entries); diff != "" {
						rt.Fatalf("after\n%s\nthe tree differs from what is known (-tree +known):\n%s", script, diff)
					}
				}
			})
			t.Logf("%d overflows", overflows)
			if !tt.whileItRun && overflows > 0 {
				t.Errorf("%d overflows without a reason", overflows)
			}
		})
	}
}

func TestHints_SufficeToFollowGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip(err)
	}
	dir := t.TempDir() + "/tree"
	must(t, os.Mkdir(dir, 0o755))
	m := newModel(t, dir)
	defer m.w.Close()
	for _, script := range []string{
		"git init -q -b main", "mkdir d; echo 1 >a; echo 1 >d/b; git add -A; git commit -qm 1",
		"git checkout -qb other; echo 2 >a; git mv d e; git commit -qam 2", "git checkout -q main",
		"echo 3 >d/b; git stash -q", "git stash pop -q", "git reset -q --hard", "git merge -q other",
		"git gc -q --prune=now", "git clean -qfdx", "git worktree add -q w main~0 --detach", "git worktree remove w",
	} {
		cmd := exec.Command("/bin/bash", "-ec", script)
		cmd.Dir = dir
		cmd.Env = []string{
			"PATH=" + filepath.Dir(git) + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		}
		run(t, cmd)
		if m.refresh() {
			t.Errorf("%s: overflow", script)
		}
		if diff := cmp.Diff(m.truth(), m.entries); diff != "" {
			t.Fatalf("after %s the tree differs from what is known (-tree +known):\n%s", script, diff)
		}
	}
}
