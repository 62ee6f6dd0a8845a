// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainfile"
)

// resolve follows a path of the file to its end, and refuses one that leads out of what is allowed.
func (f *File) resolve(path string) (string, error) {
	root, rel, err := f.find(path)
	return filepath.Join(root, rel), err
}

// find is resolve, and also returns the allowed folder that the path leads into.
func (f *File) find(path string) (root, rel string, err error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.Dir(), filepath.FromSlash(path))
	}
	resolved, err := realPath(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", advice.Wrap(err, "put it there, or fix the path, which is relative to the folder of the file")
	}
	if err != nil {
		return "", "", err
	}
	for _, dir := range f.roots() {
		root, err := realPath(dir)
		if err != nil {
			return "", "", advice.Wrap(fmt.Errorf("the allowed folder %s: %w", dir, err), "name a folder that is there")
		}
		if rel, err := filepath.Rel(root, resolved); err == nil && filepath.IsLocal(rel) {
			return root, rel, nil
		}
	}
	return "", "", advice.Wrap(fmt.Errorf("it leads to %s, which is outside of the folder of the file", resolved),
		"move it there, or allow its folder: drover run --allow-root DIR, File.Roots in Go")
}

func (f *File) roots() []string { return append([]string{f.Dir()}, f.Roots...) }

func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// read reads a file that the agent's file names. A link that is made meanwhile does not lead out.
func (f *File) read(path string) ([]byte, error) {
	dir, rel, err := f.find(path)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return readIn(root, rel)
}

func readIn(root *os.Root, name string) ([]byte, error) {
	file, err := plainfile.OpenIn(root, name)
	if err != nil {
		return nil, advice.Wrap(err, "give the path of a file")
	}
	defer file.Close()
	data, err := plainfile.ReadAll(file, maxFile)
	if errors.Is(err, plainfile.ErrTooLarge) {
		return nil, advice.Wrap(fmt.Errorf("it is larger than %d bytes", maxFile), "make it shorter")
	}
	return data, err
}
