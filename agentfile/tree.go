// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// A tree is a document as JSON, with the position of each value in the file.
type tree struct {
	json      json.RawMessage
	positions map[string]valuePosition // by JSON pointer
	refused   map[string]bool          // pointers to what could not be read
}

// A valuePosition is the position of a value in the file. That of a property is the position of its key.
type valuePosition struct {
	line, column int
	// textLine and textIndent are where the first line of a block of text begins. They are zero for other values.
	textLine, textIndent int
}

// position returns the position of a value, or of the nearest one around it that is in the file.
func (t *tree) position(pointer string) (line, column int) {
	for {
		if at, ok := t.positions[pointer]; ok {
			return at.line, at.column
		}
		if pointer == "" {
			return 1, 1
		}
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
}

// A grower makes a tree of a document, and collects what a file must not have.
type grower struct {
	problems
	out bytes.Buffer
}

// grow makes the tree. Values that cannot be read are null in it, and are problems.
func grow(file string, body ast.Node) (*tree, *problems) {
	t := &tree{positions: map[string]valuePosition{}, refused: map[string]bool{}}
	g := &grower{problems: problems{file: file, tree: t}}
	g.mark("", begin(body))
	g.value("", body)
	t.json = g.out.Bytes()
	return t, &g.problems
}

func (g *grower) mark(pointer string, n ast.Node) {
	if tok := n.GetToken(); tok != nil && tok.Position != nil {
		g.tree.positions[pointer] = valuePosition{line: tok.Position.Line, column: tok.Position.Column}
	}
}

func (g *grower) value(pointer string, n ast.Node) {
	switch n := n.(type) {
	case *ast.MappingNode:
		g.object(pointer, n.Values)
	case *ast.MappingValueNode:
		g.object(pointer, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		g.list(pointer, n.Values)
	case *ast.LiteralNode:
		g.block(pointer, n)
	default:
		g.scalar(pointer, n)
	}
}

func (g *grower) object(pointer string, entries []*ast.MappingValueNode) {
	first := map[string]ast.Node{}
	g.out.WriteByte('{')
	for _, entry := range entries {
		name, isText := keyText(entry.Key)
		if !isText {
			g.refuse(pointer, entry.Key, "a key is not a plain text", "write the key as one word; anchors, aliases and merges are not supported")
			continue
		}
		below := at(pointer, name)
		if earlier, twice := first[name]; twice {
			line := earlier.GetToken().Position.Line
			g.refuse(below, entry.Key, fmt.Sprintf("the key is there already, in line %d", line), "remove one of the two")
			continue
		}
		if len(first) > 0 {
			g.out.WriteByte(',')
		}
		first[name] = entry.Key
		g.mark(below, entry.Key)
		g.write(name)
		g.out.WriteByte(':')
		g.value(below, entry.Value)
	}
	g.out.WriteByte('}')
}

// keyText is the text of a key that is a scalar.
func keyText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return n.GetToken().Value, true
	}
	return "", false
}

func (g *grower) list(pointer string, values []ast.Node) {
	g.out.WriteByte('[')
	for i, v := range values {
		if i > 0 {
			g.out.WriteByte(',')
		}
		below := at(pointer, i)
		g.mark(below, begin(v))
		g.value(below, v)
	}
	g.out.WriteByte(']')
}

// begin is where a reader sees a value begin. The own token of a mapping is its first colon.
func begin(n ast.Node) ast.Node {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return m.Values[0].Key
		}
	case *ast.MappingValueNode:
		return m.Key
	}
	return n
}

// block writes a text of several lines, and notes where they begin.
func (g *grower) block(pointer string, n *ast.LiteralNode) {
	g.write(n.Value.Value)
	where := g.tree.positions[pointer]
	if n.Start.Type == token.LiteralType && n.Start.Position != nil {
		where.textLine = n.Start.Position.Line + 1
		where.textIndent = blockIndent(n)
		g.tree.positions[pointer] = where
	}
}

func blockIndent(n *ast.LiteralNode) int {
	line := strings.TrimLeft(n.Value.GetToken().Origin, "\r\n")
	return len(line) - len(strings.TrimLeft(line, " "))
}

func (g *grower) scalar(pointer string, n ast.Node) {
	switch n := n.(type) {
	case *ast.StringNode:
		g.write(n.Value)
	case *ast.BoolNode:
		g.write(n.Value)
	case *ast.IntegerNode:
		if octal.MatchString(n.GetToken().Value) {
			g.refuse(pointer, n, "a number with a zero in front is octal to some and decimal to others", "leave the zero out, or write a text in quotes")
		}
		g.write(n.Value)
	case *ast.FloatNode:
		if math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
			g.refuse(pointer, n, "the number is too large", "write another number")
			g.write(nil)
			return
		}
		g.write(n.Value)
	case *ast.NullNode, nil:
		g.write(nil)
	default:
		g.refuse(pointer, n, fmt.Sprintf("%s is not supported", describe(n)), "write the value out")
		g.write(nil)
	}
}

// octal are numbers that versions of YAML do not agree about.
var octal = regexp.MustCompile(`^[-+]?0_*[0-9]`)

func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or an alias"
	case *ast.TagNode:
		return "a tag"
	case *ast.InfinityNode, *ast.NanNode:
		return "an infinity or not-a-number"
	}
	return "a " + strings.ToLower(n.Type().String())
}

func (g *grower) write(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte("null")
	}
	g.out.Write(text)
}

func (g *grower) refuse(pointer string, n ast.Node, reason, next string) {
	g.tree.refused[pointer] = true
	p := g.note(pointer, reason, next)
	if tok := n.GetToken(); tok != nil && tok.Position != nil {
		p.Line, p.Column = tok.Position.Line, tok.Position.Column
	}
}
