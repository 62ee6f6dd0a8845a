// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/drover-agents/drover/event"
)

// AllowTools allows what is named, and denies everything else, but for the tools without which the agent
// can use no other or give no answer, which only other policies deny; see [tool.Native.Plumbing]. A nil list
// abstains; an empty one denies every other call.
//
// A name is one of:
//
//   - "Read", "my-tool": a tool of the agent or of a registry of ours. It never means a tool of
//     another server. So a tool of the agent can be allowed that its catalogue does not have.
//   - "mcp__server__tool": that tool, also where it is called by its bare name.
//   - "mcp__server" or "mcp__server__*": all tools of the server.
//   - "Write(/src/**)", "Bash(git status)": calls with such paths or commands; see [Rules]. Paths belong to [Facts.Dir].
//
// [New] returns an error for any other name. It also returns one for an argument of a tool of an agent that
// the gate does not know; see [KnowsAgent].
func AllowTools(names ...string) Policy {
	if names == nil {
		return Policy{Name: "allow-list", Stage: StageLists}
	}
	return rulesPolicy("allow-list", true, RuleOptions{Allow: names})
}

// DenyTools denies the named tools, in the forms of [AllowTools], and abstains about all others.
func DenyTools(names ...string) Policy {
	return rulesPolicy("deny-list", false, RuleOptions{Deny: names})
}

// AskTools asks about the named tools, in the forms of [AllowTools], and abstains about all others.
func AskTools(names ...string) Policy {
	return rulesPolicy("ask-list", false, RuleOptions{Ask: names})
}

// RuleOptions configures [Rules]. The zero value has no rule.
type RuleOptions struct {
	// Root is the directory to which patterns such as "/src/**" belong: absolute, and with links
	// resolved, since resolved paths are compared with it. Empty means [Facts.Dir].
	Root string
	// Home is the directory that "~" means. Without it patterns that begin with "~/" are an error.
	Home string

	// Allow, Ask and Deny are the rules, in the forms of [AllowTools].
	Allow, Ask, Deny []string
}

// Rules judges calls by rules as Claude Code has them: "Tool", "Tool(path)", "Bash(command)". A denial beats a question, and
// that a permission. Tools that no rule is about are left to other policies; but if a tool has rules with arguments under
// Allow, a call that matches none of them is denied. A permission here does not answer what another policy asks: see
// [Approver] for how to answer some questions by rules.
//
// The names of tools are those of Claude Code here; each agent has its own, see [tool.Catalogue].
//
// Paths: "/x" is below Root, "//x" absolute, "~/x" below Home, "x" and "./x" relative to Root; "*",
// "?", "[a-z]", "{a,b}" and "**" are wild. "Edit(...)" is about all tools of the agent that write
// files, "Read(...)" about all that read or search. Any other tool that is named is allowed alone,
// but asked about and denied with its family: a denial of "Write(/x)" also denies Edit there.
//
//   - Judged are the path as it is spelled and, where it is known, [Target.Path]. A denial needs one
//     of them, a permission both.
//   - Denials and questions take letters in any case, cover all that is below what they name, and
//     a pattern without a slash at any depth. Permissions are taken at their word.
//   - A call whose path cannot be determined is not allowed by a path rule, and denied where one
//     denies. A Grep is denied if it would search what must not be read.
//
// Commands: "Bash(npm run test)" is that command, "Bash(npm run test:*)" and "Bash(npm run test *)" also with more words,
// and "*" elsewhere matches anything in one command. Commands are read as a shell reads them.
//
//   - A permission needs that every simple command matches a rule, wherever it is: in lists,
//     pipes, substitutions, functions. Nothing is allowed that writes to or reads from files by
//     redirection, sets variables that may change how commands run, computes the name of a command,
//     or does arithmetic (which can run commands in bash; so can test -v, printf -v and read). What runs other commands, such as sudo,
//     env, xargs or bash -c, is a command of its own name: "Bash(sudo:*)" permits everything. Only
//     "find" and "fd" are not believed to be harmless: their actions must be in the rule itself.
//   - A denial needs one command that may match: behind sudo, env, xargs, bash -c and the like, by the base name, in any
//     case of letters, after other options, and wherever an expansion could turn out to match. It cannot see into scripts,
//     and interpreters have other ways: to keep a shell inside bounds, allow what is needed instead.
//   - What cannot be read is never allowed, and denied where a rule denies.
//   - Monitor runs commands too: it is asked about and denied with Bash, and allowed by its own name.
func Rules(opts RuleOptions) Policy { return rulesPolicy("rules", false, opts) }

func rulesPolicy(name string, closed bool, opts RuleOptions) Policy {
	return Policy{Name: name, Stage: StageLists, names: slices.Concat(opts.Allow, opts.Ask, opts.Deny), compile: func(g *Gate) (func(*Call, *Facts) (event.Decision, bool), error) {
		s, err := g.newRuleSet(closed, opts)
		return s.judge, err
	}}
}

// judge looks at denials, questions, permissions, and calls outside them, in this order. Most are judged by name alone.
func (s *ruleSet) judge(c *Call, f *Facts) (event.Decision, bool) {
	if s.hasArguments(c) {
		return s.judgeArguments(c, f)
	}
	switch {
	case s.deny.names(c, true):
		return denied(c.Name, ""), true
	case s.ask.names(c, true):
		return asked(c.Name, ""), true
	case s.allow.names(c, false):
		return event.Decision{Verdict: event.Allow}, true
	case s.closed && c.isPlumbing():
		return event.Decision{Verdict: event.Allow}, true
	case s.closed:
		return unlisted(c), true
	}
	return event.Decision{}, false
}

// judgeArguments is judge for calls of tools that have rules with arguments.
func (s *ruleSet) judgeArguments(c *Call, f *Facts) (event.Decision, bool) {
	subject := subject{c, f, s}
	if why, hit := s.deny.concerns(&subject); hit {
		return denied(c.Name, why), true
	}
	if why, hit := s.ask.concerns(&subject); hit {
		return asked(c.Name, why), true
	}
	switch {
	case s.allow.permits(&subject):
		return event.Decision{Verdict: event.Allow}, true
	case s.allow.bounds(c):
		return event.Decision{Reason: fmt.Sprintf(toolOnlyAs, c.Name, s.allow.forms(c), s.allow.unmatchable(&subject))}, true
	case s.closed:
		return unlisted(c), true
	}
	return event.Decision{}, false
}

func denied(name, why string) event.Decision {
	return event.Decision{Reason: fmt.Sprintf(toolDenied, name, why)}
}

func asked(name, why string) event.Decision {
	return event.Decision{Verdict: event.Ask, Reason: fmt.Sprintf(toolNeedsApproval, name, why)}
}

func unlisted(c *Call) event.Decision {
	return event.Decision{Reason: fmt.Sprintf(toolNotListed, c.Name, cmp.Or(c.howToAllow(), useAnotherTool))}
}
