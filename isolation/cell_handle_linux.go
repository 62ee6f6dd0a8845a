// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many links a path may lead through, as for the kernel.
const maxLinks = 40

// A linkError is a link that is not followed.
type linkError struct{ link string }

func (e *linkError) Error() string { return e.link + " is a symbolic link" }

// openPath opens what an absolute path names, part by part, each below the handle of the one before: what is
// exchanged meanwhile cannot lead elsewhere. Links are followed only in folders that trusted accepts. It
// returns the handle and the path without links.
func openPath(path string, trusted func(folder *os.File, path string) bool) (_ *os.File, real string, err error) {
	root, err := os.OpenFile("/", unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, "", err
	}
	w := &pathWalk{folders: []*os.File{root}}
	defer func() { w.close() }()
	rest := parts(path)
	for links := 0; len(rest) > 0; {
		to, err := w.enter(rest[0], trusted)
		if err != nil {
			return nil, "", &os.PathError{Op: "open", Path: path, Err: err}
		}
		rest = rest[1:]
		if to == "" {
			continue
		}
		if links++; links > maxLinks {
			return nil, "", &os.PathError{Op: "open", Path: path, Err: unix.ELOOP}
		}
		if filepath.IsAbs(to) {
			w.leave(len(w.names))
		}
		rest = append(parts(to), rest...)
	}
	last := len(w.folders) - 1
	handle := w.folders[last]
	w.folders = w.folders[:last]
	return handle, w.path(), nil
}

func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// A pathWalk is on its way: the folders from the root on, and their names without it.
type pathWalk struct {
	folders []*os.File
	names   []string
}

func (w *pathWalk) path() string { return "/" + strings.Join(w.names, "/") }

// enter goes one part further. For a link it stays, and returns where that leads.
func (w *pathWalk) enter(name string, trusted func(*os.File, string) bool) (link string, err error) {
	switch name {
	case ".":
		return "", nil
	case "..":
		w.leave(1)
		return "", nil
	}
	folder := w.folders[len(w.folders)-1]
	fd, err := unix.Openat(int(folder.Fd()), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	file := os.NewFile(uintptr(fd), filepath.Join(w.path(), name))
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		if link, err = readLink(fd); err == nil && !trusted(folder, w.path()) {
			err = &linkError{file.Name()}
		}
	}
	if err != nil || link != "" {
		_ = file.Close()
		return link, err
	}
	w.folders, w.names = append(w.folders, file), append(w.names, name)
	return "", nil
}

// leave goes back, at most to the root.
func (w *pathWalk) leave(steps int) {
	for range min(steps, len(w.names)) {
		_ = w.folders[len(w.folders)-1].Close()
		w.folders, w.names = w.folders[:len(w.folders)-1], w.names[:len(w.names)-1]
	}
}

func (w *pathWalk) close() {
	for _, f := range w.folders {
		_ = f.Close()
	}
}

func readLink(fd int) (string, error) {
	to := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", to)
	return string(to[:max(n, 0)]), err
}

// openBeneath opens a path below a folder. Links are followed as long as they stay below it.
func openBeneath(folder *os.File, rest string) (*os.File, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(int(folder.Fd()), rest, how)
	for n := 0; errors.Is(err, unix.EAGAIN) && n < maxLinks; n++ { // another process moves folders meanwhile
		fd, err = unix.Openat2(int(folder.Fd()), rest, how)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: filepath.Join(folder.Name(), rest), Err: err}
	}
	return os.NewFile(uintptr(fd), filepath.Join(folder.Name(), rest)), nil
}

func openHere() (*os.File, error) { return os.OpenFile(".", unix.O_PATH|unix.O_DIRECTORY, 0) }

// handleName is a path under which a handle can be opened for reading.
func handleName(handle *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(handle.Fd())) }

// realName is the present path of a handle.
func realName(handle *os.File) (string, error) { return os.Readlink(handleName(handle)) }

// agentsCannotWrite reports whether no agent can have put a link into a folder: it is one that is never
// writable for agents, or one that this user cannot write to.
func agentsCannotWrite(folder *os.File, path string) bool {
	return tooWide(path) || unix.Faccessat(int(folder.Fd()), ".", unix.W_OK, unix.AT_EACCESS) != nil
}
