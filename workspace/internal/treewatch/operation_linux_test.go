// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

// A test that needs another process starts this program again.
func TestMain(m *testing.M) {
	if path := os.Getenv("TREEWATCH_MAP_AND_EXIT"); path != "" {
		mapAndExit(path)
	}
	os.Exit(m.Run())
}

// mapAndExit writes through a mapping on request, and ends without unmapping.
func mapAndExit(path string) {
	mapping, err := mapShared(path)
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("mapped\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	mapping[0] = 'M'
	os.Exit(0)
}

// mapShared maps the first bytes of a file for writing, and closes the file.
func mapShared(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// eachFileSystem runs a test on the file system of temporary files, and on one in memory.
func eachFileSystem(t *testing.T, test func(t *testing.T, dir string)) {
	t.Run("disk", func(t *testing.T) { test(t, testkit.SharedFolder(t)) })
	t.Run("memory", func(t *testing.T) {
		dir, err := os.MkdirTemp("/dev/shm", "treewatch-")
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		must(t, os.Chmod(dir, 0o777))
		test(t, dir)
	})
}

func openFor(t *testing.T, path string, flag int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, flag, 0o644)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Each operation is done in a folder of its own with a file "f" and a file "g". Reported is what must be
// among the hints; the times of the folder are not listed.
var operations = []struct {
	name     string
	do       func(t *testing.T, dir string)
	reported map[string]Hint
}{
	{"write", func(t *testing.T, dir string) { write(t, dir+"/f", "new") }, map[string]Hint{"f": Written | Opened}},
	{"write, not closed", func(t *testing.T, dir string) {
		_, err := openFor(t, dir+"/f", os.O_WRONLY).WriteString("x")
		must(t, err)
	}, map[string]Hint{"f": Written | Opened}},
	{"append", func(t *testing.T, dir string) {
		_, err := openFor(t, dir+"/f", os.O_WRONLY|os.O_APPEND).WriteString("x")
		must(t, err)
	}, map[string]Hint{"f": Written}},
	{"truncate", func(t *testing.T, dir string) { must(t, os.Truncate(dir+"/f", 1)) }, map[string]Hint{"f": Written}},
	{"ftruncate", func(t *testing.T, dir string) { must(t, openFor(t, dir+"/f", os.O_RDWR).Truncate(1)) }, map[string]Hint{"f": Written}},
	{"fallocate", func(t *testing.T, dir string) {
		f := openFor(t, dir+"/f", os.O_RDWR)
		must(t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 2))
	}, map[string]Hint{"f": Written}},
	{"copy_file_range", func(t *testing.T, dir string) {
		from, to := openFor(t, dir+"/g", os.O_RDONLY), openFor(t, dir+"/f", os.O_RDWR)
		_, err := unix.CopyFileRange(int(from.Fd()), nil, int(to.Fd()), nil, 4, 0)
		must(t, err)
	}, map[string]Hint{"f": Written, "g": Opened}},
	{"sendfile", func(t *testing.T, dir string) {
		from, to := openFor(t, dir+"/g", os.O_RDONLY), openFor(t, dir+"/f", os.O_RDWR)
		_, err := unix.Sendfile(int(to.Fd()), int(from.Fd()), nil, 4)
		must(t, err)
	}, map[string]Hint{"f": Written}},
	{"create", func(t *testing.T, dir string) { write(t, dir+"/h", "") }, map[string]Hint{"h": Touched | Written}},
	{"symlink", func(t *testing.T, dir string) { must(t, os.Symlink("f", dir+"/h")) }, map[string]Hint{"h": Touched}},
	{"pipe", func(t *testing.T, dir string) { must(t, unix.Mkfifo(dir+"/h", 0o600)) }, map[string]Hint{"h": Touched}},
	{"remove", func(t *testing.T, dir string) { must(t, os.Remove(dir+"/f")) }, map[string]Hint{"f": Gone}},
	{"rename over", func(t *testing.T, dir string) { must(t, os.Rename(dir+"/g", dir+"/f")) }, map[string]Hint{"f": Touched, "g": Gone}},
	{"exchange", func(t *testing.T, dir string) {
		must(t, unix.Renameat2(unix.AT_FDCWD, dir+"/f", unix.AT_FDCWD, dir+"/g", unix.RENAME_EXCHANGE))
	}, map[string]Hint{"f": Touched, "g": Touched}},
	{"link", func(t *testing.T, dir string) { must(t, os.Link(dir+"/f", dir+"/h")) }, map[string]Hint{"h": Touched}},
	{"chmod", func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/f", 0o600)) }, map[string]Hint{"f": Touched}},
	{"fchmod", func(t *testing.T, dir string) { must(t, openFor(t, dir+"/f", os.O_RDONLY).Chmod(0o600)) }, map[string]Hint{"f": Touched}},
	{"chmod of the root", func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o700)) }, map[string]Hint{".": Touched}},
	{"chown", func(t *testing.T, dir string) { must(t, os.Lchown(dir+"/f", os.Getuid(), os.Getgid())) }, map[string]Hint{"f": Touched}},
	{"utimes", func(t *testing.T, dir string) {
		must(t, unix.UtimesNano(dir+"/f", []unix.Timespec{{Sec: 1}, {Sec: 2}}))
	}, map[string]Hint{"f": Touched}},
	{"setxattr", func(t *testing.T, dir string) {
		must(t, unix.Setxattr(dir+"/f", "user.drover", []byte("x"), 0))
	}, map[string]Hint{"f": Touched}},
	{"removexattr", func(t *testing.T, dir string) { must(t, unix.Removexattr(dir+"/g", "user.g")) }, map[string]Hint{"g": Touched}},
	{"unnamed file, then linked", func(t *testing.T, dir string) {
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR, 0o600)
		must(t, err)
		f := os.NewFile(uintptr(fd), "unnamed")
		defer f.Close()
		_, err = f.WriteString("x")
		must(t, err)
		must(t, unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+itoa(fd), unix.AT_FDCWD, dir+"/h", unix.AT_SYMLINK_FOLLOW))
	}, map[string]Hint{"h": Touched}},
	{"write to a file that was removed", func(t *testing.T, dir string) {
		f := openFor(t, dir+"/f", os.O_WRONLY)
		must(t, os.Remove(dir+"/f"))
		_, err := f.WriteString("x")
		must(t, err)
	}, map[string]Hint{"f": Gone | Written}},
	{"write to a file that was moved", func(t *testing.T, dir string) {
		f := openFor(t, dir+"/f", os.O_WRONLY)
		must(t, os.Rename(dir+"/f", dir+"/h"))
		_, err := f.WriteString("x")
		must(t, err)
	}, map[string]Hint{"f": Gone, "h": Touched | Written}},
	{"mapping, then munmap", func(t *testing.T, dir string) {
		mapping, err := mapShared(dir + "/f")
		must(t, err)
		mapping[0] = 'M'
		must(t, unix.Munmap(mapping))
	}, map[string]Hint{"f": Opened | Written}},
	{"by an ordinary user", func(t *testing.T, dir string) {
		needsRoot(t)
		must(t, os.Chmod(dir, 0o777))
		must(t, os.Chmod(dir+"/f", 0o666))
		cmd := exec.Command("/bin/sh", "-c", "echo x >f; mv g h")
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: testkit.Nobody, Gid: testkit.Nobody}}
		run(t, cmd)
	}, map[string]Hint{"f": Written, "g": Gone, "h": Touched}},
	{"by a process with its own mounts", func(t *testing.T, dir string) {
		bwrap, err := exec.LookPath("bwrap")
		if err != nil {
			t.Skip(err)
		}
		run(t, exec.Command(bwrap, "--ro-bind", "/", "/", "--tmpfs", "/mnt", "--bind", dir, "/mnt/x", "--chdir", "/mnt/x",
			"--unshare-user", "--unshare-pid", "/bin/sh", "-c", "echo x >f; mv g h"))
	}, map[string]Hint{"f": Written, "g": Gone, "h": Touched}},
	{"through a mount with other ids", func(t *testing.T, dir string) {
		mount := idMapped(t, dir)
		fd, err := unix.Openat(mount, "f", unix.O_WRONLY, 0)
		must(t, err)
		f := os.NewFile(uintptr(fd), "f")
		defer f.Close()
		_, err = f.WriteString("x")
		must(t, err)
		must(t, unix.Renameat(mount, "g", mount, "h"))
	}, map[string]Hint{"f": Written, "g": Gone, "h": Touched}},
}

func TestWatcher_ReportsEveryOperation(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, parent string) {
		for _, op := range operations {
			t.Run(op.name, func(t *testing.T) {
				dir := filepath.Join(parent, op.name)
				write(t, dir+"/f", "file f")
				write(t, dir+"/g", "file g")
				must(t, unix.Setxattr(dir+"/g", "user.g", []byte("x"), 0))
				w := watchTree(t, dir, nil)
				op.do(t, dir)
				got := take(t, w)
				for path, want := range op.reported {
					if got.Files[path]&want != want {
						t.Errorf("%s: got %q, want %q at least", path, got.Files[path], want)
					}
				}
				if got.Overflow {
					t.Error("overflow")
				}
			})
		}
	})
}

func TestWatcher_ReportsAMappingWhenItsProcessEnds(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, dir string) {
		write(t, dir+"/f", "file f")
		w := watchTree(t, dir, nil)
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"TREEWATCH_MAP_AND_EXIT=" + dir + "/f"}
		stdin, err := cmd.StdinPipe()
		must(t, err)
		stdout, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		_, err = bufio.NewReader(stdout).ReadString('\n')
		must(t, err)
		f := openFor(t, dir+"/f", os.O_RDONLY)
		// The closing of the handle is not reported while the mapping has it.
		if got, want := take(t, w).Files["f"], Opened; got != want {
			t.Errorf("mapped: got %q, want %q", got, want)
		}
		if unwritten, err := Unwritten(f); unwritten || err != nil {
			t.Errorf("mapped: Unwritten = %v, %v", unwritten, err)
		}
		_, err = stdin.Write([]byte("\n"))
		must(t, err)
		must(t, cmd.Wait())
		if got, want := take(t, w).Files["f"], Written; got != want {
			t.Errorf("after its end: got %q, want %q", got, want)
		}
		if unwritten, err := Unwritten(f); !unwritten || err != nil {
			t.Errorf("after its end: Unwritten = %v, %v", unwritten, err)
		}
	})
}

func TestUnwritten_FindsAMappingThatTheWatcherMisses(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, dir string) {
		write(t, dir+"/f", "file f")
		w := watchTree(t, dir, nil)
		mapping, err := mapShared(dir + "/f")
		must(t, err)
		defer unix.Munmap(mapping)
		f := openFor(t, dir+"/f", os.O_RDONLY)
		take(t, w)
		mapping[0] = 'M'
		if got := reported(take(t, w)); len(got) > 0 {
			t.Errorf("a write through a mapping was reported: %q; the promises can be made stronger", got)
		}
		if unwritten, err := Unwritten(f); unwritten || err != nil {
			t.Errorf("Unwritten = %v, %v", unwritten, err)
		}
	})
}

func TestAddFile_ReportsWritesThroughALinkOutside(t *testing.T) {
	eachFileSystem(t, func(t *testing.T, dir string) {
		write(t, dir+"/tree/f", "f")
		write(t, dir+"/tree/g", "g")
		w := watchTree(t, dir+"/tree", nil)
		must(t, w.AddFile("f"))
		must(t, os.Link(dir+"/tree/f", dir+"/f"))
		must(t, os.Link(dir+"/tree/g", dir+"/g"))
		write(t, dir+"/f", "x")
		write(t, dir+"/g", "x")
		if got := strings.Join(reported(take(t, w)), ", "); got != "f touched" {
			t.Errorf("got %q, want only that the added file was touched", got)
		}
		must(t, os.Remove(dir+"/tree/f"))
		if got := take(t, w).Files["f"]; got&Gone == 0 || len(w.byNumber) != 1 {
			t.Errorf("removed: got %q and %d watches", got, len(w.byNumber))
		}
	})
}

func run(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
}

// idMapped makes a mount of a folder on which the ids of users are others. It is attached nowhere.
func idMapped(t *testing.T, dir string) int {
	t.Helper()
	needsRoot(t)
	sleeper := exec.Command("/bin/cat")
	stdin, err := sleeper.StdinPipe()
	must(t, err)
	sleeper.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}},
	}
	must(t, sleeper.Start())
	t.Cleanup(func() { _ = stdin.Close(); _ = sleeper.Wait() })
	users, err := os.Open("/proc/" + itoa(sleeper.Process.Pid) + "/ns/user")
	must(t, err)
	defer users.Close()
	mount, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(mount) })
	err = unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH, &unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users.Fd()),
	})
	if err != nil {
		t.Skip("no mounts with other ids here: ", err)
	}
	return mount
}
