// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Files is where an agent works, as far as guards need to see it.
type Files interface {
	// Exists reports whether there is a file at a path: relative to the agent's directory, or absolute and inside it.
	Exists(ctx context.Context, path string) (bool, error)
}

// An Exec runs a command where an agent works and waits for its end. A command that ran and failed is no error.
type Exec func(ctx context.Context, argv []string) (Executed, error)

// Executed is how a command ended.
type Executed struct {
	ExitCode int
	// Output is what it wrote, to both outputs.
	Output []byte
}

// Dir is a directory as [Files]. Links that lead out of it are errors, not files.
type Dir string

// Exists implements [Files].
func (d Dir) Exists(_ context.Context, path string) (bool, error) {
	rel, err := d.relative(path)
	if err != nil {
		return false, err
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }()
	_, err = root.Stat(rel)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // a file where a directory would be
		return false, nil
	}
	return err == nil, err
}

func (d Dir) relative(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := filepath.Abs(string(d))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("guard: %s is outside of %s", path, dir)
	}
	return rel, nil
}
