// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRollback_RestoresEveryKindOfEdit(t *testing.T) {
	tests := []struct{ name, edit string }{
		{"nothing", "true"},
		{"content in place", "echo more >> one"},
		{"content by rename", "cp one new; echo z >> new; mv new one"},
		{"a new file", "echo hi > a/b/new"},
		{"a deleted file", "rm a/two"},
		{"a deleted folder", "rm -r a"},
		{"a new folder", "mkdir -p n/e/w; echo 1 > n/e/w/f; mkdir n/leer"},
		{"a renamed folder", "mv a z"},
		{"a renamed folder and changes in it", "mv a z; echo 1 >> z/b/c/x; rm z/two"},
		{"two folders exchanged", "mv a t; mv deep a; mv t deep"},
		{"modes", "chmod 600 one; chmod 755 a/b; chmod 000 a/two"},
		{"times", "touch -d 2010-01-01 one a/b empty; touch -h -d 2011-01-01 link"},
		{"link retargeted", "ln -sfn two link"},
		{"link becomes a file", "rm link; echo f > link"},
		{"file becomes a folder", "rm a/two; mkdir a/two; echo in > a/two/in"},
		{"folder becomes a file", "rm -r a; echo a > a"},
		{"folder becomes a link", "mv a realer; ln -s realer a"},
		{"an empty folder goes", "rmdir empty"},
		{"hard link parted", "cp -p second third; mv third second"},
		{"hard link removed", "rm second"},
		{"first of a hard link removed", "rm one"},
		{"hard link written through", "echo w >> second"},
		{"a further hard link", "ln one third; ln a/b/bin a/bin2"},
		{"files linked that were two", "rm a/b/c/x; ln one a/b/c/x"},
		{"names exchanged", "mv one t; mv a/two one; mv t a/two"},
		{"pipe goes", "rm pipe; rm -f .gitignore debug.log"},
		{"a new pipe", "mkfifo a/pipe"},
		{"git folder", "rm -r .git; mkdir .git; echo h > .git/HEAD"},
		{"owner", "chown -h 12:34 one link a 2>/dev/null || true"},
		{"the root", "chmod 711 .; touch -d 2015-05-05 ."},
		{"all gone", "chmod -R u+w .; rm -rf ./* .git .gitignore"},
		{"set-id and sticky bits", "cp one s; chmod 6755 s; chmod 1777 empty; chmod g+s a/b"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, opts *TreeOptions) {
				dir := t.TempDir()
				shell(t, dir, seedScript)
				tree := openTree(t, dir, opts)
				first := checkpoint(t, tree)
				want := snapshot(t, dir)
				shell(t, dir, test.edit)
				edited := snapshot(t, dir)
				second := checkpoint(t, tree)
				shell(t, dir, "echo later > later; rm -f one")
				rollback(t, tree, first, nil)
				wantSnapshot(t, dir, want)
				rollback(t, tree, second, nil)
				wantSnapshot(t, dir, edited)
				rollback(t, tree, first, nil)
				wantSnapshot(t, dir, want)
				if watching := tree.Usage().Watching; watching == opts.NoWatch {
					t.Errorf("watching: %v (%s)", watching, tree.Usage().WatchProblem)
				}
			})
		})
	}
}

func TestRollback_WithoutChangesDoesNothing(t *testing.T) {
	dir := t.TempDir()
	shell(t, dir, seedScript)
	tree := openTree(t, dir, nil)
	c := checkpoint(t, tree)
	if rolled := rollback(t, tree, c, nil); rolled.Restored != nil || rolled.Aside != "" {
		t.Errorf("rolling back nothing did %+v", rolled)
	}
	if _, err := os.Stat(filepath.Join(dir, "one")); err != nil {
		t.Error(err)
	}
}
