// SPDX-License-Identifier: Apache-2.0

package filestest

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/drover-agents/drover/workspace/files"
)

func put(t *testing.T, fsys files.FS, name, content string) {
	t.Helper()
	if err := fsys.WriteFile(name, []byte(content), nil); err != nil {
		t.Fatalf("WriteFile(%q) = %v", name, err)
	}
}

func link(t *testing.T, s System, target, name string) {
	t.Helper()
	if err := s.Symlink(target, name); err != nil {
		t.Fatalf("Symlink(%q, %q) = %v", target, name, err)
	}
}

func want(t *testing.T, fsys files.FS, name, content string) {
	t.Helper()
	if got, err := fsys.ReadFile(name); err != nil || string(got) != content {
		t.Errorf("ReadFile(%q) = %q, %v; want %q", name, got, err, content)
	}
}

// wantIs checks that an error is one, and names the operation and the path.
func wantIs(t *testing.T, what string, err, target error) {
	t.Helper()
	if _, named := errors.AsType[*fs.PathError](err); !errors.Is(err, target) || !named {
		t.Errorf("%s = %v (%T), want an *fs.PathError that is %v", what, err, err, target)
	}
}

func wantLimit(t *testing.T, what string, err error, option string, got, limit int64) {
	t.Helper()
	e, ok := errors.AsType[*files.LimitError](err)
	if !ok || e.Option != option || e.Got != got || e.Limit != limit || !errors.Is(err, files.ErrLimit) {
		t.Errorf("%s = %v, want a LimitError of %s with %d over %d", what, err, option, got, limit)
	}
}

// tree lists everything but the root.
func tree(t *testing.T, fsys fs.FS) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(fsys, ".", func(name string, _ fs.DirEntry, err error) error {
		if name != "." {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatalf("WalkDir: %v", err)
	}
	return names
}
