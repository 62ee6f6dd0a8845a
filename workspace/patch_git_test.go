// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
)

// A testFile is a file with its content, or a link with its target.
type testFile struct {
	Content string
	Mode    fs.FileMode
}

// A testTree is the content of a folder, by path. Folders are there because of what is in them.
type testTree map[string]testFile

func (f testFile) file(path string) *File {
	file := &File{Path: path, Mode: f.Mode, ModTime: time.Unix(1e9, 0)}
	if f.Mode&fs.ModeSymlink != 0 {
		file.Target = f.Content
	}
	if f.Mode.IsRegular() {
		sum := sha256.Sum256([]byte(f.Content))
		file.Size, file.Hash = int64(len(f.Content)), hex.EncodeToString(sum[:])
		file.open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(f.Content)), nil }
	}
	return file
}

// withFolders adds the folders.
func (tree testTree) withFolders() testTree {
	all := maps.Clone(tree)
	for name := range tree {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			all[dir] = testFile{Mode: fs.ModeDir | 0o755}
		}
	}
	return all
}

// changesBetween is what a [Tree] would return.
func changesBetween(before, after testTree) []Change {
	b, a := before.withFolders(), after.withFolders()
	names := slices.Concat(slices.Collect(maps.Keys(b)), slices.Collect(maps.Keys(a)))
	slices.Sort(names)
	var changes []Change
	for _, name := range slices.Compact(names) {
		c := Change{Path: name}
		if f, ok := b[name]; ok {
			c.Before = f.file(name)
		}
		if f, ok := a[name]; ok {
			c.After = f.file(name)
		}
		if b[name] != a[name] || c.Before == nil || c.After == nil {
			changes = append(changes, c)
		}
	}
	return changes
}

func (tree testTree) write(t rapid.TB, dir string) {
	t.Helper()
	for name, f := range tree {
		full := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(full), 0o755)
		if err == nil && f.Mode&fs.ModeSymlink != 0 {
			err = os.Symlink(f.Content, full)
		} else if err == nil {
			err = os.WriteFile(full, []byte(f.Content), f.Mode)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func readTree(t rapid.TB, dir string) testTree {
	t.Helper()
	tree := testTree{}
	err := filepath.WalkDir(dir, func(full string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, full)
		switch {
		case err != nil:
			return err
		case name == ".git":
			return fs.SkipDir
		case d.IsDir():
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(full)
			tree[name] = testFile{target, fs.ModeSymlink | 0o777}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(full)
		tree[name] = testFile{string(content), info.Mode()}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// runGit runs the real git, which sees nothing of the machine's settings.
func runGit(t rapid.TB, dir string, stdin []byte, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(dir), "LC_ALL=C",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(dir),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func needGit(t rapid.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil || runtime.GOOS == "windows" {
		t.Skip("needs git, and a system with links and modes")
	}
}

// checkPatch applies the patch from before to after to a real folder, and takes it back.
func checkPatch(t rapid.TB, before, after testTree, context int, inRepo bool) {
	t.Helper()
	base, err := os.MkdirTemp("", "drover-patch-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	dir := filepath.Join(base, "tree")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	before.write(t, dir)
	if inRepo {
		if out, err := runGit(t, dir, nil, "init", "-q"); err != nil {
			t.Fatalf("git init: %v\n%s", err, out)
		}
	}
	var patch bytes.Buffer
	if err := WritePatch(&patch, changesBetween(before, after), &DiffOptions{Context: context}); err != nil {
		t.Fatal(err)
	}
	if patch.Len() == 0 {
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("no patch for:\n%s", diff)
		}
		return
	}
	for _, step := range []struct {
		args []string
		want testTree
	}{{[]string{"apply"}, after}, {[]string{"apply", "-R"}, before}} {
		if out, err := runGit(t, dir, patch.Bytes(), step.args...); err != nil {
			t.Fatalf("git %v: %v\n%s\n%s", step.args, err, out, patch.Bytes())
		}
		if diff := cmp.Diff(step.want, readTree(t, dir)); diff != "" {
			t.Fatalf("after git %v (-want +got):\n%s\npatch:\n%s", step.args, diff, patch.Bytes())
		}
	}
}

var (
	patchNames = rapid.SampledFrom([]string{
		"a", "b", "c.txt", "with space", `quo"te`, "tab\t", "new\nline", "\xff\xfe", "ünï", `back\slash`,
		"-dash", "trail ", " lead", "\x01", "a b", "dev", "null", ".gitignore", "\x7f",
	})
	patchLines = rapid.SampledFrom([]string{
		"", "one", "two", "three", "--- a/a", "+++ b/a", "@@ -1 +1 @@", "diff --git a/a b/a", `\ No newline at end of file`,
		"crlf\r", "lone\rreturn", "trailing ", "\ttab", "latin1 \xe9", "ünïcode", strings.Repeat("long ", 3000), "GIT binary patch", "literal 3",
	})
)

// linkTargets make no circles: git cannot put a folder where one was.
var linkTargets = []string{".", "none", "../b", "/dev/null", "x\ny", "some where", "\xfd"}

func genText(t *rapid.T) string {
	text := strings.Join(rapid.SliceOfN(patchLines, 0, 30).Draw(t, "lines"), "\n")
	if rapid.Bool().Draw(t, "final newline") && text != "" {
		text += "\n"
	}
	return text
}

func genFile(t *rapid.T) testFile {
	mode := rapid.SampledFrom([]fs.FileMode{0o644, 0o755}).Draw(t, "mode")
	switch rapid.IntRange(0, 9).Draw(t, "kind") {
	case 0, 1:
		return testFile{rapid.SampledFrom(linkTargets).Draw(t, "target"), fs.ModeSymlink | 0o777}
	case 2, 3:
		return testFile{"\x00" + string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")), mode}
	case 4:
		return testFile{"", mode}
	}
	return testFile{genText(t), mode}
}

// edited changes a file the way people do.
func edited(t *rapid.T, f testFile) testFile {
	switch rapid.IntRange(0, 4).Draw(t, "edit") {
	case 0:
		return genFile(t)
	case 1:
		if f.Mode.IsRegular() {
			f.Mode ^= 0o111
		}
		return f
	case 2:
		return f
	}
	if !f.Mode.IsRegular() {
		return genFile(t)
	}
	lines := strings.SplitAfter(f.Content, "\n")
	at := rapid.IntRange(0, len(lines)-1).Draw(t, "at")
	lines[at] = patchLines.Draw(t, "line")
	return testFile{strings.Join(lines, ""), f.Mode}
}

// add puts a file into a tree, if no file is a folder then.
func (tree testTree) add(name string, f testFile) {
	for other := range tree {
		if strings.HasPrefix(other, name+"/") || strings.HasPrefix(name, other+"/") {
			return
		}
	}
	tree[name] = f
}

func genName(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(patchNames, 1, 3).Draw(t, "name"), "/")
}

func genTrees(t *rapid.T) (before, after testTree) {
	before, after = testTree{}, testTree{}
	for range rapid.IntRange(0, 6).Draw(t, "files") {
		before.add(genName(t), genFile(t))
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		switch rapid.IntRange(0, 5).Draw(t, "fate") {
		case 0: // deleted
		case 1:
			after.add(name+"/"+patchNames.Draw(t, "below"), genFile(t)) // a folder takes its place
		case 2:
			after.add(path.Dir(name), genFile(t)) // it takes the place of its folder
		default:
			after.add(name, edited(t, before[name]))
		}
	}
	delete(after, ".")
	for range rapid.IntRange(0, 3).Draw(t, "new files") {
		after.add(genName(t), genFile(t))
	}
	return before, after
}

func TestWritePatch_GitAppliesRandomTrees(t *testing.T) {
	needGit(t)
	rapid.Check(t, func(rt *rapid.T) {
		before, after := genTrees(rt)
		context := rapid.SampledFrom([]int{0, 1, 10}).Draw(rt, "context")
		checkPatch(rt, before, after, context, rapid.Bool().Draw(rt, "in a repository"))
	})
}
