// SPDX-License-Identifier: Apache-2.0

package house

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// banned are the words of docs/glossary.md that no text and no name has.
var banned = regexp.MustCompile(`[a-z_]Walls?\b|[a-z_]Walls?[A-Z_]|\bwalls?[A-Z_]|\bWalls?[A-Z_]|` + `(?i)\bwall(s|ed|less)?\b|\bmend(s|ed|ing)?\b|\banew\b|vouch|` +
	`\bscribes?\b|\bdockets?\b|\bpractis|furnish|talksTo|\bwhoever\b|\b(is|are|was|were) none\b|\btold as\b|\bc[ao]mes? to nothing\b`)

// wordExceptions are texts that have a banned word for a reason. A file that ends with a slash is a folder.
var wordExceptions = []struct{ file, text, reason string }{
	{"", "isolation:walls", "a stored event kind, which readers of logs know"},
	{"docs/glossary.md", "", "the list of the words"},
	{"tools/house/words_test.go", "", "the list of the words"},
	{"CHANGELOG.md", "", "names of the past"},
	{"spec/", "", "quotations of the seeds"},
	{"isolation/internal/jail/helper_linux_test.go", "-Wall", "a flag of the compiler"},
}

func TestWords_BannedOnesAreNotUsed(t *testing.T) {
	needed := map[string]bool{}
	for _, name := range committed(t) {
		if ext := filepath.Ext(name); ext != ".go" && ext != ".md" || strings.Contains(name, "testdata/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(data)) {
			if n++; !mayHaveBanned(line) || !banned.MatchString(line) {
				continue
			}
			if banned.MatchString(withoutExceptions(name, line, needed)) {
				t.Errorf("%s:%d: %q has a word of docs/glossary.md that is banned", name, n, strings.TrimSpace(line))
			}
		}
	}
	for _, e := range wordExceptions {
		if !needed[e.file+e.text] {
			t.Errorf("the exception %q in %q is not needed", e.text, e.file)
		}
	}
}

// mayHaveBanned is much faster than the expression, and finds all lines that it matches.
func mayHaveBanned(line string) bool {
	line = strings.ToLower(line)
	for _, part := range []string{"wall", "mend", "anew", "vouch", "scribe", "docket", "practis", "furnish", "talksto", "whoever", " none", "told as", "to nothing"} {
		if strings.Contains(line, part) {
			return true
		}
	}
	return false
}

// withoutExceptions is a line without the texts that may have such a word. It notes which exceptions are needed.
func withoutExceptions(name, line string, needed map[string]bool) string {
	for _, e := range wordExceptions {
		switch {
		case e.file != "" && e.file != name && !(strings.HasSuffix(e.file, "/") && strings.HasPrefix(name, e.file)):
		case e.text == "":
			needed[e.file] = true
			return ""
		case strings.Contains(line, e.text):
			needed[e.file+e.text] = true
			line = strings.ReplaceAll(line, e.text, "")
		}
	}
	return line
}

func TestWords_Banned(t *testing.T) {
	for text, want := range map[string]bool{
		"the walls of a cell": true, "openWalls": true, "wallsText": true, "TestWalls_Hold": true, "wall": true, "mended": true, "begins anew": true, "a voucher": true,
		"whoever asks": true, "an answer that is none": true, "is told as denied": true, "came to nothing": true, "practises": true,
		"recommend": false, "amended": false, "describe": false, "swallow": false, "mendacious": false, "nonetheless": false,
	} {
		if got := mayHaveBanned(text) && banned.MatchString(text); got != want {
			t.Errorf("%q: banned %v, want %v", text, got, want)
		}
	}
}

// Advice is a value beside the text of an error: package advice alone renders it.
func TestWords_AdviceIsNotPartOfATextOfAnError(t *testing.T) {
	for _, p := range sourceFiles(t) {
		ast.Inspect(p.file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && strings.Contains(lit.Value, `  next: `) && p.name != "advice/advice.go" {
				t.Errorf("%s: %s: give the advice with advice.Wrap", p.name, lit.Value)
			}
			return true
		})
	}
}
