// SPDX-License-Identifier: Apache-2.0

package plainfile

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reported are the watches whose changes the system reports.
var reported queue

// A queue is one of inotify(7), with a goroutine that reads it while there are watches.
type queue struct {
	mu      sync.Mutex
	fd      int
	file    *os.File           // nil without watches
	folders map[int32][]*Watch // by the number of the system
}

const mask = unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// together is how long changes are collected after some were reported: many runs cost less than as many times one.
const together = 10 * time.Millisecond

// add reports whether the system will report the changes of a watch.
func (q *queue) add(w *Watch) bool {
	if !reportsChanges(w.dir) {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.file == nil {
		fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
		if err != nil {
			return false // the user has as many as the system allows
		}
		q.fd, q.file, q.folders = fd, os.NewFile(uintptr(fd), "inotify"), map[int32][]*Watch{}
		go q.read(q.file)
	}
	number, err := unix.InotifyAddWatch(q.fd, w.dir, mask)
	if err != nil {
		q.closeUnused()
		return false
	}
	w.number = int32(number)
	q.folders[w.number] = append(q.folders[w.number], w)
	return true
}

// reportsChanges reports whether all changes of a folder come from this system. Those of a network and of FUSE have others.
func reportsChanges(dir string) bool {
	const zfs, bcachefs = 0x2fc12fc1, 0xca451a4e
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return false
	}
	return slices.Contains([]uint32{
		unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfs, bcachefs,
	}, uint32(st.Type))
}

func (q *queue) remove(w *Watch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	others, known := q.folders[w.number]
	if !known || !slices.Contains(others, w) {
		return
	}
	if others = slices.DeleteFunc(others, func(other *Watch) bool { return other == w }); len(others) > 0 {
		q.folders[w.number] = others
		return
	}
	_, _ = unix.InotifyRmWatch(q.fd, uint32(w.number)) // it may be gone with its folder
	delete(q.folders, w.number)
	q.closeUnused()
}

// closeUnused ends the goroutine when there are no watches.
func (q *queue) closeUnused() {
	if len(q.folders) == 0 && q.file != nil {
		_ = q.file.Close()
		q.file = nil
	}
}

func (q *queue) read(file *os.File) {
	buf := make([]byte, 64<<10)
	for {
		n, err := file.Read(buf)
		if err != nil {
			return // it was closed: nothing else fails
		}
		q.mu.Lock()
		if q.file == file {
			q.handle(buf[:n])
		}
		q.mu.Unlock()
		time.Sleep(together)
	}
}

func (q *queue) handle(events []byte) {
	for len(events) >= unix.SizeofInotifyEvent {
		number, what := int32(binary.NativeEndian.Uint32(events)), binary.NativeEndian.Uint32(events[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		name, _, _ := bytes.Cut(events[unix.SizeofInotifyEvent:end], []byte{0})
		events = events[end:]
		switch {
		case what&unix.IN_Q_OVERFLOW != 0: // some were lost
			for _, all := range q.folders {
				wakeAll(all)
			}
		case what&(unix.IN_IGNORED|unix.IN_MOVE_SELF) != 0:
			q.forget(number)
		case len(name) > 0:
			for _, w := range q.folders[number] {
				if w.has(string(name)) {
					w.wake()
				}
			}
		}
	}
}

func wakeAll(all []*Watch) {
	for _, w := range all {
		w.wake()
	}
}

// forget is for a folder that is gone. There may be another at its path, now or later, so its files are looked at.
func (q *queue) forget(number int32) {
	for _, w := range q.folders[number] {
		w.startLooking()
	}
	_, _ = unix.InotifyRmWatch(q.fd, uint32(number)) // if it was moved
	delete(q.folders, number)
	q.closeUnused()
}
