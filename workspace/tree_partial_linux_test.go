// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Whatever part of a tree is rolled back: what was chosen is what it was, all else is what it is, and
// where that cannot be, it is reported.
func TestRollback_PartOfATreeLeavesTheRestUnchanged(t *testing.T) {
	scratch := t.TempDir()
	serial := 0
	rapid.Check(t, func(rt *rapid.T) {
		serial++
		dir := filepath.Join(scratch, fmt.Sprint(serial), "tree")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(filepath.Dir(dir))
		tree, err := OpenTree(dir, &TreeOptions{TempDir: filepath.Dir(dir), NoWatch: rapid.Bool().Draw(rt, "NoWatch")})
		if err != nil {
			rt.Fatal(err)
		}
		defer tree.Close()
		runEdits(rt, dir, drawScript(rt, "before"))
		c, err := tree.Checkpoint(context.Background())
		if err != nil {
			rt.Fatal(err)
		}
		was := snapshot(t, dir)
		runEdits(rt, dir, drawScript(rt, "after"))
		now := snapshot(t, dir)
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(editPaths[:len(editPaths)-1]), 1, 3, rapid.ID[string]).Draw(rt, "paths")
		below := func(p string) bool {
			return slices.ContainsFunc(chosen, func(dir string) bool { return within(p, dir) })
		}
		opts := &RollbackOptions{Only: chosen}
		selected := below
		if rapid.Bool().Draw(rt, "keep") {
			opts = &RollbackOptions{Keep: below}
			selected = func(p string) bool { return !below(p) }
		}
		rolled, err := tree.Rollback(context.Background(), c, opts)
		if err != nil {
			rt.Fatal(err)
		}
		got := snapshot(t, dir)
		all := maps.Clone(was)
		maps.Copy(all, now)
		maps.Copy(all, got)
		for p := range all {
			excused := p == "." || slices.ContainsFunc(rolled.Conflicts, func(c Conflict) bool { return c.Path == p })
			switch chosen := selected(p); {
			case excused:
			case chosen && !slices.Contains(rolled.Kept, p) && !alikeStates(was[p], got[p]):
				rt.Fatalf("%s is chosen and not what it was (%+v):\n%s", p, rolled, cmp.Diff(was[p], got[p]))
			case !chosen && !slices.Contains(rolled.Restored, p) && !alikeStates(now[p], got[p]):
				rt.Fatalf("%s is not chosen and not what it is (%+v):\n%s", p, rolled, cmp.Diff(now[p], got[p]))
			}
		}
	})
}

// alikeStates leaves aside the times of folders, and who else is the same file.
func alikeStates(a, b state) bool {
	a.Names, b.Names = nil, nil
	if a.Mode&syscall.S_IFMT == syscall.S_IFDIR {
		b.ModTime = a.ModTime
	}
	return cmp.Equal(a, b)
}
