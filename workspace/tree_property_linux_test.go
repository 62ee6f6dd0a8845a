// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/internal/testkit"
)

// editPaths are few, so that edits meet. One is not UTF-8.
var editPaths = []string{"a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "d/e/f", "r", "r/a", "r/n", "r/n/b", "r/x.log", `"$(printf 'l\377\376')"`}

func drawPath(t *rapid.T, label string) string { return rapid.SampledFrom(editPaths).Draw(t, label) }

// drawEdit draws a command for a shell. Many fail, because what they need is not there.
func drawEdit(t *rapid.T) string {
	p, q := drawPath(t, "path"), drawPath(t, "other")
	n := rapid.IntRange(0, 9).Draw(t, "number")
	edits := []string{
		fmt.Sprintf("echo %d > %s", n, p), fmt.Sprintf("echo %d > %s", n, p),
		fmt.Sprintf("echo %d >> %s", n, p),
		fmt.Sprintf("rm -rf %s", p),
		fmt.Sprintf("mkdir -p %s", p), fmt.Sprintf("mkdir -p %s", p),
		fmt.Sprintf("mv -T %s %s", p, q), fmt.Sprintf("mv %s %s", p, q),
		fmt.Sprintf("ln -sfn %s %s", q, p),
		fmt.Sprintf("ln -fT %s %s", p, q), fmt.Sprintf("ln -fT %s %s", p, q),
		fmt.Sprintf("cp -pT %s %s", p, q), fmt.Sprintf("cp -aT %s %s", p, q),
		fmt.Sprintf("cp -p %s %s.new && mv %s.new %s", p, p, p, p),
		fmt.Sprintf("chmod %o %s", 0o700|n*8, p),
		fmt.Sprintf("touch -d 20%02d-01-02T03:04:05.%09d %s", n, n*1234567, p),
		fmt.Sprintf("touch -h -d 20%02d-01-02 %s", n, p),
		fmt.Sprintf("mkfifo %s.pipe", p), // no process opens it
		fmt.Sprintf("truncate -s %d %s", n*1000, p),
		// The same size and the same time.
		fmt.Sprintf("cp -p %s ../ref && printf %d | dd of=%s conv=notrunc status=none && touch -r ../ref %s", p, n, p, p),
		fmt.Sprintf("chown -h %d:%d %s", n, n, p),
		"touch -d 2003-03-03 .",
		"find d -depth -delete",
		"git -C r init -q && echo '*.log' > r/.gitignore",
		"git -C r/n init -q",
		"git -C r add -A && git -C r commit -qm c",
		"git -C r/n add -A && git -C r/n commit -qm c",
		fmt.Sprintf("git -C r checkout -qB b%d", n%2),
		"git -C r checkout -q -",
		"git -C r reset -q --hard",
		"git -C r stash -q -u", "git -C r stash pop -q",
		"git -C r gc -q", "git -C r repack -adq",
	}
	return rapid.SampledFrom(edits).Draw(t, "edit")
}

// drawScript draws some edits, run by processes of their own.
func drawScript(t *rapid.T, label string) string {
	return strings.Join(rapid.SliceOfN(rapid.Custom(drawEdit), 1, 12).Draw(t, label), "\n")
}

func runEdits(t *rapid.T, dir, script string) {
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.invalid", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.invalid",
	}
	_ = cmd.Run() // some edits fail
}

// Whatever happens between checkpoints, rolling back to any of them gives what was there.
func TestRollback_RandomEditsAreUndoneExactly(t *testing.T) {
	scratch := t.TempDir()
	serial := 0
	rapid.Check(t, func(rt *rapid.T) {
		serial++
		dir := filepath.Join(scratch, fmt.Sprint(serial), "tree")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(filepath.Dir(dir))
		noWatch := rapid.Bool().Draw(rt, "NoWatch")
		tree, err := OpenTree(dir, &TreeOptions{TempDir: filepath.Dir(dir), NoWatch: noWatch})
		if err != nil {
			rt.Fatal(err)
		}
		defer tree.Close()
		tree.askAtOnce = rapid.SampledFrom([]int{0, 1, askAtOnce}).Draw(rt, "askAtOnce")
		edits := &editing{t: t, dir: dir, tree: tree}
		for range rapid.IntRange(2, testkit.Size(4, 8)).Draw(rt, "rounds") {
			edits.round(rt)
		}
		if tree.Usage().Watching == noWatch {
			rt.Fatalf("watching: %v, %s", !noWatch, tree.Usage().WatchProblem)
		}
	})
}

// editing is a tree with its checkpoints, and what was there at each.
type editing struct {
	t           *testing.T
	dir         string
	tree        *Tree
	checkpoints []*Checkpoint
	snapshots   []map[string]state
}

func (e *editing) round(rt *rapid.T) {
	runEdits(rt, e.dir, drawScript(rt, "script"))
	if at := drawPath(rt, "attribute"); rapid.Bool().Draw(rt, "attributes") {
		_ = unix.Lsetxattr(filepath.Join(e.dir, at), "user.t", []byte(drawPath(rt, "value")), 0) // it may not be there
	}
	switch action := rapid.IntRange(0, 5).Draw(rt, "action"); {
	case action == 0 && len(e.checkpoints) > 1:
		i := rapid.IntRange(0, len(e.checkpoints)-1).Draw(rt, "released")
		e.checkpoints[i].Release()
		e.checkpoints = append(e.checkpoints[:i:i], e.checkpoints[i+1:]...)
		e.snapshots = append(e.snapshots[:i:i], e.snapshots[i+1:]...)
	case action < 3 && len(e.checkpoints) > 0:
		e.back(rt, rapid.IntRange(0, len(e.checkpoints)-1).Draw(rt, "version"))
	default:
		c, err := e.tree.Checkpoint(context.Background())
		if err != nil {
			rt.Fatal(err)
		}
		e.checkpoints, e.snapshots = append(e.checkpoints, c), append(e.snapshots, snapshot(e.t, e.dir))
		e.compareFiles(rt, c)
	}
}

func (e *editing) back(rt *rapid.T, i int) {
	rolled, err := e.tree.Rollback(context.Background(), e.checkpoints[i], nil)
	if err != nil {
		rt.Fatal(err)
	}
	if len(rolled.Conflicts) > 0 {
		rt.Fatalf("conflicts: %+v", rolled.Conflicts)
	}
	if diff := cmp.Diff(e.snapshots[i], snapshot(e.t, e.dir)); diff != "" {
		rt.Fatalf("the tree is not what it was (-want +got):\n%s", diff)
	}
}

// compareFiles compares what a checkpoint reports with what is there.
func (e *editing) compareFiles(rt *rapid.T, c *Checkpoint) {
	files, err := c.Files()
	if err != nil {
		rt.Fatal(err)
	}
	want := e.snapshots[len(e.snapshots)-1]
	if got, want := len(files), len(want)-1; got != want {
		rt.Fatalf("%d files, want %d", got, want)
	}
	for _, f := range files {
		s, ok := want[f.Path]
		if !ok || f.Size != s.Size || f.ModTime.UnixNano() != s.ModTime.Nano() || f.Hash+f.Target != s.Content {
			rt.Fatalf("%s is %+v, want %+v", f.Path, f, s)
		}
	}
}
