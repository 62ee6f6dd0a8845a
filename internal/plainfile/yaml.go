// SPDX-License-Identifier: Apache-2.0

package plainfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// The limits of YAML. The largest text within them takes about 40 MiB to parse.
const (
	// maxMarks bounds the bytes that can begin or end a token. The scanner makes all tokens at once, at 200 bytes each.
	maxMarks = 100_000
	// maxTokens bounds the keys, values, brackets, commas and list markers.
	maxTokens = 30_000
	// maxDepth bounds how many lists and mappings are open at once.
	maxDepth = 200
	// maxKeys bounds the keys of a mapping without brackets, for which the parser takes the square of the time.
	maxKeys = 2000
	// maxPaths bounds the bytes of the paths of all values.
	maxPaths = 8 << 20
)

// A YAMLError is the position of a syntax error, and the reason.
type YAMLError struct {
	// Line and Column count from 1.
	Line, Column int
	Reason       string
	// Excess means that the text is YAML, but exceeds a limit.
	Excess bool
	// Err is the error of the parser. It may be nil.
	Err error
}

func (e *YAMLError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason) }

// Unwrap returns the error of the parser.
func (e *YAMLError) Unwrap() error { return e.Err }

// ParseYAML parses YAML of others. What a text may cost is bounded before it is parsed: its tokens, its depth, and
// the paths that the parser keeps for each value. The error is an [*YAMLError], also where the parser panics.
func ParseYAML(text string, opts ...parser.Option) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			file, err = nil, &YAMLError{Line: 1, Column: 1, Reason: fmt.Sprintf("the text cannot be parsed: %v", p)}
		}
	}()
	if line := tooManyMarks(text); line > 0 {
		return nil, &YAMLError{Line: line, Column: 1, Excess: true, Reason: fmt.Sprintf("there are more than %d brackets, commas, colons, quotes and line ends", maxMarks)}
	}
	tokens := scan(text)
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	file, err = parser.Parse(tokens, 0, opts...)
	if err != nil {
		return nil, PositionedYAMLError(err)
	}
	return file, nil
}

// PositionedYAMLError gives an error of the parser or the decoder its position. Its text is not asked for: it shows the
// lines around the position, and takes minutes to do so if they are long.
func PositionedYAMLError(err error) *YAMLError {
	e := &YAMLError{Line: 1, Column: 1, Err: err}
	var known yaml.Error
	if !errors.As(err, &known) {
		e.Reason = err.Error()
		return e
	}
	e.Reason = known.GetMessage()
	if tok := known.GetToken(); tok != nil && tok.Position != nil {
		e.Line, e.Column = max(tok.Position.Line, 1), max(tok.Position.Column, 1)
	}
	return e
}

// tooManyMarks is the line in which there are too many, or zero.
func tooManyMarks(text string) int {
	marks, line := 0, 1
	for i := range len(text) {
		switch text[i] {
		case '\n':
			line++
			fallthrough
		case ',', ':', '[', ']', '{', '}', '?', '#', '&', '*', '!', '|', '>', '"', '\'', '%', '<', '\r':
			marks++
		case '-', '.':
			if i+1 == len(text) || text[i+1] <= ' ' {
				marks++
			}
		}
		if marks > maxMarks {
			return line
		}
	}
	return 0
}

// scan returns the tokens of a text. For each tab in a double-quoted text the scanner loses a character behind that text, so
// another character stands for such tabs meanwhile.
func scan(text string) token.Tokens {
	guarded, guard := guardTabs(text)
	tokens := scanAll(guarded)
	if guarded == text {
		return tokens
	}
	for _, t := range tokens {
		t.Value, t.Origin = strings.ReplaceAll(t.Value, guard, "\t"), strings.ReplaceAll(t.Origin, guard, "\t")
	}
	return tokens
}

// guardTabs replaces the tabs that are content of double-quoted texts: not those that only indent or end a line. Spaces in place
// of all tabs let the scanner find these texts.
func guardTabs(text string) (guarded, guard string) {
	guard = unused(text)
	if guard == "" || !strings.ContainsRune(text, '\t') || !strings.ContainsRune(text, '"') {
		return text, ""
	}
	lines := strings.SplitAfter(text, "\n")
	starts := make([]int, len(lines))
	for i, at := 1, 0; i < len(lines); i++ {
		at += len(lines[i-1])
		starts[i] = at
	}
	var b strings.Builder
	done := 0
	for _, t := range scanAll(strings.ReplaceAll(text, "\t", " ")) {
		if t.Type != token.DoubleQuoteType || t.Position.Line > len(lines) {
			continue
		}
		begin := starts[t.Position.Line-1] + byteOf(lines[t.Position.Line-1], t.Position.Column)
		if begin < done || begin >= len(text) || text[begin] != '"' {
			continue // not where the scanner says
		}
		end := endOfQuoted(text, begin)
		b.WriteString(text[done:begin])
		for i, line := range strings.SplitAfter(text[begin:end], "\n") {
			inner := strings.TrimRight(line, " \t\r\n")
			if i > 0 {
				inner = strings.TrimLeft(inner, " \t")
			}
			before, after, _ := strings.Cut(line, inner)
			b.WriteString(before + strings.ReplaceAll(inner, "\t", guard) + after)
		}
		done = end
	}
	return b.String() + text[done:], guard
}

// unused is a character that a text does not have, or "".
func unused(text string) string {
	for r := rune(0xE000); r < 0xE100; r++ { // for private use
		if !strings.ContainsRune(text, r) {
			return string(r)
		}
	}
	return ""
}

// byteOf is the index of a column, which counts characters from 1.
func byteOf(line string, column int) int {
	for i := range line {
		if column--; column == 0 {
			return i
		}
	}
	return len(line)
}

// endOfQuoted is the index behind the quoted text that begins at an index.
func endOfQuoted(text string, begin int) int {
	for i := begin + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

func scanAll(text string) token.Tokens {
	var s scanner.Scanner
	s.Init(text)
	var all token.Tokens
	for {
		some, err := s.Scan()
		if errors.Is(err, io.EOF) {
			return all
		}
		all.Add(some...)
		if err != nil { // the parser reports it
			return all
		}
	}
}

// checkTokens refuses tokens of which the parser would make too much.
func checkTokens(tokens token.Tokens) error {
	if len(tokens) > maxTokens {
		return excess(tokens[maxTokens], fmt.Sprintf("there are more than %d keys, values, brackets, commas and list markers", maxTokens))
	}
	d := depths{columns: map[int]bool{}, siblings: map[int]int{}}
	for i, t := range tokens {
		if t.Type == token.MappingKeyType {
			return &YAMLError{Line: t.Position.Line, Column: t.Position.Column, Reason: "a key that begins with ? is not supported: write key: value"}
		}
		d.see(tokens, i)
		switch {
		case d.deepest() > maxDepth:
			return excess(t, fmt.Sprintf("more than %d brackets or list markers are open at once", maxDepth))
		case d.widest > maxKeys:
			return excess(t, fmt.Sprintf("a mapping has more than %d keys", maxKeys))
		}
	}
	slices.SortFunc(d.keys, func(a, b *token.Token) int { return len(b.Value) - len(a.Value) })
	path := 0
	for _, key := range d.keys[:min(len(d.keys), d.deepest())] {
		if path += len(key.Value); path*len(tokens) > maxPaths {
			return excess(d.keys[0], "the keys are too long, or nested too deep, for so many values")
		}
	}
	return nil
}

// depths finds out how deep values can be nested: as deep as the most brackets that are open at once, and as
// the columns in which lists and mappings without brackets begin.
type depths struct {
	open, most int
	columns    map[int]bool
	keys       []*token.Token
	siblings   map[int]int // keys of the mappings that are open, by their columns
	widest     int
}

func (d *depths) deepest() int { return d.most + len(d.columns) }

func (d *depths) see(tokens token.Tokens, i int) {
	switch t := tokens[i]; t.Type {
	case token.MappingStartType, token.SequenceStartType:
		d.open++
		d.most = max(d.most, d.open)
	case token.MappingEndType, token.SequenceEndType:
		d.open--
	case token.SequenceEntryType:
		d.begin(t.Position.Column)
	case token.MappingValueType:
		if i == 0 {
			return
		}
		key := tokens[i-1]
		d.keys = append(d.keys, key)
		if d.open <= 0 {
			d.begin(key.Position.Column)
			d.siblings[key.Position.Column]++
			d.widest = max(d.widest, d.siblings[key.Position.Column])
		}
	}
}

// begin notes a key or a list marker in a column. All that is open to the right of it ends.
func (d *depths) begin(column int) {
	d.columns[column] = true
	for c := range d.siblings {
		if c > column {
			delete(d.siblings, c)
		}
	}
}

func excess(t *token.Token, reason string) *YAMLError {
	return &YAMLError{Line: t.Position.Line, Column: t.Position.Column, Reason: reason, Excess: true}
}
