// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	reference = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	loads     = regexp.MustCompile(`(?i)<(?:link|script|img|iframe|object|embed)\b[^>]*(?:href|src)="([^"]*)"`)
	anchor    = regexp.MustCompile(`\bid="([^"]*)"`)
)

// The links are checked once more in what was written.
func TestSite_OfThisCheckoutIsWholeByItself(t *testing.T) {
	out := filepath.Join(t.TempDir(), "dist", "docs")
	n, err := build("../..", out)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	files, err := filepath.Glob(filepath.Join(out, "*.html"))
	if err != nil || len(files) != n || n < 20 {
		t.Fatalf("%d pages are written, and %d reported (%v)", len(files), n, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(file)] = string(text)
	}
	for name, text := range pages {
		if !strings.Contains(text, `http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self'`) {
			t.Errorf("%s has no policy", name)
		}
		if strings.Contains(text, "raw HTML omitted") || strings.Contains(text, " style=") || regexp.MustCompile(`<script[^>]*>[^<]`).MatchString(text) {
			t.Errorf("%s has what the policy or the renderer leaves out", name)
		}
		for _, m := range loads.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], ":") || strings.HasPrefix(m[1], "/") {
				t.Errorf("%s loads %s", name, m[1])
			}
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			checkReference(t, out, pages, name, html.UnescapeString(m[1]))
		}
	}
	checkSearch(t, out, pages)
}

func checkReference(t *testing.T, out string, pages map[string]string, page, to string) {
	t.Helper()
	if strings.HasPrefix(to, "https://") || strings.HasPrefix(to, "http://") || strings.HasPrefix(to, "mailto:") {
		return
	}
	name, fragment, _ := strings.Cut(to, "#")
	if _, err := os.Stat(filepath.Join(out, filepath.FromSlash(name))); err != nil {
		t.Errorf("%s leads to %s: %v", page, to, err)
	}
	ids := func(text string) (all []string) {
		for _, m := range anchor.FindAllStringSubmatch(text, -1) {
			all = append(all, html.UnescapeString(m[1]))
		}
		return all
	}
	if fragment != "" && !slices.Contains(ids(pages[name]), fragment) {
		t.Errorf("%s leads to %s, and there is no such heading", page, to)
	}
}

// checkSearch sees that the index has a word of a page where the page has it.
func checkSearch(t *testing.T, out string, pages map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(out, "search-index.js"))
	if err != nil {
		t.Fatal(err)
	}
	data, ok := strings.CutPrefix(string(text), "window.searchIndex = ")
	var sections []section
	if err := json.Unmarshal([]byte(strings.TrimSuffix(data, ";\n")), &sections); err != nil || !ok {
		t.Fatalf("the index is not JSON: %v", err)
	}
	found := false
	for _, s := range sections {
		found = found || strings.HasPrefix(s.Address, "workspaces.html#") && strings.Contains(s.Text, "checkpoint")
		checkReference(t, out, pages, "search-index.js", s.Address)
	}
	if !found {
		t.Error("the search does not find checkpoint in workspaces")
	}
}

func TestBuild_BrokenPagesAreErrors(t *testing.T) {
	const readme = "# Home\n\n## Two words, and `more`\n\n## Two words, and more\n\n<!-- a comment -->\n[a](docs/a.md#part) [b](#two-words-and-more-1) [code](code.go) [folder](docs) ![picture](docs/p.svg) [away](https:/" + "/example.com)\n"
	whole := map[string]string{"README.md": readme, "docs/a.md": "# A\n\n## Part\n\n[home](../README.md)\n", "docs/p.svg": "<svg/>", "code.go": "package code\n"}
	cases := []struct{ name, file, text, want string }{
		{"nothing", "", "", ""},
		{"a page that is not there", "docs/a.md", "# A\n\n## Part\n\n[b](b.md)\n", "docs/a.md: the link to b.md: there is no such file"},
		{"a heading that is not there", "docs/a.md", "# A\n", "README.md: the link to docs/a.md#part: docs/a.md has no heading #part"},
		{"a heading of the page itself", "docs/a.md", "# A\n\n## Part\n\n[x](#x)\n", "docs/a.md: the link to #x: docs/a.md has no heading #x"},
		{"a way out", "docs/a.md", "# A\n\n## Part\n\n[x](../../x.md)\n", "docs/a.md: the link to ../../x.md: it leads out of the checkout"},
		{"a picture from elsewhere", "docs/a.md", "# A\n\n## Part\n\n![x](https:/" + "/example.com/x.png)\n", "is not in the checkout"},
		{"a picture that is not there", "docs/a.md", "# A\n\n## Part\n\n![x](x.png)\n", "docs/a.md: the link to x.png: there is no such file"},
		{"HTML", "docs/a.md", "# A\n\n## Part\n\n<b>x</b>\n", `docs/a.md: HTML is not rendered; write Markdown for "<b>"`},
		{"a block of HTML", "docs/a.md", "# A\n\n## Part\n\n<div>x</div>\n", "docs/a.md: HTML is not rendered"},
		{"code for browsers", "docs/a.md", "# A\n\n## Part\n\n[x](javascript:alert)\n", "docs/a.md: the link to javascript:alert: no such address is known"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root, out := t.TempDir(), filepath.Join(t.TempDir(), "docs")
			for name, text := range whole {
				if name == c.file {
					text = c.text
				}
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			_, err := build(root, out)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				home, _ := os.ReadFile(filepath.Join(out, "index.html"))
				for _, want := range []string{`href="a.html#part"`, `href="index.html#two-words-and-more-1"`, `src="docs/p.svg"`, `href="` + sourceURL + `/blob/main/code.go"`, `href="` + sourceURL + `/tree/main/docs"`} {
					if !strings.Contains(string(home), want) {
						t.Errorf("index.html has no %s:\n%s", want, home)
					}
				}
				if _, err := os.Stat(filepath.Join(out, "docs", "p.svg")); err != nil {
					t.Error(err)
				}
				index, _ := os.ReadFile(filepath.Join(out, "search-index.js"))
				if want := `{"a":"a.html#part","p":"A","h":"Part","t":"home"}`; !strings.Contains(string(index), want) {
					t.Errorf("the index has no %s:\n%s", want, index)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("something was written")
			}
		})
	}
}
