// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unsafe"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/drover-agents/drover/tool"
)

// A family is a set of tools of the agent that do the same to files.
type family uint8

const (
	noFamily family = iota
	writing
	reading
)

func familyOf(n *tool.Native) family {
	switch n.Files {
	case tool.NoFiles:
		return noFamily
	case tool.WritesFile:
		return writing
	}
	return reading
}

// An anchor is the directory to which a pattern belongs.
type anchor uint8

const (
	atRoot anchor = iota
	atHome
	atTop
)

// A pathRule is "Tool(pattern)".
type pathRule struct {
	text   string
	tool   toolName
	family family
	head   bool // its name means the family
	anchor anchor
	// glob is what has to follow the directory of the anchor. Of "dir/**" the tree is "dir": most
	// rules are such, and need no matching.
	glob, tree string
	// segments is glob divided at its slashes, for wide rules.
	segments []string
}

func (g *Gate) newPathRule(name toolName, pattern, text string, wide, hasHome bool) (pathRule, error) {
	r := pathRule{text: text, tool: name}
	if native, ok := g.agent.Native(name.bare); ok {
		r.family, r.head = familyOf(native), name.bare == g.agent.ReadRule || name.bare == g.agent.WriteRule
		if r.family == noFamily {
			return r, fmt.Errorf("rules know no arguments of %s; only of tools for files and of %s", name.bare, g.agent.CommandRule)
		}
	}
	if err := r.setGlob(pattern, wide); err != nil {
		return r, err
	}
	if r.anchor == atHome && !hasHome {
		return r, errors.New(`"~" means nothing here; set RuleOptions.Home, or write "//home/..."`)
	}
	return r, nil
}

func (r *pathRule) setGlob(pattern string, wide bool) error {
	rest, loose := pattern, false
	switch {
	case strings.HasPrefix(pattern, "//"):
		r.anchor, rest = atTop, pattern[2:]
	case strings.HasPrefix(pattern, "~/"):
		r.anchor, rest = atHome, pattern[2:]
	case strings.HasPrefix(pattern, "~"):
		return errors.New(`only "~/" is known, not the homes of others`)
	case strings.HasPrefix(pattern, "/"):
		rest = pattern[1:]
	case !strings.Contains(pattern, "/"):
		loose = true
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == ".." {
			return errors.New(`the pattern leaves its directory with ".."; write an absolute one, as "//dir/**"`)
		}
	}
	directory := rest == "" || strings.HasSuffix(rest, "/")
	glob := strings.TrimPrefix(path.Clean("/"+rest), "/")
	if wide && loose && glob != "**" {
		glob = "**/" + glob
	}
	if (wide || directory) && glob != "**" && !strings.HasSuffix(glob, "/**") {
		glob = strings.TrimPrefix(glob+"/**", "/")
	}
	if wide {
		glob = strings.ToLower(glob)
		r.segments = strings.Split(glob, "/")
	}
	if !doublestar.ValidatePattern(glob) {
		return errors.New("the pattern is not well formed; look at its brackets and braces")
	}
	r.glob = glob
	if dir, all := strings.CutSuffix(glob, "/**"); all && !strings.ContainsAny(dir, `*?[]{}\`) {
		r.tree = dir
	}
	return nil
}

// covers reports whether the rule is about the tool. What a rule denies it denies to the family;
// what it allows is for the tool it names, and for the family only if it names its head.
func (r *pathRule) covers(c *Call, wide bool) bool {
	if r.tool.means(c, wide) {
		return true
	}
	if r.family == noFamily || c.Origin == Foreign {
		return false
	}
	head := r.head && c.Origin == Builtin
	return (wide || head) && familyOf(c.native()) == r.family
}

func (r *pathRule) base(root, home string) string {
	switch r.anchor {
	case atHome:
		return home
	case atTop:
		return "/"
	}
	return root
}

func (r *pathRule) match(file, root, home string) bool {
	rest, ok := below(r.base(root, home), file)
	if r.tree != "" {
		return ok && isBelow(rest, r.tree)
	}
	return ok && doublestar.MatchUnvalidated(r.glob, rest)
}

// isBelow reports whether a clean path is a directory or something below it.
func isBelow(name, dir string) bool {
	return strings.HasPrefix(name, dir) && (len(name) == len(dir) || name[len(dir)] == '/')
}

// mayContain reports whether a wide rule may be about something below a directory.
func (r *pathRule) mayContain(file, root, home string) bool {
	base := r.base(root, home)
	if _, above := below(file, base); above {
		return true
	}
	rest, ok := below(base, file)
	if !ok {
		return false
	}
	for _, glob := range r.segments {
		segment, more, found := strings.Cut(rest, "/")
		if glob == "**" || segment == "" {
			return true
		}
		if !doublestar.MatchUnvalidated(glob, segment) {
			return false
		}
		if rest = more; !found {
			return true
		}
	}
	return false
}

// below returns the path of a file within a directory, "" for the directory itself.
func below(dir, file string) (rest string, ok bool) {
	if dir == "/" {
		return file[1:], true
	}
	if dir == "" || len(file) < len(dir) || file[:len(dir)] != dir {
		return "", false
	}
	if len(file) == len(dir) {
		return "", true
	}
	return file[len(dir)+1:], file[len(dir)] == '/'
}

// concernsPath looks for a wide rule about the call. Paths are compared in lower case: a file system may ignore case.
func (g *ruleGroup) concernsPath(s *subject) (why string, hit bool) {
	first := g.firstCovering(s.call, true)
	if first < 0 {
		return "", false
	}
	rules := g.paths[first:]
	at := s.paths()
	buffers := s.call.known().foldBuffers()
	root := s.set.foldedRoot
	if root == "" {
		root = fold(&buffers.root, s.root())
	}
	if root == "" {
		return fmt.Sprintf(byRule, rules[0].text, noRoot), true
	}
	if at.unknown || len(at.list) == 0 {
		return fmt.Sprintf(byRule, rules[0].text, noPath), true
	}
	for _, file := range at.list {
		folded := fold(&buffers.file, file)
		for i := range rules {
			r := &rules[i]
			if !r.covers(s.call, true) {
				continue
			}
			if r.match(folded, root, s.set.foldedHome) {
				return fmt.Sprintf(byRule, r.text, file), true
			}
			if s.call.native().Files == tool.SearchesFiles && r.mayContain(folded, root, s.set.foldedHome) {
				return fmt.Sprintf(bySearch, r.text, file), true
			}
		}
	}
	return "", false
}

// unmatchable returns why no rule that allows can match, or "".
func (g *ruleGroup) unmatchable(s *subject) string {
	at := g.firstCovering(s.call, true)
	if at < 0 {
		return ""
	}
	if g.paths[at].anchor == atRoot && s.root() == "" {
		return ": " + noRoot
	}
	if at := s.paths(); at.unknown || len(at.list) == 0 {
		return ": " + noPath
	}
	return ""
}

// firstCovering finds the first rule about the tool of a call, or -1.
func (g *ruleGroup) firstCovering(c *Call, wide bool) int {
	for i := range g.paths {
		if g.paths[i].covers(c, wide) {
			return i
		}
	}
	return -1
}

func (g *ruleGroup) permitsPath(s *subject) bool {
	if g.firstCovering(s.call, false) < 0 {
		return false // before anything is read
	}
	at := s.paths()
	if at.unknown || len(at.list) == 0 {
		return false
	}
	root := s.root()
	for _, file := range at.list {
		if !g.permitsFile(s, file, root) {
			return false
		}
	}
	return true
}

func (g *ruleGroup) permitsFile(s *subject, file, root string) bool {
	for i := range g.paths {
		if r := &g.paths[i]; r.covers(s.call, false) && r.match(file, root, s.set.home) {
			return true
		}
	}
	return false
}

// root is the directory to which the patterns of the set belong.
func (s *subject) root() string {
	if s.set.root != "" {
		return s.set.root
	}
	return s.call.dir(s.facts)
}

// foldSize is the length of the paths that fold without allocating.
const foldSize = 256

// fold gives s in lower case. The result lives no longer than buf.
func fold(buf *[foldSize]byte, s string) string {
	if s == "" || len(s) > foldSize {
		return strings.ToLower(s)
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 0x80:
			return strings.ToLower(s)
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		buf[i] = c
	}
	return unsafe.String(&buf[0], len(s))
}
