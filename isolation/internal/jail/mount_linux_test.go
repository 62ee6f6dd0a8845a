// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

// tree makes files below a new folder; the folder itself is for its owner alone.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMounts_ShowTheirSources(t *testing.T) {
	requireCells(t)
	private := tree(t, map[string]string{"work/a": "A", "work/kept/b": "B", "read/c": "C", "program": "P"})
	work, readable := filepath.Join(private, "work"), filepath.Join(private, "read")
	s := shellSpec(strings.Join([]string{
		"cat a kept/b " + readable + "/c /opt/program", "echo",
		"echo new > new && mkdir dir && mv a dir/a && echo written",
		"echo x 2>/dev/null > kept/x || echo kept", "echo x 2>/dev/null > " + readable + "/x || echo read-only",
		"ls " + private,
	}, "\n"))
	s.Dir = work
	s.Mounts = []jail.Mount{
		{Source: filepath.Join(work, "kept")}, // below the next one, although it comes first
		{Source: work, Writable: true},
		{Source: readable},
		{Source: filepath.Join(private, "program"), Target: "/opt/program"},
	}
	want := "ABCP\nwritten\nkept\nread-only\nread\nwork"
	if diff := cmp.Diff(want, output(t, s)); diff != "" {
		t.Errorf("seen inside (-want +got):\n%s", diff)
	}
	checkOwner(t, filepath.Join(work, "new"), work)
	checkOwner(t, filepath.Join(work, "dir", "a"), work)
}

// A workspace of another user keeps its owner, and so does what the cell makes there. Files that a
// third user owns keep theirs.
func TestRootCell_WritesAsTheOwner(t *testing.T) {
	requireCells(t)
	if os.Geteuid() != 0 {
		t.Skip("owners differ only where root starts cells: run as root")
	}
	for _, owner := range [][2]int{{0, 0}, {1000, 1000}, {1234, 0}, {65534, 65534}, {0, 65534}} {
		t.Run(fmt.Sprint(owner), func(t *testing.T) {
			private := tree(t, map[string]string{"work/mine": "1", "work/others": "2"})
			work := filepath.Join(private, "work")
			for name, id := range map[string][2]int{"work": owner, "work/mine": owner, "work/others": {4321, 4321}} {
				if err := os.Chown(filepath.Join(private, name), id[0], id[1]); err != nil {
					t.Fatal(err)
				}
			}
			s := shellSpec("id -u; stat -c %u . mine others; cat mine; echo; cat others 2>/dev/null; echo x > new && echo y >> mine && echo ok")
			s.Dir, s.Mounts = work, []jail.Mount{{Source: work, Writable: true}}
			if got, want := output(t, s), "1000\n1000\n1000\n65534\n1\nok"; got != want {
				t.Errorf("inside: got %q, want %q", got, want)
			}
			checkOwner(t, filepath.Join(work, "new"), work)
			if got, want := ownerOf(t, filepath.Join(work, "others")), [2]uint32{4321, 4321}; got != want {
				t.Errorf("owner of a third one's file: got %v, want %v", got, want)
			}
		})
	}
}

// The host user of a cell that root starts is never root.
func TestRootCell_IsNeverRoot(t *testing.T) {
	requireCells(t)
	if os.Geteuid() != 0 {
		t.Skip("this is not root already: run as root")
	}
	for uid, want := range map[uint32]uint32{0: 65534, 4711: 4711} {
		s := roleSpec(t, "child")
		s.UID = uid
		cell := startCell(t, s)
		cell.awaitLine(t, "ready")
		for _, pid := range proc.Descendants(cell.Init()) {
			if got := ownerOf(t, fmt.Sprintf("/proc/%d", pid)); got != [2]uint32{want, want} {
				t.Errorf("pid %d belongs to %v, want %d", pid, got, want)
			}
			groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if strings.Contains(string(groups), "\nGroups:\t0") {
				t.Errorf("pid %d has kept root's groups", pid)
			}
		}
	}
}

func TestMounts_TakeSockets(t *testing.T) {
	requireCells(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var wg sync.WaitGroup
	wg.Go(func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Write([]byte("from outside"))
			_ = c.Close()
		}
	})
	s := roleSpec(t, "dial", "unix", path)
	s.Mounts = append(s.Mounts, jail.Mount{Source: path})
	if got, want := output(t, s), "from outside"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	_ = l.Close()
	wg.Wait()
}

// Nothing stays mounted on the host, whether a cell ends well, is killed, or never comes to run.
func TestMounts_NothingStaysMounted(t *testing.T) {
	requireCells(t)
	mounts := func() string {
		info, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			t.Fatal(err)
		}
		return string(info)
	}
	before, dir := mounts(), t.TempDir()
	folder := []jail.Mount{{Source: dir, Writable: true}}
	output(t, jail.Spec{Path: "/bin/true", Mounts: folder})
	running := startCell(t, jail.Spec{Path: "/bin/cat", Mounts: folder})
	if diff := cmp.Diff(before, mounts()); diff != "" {
		t.Errorf("mounts of the host while a cell runs (-before +now):\n%s", diff)
	}
	_ = running.Kill()
	running.Wait()
	stop := errors.New("stop")
	for name, s := range map[string]jail.Spec{
		"no such mount":   {Path: "/bin/true", Mounts: append(folder, jail.Mount{Source: dir + "/none"})},
		"no such program": {Path: "/bin/none", Mounts: folder},
		"not confined":    {Path: "/bin/true", Mounts: folder, Confine: func([]int) error { return stop }},
		"no such folder":  {Path: "/bin/true", Mounts: folder, Dir: "/none"},
	} {
		_, err := jail.Start(t.Context(), s)
		if err == nil || name == "not confined" && !errors.Is(err, stop) || name == "no such program" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if diff := cmp.Diff(before, mounts()); diff != "" {
		t.Errorf("mounts of the host (-before +after):\n%s", diff)
	}
}

// On most machines mounts are shared: what one namespace mounts shows up in others. That is tried in a
// namespace that the test makes.
func TestMounts_NothingStaysInASharedNamespace(t *testing.T) {
	requireCells(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root for mounts of its own: run as root")
	}
	shared := "mount --make-rshared / && exec /proc/self/fd/3 -test.v -test.run '^TestMounts_NothingStaysMounted$'"
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", shared)
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = self.Close() }()
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + t.TempDir()}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestMounts_NothingStaysMounted") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A file system that cannot be id-mapped is an error that names it, unless the mount is read-only and
// for everybody.
func TestRootCell_NeedsMappableFileSystems(t *testing.T) {
	requireCells(t)
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user needs no id-mapped mounts: run as root")
	}
	const source = "/sys/kernel"
	if _, err := os.Stat(source); err != nil {
		t.Skip("needs sysfs: mount it at /sys")
	}
	_, err := jail.Start(t.Context(), jail.Spec{Path: "/bin/true", Mounts: []jail.Mount{{Source: source, Writable: true}}})
	for _, want := range []string{source, "next: run as an ordinary user"} {
		if err == nil || !strings.Contains(advice.Text(err), want) {
			t.Errorf("writable: got %v, want %q in it", err, want)
		}
	}
	s := shellSpec("ls -d " + source + "/mm; touch " + source + "/x 2>/dev/null || echo refused")
	s.Mounts = []jail.Mount{{Source: source}}
	if got, want := output(t, s), source+"/mm\nrefused"; got != want {
		t.Errorf("read-only: got %q, want %q", got, want)
	}
}

func TestStart_StopsWithItsContext(t *testing.T) {
	requireCells(t)
	ctx, cancel := context.WithCancel(t.Context())
	s := jail.Spec{Path: "/bin/true", Confine: func([]int) error { cancel(); return ctx.Err() }}
	if _, err := jail.Start(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
