// SPDX-License-Identifier: Apache-2.0

// Package plainfile reads files that others have named or written. It never waits for a pipe, reads no device, and
// bounds what a file may cost: its bytes and, for YAML, its values. A [Watch] reports when such files change.
package plainfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotPlain is wrapped for what is not a regular file on a disk: a folder, a pipe, a socket, a device, or a
// file that a kernel makes up, as in /proc.
var ErrNotPlain = errors.New("it is not a regular file")

// ErrTooLarge is wrapped for a file that is larger than its reader takes.
var ErrTooLarge = errors.New("it is too large")

// Open opens a regular file for reading.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path) // to open a device can do something
	if err == nil && !info.Mode().IsRegular() {
		err = notPlain(path, kindOf(info.Mode()))
	}
	if err != nil {
		return nil, err
	}
	return checked(os.OpenFile(path, os.O_RDONLY|nonBlock, 0))
}

// OpenReal is [os.OpenFile] for a regular file that is not a link.
func OpenReal(path string, flag int, perm fs.FileMode) (*os.File, error) {
	for {
		before, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && flag&os.O_CREATE != 0:
			f, err := os.OpenFile(path, flag|os.O_EXCL, perm) // which follows no link
			if errors.Is(err, fs.ErrExist) {
				continue
			}
			return f, err
		case err == nil && !before.Mode().IsRegular():
			err = notPlain(path, kindOf(before.Mode()))
		}
		if err != nil {
			return nil, err
		}
		f, err := checked(os.OpenFile(path, flag&^os.O_CREATE|nonBlock, 0))
		if err != nil {
			return nil, err
		}
		if now, err := f.Stat(); err == nil && os.SameFile(before, now) {
			return f, nil
		}
		_ = f.Close() // it was replaced a moment ago
	}
}

// OpenIn is [Open] for a file below a root.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err == nil && !info.Mode().IsRegular() {
		err = notPlain(name, kindOf(info.Mode()))
	}
	if err != nil {
		return nil, err
	}
	return checked(root.OpenFile(name, os.O_RDONLY|nonBlock, 0))
}

func checked(file *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	if err := check(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

func check(file *os.File) error {
	info, err := file.Stat() // it may be another one than a moment ago
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return notPlain(file.Name(), kindOf(info.Mode()))
	case isVirtual(file):
		return notPlain(file.Name(), "a file that the kernel makes up")
	}
	return nil
}

// Read reads a regular file of at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	file, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadAll(file, limit)
}

// ReadAll reads a file to its end, which comes within limit bytes.
func ReadAll(file fs.File, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		name := ""
		if info, failed := file.Stat(); failed == nil {
			name = info.Name()
		}
		return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: there are more than %d bytes", ErrTooLarge, limit)}
	}
	return data, err
}

func notPlain(path, kind string) error {
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w: it is %s", ErrNotPlain, kind)}
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	}
	return "something else"
}

// nonBlock has the opening of a pipe not wait for a writer. It does nothing for a regular file.
const nonBlock = syscall.O_NONBLOCK
