// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
)

// A stage is where root puts the mounts of a cell for bubblewrap, which runs as another user: within that user's reach, and
// with owners that fit. It exists only in the mount namespace of the thread that starts bubblewrap, and goes with it.
type stage struct {
	dir    string
	mounts []stagedMount
}

type stagedMount struct {
	source
	mountPoint string
	// idmap is the map, nil for none. With public set, others may read the mount as it is.
	idmap  *os.File
	public bool
}

// stagePlaces are folders that a system has and that a cell needs nothing of.
var stagePlaces = []string{"/mnt", "/media", "/srv", "/opt", "/run", "/tmp"}

// newStage plans the mounts for a cell of the given user. It mounts nothing yet.
func newStage(mounts sources, bwrap string, cell owner) (*stage, error) {
	dir, err := stageFolder(bwrap)
	if err != nil {
		return nil, err
	}
	st := &stage{dir: dir}
	for i, m := range mounts {
		planned, err := planMount(m, filepath.Join(dir, strconv.Itoa(i)), cell)
		if err != nil {
			return nil, err
		}
		st.mounts = append(st.mounts, planned)
	}
	return st, nil
}

func stageFolder(bwrap string) (string, error) {
	for _, dir := range stagePlaces {
		info, err := os.Lstat(dir)
		if err == nil && info.IsDir() && !strings.HasPrefix(bwrap, dir+"/") {
			return dir, nil
		}
	}
	return "", advice.Wrap(fmt.Errorf("starting a cell: none of %s is a folder", strings.Join(stagePlaces, ", ")),
		"make an empty folder /mnt")
}

func planMount(m source, mountPoint string, cell owner) (stagedMount, error) {
	planned := stagedMount{source: m, mountPoint: mountPoint}
	planned.public = m.stat.Mode&unix.S_IROTH != 0 && (!m.folder() || m.stat.Mode&unix.S_IXOTH != 0)
	on := owner{m.stat.Uid, m.stat.Gid}
	if on == cell {
		return planned, nil
	}
	var err error
	planned.idmap, err = idmap(on, cell)
	return planned, err
}

func (st *stage) binds() []bind {
	var all []bind
	for _, m := range st.mounts {
		all = append(all, bind{source: m.mountPoint, target: m.target(), writable: m.Writable})
	}
	return all
}

// set gives the current thread, which must do nothing else afterwards, a mount namespace of its own with the mounts.
func (st *stage) set() error {
	trees, err := st.openTrees()
	defer func() {
		for _, fd := range trees {
			_ = unix.Close(fd)
		}
	}()
	if err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return advice.Wrap(fmt.Errorf("making a mount namespace: %w", err), "run as an ordinary user, or give this process CAP_SYS_ADMIN")
	}
	// Slave and not private: nothing goes out to the host, but what the host unmounts is not kept.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("taking mounts apart from the host's: %w", err)
	}
	if err := unix.Mount("drover", st.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0711,size=1m"); err != nil {
		return fmt.Errorf("mounting a staging area on %s: %w", st.dir, err)
	}
	for i, m := range st.mounts {
		if err := m.attach(trees[i]); err != nil {
			return err
		}
	}
	return nil
}

// openTrees copies the mounts of the handles, in the namespace in which they were opened. Like the rest of the
// thread's namespace the copies are slaves of the host's mounts.
func (st *stage) openTrees() ([]int, error) {
	var trees []int
	for _, m := range st.mounts {
		fd, err := unix.OpenTree(int(m.file.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if errors.Is(err, unix.EPERM) {
			return trees, advice.Wrap(fmt.Errorf("copying the mount of %s: %w", m.Source, err),
				"run as an ordinary user, or give this process CAP_SYS_ADMIN")
		}
		if err != nil {
			return trees, missing(m.Source, err)
		}
		trees = append(trees, fd)
		slave := unix.MountAttr{Propagation: unix.MS_SLAVE}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &slave); err != nil {
			return trees, advice.Wrap(fmt.Errorf("starting a cell: taking the mount of %s apart from the host's: %w", m.Source, err),
				"use Linux 5.12 or newer, or run as an ordinary user")
		}
		if err := m.mapIDs(fd); err != nil {
			return trees, err
		}
	}
	return trees, nil
}

// mapIDs makes the files of a copied mount look like those of the cell's user.
func (m stagedMount) mapIDs(tree int) error {
	if m.idmap == nil {
		return nil
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(m.idmap.Fd())}
	err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
	switch {
	case err == nil:
		return nil
	case !m.Writable && m.public:
		return nil // readable as it is; nothing is weaker, less may be readable
	case errors.Is(err, unix.EINVAL):
		return advice.Wrap(fmt.Errorf("starting a cell: the file system of %s cannot show files as another user's: %w", m.Source, err),
			"run as an ordinary user, or keep the folder on ext4, xfs, btrfs or tmpfs (Linux 5.12 or newer)")
	default:
		return advice.Wrap(fmt.Errorf("starting a cell: showing the files of %s as another user's: %w", m.Source, err),
			"run as an ordinary user, or give this process CAP_SYS_ADMIN on the machine itself")
	}
}

// attach moves a copied mount to its mount point.
func (m stagedMount) attach(tree int) error {
	var err error
	if m.folder() {
		err = os.Mkdir(m.mountPoint, 0o755)
	} else {
		err = os.WriteFile(m.mountPoint, nil, 0o644)
	}
	if err == nil {
		err = unix.MoveMount(tree, "", unix.AT_FDCWD, m.mountPoint, unix.MOVE_MOUNT_F_EMPTY_PATH)
	}
	if err != nil {
		return fmt.Errorf("starting a cell: staging %s: %w", m.Source, err)
	}
	return nil
}
