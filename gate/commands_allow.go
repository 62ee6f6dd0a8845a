// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// permitted reports whether everything that the script runs matches a rule, and nothing in it changes what that means.
func (s *script) permitted(rules []commandRule) bool {
	if s.err != nil {
		return false
	}
	commands := 0
	ok := true
	syntax.Walk(s.file, func(node syntax.Node) bool {
		if call, isCall := node.(*syntax.CallExpr); isCall && len(call.Args) > 0 {
			commands++
			ok = ok && permittedCall(call, rules)
		}
		ok = ok && harmlessNode(node)
		return ok
	})
	return ok && commands > 0
}

func permittedCall(call *syntax.CallExpr, rules []commandRule) bool {
	if !allNamed(call.Assigns, func(name string) bool { return harmlessVariables[name] }) {
		return false
	}
	words := callWords(call.Args)
	if isComputed(words[0]) || evaluates(words) {
		return false
	}
	line := strings.Join(words, between)
	for i := range rules {
		if rules[i].allows(line) && !hidesAction(words, &rules[i]) {
			return true
		}
	}
	return false
}

// hidesAction reports whether a command that looks harmless has an action, as -exec or -delete, that the rule does not name.
func hidesAction(words []string, r *commandRule) bool {
	name := programName(words[0])
	if name != "find" && name != "fd" && name != "fdfind" {
		return false
	}
	for _, w := range words[1:] {
		if isComputed(w) && mayBeAction(name, w) {
			return true
		}
		if isAction(name, w) && !strings.Contains(between+r.forms[0]+between, between+w+between) {
			return true
		}
	}
	return false
}

var findActions = []string{"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"}

func isAction(name, word string) bool {
	if name == "find" {
		return slices.Contains(findActions, word)
	}
	long := strings.HasPrefix(word, "--")
	return long && strings.HasPrefix(word, "--exec") || !long && strings.HasPrefix(word, "-") && strings.ContainsAny(word, "xX")
}

// mayBeAction reports whether a word that the shell computes may become an action.
func mayBeAction(name, word string) bool {
	if name != "find" {
		return mayBeOption(word)
	}
	return slices.ContainsFunc(findActions, func(action string) bool { return wildMatch(action, word, true) })
}

// harmlessVariables may be set for an allowed command.
var harmlessVariables = map[string]bool{
	"CI": true, "NO_COLOR": true, "FORCE_COLOR": true, "LANG": true, "LC_ALL": true, "TZ": true,
	"NODE_ENV": true, "GOOS": true, "GOARCH": true, "CGO_ENABLED": true, "RUST_BACKTRACE": true, "PYTHONUNBUFFERED": true,
}

// harmlessNode reports whether a part of a script, apart from its commands, is known to change nothing.
func harmlessNode(node syntax.Node) bool {
	switch node := node.(type) {
	case nil, *syntax.File, *syntax.Comment, *syntax.Stmt, *syntax.BinaryCmd, *syntax.Subshell, *syntax.Block,
		*syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.CaseItem,
		*syntax.FuncDecl, *syntax.TimeClause, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted,
		*syntax.CmdSubst, *syntax.ProcSubst:
		return true
	case *syntax.CallExpr:
		return len(node.Args) > 0 || allNamed(node.Assigns, harmlessName)
	case *syntax.Assign:
		return node.Index == nil && node.Array == nil && !node.Naked
	case *syntax.WordIter:
		return harmlessName(node.Name.Value)
	case *syntax.Redirect:
		return harmlessRedirect(node)
	case *syntax.ParamExp:
		// Indirect and transforming expansions, subscripts and slices evaluate what a variable holds.
		return !node.Excl && node.Index == nil && node.Slice == nil && node.Names == 0 &&
			(node.Exp == nil || node.Exp.Op != syntax.OtherParamOps && harmlessDefault(node))
	}
	return false
}

// harmlessDefault refuses "${PATH:=x}", which is an assignment.
func harmlessDefault(p *syntax.ParamExp) bool {
	if p.Exp.Op == syntax.AssignUnset || p.Exp.Op == syntax.AssignUnsetOrNull {
		return harmlessName(p.Param.Value)
	}
	return true
}

// allNamed reports whether all assignments are to variables that good accepts.
func allNamed(assigns []*syntax.Assign, good func(name string) bool) bool {
	return !slices.ContainsFunc(assigns, func(a *syntax.Assign) bool { return a.Name == nil || !good(a.Name.Value) })
}

// harmlessName reports whether a variable of the script itself has a name that no program looks at:
// in small letters, and none of those that zsh, npm or HTTP clients know.
func harmlessName(name string) bool {
	if strings.HasSuffix(name, "path") || strings.HasSuffix(name, "_proxy") || strings.HasPrefix(name, "npm_") {
		return false
	}
	switch name {
	case "prompt", "psvar", "argv", "options", "commands", "functions", "aliases", "galiases", "saliases", "_":
		return false
	}
	return strings.ToLower(name) == name
}

// harmlessRedirect allows what names no file: copies of descriptors, text in the script, /dev/null.
func harmlessRedirect(r *syntax.Redirect) bool {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		return false // sets a variable
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return true
	case syntax.DplIn, syntax.DplOut:
		target := wordText(r.Word, false)
		return target == "-" || target != "" && strings.Trim(target, "0123456789") == ""
	}
	return wordText(r.Word, false) == "/dev/null"
}
