// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// withOwnMounts runs the test again in a process whose mounts no other process sees, and reports whether this
// is that process.
func withOwnMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv("TREEWATCH_OWN_MOUNTS") != "" {
		return true
	}
	needsRoot(t)
	cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^"+t.Name()+"$")
	cmd.Env = []string{"TREEWATCH_OWN_MOUNTS=1", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

func TestWatcher_MountInsideEndsTheWatch(t *testing.T) {
	if !withOwnMounts(t) {
		return
	}
	dir := t.TempDir()
	write(t, dir+"/tree with blank/a/f", "f")
	write(t, dir+"/beside/f", "another f")
	tree := dir + "/tree with blank"
	w := watchTree(t, tree, nil)

	must(t, unix.Mount("none", dir+"/beside", "tmpfs", 0, ""))
	defer unix.Unmount(dir+"/beside", 0)
	if got := reported(take(t, w)); len(got) > 0 {
		t.Errorf("a mount beside the tree: %q", got)
	}
	write(t, dir+"/beside/f", "another f")
	must(t, unix.Mount(dir+"/beside/f", tree+"/a/f", "", unix.MS_BIND, ""))
	_, err := w.Take()
	if !errors.Is(err, ErrMounted) {
		t.Errorf("a file mounted inside: got %v, want ErrMounted", err)
	}
	if _, err := w.Take(); !errors.Is(err, ErrClosed) {
		t.Errorf("asked again: got %v, want ErrClosed", err)
	}
	if _, err := New(tree, nil); !errors.Is(err, ErrMounted) {
		t.Errorf("new watcher: got %v, want ErrMounted", err)
	}
	must(t, unix.Unmount(tree+"/a/f", 0))
	must(t, watchTree(t, tree, nil).Close())
}

func TestNew_RefusesLayeredFileSystems(t *testing.T) {
	if !withOwnMounts(t) {
		return
	}
	dir := t.TempDir()
	for _, name := range []string{"lower", "upper", "work", "tree"} {
		must(t, os.Mkdir(dir+"/"+name, 0o755))
	}
	err := unix.Mount("overlay", dir+"/tree", "overlay", 0, "lowerdir="+dir+"/lower,upperdir="+dir+"/upper,workdir="+dir+"/work")
	if err != nil {
		t.Skip("no overlayfs here: ", err)
	}
	defer unix.Unmount(dir+"/tree", unix.MNT_DETACH)
	if _, err := New(dir+"/tree", nil); !errors.Is(err, ErrUnsupported) {
		t.Errorf("New: got %v, want ErrUnsupported", err)
	}
	// This is why: the lease is granted though a process can write.
	write(t, dir+"/tree/f", "file f")
	f := openFor(t, dir+"/tree/f", os.O_RDONLY)
	mapping, err := mapShared(dir + "/tree/f")
	must(t, err)
	defer unix.Munmap(mapping)
	if granted, err := unwritten(f); !granted || err != nil {
		t.Logf("the lease is refused by now (%v): overlayfs could be allowed", err)
	}
	if got, err := Unwritten(f); got || !errors.Is(err, ErrUnsupported) {
		t.Errorf("Unwritten = %v, %v, want ErrUnsupported", got, err)
	}
}
