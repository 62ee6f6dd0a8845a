// SPDX-License-Identifier: Apache-2.0

package filetree

import (
	"errors"
	"io/fs"
	slashpath "path"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrPath is why a path is refused that is empty, absolute, has an element "..", or cannot be one.
var ErrPath = errors.New("not a path below the root")

// ErrLink is why a path is refused of which a folder is a symbolic link.
var ErrLink = errors.New("a folder of the path is a link")

// ErrNotFile means that an entry is not a regular file.
var ErrNotFile = errors.New("not a regular file")

// ErrKind is why metadata are refused that belong to an entry of another kind.
var ErrKind = errors.New("an entry of another kind")

// Clean returns the path as an [Entry] has it: without empty elements, "." and a slash at its end. Paths
// that do not stay below the root are refused with [ErrPath].
func Clean(path string) (string, error) {
	if path == "" || path[0] == '/' || strings.IndexByte(path, 0) >= 0 {
		return "", &fs.PathError{Op: "check", Path: path, Err: ErrPath}
	}
	for name := range strings.SplitSeq(path, "/") {
		if name == ".." {
			return "", &fs.PathError{Op: "check", Path: path, Err: ErrPath}
		}
	}
	return slashpath.Clean(path), nil
}

// cleanBelow is Clean for what is to be made, moved or removed, which cannot be the root itself.
func cleanBelow(path string) (string, error) {
	clean, err := Clean(path)
	if err == nil && clean == "." {
		return "", &fs.PathError{Op: "check", Path: path, Err: ErrPath}
	}
	return clean, err
}

func split(path string) (dir, name string) {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i], path[i+1:]
	}
	return ".", path
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// ComparePaths orders paths by their elements: what is in a folder comes right after it, before "folder.go".
func ComparePaths(a, b string) int {
	for i := range min(len(a), len(b)) {
		switch x, y := a[i], b[i]; {
		case x == y:
		case x == '/':
			return -1
		case y == '/':
			return 1
		default:
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// Holds reports whether a path of the host is a folder or below it.
func Holds(dir, name string) bool {
	rel, err := filepath.Rel(dir, name)
	return err == nil && filepath.IsLocal(rel)
}

// Absent reports whether an error means that a path leads to nothing, or through an entry that is not a folder.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, ErrLink)
}

func failed(op, path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ELOOP):
		err = ErrLink
	case errors.Is(err, syscall.EBADF):
		err = fs.ErrClosed
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
