// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/tool"
)

// A ruleSet is a list of rules, taken apart once.
type ruleSet struct {
	closed           bool // denies what is not allowed
	root, home       string
	foldedRoot       string // in lower case, for wide rules
	foldedHome       string
	allow, ask, deny ruleGroup
}

type ruleGroup struct {
	tools    []toolName
	paths    []pathRule
	commands []commandRule
}

func (g *Gate) newRuleSet(closed bool, opts RuleOptions) (*ruleSet, error) {
	s := &ruleSet{closed: closed}
	var errs []error
	s.root = absoluteOption("Root", opts.Root, &errs)
	s.home = absoluteOption("Home", opts.Home, &errs)
	s.foldedRoot, s.foldedHome = strings.ToLower(s.root), strings.ToLower(s.home)
	for _, list := range []struct {
		group *ruleGroup
		rules []string
		wide  bool
	}{{&s.allow, opts.Allow, false}, {&s.ask, opts.Ask, true}, {&s.deny, opts.Deny, true}} {
		for _, text := range list.rules {
			if err := g.addRule(s, list.group, text, list.wide); err != nil {
				errs = append(errs, fmt.Errorf("%q: %w", text, err))
			}
		}
	}
	return s, errors.Join(errs...)
}

func absoluteOption(name, dir string, errs *[]error) string {
	if dir == "" {
		return ""
	}
	p, ok := normalPath(dir, "", isWindows(dir))
	if !ok {
		*errs = append(*errs, fmt.Errorf("%s is %q; it must be absolute", name, dir))
	}
	return p
}

func (g *Gate) addRule(s *ruleSet, to *ruleGroup, text string, wide bool) error {
	name, argument, hasArgument, err := splitRule(text)
	if err != nil {
		return err
	}
	isCommand := g.agent != nil && name.bare != "" && name.bare == g.agent.CommandRule
	switch {
	case !hasArgument || isCommand && argument == "*":
		to.tools = append(to.tools, name)
	case isCommand:
		rule, err := newCommandRule(argument, text)
		if err != nil {
			return err
		}
		to.commands = append(to.commands, rule)
	case g.agent == nil && name.bare != "" && !g.serves(name.bare):
		return errors.New("the gate has no catalogue of the agent, so the argument has no meaning; add gate.KnowsAgent with the catalogue of the agent")
	default:
		rule, err := g.newPathRule(name, argument, text, wide, s.home != "")
		if err != nil {
			return err
		}
		to.paths = append(to.paths, rule)
	}
	return nil
}

func (g *Gate) serves(name string) bool {
	return slices.ContainsFunc(g.servers, func(s server) bool { _, ok := s.lookup.Lookup(name); return ok })
}

// CheckNames reports the first name in a list or a rule of a policy that no tool has. Tools that the gate knows are
// found too; see [Knows]. [New] takes any name: it need not know all tools that there are.
func (g *Gate) CheckNames(known tool.KnownNames) error {
	for _, p := range g.policies {
		for _, name := range p.names {
			if bare, _, _ := strings.Cut(strings.TrimSpace(name), "("); g.serves(bare) {
				continue
			}
			if err := known.Check(name); err != nil {
				return fmt.Errorf("gate: policy %s: %w", p.Name, err)
			}
		}
	}
	return nil
}

func splitRule(text string) (name toolName, argument string, hasArgument bool, err error) {
	head := strings.TrimSpace(text)
	if open := strings.IndexByte(head, '('); open >= 0 {
		if !strings.HasSuffix(head, ")") {
			return name, "", false, errors.New(`the closing parenthesis is missing; write "Tool(argument)"`)
		}
		head, argument, hasArgument = head[:open], strings.TrimSpace(head[open+1:len(head)-1]), true
		if argument == "" {
			return name, "", false, errors.New("there is nothing in the parentheses; leave them out to mean every call")
		}
	}
	name, err = newToolName(head)
	return name, argument, hasArgument, err
}

// A toolName is a tool, or all tools of a server, as a list names it.
type toolName struct {
	bare string
	mcp  string // "server" or "server__tool"; then bare is empty
	ours string // the tool of ours, or "*", that the name meant in earlier versions
}

var bareName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`) })

func newToolName(text string) (toolName, error) {
	rest, full := strings.CutPrefix(text, mcpPrefix)
	switch {
	case full:
		rest = strings.TrimSuffix(rest, "__*")
		if rest == "" || strings.ContainsAny(rest, "*?") {
			return toolName{}, errors.New(`write "mcp__server__tool", or "mcp__server" for all its tools`)
		}
		name := toolName{mcp: serverKey(rest)}
		if now := ident.PresentTool(mcpPrefix + rest); now != mcpPrefix+rest {
			name.ours = cmp.Or(strings.TrimPrefix(strings.TrimPrefix(now, mcpPrefix+tool.DefaultServerName), "__"), "*")
		}
		return name, nil
	case bareName().MatchString(text):
		return toolName{bare: text}, nil
	}
	return toolName{}, errors.New(`not a name of a tool; write "Tool", "Tool(argument)" or "mcp__server__tool"`)
}

// means reports whether the call is of the tool. Wide takes the doubt of a server whose name has
// "__" in it, or of a tool that two registries have, for a yes.
func (n *toolName) means(c *Call, wide bool) bool {
	if n.mcp == "" {
		return c.Origin != Foreign && c.Tool == n.bare
	}
	if c.Server == "" {
		return wide && c.Origin == Registered && strings.HasSuffix(n.mcp, "__"+c.Tool)
	}
	rest, ok := strings.CutPrefix(n.mcp, c.Server)
	if ok && (rest == "" || len(rest) == len(c.Tool)+2 && rest[:2] == "__" && rest[2:] == c.Tool) {
		return true
	}
	if n.ours != "" && c.Origin == Registered && c.Server == tool.DefaultServerName && (n.ours == "*" || n.ours == c.Tool) {
		return true
	}
	return wide && hasServer(c.Name, n.mcp)
}

// hasServer reports whether an MCP name may be of a tool of the server.
func hasServer(name, server string) bool {
	rest, isFull := strings.CutPrefix(strings.TrimSpace(name), mcpPrefix)
	rest, ok := strings.CutPrefix(rest, server)
	return isFull && ok && strings.HasPrefix(rest, "__")
}

// A subject is a call under judgement by a set of rules.
type subject struct {
	call  *Call
	facts *Facts
	set   *ruleSet
}

func (s *subject) paths() *callPaths { return s.call.paths(s.facts, s.set.home) }

func (s *subject) script() *script { return s.call.script() }

// isShell reports whether command rules are about the call. What a rule denies or asks about is so for every
// tool with such commands, what it allows is for the tool that it names alone.
func isShell(c *Call, wide bool) bool {
	if c.Origin == Foreign || !c.native().Shell {
		return false
	}
	return c.Tool == c.agent.CommandRule || wide && c.fields().mayRun()
}

// hasArguments reports whether a rule with an argument is about the tool.
func (s *ruleSet) hasArguments(c *Call) bool {
	return s.deny.bounds(c) || s.ask.bounds(c) || s.allow.bounds(c)
}

// names reports whether the tool is named without an argument.
func (g *ruleGroup) names(c *Call, wide bool) bool {
	for i := range g.tools {
		if g.tools[i].means(c, wide) {
			return true
		}
	}
	return false
}

func (g *ruleGroup) bounds(c *Call) bool {
	return g.boundsShell(c, true) || g.firstCovering(c, true) >= 0
}

// boundsShell reports whether the call is of the shell, and the shell has rules.
func (g *ruleGroup) boundsShell(c *Call, wide bool) bool {
	return len(g.commands) > 0 && isShell(c, wide)
}

// forms lists the rules with arguments that bound the tool.
func (g *ruleGroup) forms(c *Call) string {
	var forms []string
	if isShell(c, true) {
		for i := range g.commands {
			forms = append(forms, g.commands[i].text)
		}
	}
	for i := range g.paths {
		if g.paths[i].covers(c, true) {
			forms = append(forms, g.paths[i].text)
		}
	}
	return strings.Join(forms, ", ")
}

// concerns reports whether a rule that denies or asks is about the call, and which.
func (g *ruleGroup) concerns(s *subject) (why string, hit bool) {
	if g.names(s.call, true) {
		return "", true
	}
	if why, hit := g.concernsPath(s); hit {
		return why, true
	}
	if g.boundsShell(s.call, true) {
		return s.script().concerns(g.commands)
	}
	return "", false
}

// permits reports whether a rule that allows is about the call.
func (g *ruleGroup) permits(s *subject) bool {
	if g.names(s.call, false) {
		return true
	}
	if g.boundsShell(s.call, false) {
		return s.script().permitted(g.commands)
	}
	return g.permitsPath(s)
}
