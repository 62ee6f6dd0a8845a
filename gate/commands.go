// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// A command is written as its words with a zero byte between them. Three more bytes have a meaning;
// none of the four can be in a command that is read.
const (
	between  = "\x00"
	computed = '\x01' // in commands: what only the shell will know, none or several words
	anything = '\x02' // in rules: "*"
	unknown  = '\x03' // in commands: what only the shell will know, within one word
)

// A commandRule is "Bash(command)".
type commandRule struct {
	text string
	// forms are the words of the rule; a rule that allows more words has two.
	forms []string
	// wide is the same for denials: the name of the command without its directory, in lower case.
	wide []string
}

func newCommandRule(argument, text string) (commandRule, error) {
	r := commandRule{text: text}
	head, more := strings.CutSuffix(argument, ":*")
	if !more {
		head, more = strings.CutSuffix(argument, " *")
	}
	words, err := ruleWords(strings.TrimSpace(head))
	if err != nil {
		return r, err
	}
	r.forms = []string{strings.Join(words, between)}
	words[0] = programName(words[0])
	r.wide = []string{strings.Join(words, between)}
	if more {
		tail := between + string(anything)
		r.forms, r.wide = append(r.forms, r.forms[0]+tail), append(r.wide, r.wide[0]+tail)
	}
	return r, nil
}

// ruleWords reads the words of a rule, which must be one simple command.
func ruleWords(text string) ([]string, error) {
	file, err := parseShell(text)
	if err != nil {
		return nil, fmt.Errorf("not a command: %w", err)
	}
	problem := errors.New("a rule is one simple command, without redirection, assignment or expansion")
	if len(file.Stmts) != 1 {
		return nil, problem
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(stmt.Redirs) > 0 || stmt.Negated || stmt.Background || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil, problem
	}
	words := make([]string, len(call.Args))
	for i, w := range call.Args {
		words[i] = wordText(w, true)
		if isComputed(words[i]) {
			return nil, problem
		}
	}
	return words, nil
}

// programName is the name of a program for comparison: without directory, in lower case. What is
// not known of it stays open; a part that may be several words may be the whole name.
func programName(word string) string {
	if strings.IndexByte(word, computed) >= 0 {
		return string(computed)
	}
	if at := strings.LastIndexByte(word, unknown); at >= 0 {
		word = word[at:] // there may be a slash in it
	}
	word = word[strings.LastIndexAny(word, `/\`)+1:]
	word = strings.TrimPrefix(strings.ToLower(word), "=") // zsh: the path of a program
	return strings.TrimSuffix(word, ".exe")
}

// joinWords joins words for a denial. A word that the shell may expand to nothing absorbs the separators around it.
func joinWords(words []string) string {
	var b strings.Builder
	apart := false
	for i, w := range words {
		open := w != "" && strings.Trim(w, string(computed)) == ""
		if i > 0 && apart && !open {
			b.WriteString(between)
		}
		b.WriteString(w)
		apart = !open
	}
	return b.String()
}

// allows reports whether the rule is about exactly this command.
func (r *commandRule) allows(words string) bool {
	return matchesAny(r.forms, words, false)
}

// may reports whether the rule may turn out to be about the command.
func (r *commandRule) may(words string) bool {
	return matchesAny(r.wide, words, true)
}

func matchesAny(forms []string, words string, guess bool) bool {
	for _, form := range forms {
		if wildMatch(form, words, guess) {
			return true
		}
	}
	return false
}

// wildMatch matches words with a form. With guess, a computed part matches anything too.
func wildMatch(form, words string, guess bool) bool {
	// row[i] reports whether form[:i] matches the words read so far.
	var buf [128]bool
	row := append(buf[:0], make([]bool, len(form)+1)...)
	row[0] = true
	for i := 0; i < len(form) && form[i] == anything; i++ {
		row[i+1] = true
	}
	for w := range len(words) {
		wild := guess && (words[w] == computed || words[w] == unknown)
		diagonal := row[0] // of the row before
		row[0] = row[0] && wild
		alive := row[0]
		for i := range len(form) {
			above := row[i+1]
			if form[i] == anything || wild {
				row[i+1] = above || row[i]
			} else {
				row[i+1] = diagonal && form[i] == words[w]
			}
			diagonal = above
			alive = alive || row[i+1]
		}
		if !alive {
			return false
		}
	}
	return row[len(form)]
}

var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// maxCommand is the length of the longest command that is read, maxNesting how deep its brackets may
// go: a parser in its own stack takes long over deep ones.
const (
	maxCommand = 64 << 10
	maxNesting = 500
)

// parseShell reads a command. Control characters are refused: shells do not agree on them.
func parseShell(text string) (*syntax.File, error) {
	if len(text) > maxCommand {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), maxCommand)
	}
	nesting := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ' && c != '\n' && c != '\t' || c == 0x7f:
			return nil, fmt.Errorf("it has the control character %q", c)
		case c == '(' || c == '{' || c == '[':
			if nesting++; nesting > maxNesting {
				return nil, errors.New("its brackets are nested too deeply")
			}
		case c == ')' || c == '}' || c == ']':
			nesting--
		}
	}
	if continuesComment(text) {
		return nil, errors.New("a line with # ends in a backslash")
	}
	p := parsers.Get().(*syntax.Parser)
	defer parsers.Put(p)
	return p.Parse(strings.NewReader(text), "")
}

// continuesComment reports whether a comment may end in a backslash. A shell takes the next line for
// a command; the parser would take it for a part of the comment.
func continuesComment(text string) bool {
	for line := range strings.Lines(text) {
		if strings.HasSuffix(line, "\\\n") && strings.Contains(line, "#") {
			return true
		}
	}
	return false
}
