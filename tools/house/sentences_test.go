// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxWords is how long a sentence of README and docs may be. One idea in a sentence needs about 25.
const maxWords = 40

func TestDocs_SentencesAreShort(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sentences(string(text)) {
			if n := len(strings.Fields(s)); n > maxWords {
				t.Errorf("%s has a sentence of %d words, want at most %d: %s", filepath.Base(page), n, maxWords, s)
			}
		}
	}
}

var (
	fencedCode  = regexp.MustCompile("(?ms)^```.*?^```$")
	itemStart   = regexp.MustCompile(`^\s*([-*]|\d+\.) `)
	sentenceEnd = regexp.MustCompile("[.?!][)\"`*]*(\\s+|$)")
)

// sentences are those of a page outside of code. Items of lists, cells of tables and headings are texts of their own.
func sentences(page string) (all []string) {
	var paragraph strings.Builder
	end := func() {
		all = append(all, sentenceEnd.Split(paragraph.String(), -1)...)
		paragraph.Reset()
	}
	for line := range strings.Lines(fencedCode.ReplaceAllString(page, "")) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			end()
		case strings.HasPrefix(line, "|"):
			end()
			for cell := range strings.SplitSeq(line, " | ") {
				paragraph.WriteString(cell)
				end()
			}
		default:
			if itemStart.MatchString(line) {
				end()
			}
			paragraph.WriteString(line + " ")
		}
	}
	end()
	return all
}

func TestSentences_Cases(t *testing.T) {
	got := sentences("# A title\nOne is\nhere. Two? `x.y` is one.\n- item\n  goes on\n- next\n\n```\ncode. more\n```\n| a | b. c |\n")
	if n := len(strings.Fields(strings.Join(got, " "))); n != 18 {
		t.Errorf("got %d words in %q", n, got)
	}
}
