// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"

	"golang.org/x/sys/unix"
)

func (r *Root) setMeta(path string, want Entry) error {
	now, err := r.lstat(path)
	if err != nil {
		return err
	}
	if now.Kind != want.Kind {
		return ErrKind
	}
	dir, _ := split(path)
	return try(func() error {
		fd, err := openBeneath(r.fd, path, unix.O_PATH|unix.O_NOFOLLOW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return setMetaOf(fd, now, want)
	}, need{r, dir, toPass})
}

// setMetaOf goes from what resets other things to what nothing resets: a change of the owner takes the
// set-id bits away, and the time comes last. Every change goes to the open file, even if its name is replaced.
func setMetaOf(fd int, now, want Entry) error {
	var st unix.Statx_t
	if err := statx(fd, &noName, unix.AT_EMPTY_PATH, &st); err != nil {
		return err
	}
	seen := entry(&st, now.Path)
	if seen.Kind != want.Kind {
		return ErrKind
	}
	if seen.Stamp.Ino != now.Stamp.Ino || seen.Stamp.Dev != now.Stamp.Dev {
		return unix.ESTALE
	}
	owned, err := setOwner(fd, seen, want)
	if err != nil {
		return err
	}
	widened, err := setXattrsOf(fd, now, want)
	if want.Kind != Link && (owned || widened || seen.Perm != want.Perm) {
		err = errors.Join(err, chmod(fd, modeOf(want.Perm)))
	}
	if err != nil || seen.ModTime == want.ModTime {
		return err
	}
	return setTime(fd, want.ModTime)
}

// setOwner reports whether it changed something. A missing permission is not an error.
func setOwner(fd int, now, want Entry) (bool, error) {
	uid, gid := int(want.UID), int(want.GID)
	if now.UID == want.UID {
		uid = -1
	}
	if now.GID == want.GID {
		gid = -1
	}
	if uid < 0 && gid < 0 {
		return false, nil
	}
	err := unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) { // or an owner that a namespace does not have
		return false, nil
	}
	return err == nil, err
}

// setXattrsOf reports whether it had to allow its owner to write, for which the mode is to be set again.
func setXattrsOf(fd int, now, want Entry) (widened bool, err error) {
	if now.Xattrs == want.Xattrs || want.Kind != File && want.Kind != Dir {
		return false, nil
	}
	err = setXattrs(fd, now.Xattrs, want.Xattrs)
	if !errors.Is(err, unix.EACCES) {
		return false, err
	}
	if err := chmod(fd, modeOf(now.Perm)|0o600); err != nil {
		return false, err
	}
	return true, setXattrs(fd, now.Xattrs, want.Xattrs)
}

// setTime leaves the access time alone.
func setTime(fd int, modified int64) error {
	times := []unix.Timespec{{Nsec: unix.UTIME_OMIT}, unix.NsecToTimespec(modified)}
	err := unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return unix.UtimesNanoAt(unix.AT_FDCWD, procPath(fd), times, 0) // an old kernel
	}
	return err
}
