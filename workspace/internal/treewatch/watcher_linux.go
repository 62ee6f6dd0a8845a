// SPDX-License-Identifier: Apache-2.0

package treewatch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// The kernel still reports removed names while a process has the file open (there is no
	// IN_EXCL_UNLINK): the file may have another name.
	folderMask = unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE | unix.IN_OPEN |
		unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
		unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW
	// The folder of a file reports all other events.
	fileMask = unix.IN_ATTRIB | unix.IN_DONT_FOLLOW

	// A caller that walks the tree opens its folders, which the kernel reports too. After so many additions
	// the queue is emptied, which holds 16,384 events on most systems.
	drainAfter = 1000
	// So many watches are removed at once, each with an event, before the queue is emptied.
	removeAtOnce = 4000
)

// A Watcher watches a tree. It is safe for concurrent use. It has no goroutine: the kernel keeps the
// events until they are taken.
type Watcher struct {
	opts Options

	mu     sync.Mutex
	root   *os.File // the folder, to reach what is below it wherever it is moved
	base   string   // root as a path
	mounts *mountTable
	queue  int // the inotify instance, -1 after Close
	watches
	added   int // since the queue was emptied
	hints   Hints
	buf     []byte
	pathBuf []byte
}

// New watches a folder, but none below it: see [Watcher.Add].
func New(dir string, opts *Options) (*Watcher, error) {
	w := &Watcher{queue: -1, buf: make([]byte, 64<<10)}
	if opts != nil {
		w.opts = *opts
	}
	if err := w.open(dir); err != nil {
		_ = w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Watcher) open(dir string) (err error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "watch", Path: dir, Err: err}
	}
	w.root = os.NewFile(uintptr(fd), dir)
	w.base = "/proc/self/fd/" + strconv.Itoa(fd)
	if err := checkComplete(fd); err != nil {
		return fmt.Errorf("%w (%s)", err, dir)
	}
	if w.mounts, err = openMountTable(); err != nil {
		return err
	}
	if err := w.checkMounts(true); err != nil {
		return err
	}
	return w.restart()
}

// restart begins with an empty queue and the folder itself as the only watch.
func (w *Watcher) restart() error {
	if w.queue >= 0 {
		_ = unix.Close(w.queue)
		w.queue = -1
	}
	queue, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if errors.Is(err, unix.EMFILE) {
		return &LimitError{Setting: "fs.inotify.max_user_instances", Err: err}
	}
	if err != nil {
		return fmt.Errorf("%w: inotify_init: %w", ErrUnsupported, err)
	}
	w.queue, w.watches = queue, watches{byNumber: map[int32]*watch{}, byPath: map[string]*watch{}}
	return w.watch(".", folderMask)
}

// Add watches a folder of the tree. Call it before reading the folder and its times (a caller that has read them
// before must read them again), and after adding the folder above. Adding one again is harmless. A path that is not
// a folder any more is left out: the folder above has reported it.
//
// It fails with a [LimitError] when there is no room for another watch. A watcher with a folder missing promises nothing.
func (w *Watcher) Add(dir string) error { return w.add(dir, folderMask) }

// AddFile watches an event of a file that its folder does not report: that it was given a name outside of the tree,
// by which it can be written unseen. It is then Touched and has several names. Add a file each time it is read: its
// replacement is another file.
func (w *Watcher) AddFile(path string) error { return w.add(path, fileMask) }

func (w *Watcher) add(path string, mask uint32) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue < 0 {
		return ErrClosed
	}
	if w.added++; w.added >= drainAfter {
		if err := w.drain(); err != nil {
			return err
		}
	}
	return w.watch(path, mask)
}

func (w *Watcher) watch(path string, mask uint32) error {
	if limit := w.opts.MaxWatches; limit > 0 && len(w.byNumber) >= limit && w.byPath[path] == nil {
		return &LimitError{Setting: "MaxWatches", Watches: len(w.byNumber)}
	}
	number, err := unix.InotifyAddWatch(w.queue, w.base+"/"+path, mask)
	switch err {
	case nil:
		if !w.put(path, int32(number), mask == folderMask) {
			w.hints.Overflow = true
		}
		return nil
	case unix.ENOENT, unix.ENOTDIR:
		return nil
	case unix.ENOSPC:
		return &LimitError{Setting: "fs.inotify.max_user_watches", Watches: len(w.byNumber), Err: err}
	default:
		return &fs.PathError{Op: "watch", Path: path, Err: err}
	}
}

// Take returns what happened since the last time, and never waits. With an error the watcher is closed.
func (w *Watcher) Take() (Hints, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue < 0 {
		return Hints{}, ErrClosed
	}
	hints, err := w.take()
	if err != nil {
		w.close()
		return Hints{}, err
	}
	return hints, nil
}

func (w *Watcher) take() (Hints, error) {
	if err := w.checkMounts(false); err != nil {
		return Hints{}, err
	}
	if err := w.drain(); err != nil {
		return Hints{}, err
	}
	taken := w.hints
	w.hints = Hints{}
	if taken.Overflow {
		return taken, w.restart()
	}
	return taken, nil
}

// Settle is for files that the caller has just opened to read them, which is reported like any other opening. It removes
// these hints, and reports for each file whether it is hot: whether a process may write it without a further hint. A file
// that is not hot will be Opened or Written before it changes. All other hints are kept for [Watcher.Take].
//
// The files must still be open, and be those at the paths. Call it once for some hundreds of files.
func (w *Watcher) Settle(read []Reading) (hot []bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue < 0 {
		return nil, ErrClosed
	}
	// The order matters: an opening after the queue was read is reported the next time; an earlier one that is
	// still open is found by the lease.
	if err := w.drain(); err != nil {
		return nil, err
	}
	hot = make([]bool, len(read))
	for i, r := range read {
		closed, err := unwritten(r.File)
		hot[i] = !closed || err != nil
		if !hot[i] {
			w.unopened(r.Path)
		}
	}
	return hot, nil
}

func (w *Watcher) unopened(path string) {
	if hint := w.hints.Files[path] &^ Opened; hint != 0 {
		w.hints.Files[path] = hint
	} else {
		delete(w.hints.Files, path)
	}
}

// Close ends the watching. Closing twice is harmless.
func (w *Watcher) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.close()
	return nil
}

func (w *Watcher) close() {
	if w.queue >= 0 {
		_ = unix.Close(w.queue)
		w.queue = -1
	}
	if w.mounts != nil {
		w.mounts.close()
		w.mounts = nil
	}
	if w.root != nil {
		_ = w.root.Close()
		w.root = nil
	}
}
