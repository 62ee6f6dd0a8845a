// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"crypto/rand"
	"errors"
	"strconv"

	"golang.org/x/sys/unix"
)

// removeAttempts bounds how often a folder is emptied while other processes write into it.
const removeAttempts = 5

// maxHeld is how many levels of folders are held open at once. Deeper folders are moved up first.
const maxHeld = 64

func (r *Root) removeAll(path string) error {
	return gone(r.change(path, func(p heldName) error {
		rm := remover{prefix: ".moved-" + rand.Text() + "-"}
		return rm.remove(p.dir, p.name, 0)
	}))
}

type remover struct {
	top         int    // the uppermost folder, where deep ones are moved to
	prefix      string // of unused names
	moved, done int
}

func (rm *remover) movedName(n int) string { return rm.prefix + strconv.Itoa(n) }

// remove removes a name from a folder. It never opens a link.
func (rm *remover) remove(dir int, name string, depth int) error {
	err := unlink(dir, name)
	if !errors.Is(err, unix.EISDIR) {
		return gone(err)
	}
	for range removeAttempts {
		err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
		if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
			return gone(err)
		}
		if depth > maxHeld && rm.moveUp(dir, name) == nil {
			return nil
		}
		if err := rm.empty(dir, name, depth); err != nil {
			return err
		}
	}
	return err
}

// moveUp moves a folder to the top, to be removed from there.
func (rm *remover) moveUp(dir int, name string) error {
	if fd, err := openName(dir, name, unix.O_PATH|unix.O_DIRECTORY); err == nil {
		widen(fd)
		_ = unix.Close(fd)
	}
	err := unix.Renameat(dir, name, rm.top, rm.movedName(rm.moved+1))
	if err == nil {
		rm.moved++
	}
	return err
}

func (rm *remover) empty(dir int, name string, depth int) error {
	seen, err := openName(dir, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return gone(err)
	}
	defer unix.Close(seen)
	widen(seen)
	fd, err := openName(seen, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return gone(err)
	}
	defer unix.Close(fd)
	if depth == 0 {
		rm.top = fd
	}
	l := newLister(false)
	defer listers.Put(l)
	err = l.readNames(fd)
	for _, s := range l.spans {
		err = errors.Join(err, rm.remove(fd, string(l.name(s)), depth+1))
	}
	for depth == 0 && rm.done < rm.moved { // which grows while it works
		rm.done++
		err = errors.Join(err, rm.remove(fd, rm.movedName(rm.done), 1))
	}
	return err
}

// widen gives the owner every right in a folder that is about to go.
func widen(fd int) {
	var st unix.Stat_t
	if unix.Fstat(fd, &st) == nil && st.Mode&0o700 != 0o700 {
		_ = chmod(fd, st.Mode&0o7777|0o700) // removing returns the error
	}
}

// gone ignores that the entry is already removed.
func gone(err error) error {
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}
