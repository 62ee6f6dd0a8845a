// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRollback_Options(t *testing.T) {
	keep := func(paths ...string) func(string) bool {
		return func(p string) bool { return slices.Contains(paths, p) }
	}
	const seed = "mkdir -p a/b c; echo 1 > a/f; echo 2 > a/b/g; echo 3 > c/h; ln c/h c/i"
	tests := []struct {
		name, edit     string
		opts           RollbackOptions
		restored, kept []string
		conflicts      []string
		check          string
	}{
		{
			name: "only a file", edit: "echo x > a/f; echo x > c/h; echo x > new", opts: RollbackOptions{Only: []string{"a/f"}},
			restored: []string{"a/f"}, kept: []string{"c/h", "c/i", "new"}, check: "test $(cat a/f c/h c/i new | tr -d '\\n') = 1xxx",
		},
		{
			name: "only a folder", edit: "echo x > a/f; rm -r a/b; echo x > ab", opts: RollbackOptions{Only: []string{"a/"}},
			restored: []string{"a/b", "a/b/g", "a/f"}, kept: []string{"ab"}, check: "test $(cat a/f a/b/g ab | tr -d '\\n') = 12x",
		},
		{
			name: "a kept file in a new folder", edit: "mkdir -p n/m; echo x > n/m/mine; echo y > n/m/theirs", opts: RollbackOptions{Keep: keep("n/m/theirs")},
			restored: []string{"n/m/mine"}, kept: []string{"n", "n/m", "n/m/theirs"}, check: "test ! -e n/m/mine; test $(cat n/m/theirs) = y",
		},
		{
			name: "a kept file where a file was", edit: "rm a/f; mkdir a/f; echo y > a/f/theirs", opts: RollbackOptions{Keep: keep("a/f/theirs")},
			kept: []string{"a/f/theirs"}, conflicts: []string{"a/f"}, check: "test $(cat a/f/theirs) = y",
		},
		{
			name: "a kept deletion", edit: "rm -r a", opts: RollbackOptions{Keep: keep("a/f")},
			restored: []string{"a", "a/b", "a/b/g"}, kept: []string{"a/f"}, check: "test ! -e a/f; test $(cat a/b/g) = 2",
		},
		{
			name: "a file in a folder that is kept away", edit: "rm -r a", opts: RollbackOptions{Only: []string{"a/b/g"}},
			restored: []string{"a", "a/b", "a/b/g"}, kept: []string{"a/f"}, check: "test ! -e a/f; test $(cat a/b/g) = 2",
		},
		{
			name: "a file below what is kept as a file", edit: "rm -r a; echo y > a", opts: RollbackOptions{Keep: keep("a")},
			kept: []string{"a"}, conflicts: []string{"a/b", "a/b/g", "a/f"}, check: "test $(cat a) = y",
		},
		{
			name: "one of two names", edit: "echo x > c/h", opts: RollbackOptions{Keep: keep("c/i")},
			restored: []string{"c/h"}, kept: []string{"c/i"}, check: "test $(cat c/h c/i | tr -d '\\n') = 3x",
		},
		{
			name: "nothing", edit: "echo x > a/f", opts: RollbackOptions{Only: []string{}},
			kept: []string{"a/f"}, check: "test $(cat a/f) = x",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			shell(t, dir, seed)
			tree := openTree(t, dir, nil)
			c := checkpoint(t, tree)
			shell(t, dir, test.edit)
			rolled, err := tree.Rollback(context.Background(), c, &test.opts)
			if err != nil {
				t.Fatal(err)
			}
			var conflicts []string
			for _, c := range rolled.Conflicts {
				conflicts = append(conflicts, c.Path)
			}
			got := [][]string{rolled.Restored, rolled.Kept, conflicts}
			if diff := cmp.Diff([][]string{test.restored, test.kept, test.conflicts}, got); diff != "" {
				t.Errorf("restored, kept, conflicts (-want +got):\n%s", diff)
			}
			shell(t, dir, test.check)
		})
	}
}

func TestRollback_KeepsRemovedFilesAside(t *testing.T) {
	dir := t.TempDir()
	shell(t, dir, "mkdir d; echo 1 > d/f; echo 2 > g")
	tree := openTree(t, dir, nil)
	c := checkpoint(t, tree)
	shell(t, dir, "echo changed > d/f; mkdir -p n/e; echo new > n/e/w; rm g; ln -s x g")
	rolled := rollback(t, tree, c, nil)
	shell(t, rolled.Aside, "test $(cat d/f) = changed; test $(cat n/e/w) = new; test $(readlink g) = x")
	if u := tree.Usage(); u.Aside == 0 || u.Disk != u.Contents+u.Aside {
		t.Errorf("usage is %+v", u)
	}
}

func TestRollback_FilesKeptAsideAreBounded(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir, &TreeOptions{MaxDisk: 100 << 10})
	c := checkpoint(t, tree)
	var asides []string
	for range 6 {
		if err := os.WriteFile(filepath.Join(dir, "f"), make([]byte, 30<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		asides = append(asides, rollback(t, tree, c, nil).Aside)
		if u := tree.Usage(); u.Disk > u.Limit {
			t.Errorf("%d bytes are used, want at most %d", u.Disk, u.Limit)
		}
	}
	if _, err := os.Stat(asides[0]); err == nil {
		t.Error("the oldest is still there")
	}
	if _, err := os.Stat(filepath.Join(asides[5], "f")); err != nil {
		t.Errorf("the newest: %v", err)
	}
}

func TestCheckpoint_FullStoreIsABudgetError(t *testing.T) {
	dir := t.TempDir()
	shell(t, dir, "echo small > small")
	tree := openTree(t, dir, &TreeOptions{MaxDisk: 64 << 10})
	c := checkpoint(t, tree)
	want := []string{"small"}
	if err := os.WriteFile(filepath.Join(dir, "large"), []byte(strings.Repeat("0123456789", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := tree.Checkpoint(context.Background())
	if budget, ok := errors.AsType[*BudgetError](err); !ok || budget.Path != "large" || !errors.Is(err, ErrBudget) {
		t.Fatalf("got %v, want a BudgetError for large", err)
	}
	rollback(t, tree, c, nil) // needs no room
	if got := names(t, checkpoint(t, tree)); !slices.Equal(got, want) {
		t.Errorf("files are %v, want %v", got, want)
	}
}

func names(t *testing.T, c *Checkpoint) (all []string) {
	t.Helper()
	files, err := c.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		all = append(all, f.Path)
	}
	return all
}

func TestOpenTree_SecondOpenIsRefused(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	tree, err := OpenTree(dir, &TreeOptions{TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTree(dir, &TreeOptions{TempDir: temp}); !errors.Is(err, ErrBusy) {
		t.Errorf("opening twice: %v, want ErrBusy", err)
	}
	if err := errors.Join(tree.Close(), tree.Close()); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("Close has left %v, %v", left, err)
	}
	if _, err := tree.Checkpoint(context.Background()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a checkpoint after Close: %v", err)
	}
	again, err := OpenTree(dir, &TreeOptions{TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}

func TestOpenTree_StoreInTheTreeIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, store := range []string{filepath.Join(dir, "store"), dir} {
		if _, err := OpenTree(dir, &TreeOptions{Store: store}); !errors.Is(err, ErrSecurity) {
			t.Errorf("%s: %v, want a SecurityError", store, err)
		}
	}
}

// The name of a store that is made can be guessed: another user may have put something there.
func TestOpenTree_StoreOfAnotherUserIsRefused(t *testing.T) {
	dir, temp := t.TempDir(), t.TempDir()
	tree, err := OpenTree(dir, &TreeOptions{TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	store := tree.store.dir
	_ = tree.Close()
	plants := map[string]func() error{
		"a folder for all": func() error { return errors.Join(os.Mkdir(store, 0o777), os.Chmod(store, 0o777)) },
		"a link":           func() error { return os.Symlink(t.TempDir(), store) },
	}
	for name, plant := range plants {
		if err := plant(); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenTree(dir, &TreeOptions{TempDir: temp}); !errors.Is(err, ErrSecurity) {
			t.Errorf("%s: %v, want a SecurityError", name, err)
		}
		_ = os.Remove(store)
	}
}

func TestChanges_HaveBothSides(t *testing.T) {
	dir := t.TempDir()
	shell(t, dir, "mkdir d; echo 1 > d/f; echo 2 > g; echo same > s")
	tree := openTree(t, dir, nil)
	first := checkpoint(t, tree)
	shell(t, dir, "echo changed > d/f; rm g; echo new > n; touch s")
	second := checkpoint(t, tree)
	shell(t, dir, "rm -r d")
	read := func(f *File) string {
		if f == nil {
			return "-"
		}
		if f.Mode.IsDir() {
			return "folder"
		}
		content, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		text, _ := io.ReadAll(content)
		return strings.TrimSpace(string(text))
	}
	for _, forward := range []bool{true, false} {
		from, to := first, second
		want := "d/f 1 changed, g 2 -, n - new, s same same"
		if !forward {
			from, to, want = second, first, "d/f changed 1, g - 2, n new -, s same same"
		}
		changes, err := tree.Changes(from, to)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range changes {
			got = append(got, fmt.Sprint(c.Path, " ", read(c.Before), " ", read(c.After)))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("changes are %s\nwant %s", got, want)
		}
	}
	second.Release()
	second.Release()
	if _, err := tree.Changes(first, second); !errors.Is(err, ErrReleased) {
		t.Errorf("changes to what was released: %v", err)
	}
	if _, err := tree.Rollback(context.Background(), second, nil); !errors.Is(err, ErrReleased) {
		t.Errorf("rolling back to what was released: %v", err)
	}
}

func TestRelease_FreesContents(t *testing.T) {
	dir := t.TempDir()
	tree := openTree(t, dir, nil)
	p := filepath.Join(dir, "f")
	base := checkpoint(t, tree)
	empty := tree.Usage().Contents
	var all []*Checkpoint
	for i := range 5 {
		if err := os.WriteFile(p, []byte(strings.Repeat(fmt.Sprint(i), 1<<20)), 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, checkpoint(t, tree))
	}
	rollback(t, tree, base, nil)
	for _, i := range []int{2, 0, 4, 1, 3} {
		all[i].Release()
	}
	if u := tree.Usage(); u.Contents > empty || u.Checkpoints != 1 {
		t.Errorf("after all is released there are %d bytes and %d checkpoints, want %d and 1", u.Contents, u.Checkpoints, empty)
	}
}

func TestCheckpoint_CancelledLeavesTheTreeUsable(t *testing.T) {
	dir := t.TempDir()
	shell(t, dir, seedScript)
	tree := openTree(t, dir, nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tree.Checkpoint(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	if err := (&refresh{tree: tree}).run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	if got := names(t, checkpoint(t, tree)); len(got) < 10 {
		t.Errorf("files are %v", got)
	}
}
