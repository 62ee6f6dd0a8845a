// SPDX-License-Identifier: Apache-2.0

package house

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents lists the committed pages.
func documents(t *testing.T) []string {
	t.Helper()
	pages := slices.DeleteFunc(committed(t), func(name string) bool {
		return path.Ext(name) != ".md" || strings.Contains("/"+name, "/testdata/")
	})
	if !slices.Contains(pages, "README.md") || len(pages) < 5 {
		t.Fatalf("found only %v: the rules see nothing", pages)
	}
	return pages
}

// Code in a page is code that is compiled and tested somewhere.
func TestDocs_GoBlocksEqualTheirFiles(t *testing.T) {
	taken := 0
	for _, page := range documents(t) {
		blocks, problems := goBlocks(read(t, page))
		for _, p := range problems {
			t.Errorf("%s: %s", page, p)
		}
		for _, b := range blocks {
			taken++
			if source, err := os.ReadFile(filepath.Join(root, b.from)); err != nil {
				t.Errorf("%s: a block is from %s, which cannot be read: %v", page, b.from, err)
			} else if !strings.Contains(flush(string(source)), flush(b.code)) {
				t.Errorf("%s: this is not in %s:\n%s", page, b.from, b.code)
			}
		}
	}
	if taken < 3 {
		t.Errorf("only %d blocks of Go found: the rule sees nothing", taken)
	}
}

// A goBlock is Go code in a page and the file that it is from.
type goBlock struct{ from, code string }

var fromComment = regexp.MustCompile(`^<!-- from (\S+) -->$`)

// goBlocks finds the Go code of a page. Every block must say where it is from, in a comment on the
// line before it.
func goBlocks(text string) (blocks []goBlock, problems []string) {
	before := ""
	for rest := text; rest != ""; {
		line, after, _ := strings.Cut(rest, "\n")
		rest = after
		if line != "```go" {
			before = line
			continue
		}
		code, behind, closed := strings.Cut(rest, "\n```\n")
		from := fromComment.FindStringSubmatch(before)
		switch {
		case !closed:
			problems = append(problems, "a block of Go has no end")
		case from == nil:
			problems = append(problems, fmt.Sprintf("no <!-- from file --> before the block of Go that begins with %q", strings.SplitN(code, "\n", 2)[0]))
		default:
			blocks = append(blocks, goBlock{from[1], code + "\n"})
		}
		rest, before = behind, ""
	}
	return blocks, problems
}

// flush takes away what code is indented by, line by line: the block may stand deeper in its file.
func flush(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimLeft(line, "\t "))
	}
	return b.String()
}

func TestGoBlocks_Cases(t *testing.T) {
	blocks, problems := goBlocks("words\n<!-- from a/b.go -->\n```go\nx := 1\n```\n\n```go\ny := 2\n```\n```sh\nls\n```\n<!-- from c.go -->\n```go\nopen\n")
	if len(blocks) != 1 || blocks[0] != (goBlock{"a/b.go", "x := 1\n"}) {
		t.Errorf("blocks %q, want the one with its source", blocks)
	}
	if len(problems) != 2 {
		t.Errorf("problems %q, want the block without a source and the one without an end", problems)
	}
	if !strings.Contains(flush("func f() {\n\tif a {\n\t\tb()\n\t}\n}\n"), flush("if a {\n\tb()\n}\n")) || strings.Contains(flush("\tb(1)\n"), flush("b(2)\n")) {
		t.Error("indentation counts, or words do not")
	}
}

// A make command on a page is a target of the Makefile.
func TestDocs_MakeCommandsExist(t *testing.T) {
	targets := makeTargets(read(t, "Makefile"))
	found := 0
	for _, page := range documents(t) {
		for _, name := range makeCommands(read(t, page)) {
			found++
			if !slices.Contains(targets, name) {
				t.Errorf("%s: there is no make %s", page, name)
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d make commands found: the rule sees nothing", found)
	}
}

var makeCommand = regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")

func makeCommands(text string) []string {
	var names []string
	for _, match := range makeCommand.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

func TestMakeCommands_Cases(t *testing.T) {
	got := makeCommands("```sh\nmake demo   # x\n```\nrun `make test` to make sure\n")
	if want := "demo test"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// Links inside the repository lead somewhere.
func TestDocs_LinksLeadToFiles(t *testing.T) {
	followed := 0
	for _, page := range documents(t) {
		for _, link := range localLinks(read(t, page)) {
			followed++
			if _, err := os.Stat(filepath.Join(root, path.Dir(page), link)); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", page, link)
			}
		}
	}
	if followed < 5 {
		t.Errorf("only %d links found: the rule sees nothing", followed)
	}
}

// README is short, and leads to every page and to the live page, so that a newcomer finds what there is.
func TestReadme_IsShortAndLeadsToEveryPage(t *testing.T) {
	text := read(t, "README.md")
	if n := strings.Count(text, "\n"); n > 200 {
		t.Errorf("README.md has %d lines, want 200 at most", n)
	}
	links := localLinks(text)
	for _, page := range documents(t) {
		if path.Dir(page) == "docs" && !slices.Contains(links, page) {
			t.Errorf("README.md does not lead to %s", page)
		}
	}
	for _, command := range []string{"drover run --watch", "drover serve", "drover demo", "drover doctor"} {
		if !strings.Contains(text, command) {
			t.Errorf("README.md does not name %s", command)
		}
	}
}

// The list of packages has each one that other modules can import.
func TestDocs_PackagesAreListed(t *testing.T) {
	links := localLinks(read(t, "docs/examples.md"))
	for dir, files := range packages(t) {
		top, _, _ := strings.Cut(dir, "/")
		library := slices.ContainsFunc(files, func(p parsed) bool { return !p.isTest() && p.file.Name.Name != "main" })
		if !library || dir == "." || strings.Contains(dir, "internal") || slices.Contains([]string{"tools", "examples", "bench", "cmd"}, top) {
			continue
		}
		if !slices.Contains(links, "../"+dir) {
			t.Errorf("docs/examples.md does not lead to package %s", dir)
		}
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeBlock    = regexp.MustCompile("(?ms)^```.*?^```")
)

// localLinks are the targets of links that are no addresses, without the place in the page. Code has none,
// though a call of a generic function looks like one.
func localLinks(text string) []string {
	var links []string
	for _, match := range markdownLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		link, _, _ := strings.Cut(match[1], "#")
		if link != "" && !strings.Contains(link, ":") {
			links = append(links, link)
		}
	}
	return links
}

func TestLocalLinks_Cases(t *testing.T) {
	got := localLinks("[a](b.md) [c](https:/" + "/example.com) [d](e/f.md#g) [h](#i) [j](mailto:k)\n```go\nf[t](s)\n```\n[l](m.md)")
	if want := "b.md e/f.md m.md"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}
