// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"html/template"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// markdown reads pages as GitHub does. It renders no HTML that a page has, no address that a browser would run, and no styles.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
	extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// A page is one file of Markdown.
type page struct {
	file, name, title string // in the checkout, in the site, for people
	source            []byte
	doc               ast.Node
	anchors           []string
	links             []*link
	sections          []section
	problems          []string
}

// A section is the text below a heading, for the search.
type section struct {
	Address string `json:"a"`
	Page    string `json:"p"`
	Heading string `json:"h"`
	Text    string `json:"t"`
}

// A link is one to a file of the checkout, or a picture of one.
type link struct {
	written          string // as the page has it
	target, fragment string // a path in the checkout, and a heading there
	image            bool
	set              func(address string)
}

// parse reads a page. Its links have no address yet.
func parse(file string, source []byte) *page {
	p := &page{file: file, name: nameOf(file), source: source}
	ids := &slugs{taken: map[string]bool{}}
	p.doc = markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(ids))))
	var comments []ast.Node
	_ = ast.Walk(p.doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no function here returns an error
		if entering {
			comments = append(comments, p.visit(n)...)
		}
		return ast.WalkContinue, nil
	})
	for _, comment := range comments {
		comment.Parent().RemoveChild(comment.Parent(), comment)
	}
	p.title = strings.TrimSuffix(path.Base(file), ".md")
	if len(p.sections) > 0 {
		p.title = p.sections[0].Heading
	}
	for i := range p.sections {
		p.sections[i].Page = p.title
		s := &p.sections[i]
		s.Text = strings.TrimSpace(strings.TrimPrefix(words(s.Text), words(s.Heading))) // the heading is the first text below it
	}
	return p
}

// words is a text with one space between its words.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// visit takes note of a node, and returns it if it is a comment.
func (p *page) visit(n ast.Node) []ast.Node {
	switch n := n.(type) {
	case *ast.Heading:
		id, _ := n.AttributeString("id")
		anchor := string(id.([]byte)) // which the parser has set
		p.anchors = append(p.anchors, anchor)
		p.sections = append(p.sections, section{Address: p.name + "#" + anchor, Heading: plain(n, p.source)})
		return nil
	case *ast.Link:
		p.link(string(n.Destination), false, func(address string) { n.Destination = []byte(address) })
	case *ast.Image:
		p.link(string(n.Destination), true, func(address string) { n.Destination = []byte(address) })
	case *ast.HTMLBlock:
		written := string(n.Lines().Value(p.source))
		if n.HasClosure() {
			written += string(n.ClosureLine.Value(p.source))
		}
		return p.comment(n, written)
	case *ast.RawHTML:
		return p.comment(n, string(n.Segments.Value(p.source)))
	case *ast.Text:
		p.read(string(n.Segment.Value(p.source)))
		if n.SoftLineBreak() {
			p.read(" ")
		}
	case *ast.FencedCodeBlock:
		p.read("\n" + string(n.Lines().Value(p.source)))
	case *ast.CodeBlock:
		p.read("\n" + string(n.Lines().Value(p.source)))
	default:
		if n.Type() == ast.TypeBlock {
			p.read("\n")
		}
	}
	return nil
}

// read adds text to the section that it is in.
func (p *page) read(text string) {
	if n := len(p.sections); n > 0 {
		p.sections[n-1].Text += text
	}
}

var commentAlone = regexp.MustCompile(`(?s)^\s*(<!--.*?-->\s*)+$`)

// comment returns a node of HTML that is a comment. Other HTML would be left out, so it is a problem.
func (p *page) comment(n ast.Node, written string) []ast.Node {
	if commentAlone.MatchString(written) {
		return []ast.Node{n}
	}
	p.problems = append(p.problems, fmt.Sprintf("HTML is not rendered; write Markdown for %q", strings.TrimSpace(written)))
	return nil
}

// link takes note of a link, unless it leads elsewhere. A picture from elsewhere would be loaded from there.
func (p *page) link(written string, image bool, set func(string)) {
	to, err := url.Parse(written)
	switch {
	case err != nil:
		p.problems = append(p.problems, fmt.Sprintf("the link to %s: it cannot be read", written))
	case to.Scheme != "" || to.Host != "":
		if image {
			p.problems = append(p.problems, fmt.Sprintf("the picture %s is not in the checkout", written))
		} else if to.Scheme != "https" && to.Scheme != "http" && to.Scheme != "mailto" {
			p.problems = append(p.problems, fmt.Sprintf("the link to %s: no such address is known", written))
		}
	default:
		target := p.file
		if to.Path != "" {
			target = path.Join(path.Dir(p.file), to.Path)
		}
		p.links = append(p.links, &link{written: written, target: target, fragment: to.Fragment, image: image, set: set})
	}
}

func (p *page) html() (template.HTML, error) {
	var out bytes.Buffer
	err := markdown.Renderer().Render(&out, p.source, p.doc)
	return template.HTML(out.String()), err
}

// plain is the text of a node without its form.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // no function here returns an error
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// slugs makes the anchors of headings as GitHub does, so that links work there and here.
type slugs struct{ taken map[string]bool }

// Generate implements [parser.IDs].
func (s *slugs) Generate(value []byte, _ ast.NodeKind) []byte {
	base := slug(string(value))
	id := base
	for n := 1; s.taken[id]; n++ {
		id = fmt.Sprintf("%s-%d", base, n)
	}
	s.taken[id] = true
	return []byte(id)
}

// Put implements [parser.IDs].
func (s *slugs) Put(value []byte) { s.taken[string(value)] = true }

func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsNumber(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.TrimSpace(heading))
}
