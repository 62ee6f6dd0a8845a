// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

var errNoCommand = errors.New("the input has no command")

// concerns reports whether a command of the script may match a rule, and which.
func (s *script) concerns(rules []commandRule) (why string, hit bool) {
	if s.err != nil {
		return fmt.Sprintf(commandUnreadable, s.err), true
	}
	search := commandSearch{rules: rules}
	search.file(s.file)
	search.finish()
	switch {
	case search.rule != nil:
		return fmt.Sprintf(byRule, search.rule.text, search.shown), true
	case search.hidden != "":
		return fmt.Sprintf(commandHidden, search.hidden), true
	}
	return "", false
}

// A commandSearch looks through a script for a command that a rule may be about.
type commandSearch struct {
	rules []commandRule
	depth int
	// rule is what was found, with the command for people; hidden is a command that may run others that are not known.
	rule   *commandRule
	shown  string
	hidden string
	// input is the text that the next command reads, if it is in the script.
	input *string
	// quoted are texts with substitutions that the shell does not make when it reads them;
	// evaluates is set if it may make them later, as in "${x@P}".
	quoted    []string
	evaluates bool
}

// maxDepth bounds scripts in words of scripts; maxWords bounds the words that are looked at one by one.
const (
	maxDepth = 8
	maxWords = 1000
)

func (c *commandSearch) file(f *syntax.File) {
	syntax.Walk(f, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Stmt:
			c.input = inputText(node.Redirs)
		case *syntax.CallExpr:
			if len(node.Args) > 0 {
				c.command(callWords(node.Args))
			}
			c.input = nil
		case *syntax.DeclClause:
			c.simple([]string{node.Variant.Value, string(computed)})
		case *syntax.Assign:
			c.assignment(node)
		case *syntax.WordIter:
			c.sets(node.Name.Value)
		case *syntax.UnaryTest:
			c.unaryTest(node)
		case *syntax.Word:
			c.word(wordText(node, false))
		case *syntax.CoprocClause:
			c.coproc(node)
		case *syntax.LetClause:
			c.let(node)
		case *syntax.ParamExp:
			c.slice(node)
			c.expansion(node)
		case *syntax.Redirect:
			if node.N != nil && strings.HasPrefix(node.N.Value, "{") && strings.ContainsAny(node.N.Value, ",.") {
				c.hidden = node.N.Value // for a shell these are words, "{rm,x}<y"
			}
		}
		return c.rule == nil
	})
}

// coproc looks for a name that a shell takes for a command: only commands in brackets have names, as "coproc copy { cat; }".
func (c *commandSearch) coproc(p *syntax.CoprocClause) {
	switch p.Stmt.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell:
	default:
		if p.Name != nil {
			c.hidden = "coproc"
		}
	}
}

// let looks for what ends the command in a shell, and is an operator for the parser: "let a&rm x".
func (c *commandSearch) let(l *syntax.LetClause) {
	for _, x := range l.Exprs {
		syntax.Walk(x, func(node syntax.Node) bool {
			switch node := node.(type) {
			case *syntax.ParenArithm:
				c.hidden = "let"
			case *syntax.BinaryArithm:
				if strings.ContainsAny(node.Op.String(), "&|<>") {
					c.hidden = "let"
				}
			}
			return true
		})
	}
}

// slice looks into "${a:x:y}", which a walk leaves out.
func (c *commandSearch) slice(p *syntax.ParamExp) {
	if p.Slice == nil {
		return
	}
	for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
		if x != nil {
			c.file(&syntax.File{Stmts: []*syntax.Stmt{{Cmd: &syntax.ArithmCmd{X: x}}}})
		}
	}
}

// text looks through a script that is a word of a command.
func (c *commandSearch) text(source, by string, must bool) {
	if c.depth == maxDepth {
		c.hidden = by
		return
	}
	f, err := parseShell(source)
	if err != nil {
		if must {
			c.hidden = by
		}
		return
	}
	c.depth++
	c.file(f)
	c.depth--
}

func (c *commandSearch) command(words []string) {
	c.one(words)
	first := firstCommand(words)
	if first == 0 {
		return
	}
	if len(words) > maxWords {
		c.hidden = shownWord(words[0])
		return
	}
	before := true // nothing but options so far
	for i := first; i < len(words); i++ {
		if !isComputed(words[i]) || before {
			c.one(words[i:])
		}
		before = before && isOption(words, i)
		for _, text := range scriptsIn(words[i]) {
			c.text(text, shownWord(words[0]), false)
		}
		if name, value, ok := strings.Cut(words[i], "="); ok {
			c.assign(name, value)
		}
	}
}

// one looks at one command, without those that follow it in its arguments.
func (c *commandSearch) one(words []string) {
	c.simple(words)
	c.shell(words)
	if c.rule != nil {
		return
	}
	c.builtin(words)
	c.git(words)
	c.options(words)
	c.program(words)
}

// scriptsIn gives what may be a script in a word: all of it, and the value of an option that is
// written together with it, as in env -S'...' or tar --checkpoint-action=exec='...'.
func scriptsIn(word string) []string {
	var scripts []string
	option := strings.HasPrefix(word, "-")
	separated := strings.ContainsAny(word, " \t\n;|&$`")
	if separated {
		scripts = append(scripts, word)
	}
	if option || separated {
		rest := word
		for range 4 { // "x=y=script", "EXEC:script", "!script"
			at := strings.IndexAny(rest, "=:!")
			if at < 0 || at+1 == len(rest) {
				break
			}
			rest = rest[at+1:]
			scripts = append(scripts, rest)
		}
	}
	for letters := 1; separated && option && letters <= 3 && letters < len(word); letters++ {
		scripts = append(scripts, word[letters+1:])
	}
	return scripts
}

// isOption reports whether a word before a command may be an option, its value, a number or an assignment.
func isOption(words []string, i int) bool {
	w := words[i]
	return mayBeOption(w) || i > 1 && mayBeOption(words[i-1]) ||
		strings.Contains(w, "=") || w != "" && '0' <= w[0] && w[0] <= '9'
}

// simple compares a command with the rules: as it is, and without the options before the rest.
func (c *commandSearch) simple(words []string) {
	if c.rule != nil {
		return
	}
	name := programName(words[0])
	for i := 1; ; i++ {
		line := joinWords(append([]string{name}, words[min(i, len(words)):]...))
		for r := range c.rules {
			if c.rules[r].may(line) {
				c.rule, c.shown = &c.rules[r], shownWord(strings.Join(words, " "))
				return
			}
		}
		if i >= len(words) || !mayBeOption(words[i]) && (i == 1 || !mayBeOption(words[i-1])) {
			return
		}
		if i == 32 {
			c.hidden = shownWord(name)
			return
		}
	}
}

func mayBeOption(word string) bool {
	return word != "" && (word[0] == '-' || word[0] == computed || word[0] == unknown)
}

func (c *commandSearch) shell(words []string) {
	if c.rule != nil {
		return
	}
	name, shown := programName(words[0]), shownWord(words[0])
	switch {
	case name == "eval":
		line := strings.Join(operands(words), " ")
		if isComputed(line) {
			c.hidden = shown
		}
		c.text(line, shown, true)
	case name == "alias":
		for _, w := range words[1:] {
			if _, value, _ := strings.Cut(w, "="); isComputed(w) {
				c.hidden = shown
			} else {
				c.text(value, shown, true)
			}
		}
	case name == "source" || name == ".":
		if files := operands(words); len(files) > 0 && isStream(files[0]) {
			c.hidden = shown
		}
	case isShellName(name):
		c.shellArguments(words, shown)
	}
}

// operands are the words after the name, and after "--".
func operands(words []string) []string {
	if len(words) > 1 && words[1] == "--" {
		return words[2:]
	}
	return words[1:]
}

func isShellName(name string) bool {
	switch versionless(name) {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash", "posh", "lksh", "oksh", "hush",
		"nu", "elvish", "xonsh", "pwsh", "powershell":
		return true
	}
	return false
}

// isStream reports whether a script is read from what only shows when it runs.
func isStream(word string) bool {
	return isComputed(word) || word == "-" || strings.HasPrefix(word, "/dev/") || strings.HasPrefix(word, "/proc/")
}

// shellArguments finds the script of "sh -c script". A shell that reads commands from its input or
// from a computed file hides them; one that reads a file is taken as any other program.
func (c *commandSearch) shellArguments(words []string, shown string) {
	inline, stdin, operands := false, false, []string{}
	for i := 1; i < len(words); i++ {
		switch w := words[i]; {
		case w == "-o" || w == "+o" || w == "-O" || w == "+O" || w == "--rcfile" || w == "--init-file":
			i++
		case len(w) > 1 && (w[0] == '-' || w[0] == '+') && len(operands) == 0:
			short := !strings.HasPrefix(w, "--")
			inline = inline || w == "--command" || short && strings.Contains(w, "c")
			stdin = stdin || short && strings.Contains(w, "s")
		default:
			operands = append(operands, w)
		}
	}
	switch {
	case inline && len(operands) > 0 && !isComputed(operands[0]):
		c.text(operands[0], shown, true)
	case !inline && !stdin && len(operands) > 0 && !isStream(operands[0]):
		// a file
	case len(words) == 2 && (words[1] == "--version" || words[1] == "--help"):
	default:
		c.hidden = shown
	}
}

func shownWord(text string) string {
	text = strings.NewReplacer(string(computed), "…", string(unknown), "…", between, " ").Replace(text)
	if runes := []rune(text); len(runes) > 200 {
		return string(runes[:200]) + "…"
	}
	return text
}
