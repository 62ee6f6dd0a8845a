// SPDX-License-Identifier: Apache-2.0

package copytree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// A link is not copied before its target is checked.
func TestCopy_SourceThatIsALinkIsRefused(t *testing.T) {
	src := t.TempDir()
	must(t, os.Symlink("/outside", filepath.Join(src, "file")))
	dst := t.TempDir()
	_, err := copyInto(t.Context(), t, Source{open(t, src), "file"}, dst, Options{})
	if _, ok := errors.AsType[*Refusal](err); !ok {
		t.Errorf("got %v, want a refusal", err)
	}
	if left := paths(t, dst); len(left) > 0 {
		t.Errorf("%q was copied", left)
	}
}

// turning does something the second time that a caller asks whether it has ended: that is before the first
// folder below the source is read.
type turning struct {
	context.Context
	asked atomic.Int32
	do    func()
}

func (c *turning) Err() error {
	if c.asked.Add(1) == 2 {
		c.do()
	}
	return c.Context.Err()
}

func TestPlan_FolderExchangedDuringTheWalkIsRefused(t *testing.T) {
	for name, exchange := range map[string]func(path string) error{
		"for a link": func(path string) error { return os.Symlink("..", path) },
		"for a file": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			src := t.TempDir()
			write(t, src, "folder/a")
			folder := filepath.Join(src, "folder")
			ctx := &turning{Context: t.Context(), do: func() {
				must(t, os.RemoveAll(folder))
				must(t, exchange(folder))
			}}
			_, err := NewPlan(ctx, Source{open(t, src), "."}, Options{})
			if _, ok := errors.AsType[*Refusal](err); !ok {
				t.Errorf("got %v, want a refusal", err)
			}
		})
	}
}
