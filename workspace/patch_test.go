// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Texts beyond what the property test makes: many differences, long lines, many lines.
func TestWritePatch_GitAppliesLargeTexts(t *testing.T) {
	needGit(t)
	random := rand.New(rand.NewPCG(1, 2))
	lines := func(n, kinds int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintln(&b, random.IntN(kinds))
		}
		return b.String()
	}
	long := strings.Repeat("x", 1<<20)
	tests := map[string][2]string{
		"nothing in common":    {lines(2000, 1<<30), lines(2000, 1<<30)},
		"much in common":       {lines(3000, 5), lines(3000, 5)},
		"every other line":     {strings.Repeat("same\nold\n", 3000), strings.Repeat("same\nnew\n", 3000)},
		"one long line":        {long + "\nx\n" + long, long + "\ny\n" + long + "y"},
		"more lines than text": {strings.Repeat("\n", maxTextLines+2), strings.Repeat("\n", maxTextLines+5)},
		"larger than text":     {strings.Repeat(long+"\n", 17), strings.Repeat(long+"\n", 16) + "end"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkPatch(t, testTree{"f": {test[0], 0o644}}, testTree{"f": {test[1], 0o755}}, 0, false)
		})
	}
}

// With the names of contents git can also keep its index in step, and merge.
func TestWritePatch_GitAppliesToTheIndexAndMerges(t *testing.T) {
	needGit(t)
	dir := filepath.Join(t.TempDir(), "tree")
	before := testTree{"f": {countedLines(30), 0o644}, "bin": {"\x00a", 0o644}}
	after := testTree{"f": {strings.Replace(countedLines(30), "line 25\n", "theirs\n", 1), 0o644}, "bin": {"\x00b", 0o755}}
	before.write(t, dir)
	run := func(stdin []byte, args ...string) {
		t.Helper()
		if out, err := runGit(t, dir, stdin, args...); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	run(nil, "init", "-q")
	run(nil, "add", "-A")
	run(nil, "commit", "-qm", "before")
	var patch bytes.Buffer
	if err := WritePatch(&patch, changesBetween(before, after), nil); err != nil {
		t.Fatal(err)
	}
	run(patch.Bytes(), "apply", "--index")
	run(nil, "diff", "--quiet")
	if diff := cmp.Diff(after, readTree(t, dir)); diff != "" {
		t.Errorf("after git apply --index (-want +got):\n%s", diff)
	}
	run(nil, "reset", "-q", "--hard")
	testTree{"f": {strings.Replace(countedLines(30), "line 23\n", "ours\n", 1), 0o644}}.write(t, dir)
	run(nil, "commit", "-qam", "ours")
	if out, _ := runGit(t, dir, patch.Bytes(), "apply", "-3"); !strings.Contains(out, "Applied patch to 'f'") {
		t.Errorf("git apply -3 prints %q, want it to merge", out)
	}
}

func TestWritePatch_OmitsFilesOfGit(t *testing.T) {
	tests := map[string]bool{
		".git": true, ".git/config": true, "sub/.git/HEAD": true, ".GIT/x": true, ".git /x": true, "a/.git./x": true,
		"git~1/x": true, ".git:stream": true, ".gitignore": false, ".github/x": false, "x.git/y": false, "git/x": false,
		`x\.git\config`: true, `x\y`: false, ".g\u200cit/x": true, // a Mac takes it for .git
	}
	for name, want := range tests {
		if got := gitRefuses(name, false); got != want {
			t.Errorf("gitRefuses(%q) = %v, want %v", name, got, want)
		}
	}
	if !gitRefuses(".gitmodules", true) || gitRefuses(".gitmodules", false) {
		t.Error(".gitmodules may be a file and not a link")
	}
}

// A patch with one bad path would be refused as a whole: git must agree on what is left out.
func TestWritePatch_GitAcceptsEveryIncludedPath(t *testing.T) {
	needGit(t)
	after := testTree{}
	for _, name := range []string{".git/config", ".gitignore", ".gitmodules", "sub/.GiT/x", "git~1", "git~2", ".git~1", ".git ", "..git", "...", ".gitx/.git", "a/b:c", `x\.git\config`, `x\git~1`, `a\b`, `.git\x`, ".g\u200cit/x"} {
		after.add(name, testFile{"x\n", 0o644})
	}
	after.add("sub/.gitmodules", testFile{"x", linkMode})
	var patch bytes.Buffer
	if err := WritePatch(&patch, changesBetween(nil, after), nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := runGit(t, dir, patch.Bytes(), "apply"); err != nil {
		t.Fatalf("git apply: %v\n%s", err, out)
	}
	if _, ok := readTree(t, dir)["..git"]; !ok {
		t.Error("nothing was applied")
	}
}

func FuzzNamesAreReadBack(f *testing.F) {
	for _, seed := range []string{"plain", "with space", "\"\\\t\n\r\a\b\v\f", "\x00\x7f\xff", "ünï"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		quoted := quoteName(name)
		if quoted == name {
			if strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }) {
				t.Errorf("%q is not quoted", name)
			}
			return
		}
		// Go reads all escapes of C that are used here.
		if got, err := strconv.Unquote(quoted); err != nil || got != name {
			t.Errorf("%q is quoted as %s, which is read as %q, %v", name, quoted, got, err)
		}
	})
}

func FuzzLiteralsAreReadBack(f *testing.F) {
	for _, n := range []int{0, 1, 3, 4, 26, 27, 51, 52, 53, 500} {
		f.Add(bytes.Repeat([]byte{0xff, 0, 7}, n))
	}
	random := make([]byte, 500) // of which the lines are full
	for i := range random {
		random[i] = byte(rand.N(256))
	}
	f.Add(random)
	f.Fuzz(func(t *testing.T, content []byte) {
		var out bytes.Buffer
		if err := writeLiteral(&out, testFile{string(content), 0o644}.file("f")); err != nil {
			t.Fatal(err)
		}
		if got := readLiteral(t, out.String()); !bytes.Equal(got, content) {
			t.Errorf("%q is read back as %q", content, got)
		}
	})
}

// readLiteral reads one half of a binary patch, as git does.
func readLiteral(t *testing.T, text string) []byte {
	t.Helper()
	var packed []byte
	lines := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n")
	for _, line := range lines[1:] {
		n := int(line[0]) - 'A' + 1
		if line[0] >= 'a' {
			n = int(line[0]) - 'a' + 27
		}
		var decoded []byte
		for digits := line[1:]; len(digits) >= 5; digits = digits[5:] {
			var word uint32
			for _, d := range []byte(digits[:5]) {
				word = word*85 + uint32(strings.IndexByte(base85, d))
			}
			decoded = binary.BigEndian.AppendUint32(decoded, word)
		}
		if n > len(decoded) || len(decoded) > n+3 {
			t.Fatalf("line %q has not %d bytes", line, n)
		}
		packed = append(packed, decoded[:n]...)
	}
	rest := bytes.NewReader(packed)
	r, err := zlib.NewReader(rest)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if want := fmt.Sprintf("literal %d", len(content)); err != nil || lines[0] != want || rest.Len() > 0 {
		t.Fatalf("head is %q, want %q, and %d bytes are left (%v)", lines[0], want, rest.Len(), err)
	}
	return content
}
