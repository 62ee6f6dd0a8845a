// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
)

// sourceURL is where links to files of the checkout lead that are no pages.
const sourceURL = "https://github.com/drover-agents/drover"

//go:embed assets
var assets embed.FS

var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

func main() {
	root := flag.String("root", ".", "the checkout")
	out := flag.String("out", filepath.Join("dist", "docs"), "the folder for the pages, which is replaced")
	flag.Parse()
	n, err := build(*root, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", advice.Text(err))
		os.Exit(1)
	}
	fmt.Printf("docs      %d pages in %s\n", n, *out)
}

// build writes the site and returns the number of pages. Nothing is written if a link is broken.
func build(root, out string) (int, error) {
	s, err := load(root)
	if err != nil {
		return 0, err
	}
	if problems := s.check(); len(problems) > 0 {
		return 0, fmt.Errorf("%d links or parts of pages are not in order:\n%s", len(problems), strings.Join(problems, "\n"))
	}
	return len(s.pages), s.write(out)
}

// A site is a set of pages.
type site struct {
	root   string
	pages  []*page
	byFile map[string]*page
	images []string // files of the checkout that pages show
}

// load reads the pages: those beside README.md, and those of docs.
func load(root string) (*site, error) {
	s := &site{root: root, byFile: map[string]*page{}}
	names := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		files, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				return nil, err
			}
			p := parse(file, source)
			if other := names[p.name]; other != "" {
				return nil, fmt.Errorf("%s and %s would have one name", other, file)
			}
			names[p.name], s.byFile[file] = file, p
			s.pages = append(s.pages, p)
		}
	}
	if s.byFile["README.md"] == nil {
		return nil, advice.Wrap(errors.New("there is no README.md"), "run it in the checkout, or name that with -root")
	}
	s.sort()
	return s, nil
}

// sort puts README.md first, then the pages in the order in which it links to them, then the others by their titles.
func (s *site) sort() {
	var order []string
	for _, link := range s.byFile["README.md"].links {
		order = append(order, link.target)
	}
	rank := func(p *page) int {
		if p.file == "README.md" {
			return -1
		}
		if n := slices.Index(order, p.file); n >= 0 {
			return n
		}
		return len(order)
	}
	slices.SortStableFunc(s.pages, func(a, b *page) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a.title, b.title)
	})
}

// check sets the addresses of all links, and returns what is wrong.
func (s *site) check() (problems []string) {
	for _, p := range s.pages {
		for _, problem := range p.problems {
			problems = append(problems, p.file+": "+problem)
		}
		for _, link := range p.links {
			if problem := s.resolve(link); problem != "" {
				problems = append(problems, fmt.Sprintf("%s: the link to %s: %s", p.file, link.written, problem))
			}
		}
	}
	return problems
}

// resolve sets the address of a link, or returns what is wrong with it.
func (s *site) resolve(l *link) string {
	if to := s.byFile[l.target]; to != nil && !l.image {
		if l.fragment == "" {
			l.set(to.name)
			return ""
		}
		if !slices.Contains(to.anchors, l.fragment) {
			return fmt.Sprintf("%s has no heading #%s", l.target, l.fragment)
		}
		l.set(to.name + "#" + l.fragment)
		return ""
	}
	if !filepath.IsLocal(filepath.FromSlash(l.target)) {
		return "it leads out of the checkout"
	}
	info, err := os.Stat(filepath.Join(s.root, filepath.FromSlash(l.target)))
	switch {
	case err != nil:
		return "there is no such file"
	case l.image:
		if !slices.Contains(s.images, l.target) {
			s.images = append(s.images, l.target)
		}
		l.set(l.target)
	case info.IsDir():
		l.set(sourceURL + "/tree/main/" + l.target)
	default:
		l.set(sourceURL + "/blob/main/" + l.target)
	}
	return ""
}

// write makes the files in a folder of their own, which takes its final name when it is complete.
func (s *site) write(out string) error {
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(out), ".making-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(made) }()
	for _, p := range s.pages {
		if err := s.writePage(p, filepath.Join(made, p.name)); err != nil {
			return err
		}
	}
	index, err := json.Marshal(s.sections())
	if err != nil {
		return err
	}
	files := map[string][]byte{"search-index.js": slices.Concat([]byte("window.searchIndex = "), index, []byte(";\n"))}
	for _, name := range []string{"style.css", "search.js"} {
		if files[name], err = assets.ReadFile("assets/" + name); err != nil {
			return err
		}
	}
	for _, image := range s.images {
		if files[image], err = os.ReadFile(filepath.Join(s.root, filepath.FromSlash(image))); err != nil {
			return err
		}
	}
	for name, content := range files {
		name = filepath.Join(made, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, content, 0o644)); err != nil {
			return err
		}
	}
	return errors.Join(os.RemoveAll(out), os.Chmod(made, 0o755), os.Rename(made, out))
}

func (s *site) writePage(p *page, name string) error {
	body, err := p.html()
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(s.fill(f, p, body), f.Close())
}

func (s *site) fill(w io.Writer, p *page, body template.HTML) error {
	type entry struct {
		Name, Title string
		Here        bool
	}
	var entries []entry
	for _, other := range s.pages {
		entries = append(entries, entry{other.name, other.title, other == p})
	}
	return layout.Execute(w, struct {
		Title   string
		Entries []entry
		Body    template.HTML
	}{p.title, entries, body})
}

// sections are those of all pages, for the search.
func (s *site) sections() (all []section) {
	for _, p := range s.pages {
		all = append(all, p.sections...)
	}
	return all
}

// nameOf is the name of the HTML file of a page. Pages beside README.md may have the names of those in docs.
func nameOf(file string) string {
	name := strings.ToLower(strings.TrimSuffix(path.Base(file), ".md")) + ".html"
	switch {
	case file == "README.md":
		return "index.html"
	case path.Dir(file) == ".":
		return "project-" + name
	}
	return name
}
