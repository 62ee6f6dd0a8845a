// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/testkit"
)

// Most people are not root, and root is allowed what they are not.
func TestMount_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^Test((Mount|Open|Workspace)_|Changes_WithoutCheckpoints|WriteBack_(Mount|RecoversAnInterruptedWriteBack))")
}

func TestMount_SpecialFilesAreRefused(t *testing.T) {
	for reason, plant := range map[string]func(t *testing.T, path string){
		"is a pipe": func(t *testing.T, path string) { must(t, unix.Mkfifo(path, 0o600)) },
		"is a socket": func(t *testing.T, path string) {
			l, err := net.Listen("unix", path)
			must(t, err)
			t.Cleanup(func() { _ = l.Close() })
		},
		"is a device": func(t *testing.T, path string) {
			if os.Getuid() != 0 {
				t.Skip("only root makes devices: run as root")
			}
			must(t, unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))) // the null device
		},
		"(set-id)": func(t *testing.T, path string) {
			must(t, os.WriteFile(path, []byte("harmless"), 0o600))
			must(t, os.Chmod(path, 0o755|os.ModeSetuid))
		},
	} {
		t.Run(reason, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "h") // the path of a socket must be short
			must(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			must(t, os.Mkdir(filepath.Join(dir, "d"), 0o755))
			plant(t, filepath.Join(dir, "d/bad"))
			for _, path := range []string{dir, dir + "/d", dir + "/d/bad"} {
				refused(t, Options{AllowedHostRoots: []string{dir}, Mounts: []HostMount{{HostPath: path, MountPath: "m"}}}, reason)
			}
		})
	}
}

// A goroutine exchanges what is mounted for links out of the roots, all the time. Whatever comes of a mount, no
// secret is among it, and what fails leaves nothing behind.
func TestMount_RaceNeverCopiesFilesFromOutside(t *testing.T) {
	for name, inside := range map[string]string{
		"the mount": "allowed/m", "a folder in it": "allowed/m/d", "a file in it": "allowed/m/d/f",
		"the folder above it": "allowed", "a link that is followed": "allowed/m/link",
	} {
		t.Run(name, func(t *testing.T) {
			dir := host(t, "allowed/m/d/f", "allowed/m/g", "secret/m/d/f", "secret/d/f", "secret/f", "secret/g", "secret/m/g")
			must(t, os.Symlink("d/f", filepath.Join(dir, "allowed/m/link")))
			for _, file := range tree(t, filepath.Join(dir, "secret")) {
				if !strings.HasSuffix(file, "/") {
					must(t, os.WriteFile(filepath.Join(dir, "secret", file), []byte("SECRET"), 0o644))
				}
			}
			target := filepath.Join(dir, "secret")
			if name == "a file in it" || name == "a link that is followed" {
				target = filepath.Join(target, "f")
			}
			must(t, os.Symlink(target, filepath.Join(dir, "spare")))
			roots := []string{filepath.Join(dir, "allowed")}
			if name == "the folder above it" {
				roots = []string{filepath.Join(dir, "above")}
				must(t, os.Mkdir(roots[0], 0o755))
				must(t, os.Rename(filepath.Join(dir, "allowed"), filepath.Join(dir, "above/allowed")))
				inside = "above/allowed"
			}
			exchanging(t, filepath.Join(dir, inside), filepath.Join(dir, "spare"))
			mountPath := filepath.Join(dir, "allowed/m")
			if strings.HasPrefix(inside, "above") {
				mountPath = filepath.Join(dir, "above/allowed/m")
			}
			raceMounts(t, roots, mountPath)
		})
	}
}

func raceMounts(t *testing.T, roots []string, path string) {
	t.Helper()
	temp := t.TempDir()
	succeeded, n := 0, testkit.Size(100, 5_000)
	for i := range n {
		w, err := Open(t.Context(), &Options{
			TempDir: temp, NoCheckpoints: true, AllowedHostRoots: roots,
			Mounts: []HostMount{{HostPath: path, FollowSymlinks: i%2 == 0}},
		})
		if err == nil {
			succeeded++
			for _, file := range tree(t, w.Root()) {
				if f, err := os.OpenFile(filepath.Join(w.Root(), file), os.O_RDONLY|unix.O_NOFOLLOW, 0); err == nil {
					content, _ := io.ReadAll(f)
					_ = f.Close()
					if strings.Contains(string(content), "SECRET") {
						t.Fatalf("round %d mounted a secret as %s", i, file)
					}
				}
			}
			must(t, w.Close())
		}
		if left := tree(t, temp); len(left) > 0 {
			t.Fatalf("round %d (%v) left %q", i, err, left)
		}
	}
	t.Logf("%d of %d succeeded", succeeded, n)
}

// exchanging swaps two entries again and again, each time at once, until the test ends.
func exchanging(t *testing.T, a, b string) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
					t.Errorf("exchanging: %v", err)
					return
				}
			}
		}
	})
	t.Cleanup(func() { close(done); wg.Wait() })
}

// TestChild_MountAndHang is not a test: [TestOpen_RemovesWorkspacesOfKilledPrograms] kills it.
func TestChild_MountAndHang(t *testing.T) {
	temp := os.Getenv("TEST_WORKSPACE_TEMP")
	if temp == "" {
		t.Skip("only for another test")
	}
	dir := host(t, "a.txt")
	_, err := Open(t.Context(), &Options{TempDir: temp, AllowAnyRoot: true, Mounts: []HostMount{{HostPath: dir, MountPath: "m"}}})
	must(t, err)
	_, err = Open(t.Context(), &Options{TempDir: temp, KeepOnClose: true, Prefix: "kept-"})
	must(t, err)
	_, _ = os.Stdout.WriteString("mounted\n")
	select {}
}

func TestOpen_RemovesWorkspacesOfKilledPrograms(t *testing.T) {
	temp := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild_MountAndHang$")
	cmd.Env = []string{"TEST_WORKSPACE_TEMP=" + temp, "TMPDIR=" + t.TempDir()}
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line := make([]byte, len("mounted"))
	if _, err := io.ReadFull(out, line); err != nil || string(line) != "mounted" {
		t.Errorf("the program prints %q: %v", line, err)
	}
	w := opened(t, Options{TempDir: temp}) // it lives
	if n := entries(t, temp, Prefix); n != 6 {
		t.Errorf("%d entries are there beside a living program, want two folders, two stores and two markers", n)
	}
	must(t, cmd.Process.Kill())
	if exit, ok := errors.AsType[*exec.ExitError](cmd.Wait()); !ok || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("it ended with %v", exit)
	}
	opened(t, Options{TempDir: temp})
	if n := entries(t, temp, Prefix); n != 6 {
		t.Errorf("%d entries are there after the sweep, want those of the two that live", n)
	}
	opened(t, Options{TempDir: temp, Prefix: "kept-"})
	if n := entries(t, temp, "kept-"); n != 5 {
		t.Errorf("%d entries are there, want three of a new workspace and two that were to be kept", n)
	}
	must(t, w.Close())
}

func entries(t *testing.T, dir, prefix string) (n int) {
	t.Helper()
	all, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range all {
		if strings.HasPrefix(e.Name(), prefix) {
			n++
		}
	}
	return n
}
