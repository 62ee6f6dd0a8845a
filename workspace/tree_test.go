// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

// openTree opens a tree that is closed with the test.
func openTree(t testing.TB, dir string, opts *TreeOptions) *Tree {
	t.Helper()
	if opts == nil {
		opts = &TreeOptions{}
	}
	if opts.Store == "" && opts.TempDir == "" {
		opts.TempDir = t.TempDir()
	}
	tree, err := OpenTree(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tree.Close(); err != nil {
			t.Error(err)
		}
	})
	return tree
}

func checkpoint(t testing.TB, tree *Tree) *Checkpoint {
	t.Helper()
	c, err := tree.Checkpoint(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rollback rolls back, and fails if there is any conflict.
func rollback(t testing.TB, tree *Tree, c *Checkpoint, opts *RollbackOptions) RolledBack {
	t.Helper()
	rolled, err := tree.Rollback(context.Background(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(rolled.Conflicts) > 0 {
		t.Fatalf("rolling back has conflicts: %+v", rolled.Conflicts)
	}
	return rolled
}

// shell runs a script in a folder, as a process of its own.
func shell(t testing.TB, dir, script string) {
	t.Helper()
	cmd := exec.Command("sh", "-euc", script)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.invalid",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// bothWays runs a test with the watcher and without.
func bothWays(t *testing.T, test func(t *testing.T, opts *TreeOptions)) {
	t.Run("watching", func(t *testing.T) { test(t, &TreeOptions{}) })
	t.Run("looking at everything", func(t *testing.T) { test(t, &TreeOptions{NoWatch: true}) })
}

const seedScript = `mkdir -p a/b/c empty .git/objects deep/er
echo one > one; echo two > a/two; printf '\000\001' > a/b/bin; echo x > a/b/c/x
ln -s one link; ln -s ../nowhere a/dangling; ln one second; mkfifo pipe
echo obj > .git/objects/o; echo '*.log' > .gitignore; echo ignored > debug.log
chmod 700 a/b; chmod 444 a/two; touch -d 2001-02-03T04:05:06.123456789Z one a
touch -h -d 2002-01-01 link`
