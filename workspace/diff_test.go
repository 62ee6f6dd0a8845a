// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

const linkMode = fs.ModeSymlink | 0o777

// diffs are changes, by the name of the file that has what is shown of them.
var diffs = map[string]struct {
	before, after testTree
	opts          DiffOptions
}{
	"text": {
		before: testTree{"main.go": {countedLines(20), 0o644}, "crlf.txt": {"one\r\ntwo\r\n", 0o644}, "end": {"a\nb", 0o644}, "gone": {"x\n", 0o644}},
		after: testTree{
			"main.go":  {strings.Replace(strings.Replace(countedLines(20), "line 2\n", "line two\n", 1), "line 18\n", "", 1), 0o644},
			"crlf.txt": {"one\ntwo\r\n", 0o644}, "end": {"a\nb\n", 0o644}, "sub/new": {"x\n\ty\n", 0o600},
		},
	},
	"kinds": {
		before: testTree{"empty": {"", 0o644}, "file": {"text\n", 0o644}, "link": {"target", linkMode}, "run.sh": {"#!\n", 0o644}, "folder/x": {"x\n", 0o644}, "secret": {"s\n", 0o644}},
		after:  testTree{"file": {"elsewhere", linkMode}, "link": {"other", linkMode}, "run.sh": {"#!\n", 0o755}, "folder": {"now a file\n", 0o644}, "made": {"", 0o755}, "secret": {"s\n", 0o600}},
	},
	"binary": {
		before: testTree{"gone.bin": {"\x00\x01", 0o644}, "logo.png": {"\x89PNG\x00old", 0o644}, "large.txt": {countedLines(30), 0o644}, ".git/index": {"\x00", 0o644}},
		after:  testTree{"logo.png": {"\x89PNG\x00newer", 0o644}, "new.bin": {"\x00", 0o644}, "large.txt": {countedLines(31), 0o644}, ".git/index": {"\x01\x00", 0o644}},
		opts:   DiffOptions{MaxBytes: 100},
	},
	"hostile": {
		before: testTree{"log": {"plain\n", 0o644}},
		after:  testTree{"log": {"plain\n\x1b]0;title\a\x1b[2J\n\u202eevil\n\xff\n", 0o644}, "new\nline \x1b[31m": {"x", 0o644}, "with space": {"x\n", 0o644}},
	},
	"context": {
		before: testTree{"a": {countedLines(12), 0o644}},
		after:  testTree{"a": {strings.NewReplacer("line 3\n", "three\n", "line 6\n", "six\n", "line 10\n", "ten\n").Replace(countedLines(12)), 0o644}},
		opts:   DiffOptions{Context: 1},
	},
}

func countedLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestWriteDiff_Golden(t *testing.T) {
	for name, c := range diffs {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join("testdata", "diff", name+".txtar")
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(archive.Comment)) == 0 {
				t.Errorf("%s does not say why it is there", file)
			}
			got := shownOf(t, changesBetween(c.before, c.after), &c.opts)
			if updating() {
				archive.Files = got
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(archive.Files, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// updating reports the flag that rewrites testdata, which another file may define for one system only.
func updating() bool {
	f := flag.Lookup("update")
	return f != nil && f.Value.String() == "true"
}

func shownOf(t *testing.T, changes []Change, opts *DiffOptions) []txtar.File {
	t.Helper()
	var diff, patch, lines bytes.Buffer
	if err := WriteDiff(&diff, changes, opts); err != nil {
		t.Fatal(err)
	}
	if err := WritePatch(&patch, changes, opts); err != nil {
		t.Fatal(err)
	}
	stats, err := DiffStat(changes, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, stat := range stats {
		fmt.Fprintln(&lines, stat)
	}
	files := []txtar.File{
		{Name: "diff", Data: diff.Bytes()},
		{Name: "stat", Data: lines.Bytes()},
		{Name: "summary", Data: []byte(Summarize(changes).String())},
	}
	// What acts on terminals is kept out of files, and so is what another version of Go packs differently.
	if !bytes.ContainsRune(patch.Bytes(), '\x1b') && !bytes.Contains(patch.Bytes(), []byte("GIT binary patch")) {
		files = append(files, txtar.File{Name: "patch", Data: patch.Bytes()})
	}
	return files
}

func TestSummarize_NamesChangesThatAPatchOmits(t *testing.T) {
	file := func(mode fs.FileMode, content string) *File { return testFile{content, mode}.file("x") }
	dir, pipe := file(fs.ModeDir|0o755, ""), file(fs.ModeNamedPipe|0o644, "")
	touched := file(0o644, "x")
	touched.ModTime = touched.ModTime.Add(time.Hour)
	tests := []struct {
		name   string
		change Change
		want   string
	}{
		{"new folder", Change{Path: "d", After: dir}, "a folder without files"},
		{"removed folder", Change{Path: "d", Before: dir}, "a folder without files"},
		{"time of a folder", Change{Path: "d", Before: dir, After: file(fs.ModeDir|0o755, "")}, ""},
		{"permissions of a folder", Change{Path: "d", Before: dir, After: file(fs.ModeDir|0o700, "")}, "permissions drwxr-xr-x -> drwx------"},
		{"pipe", Change{Path: "p", After: pipe}, "a pipe, a socket or a device"},
		{"pipe that becomes a file", Change{Path: "p", Before: pipe, After: file(0o644, "x")}, "a pipe, a socket or a device"},
		{"time of a file", Change{Path: "f", Before: file(0o644, "x"), After: touched}, "only its time or owner"},
		{"permissions", Change{Path: "f", Before: file(0o644, "x"), After: file(0o600, "x")}, "permissions -rw-r--r-- -> -rw-------"},
		{"permissions git knows", Change{Path: "f", Before: file(0o644, "x"), After: file(0o755, "x")}, ""},
		{"git's own", Change{Path: "sub/.git/HEAD", After: file(0o644, "x")}, "git touches no files of a repository's own folder"},
		{"a file", Change{Path: "f", After: file(0o644, "x")}, ""},
	}
	for _, test := range tests {
		var got string
		for _, o := range Summarize([]Change{test.change}).NotInPatch {
			got += o.Reason
		}
		if got != test.want {
			t.Errorf("%s: left out because of %q, want %q", test.name, got, test.want)
		}
	}
	with := Summarize([]Change{{Path: "d", After: dir}, {Path: "d/f", After: file(0o644, "x")}})
	if diff := cmp.Diff(Summary{Created: 1}, with); diff != "" {
		t.Errorf("a folder that comes with its file (-want +got):\n%s", diff)
	}
}

// Contents that are not text, or too large for it, are never in memory as a whole.
func TestWriteDiff_LargeContentsAreNotHeldInMemory(t *testing.T) {
	const size = 100 << 20
	zeros := func(n int64) *File {
		return &File{Path: "big", Size: n, Hash: fmt.Sprint(n), open: func() (io.ReadCloser, error) {
			return io.NopCloser(io.LimitReader(zeroReader{}, n)), nil
		}}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := WritePatch(io.Discard, []Change{{Path: "big", Before: zeros(size), After: zeros(size + 1)}}, nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > size/10 {
		t.Errorf("a patch of %d MiB took %d MiB", size>>20, used>>20)
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestWritePatch_ContentOfAnotherSizeIsAnError(t *testing.T) {
	for _, size := range []int64{1, 5} {
		f := testFile{"abc", 0o644}.file("f")
		f.Size = size
		if err := WritePatch(io.Discard, []Change{{Path: "f", After: f}}, nil); err == nil {
			t.Errorf("a content of 3 bytes that says %d = nil, want an error", size)
		}
	}
}

func TestWritePatch_UnreadableContentIsAnError(t *testing.T) {
	changes := []Change{{Path: "f", After: &File{Path: "f", Size: 1, Hash: "x"}}}
	_, stat := DiffStat(changes, nil)
	for name, err := range map[string]error{"WritePatch": WritePatch(io.Discard, changes, nil), "WriteDiff": WriteDiff(io.Discard, changes, nil), "DiffStat": stat} {
		if err == nil {
			t.Errorf("%s = nil, want an error", name)
		}
	}
}

func TestTextDiff_HasHunksWithoutAHeader(t *testing.T) {
	want := "@@ -1,3 +1,3 @@\n line 1\n-line 2\n+two \\x1b[2J\n line 3\n"
	got := TextDiff(countedLines(9), strings.Replace(countedLines(9), "line 2", "two \x1b[2J", 1), &DiffOptions{Context: 1})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := TextDiff("a", "a", nil); got != "" {
		t.Errorf("texts that are the same differ: %q", got)
	}
}
