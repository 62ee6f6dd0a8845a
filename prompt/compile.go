// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/tool"
)

// A template is what a definition was compiled to; the typed one only adds the type of the answer.
type template struct {
	namespace, key, name string
	nodes                []*node // a section comes before its subtree
	byPath               map[string]*node
	tools                map[string]owned
	policies             []gate.Policy
	outermost            scope // what the definition declares
	output               output
	descriptor           *Descriptor
}

type node struct {
	Section // a copy, without its children

	index   int // in template.nodes
	end     int // index of the first node behind the subtree
	path    string
	number  string // "1.2"
	heading string
	scope   scope
	body    text
	summary text

	described       SectionDescriptor
	describedTools  []ToolDescriptor // of Section.Tools, in that order
	describedSkills []SkillDescriptor
}

type owned struct {
	tool *tool.Tool
	node *node
	at   int // in the tools of the section
}

// A text is a body or a summary that was cut into its segments.
type text struct {
	source   string // dedented
	segments []segment
}

var (
	namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`) })
	keyPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`) })
)

type compiler struct {
	problems
	t      *template
	skills map[string]string // name -> path
	open   map[*Section]bool // those on the way down, to find one in itself
}

func compile(d Definition, newOutput func(Definition) (output, error)) (*template, error) {
	if d.Text != "" && d.Namespace == "" && d.Key == "" {
		d.Namespace, d.Key = "drover", "text"
	}
	t := &template{
		namespace: strings.ToLower(d.Namespace), key: strings.ToLower(d.Key),
		byPath: map[string]*node{}, tools: map[string]owned{}, policies: slices.Clone(d.Policies),
	}
	t.name = cmp.Or(d.Name, t.namespace+":"+t.key)
	c := &compiler{problems: problems{prompt: t.name, err: ErrDefinition}, t: t, skills: map[string]string{}, open: map[*Section]bool{}}
	c.names(d)
	c.params("", d.Params)
	t.outermost = scope(nil).inside(d.Params)
	if d.Text != "" {
		d.Sections = append([]*Section{{Key: "prompt", Title: "Prompt", Text: d.Text, NoOverrides: true, verbatim: true}}, d.Sections...)
	}
	c.sections(d.Sections, nil, t.outermost)
	c.examples()
	var err error
	if t.output, err = newOutput(d); err != nil {
		c.add(Error{Part: "output", Reason: "the output type has no schema", Cause: err})
	}
	if err := c.join(); err != nil {
		return nil, err
	}
	t.describe()
	return t, nil
}

func (c *compiler) names(d Definition) {
	for _, n := range []struct{ field, value string }{{"Namespace", c.t.namespace}, {"Key", c.t.key}} {
		if !namePattern().MatchString(n.value) {
			c.add(Error{Part: n.field, Reason: fmt.Sprintf("%q is not 1 to 64 letters, digits, dots, _ or -, a letter or digit first", n.value)})
		}
	}
	if len(d.Sections) == 0 && d.Text == "" {
		c.add(Error{Reason: "it has no sections"})
	}
}

func (c *compiler) params(path string, p Params) {
	for _, reason := range p.check() {
		c.add(Error{Section: path, Part: "Params", Reason: reason})
	}
}

// sections compiles siblings. The parent is nil for those at the top.
func (c *compiler) sections(siblings []*Section, parent *node, outer scope) {
	for i, s := range siblings {
		if s == nil {
			c.add(Error{Section: pathOf(parent), Reason: fmt.Sprintf("child %d is nil", i)})
			continue
		}
		if c.open[s] {
			c.add(Error{Section: pathOf(parent), Reason: fmt.Sprintf("section %q is among its own children", s.Key)})
			continue
		}
		c.open[s] = true
		c.section(s, parent, i, outer)
		delete(c.open, s)
	}
}

func pathOf(n *node) string {
	if n == nil {
		return ""
	}
	return n.path
}

func (c *compiler) section(s *Section, parent *node, at int, outer scope) {
	n := c.addNode(s, parent, at)
	n.scope = outer.inside(s.Params)
	c.params(n.path, s.Params)
	if s.verbatim {
		n.body, n.heading = text{s.Text, appendLiteral(nil, s.Text, 0, len(s.Text))}, ""
	} else {
		n.body = c.text(n, "text", s.Text)
	}
	n.summary = c.text(n, "summary", s.Summary)
	if s.Visibility > Summary {
		c.add(Error{Section: n.path, Reason: s.Visibility.String() + " is neither Full nor Summary"})
	}
	if s.Visibility == Summary && n.summary.source == "" {
		c.add(Error{Section: n.path, Reason: "Visibility is Summary, but the section has no Summary", Next: "write one, or leave Visibility at Full"})
	}
	c.toolsOf(n)
	c.skillsOf(n)
	c.sections(s.Children, n, n.scope)
	n.end = len(c.t.nodes)
}

func (c *compiler) addNode(s *Section, parent *node, at int) *node {
	n := &node{Section: *s, index: len(c.t.nodes), number: strconv.Itoa(at + 1)}
	n.Key = strings.ToLower(s.Key)
	n.path = n.Key
	depth := 0
	if parent != nil {
		n.path = parent.path + "." + n.Key
		n.number = parent.number + "." + n.number
		depth = strings.Count(n.path, ".")
	}
	n.Tools, n.Skills, n.Policies = slices.Clone(s.Tools), slices.Clone(s.Skills), slices.Clone(s.Policies)
	n.Examples, n.Children = cloneExamples(s.Examples), nil
	c.checkNode(n)
	n.heading = fmt.Sprintf("%s %s. %s (%s)", strings.Repeat("#", min(depth+2, 6)), n.number, n.Title, n.path)
	c.t.nodes = append(c.t.nodes, n)
	c.t.byPath[n.path] = n
	return n
}

func (c *compiler) checkNode(n *node) {
	if !keyPattern().MatchString(n.Key) {
		c.add(Error{Section: n.path, Reason: fmt.Sprintf("the key %q is not 1 to 64 letters, digits, _ or -, a letter or digit first", n.Key)})
	}
	if strings.TrimSpace(n.Title) == "" || strings.ContainsAny(n.Title, "\r\n") {
		c.add(Error{Section: n.path, Reason: fmt.Sprintf("the title %q is not one line of text", n.Title)})
	}
	if _, twice := c.t.byPath[n.path]; twice {
		c.add(Error{Section: n.path, Reason: fmt.Sprintf("two sections side by side have the key %q", n.Key)})
	}
}

// text cuts a text and checks its placeholders. Positions are those in the text as it was written.
func (c *compiler) text(n *node, part, written string) text {
	compiled, flaws := newText(n.scope, written)
	c.addFlaws(n, part, written, flaws)
	return compiled
}

// newText cuts a text. The flaws are those of its placeholders, at offsets of the text as written.
func newText(s scope, written string) (text, []flaw) {
	segments, flaws := scan(written)
	for _, seg := range segments {
		if reason := s.objection(seg.name); reason != "" {
			flaws = append(flaws, flaw{seg.offset, reason})
		}
	}
	source := dedent(written)
	segments, _ = scan(source)
	for i, seg := range segments {
		if types := s.having(seg.name); len(types) > 0 {
			segments[i].owner = types[0]
		}
	}
	slices.SortStableFunc(flaws, func(a, b flaw) int { return a.offset - b.offset })
	return text{source, segments}, flaws
}

// objection returns the problem of a placeholder where params are declared, or "".
func (s scope) objection(name string) string {
	if name == "" || len(s) == 0 {
		return "" // without declarations it is judged when values are bound
	}
	types := s.having(name)
	switch len(types) {
	case 0:
		return fmt.Sprintf("unknown placeholder $%s (known: %s)", name, safetext.Few(s.names()))
	case 1:
		f := fieldsOf(types[0]).byName[name]
		if f.unusable != "" {
			return fmt.Sprintf("placeholder $%s: field %s: %s", name, f.goName, f.unusable)
		}
		return ""
	}
	return fmt.Sprintf("placeholder $%s is ambiguous: %v and %v have it", name, types[0], types[1])
}

func (c *compiler) toolsOf(n *node) {
	for i, t := range n.Tools {
		if t == nil {
			c.add(Error{Section: n.path, Reason: fmt.Sprintf("tool %d is nil", i)})
			continue
		}
		if err := t.Check(); err != nil {
			c.add(Error{Section: n.path, Reason: "a tool is not usable", Cause: err})
		}
		if t.Name == OpenSections || t.Name == ReadSection {
			c.add(Error{Section: n.path, Reason: fmt.Sprintf("the tool name %q is reserved for hidden sections", t.Name)})
		}
		if first, twice := c.t.tools[t.Name]; twice {
			c.add(Error{Section: n.path, Reason: fmt.Sprintf("section %q already has a tool %q", first.node.path, t.Name)})
			continue
		}
		c.t.tools[t.Name] = owned{t, n, i}
	}
}

func (c *compiler) skillsOf(n *node) {
	for i, s := range n.Skills {
		if s.checkLoaded() != nil {
			c.add(Error{Section: n.path, Reason: fmt.Sprintf("skill %d was not loaded", i), Next: "make it with LoadSkill or LoadSkillFS"})
			continue
		}
		if first, twice := c.skills[s.Name()]; twice {
			c.add(Error{Section: n.path, Reason: fmt.Sprintf("section %q already has a skill %q", first, s.Name())})
			continue
		}
		c.skills[s.Name()] = n.path
	}
}

// examples are checked at the end, when all tools are known.
func (c *compiler) examples() {
	for _, n := range c.t.nodes {
		for i, e := range n.Examples {
			for _, reason := range e.check(c.t.tools) {
				c.add(Error{Section: n.path, Part: fmt.Sprintf("Examples[%d]", i), Reason: reason})
			}
		}
	}
}

func (t *template) paths() []string {
	var paths []string
	for _, n := range t.nodes {
		paths = append(paths, n.path)
	}
	return paths
}
