// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// An event is one of inotify(7). Its name is in the buffer that was read into.
type event struct {
	number int32
	mask   uint32
	name   []byte
}

func (e *event) is(mask uint32) bool { return e.mask&mask != 0 }

// drain reads the queue until it is empty, then removes dropped watches, which is reported in turn.
func (w *Watcher) drain() error {
	w.added = 0
	for {
		n, err := unix.Read(w.queue, w.buf)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			if len(w.dropped) == 0 {
				return nil
			}
			w.removeDropped()
		case err != nil:
			return fmt.Errorf("treewatch: read events: %w", err)
		case n < unix.SizeofInotifyEvent:
			return fmt.Errorf("treewatch: read events: %d bytes are too few for an event", n)
		default:
			w.decode(w.buf[:n])
		}
	}
}

func (w *Watcher) removeDropped() {
	n := min(len(w.dropped), removeAtOnce)
	for _, number := range w.dropped[:n] {
		_, _ = unix.InotifyRmWatch(w.queue, uint32(number)) // fails if it went with its folder
	}
	if w.dropped = w.dropped[n:]; len(w.dropped) == 0 {
		w.dropped = nil
	}
}

func (w *Watcher) decode(buf []byte) {
	for len(buf) >= unix.SizeofInotifyEvent {
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[12:]))
		name := buf[unix.SizeofInotifyEvent:end]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		w.handle(event{
			number: int32(binary.NativeEndian.Uint32(buf)),
			mask:   binary.NativeEndian.Uint32(buf[4:]),
			name:   name,
		})
		buf = buf[end:]
	}
}

// handle turns an event into hints. Events of dropped watches are skipped: their folders are read whole at their new path.
func (w *Watcher) handle(e event) {
	if e.is(unix.IN_Q_OVERFLOW) {
		w.hints.Overflow = true
		return
	}
	at := w.byNumber[e.number]
	switch {
	case at == nil:
	case len(e.name) == 0:
		w.handleSelf(at, e)
	case e.is(unix.IN_ISDIR):
		w.hearFolder(at, e)
	default:
		w.hearFile(at, e)
	}
}

// handleSelf is for events of a watched folder or file itself. The folder above reports a move before this, which ends
// the watch, and a removal after this. Anything else that ends a watch has no explanation.
func (w *Watcher) handleSelf(at *watch, e event) {
	switch {
	case e.is(unix.IN_ATTRIB):
		w.hints.add(at.path, Touched)
	case e.is(unix.IN_DELETE_SELF) && at.path != ".":
		w.hints.add(at.path, Gone)
		w.drop(at.path)
	case !e.is(unix.IN_IGNORED | unix.IN_UNMOUNT | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF):
	case at.isDir:
		w.hints.Overflow = true
	default:
		w.hints.add(at.path, Touched)
		w.drop(at.path)
	}
}

func (w *Watcher) hearFolder(in *watch, e event) {
	switch {
	case e.is(unix.IN_CREATE | unix.IN_MOVED_TO):
		path := w.named(in, e, Touched)
		w.hints.addDir(path)
		w.drop(path)
		w.hints.add(in.path, Touched)
	case e.is(unix.IN_DELETE | unix.IN_MOVED_FROM):
		w.drop(w.named(in, e, Gone))
		w.hints.add(in.path, Touched)
	case e.is(unix.IN_ATTRIB):
		w.named(in, e, Touched)
	}
}

func (w *Watcher) hearFile(in *watch, e event) {
	switch {
	case e.is(unix.IN_MODIFY | unix.IN_CLOSE_WRITE):
		w.named(in, e, Written)
	case e.is(unix.IN_OPEN):
		w.named(in, e, Opened)
	case e.is(unix.IN_ATTRIB):
		w.named(in, e, Touched)
	case e.is(unix.IN_CREATE | unix.IN_MOVED_TO):
		w.drop(w.named(in, e, Touched))
		w.hints.add(in.path, Touched)
	case e.is(unix.IN_DELETE | unix.IN_MOVED_FROM):
		w.drop(w.named(in, e, Gone))
		w.hints.add(in.path, Touched)
	}
}

// named adds a hint for a name in a folder, and returns the path. Only a path without a hint needs a new string.
func (w *Watcher) named(in *watch, e event, hint Hint) string {
	w.pathBuf = w.pathBuf[:0]
	if in.path != "." {
		w.pathBuf = append(append(w.pathBuf, in.path...), '/')
	}
	w.pathBuf = append(w.pathBuf, e.name...)
	if old, ok := w.hints.Files[string(w.pathBuf)]; ok && old|hint == old && !e.is(movedMask) {
		return ""
	}
	path := string(w.pathBuf)
	w.hints.add(path, hint)
	return path
}

// movedMask are the events whose path is needed by more than the hints.
const movedMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO
