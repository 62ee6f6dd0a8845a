// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// resolve follows a path of the file to its end, and refuses one that leads out of what is allowed.
func (f *File) resolve(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.Dir(), filepath.FromSlash(path))
	}
	resolved, err := realPath(path)
	if err != nil {
		return "", err
	}
	for _, dir := range f.roots() {
		root, err := realPath(dir)
		if err != nil {
			return "", fmt.Errorf("the allowed folder %s: %w", dir, err)
		}
		if rel, err := filepath.Rel(root, resolved); err == nil && filepath.IsLocal(rel) {
			return resolved, nil
		}
	}
	return "", fmt.Errorf("it leads to %s, which is outside of the folder of the file\n  next: move it there, or allow its folder: drover run --allow-root DIR, File.Roots in Go", resolved)
}

// roots are the folders from which a file may take something.
func (f *File) roots() []string { return append([]string{f.Dir()}, f.Roots...) }

func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// read reads a file that the agent's file names.
func (f *File) read(path string) ([]byte, error) {
	resolved, err := f.resolve(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(resolved) // a pipe would be waited for
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errNotFile
	}
	open, err := os.Open(resolved)
	if err != nil {
		return nil, err
	}
	defer open.Close()
	return io.ReadAll(io.LimitReader(open, maxFile))
}

var errNotFile = errors.New("it is no file\n  next: give the path of a file")
