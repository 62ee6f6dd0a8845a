// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func callWords(args []*syntax.Word) []string {
	words := make([]string, len(args))
	for i, w := range args {
		words[i] = wordText(w, false)
	}
	return words
}

// wordText gives a word as the command gets it, unquoted. What the shell computes is one byte, in rules also for "*".
func wordText(w *syntax.Word, inRule bool) string {
	if !inRule && multiplies(w) {
		return string(computed)
	}
	var b strings.Builder
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			writeLiteral(&b, part.Value, inRule)
		case *syntax.SglQuoted:
			writeQuoted(&b, part)
		case *syntax.DblQuoted:
			writeDoubleQuoted(&b, part)
		default:
			b.WriteByte(computed)
		}
	}
	return b.String()
}

// multiplies reports whether braces or brackets make other words of a word, from all its parts.
func multiplies(w *syntax.Word) bool {
	for _, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok || len(w.Parts) == 1 && lit.Value == "[" {
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			switch {
			case lit.Value[i] == '\\':
				i++
			case lit.Value[i] == '[', lit.Value[i] == '{' && !strings.HasPrefix(lit.Value[i:], "{}"):
				return true
			}
		}
	}
	return false
}

// writeLiteral writes text without quotes. Wildcards are computed.
func writeLiteral(b *strings.Builder, text string, inRule bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] != '\n' {
				b.WriteByte(text[i])
			}
		case c == '*' && inRule:
			b.WriteByte(anything)
		case inRule:
			b.WriteByte(c)
		case c == '*' || c == '?':
			b.WriteByte(computed)
		default:
			b.WriteByte(c)
		}
	}
}

func writeQuoted(b *strings.Builder, q *syntax.SglQuoted) {
	if q.Dollar && strings.Contains(q.Value, `\`) {
		b.WriteByte(unknown) // escapes that the shell decodes
		return
	}
	b.WriteString(q.Value)
}

func writeDoubleQuoted(b *strings.Builder, q *syntax.DblQuoted) {
	if q.Dollar {
		b.WriteByte(unknown) // may be translated
		return
	}
	for _, part := range q.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			b.WriteByte(quotedPart(part))
			continue
		}
		for i := 0; i < len(lit.Value); i++ {
			c := lit.Value[i]
			if c == '\\' && i+1 < len(lit.Value) && strings.IndexByte("$`\"\\\n", lit.Value[i+1]) >= 0 {
				i++
				if c = lit.Value[i]; c == '\n' {
					continue
				}
			}
			b.WriteByte(c)
		}
	}
}

// quotedPart is the byte for an expansion in double quotes: one word unless it is of a list, or its default may be one.
func quotedPart(part syntax.WordPart) byte {
	p, ok := part.(*syntax.ParamExp)
	if ok && (p.Param.Value == "@" || p.Excl || p.Index != nil || p.Slice != nil || p.Names != 0 || p.Exp != nil || p.Repl != nil) {
		return computed
	}
	return unknown
}

func isComputed(word string) bool {
	return strings.IndexByte(word, computed) >= 0 || strings.IndexByte(word, unknown) >= 0
}

// A script is what a call of the shell wants to run.
type script struct {
	source string
	file   *syntax.File
	err    error
}

// readScript reads the command of a call. One in the name of the call counts too.
func readScript(c *Call) script {
	in := c.fields()
	s := script{source: strings.Clone(in.command)}
	switch {
	case in.bad:
		s.err = errNoCommand
		return s
	case s.source == "":
		s.source = c.Argument
	case c.Argument != "" && c.Argument != s.source:
		s.err = errors.New("the name and the input have different ones")
		return s
	}
	if strings.TrimSpace(s.source) == "" {
		s.err = errNoCommand
		return s
	}
	s.file, s.err = parseShell(s.source)
	return s
}
