// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/drover-agents/drover/internal/plainfile"
)

// maxMatter bounds front matter, beside the limits of plainfile.ParseYAML.
const maxMatter = 16 << 10

var skillName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// parseSkill takes SKILL.md apart. The front matter counts only if there are no violations.
func parseSkill(data []byte) (SkillFrontMatter, string, []SkillViolation) {
	if !utf8.Valid(data) {
		return SkillFrontMatter{}, "", []SkillViolation{{Reason: "the file is not UTF-8"}}
	}
	head, body, v := splitMatter(string(data))
	if v != nil {
		return SkillFrontMatter{}, "", []SkillViolation{*v}
	}
	m := &matterReader{}
	m.read(head)
	return m.matter, body, m.violations
}

// splitMatter separates the front matter from the body. Lines may end in CRLF.
func splitMatter(text string) (head, body string, v *SkillViolation) {
	first, rest, _ := strings.Cut(text, "\n")
	if !isRuler(first) {
		return "", "", &SkillViolation{Line: 1, Column: 1, Reason: "the file does not begin with front matter: its first line must be ---"}
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		next := min(at+len(line)+1, len(rest))
		if isRuler(line) {
			return strings.ReplaceAll(rest[:at], "\r\n", "\n"), rest[next:], nil
		}
		at = next
	}
	return "", "", &SkillViolation{Line: 1, Column: 1, Reason: "the front matter has no end: a line --- must follow it"}
}

func isRuler(line string) bool { return strings.TrimRight(line, " \t\r") == "---" }

// A matterReader fills matter and collects what is wrong. It looks at the parsed tree only and never
// decodes, so that aliases cannot make a value grow.
type matterReader struct {
	matter     SkillFrontMatter
	violations []SkillViolation
}

func (m *matterReader) read(head string) {
	m.checkHead(head)
	if m.violations != nil {
		return
	}
	tree, err := plainfile.ParseYAML("\n" + head) // a line for the --- above: messages of the parser have positions
	if err != nil {
		m.violations = append(m.violations, yamlViolation(err))
		return
	}
	var fields []*ast.MappingValueNode
	ok := len(tree.Docs) == 1
	if ok {
		fields, ok = mappingOf(tree.Docs[0].Body)
	}
	if !ok {
		m.add(nil, "the front matter must be keys and values, such as description: what the skill is for")
		return
	}
	for _, field := range fields {
		m.field(field)
	}
	if !hasKey(fields, "description") {
		m.add(nil, "description is missing: state in 1 to 1024 characters when to use the skill")
	}
}

// checkHead refuses what the parser should not see, and --- inside: the CLI ends front matter there, even in a text.
func (m *matterReader) checkHead(head string) {
	if len(head) > maxMatter {
		m.add(nil, fmt.Sprintf("the front matter is larger than %d KiB", maxMatter>>10))
		return
	}
	number := 1 // of the --- above
	for line := range strings.Lines(head) {
		number++
		if at := strings.Index(line, "---"); at >= 0 {
			m.violations = append(m.violations, SkillViolation{
				Line: number, Column: utf8.RuneCountInString(line[:at]) + 1,
				Reason: "the front matter must not hold ---, at which the CLI would end it: write it in another way",
			})
		}
	}
}

func mappingOf(n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}, true
	}
	return nil, false
}

func hasKey(fields []*ast.MappingValueNode, key string) bool {
	for _, field := range fields {
		if text, ok := textOf(field.Key); ok && text == key {
			return true
		}
	}
	return false
}

func (m *matterReader) field(field *ast.MappingValueNode) {
	key, ok := textOf(field.Key)
	if !ok {
		m.add(field.Key, "a key must be a text")
		return
	}
	switch key {
	case "name":
		m.matter.Name = m.text(key, field.Value)
		m.checkName(field.Value)
	case "description":
		m.matter.Description = m.text(key, field.Value)
		m.checkLength(key, field.Value, m.matter.Description, 1, 1024)
	case "compatibility":
		m.matter.Compatibility = m.text(key, field.Value)
		m.checkLength(key, field.Value, m.matter.Compatibility, 0, 500)
	case "license":
		m.matter.License = m.text(key, field.Value)
	case "allowed-tools":
		m.matter.AllowedTools = m.text(key, field.Value)
	case "metadata":
		m.matter.Metadata = m.metadata(field.Value)
	default:
		m.matter.Unknown = append(m.matter.Unknown, key)
	}
}

func (m *matterReader) text(key string, n ast.Node) string {
	text, ok := textOf(n)
	if !ok {
		m.add(n, fmt.Sprintf("%s must be one text: put it in quotes", key))
	}
	return text
}

// textOf reads a node that is a text, in quotes, plain or as a block.
func textOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}

func (m *matterReader) metadata(n ast.Node) map[string]string {
	fields, ok := mappingOf(n)
	if !ok {
		m.add(n, "metadata must be keys and values, each a text")
		return nil
	}
	all := make(map[string]string, len(fields))
	for _, field := range fields {
		key, ok := textOf(field.Key)
		if !ok {
			m.add(field.Key, "a key of metadata must be a text: put it in quotes")
			continue
		}
		all[key] = m.text("metadata."+key, field.Value)
	}
	return all
}

func (m *matterReader) checkName(n ast.Node) {
	if _, ok := textOf(n); ok && !validSkillName(m.matter.Name) {
		m.add(n, fmt.Sprintf("name %q must be %s", m.matter.Name, skillNameRule))
	}
}

const skillNameRule = "1 to 64 lower-case letters and digits, with single hyphens between them"

func validSkillName(name string) bool { return len(name) <= 64 && skillName.MatchString(name) }

func (m *matterReader) checkLength(key string, n ast.Node, text string, least, most int) {
	if _, ok := textOf(n); !ok {
		return
	}
	length := utf8.RuneCountInString(text)
	if length > most || utf8.RuneCountInString(strings.TrimSpace(text)) < least {
		m.add(n, fmt.Sprintf("%s has %d characters: it must have %d to %d, and not only blanks", key, length, least, most))
	}
}

func (m *matterReader) add(n ast.Node, reason string) {
	v := SkillViolation{Line: 2, Column: 1, Reason: reason}
	if n != nil {
		v.Line, v.Column = tokenPosition(n.GetToken())
	}
	m.violations = append(m.violations, v)
}

func tokenPosition(t *token.Token) (line, column int) {
	if t == nil || t.Position == nil {
		return 0, 0
	}
	return t.Position.Line, t.Position.Column
}

func yamlViolation(err error) SkillViolation {
	known, ok := errors.AsType[*plainfile.YAMLError](err)
	if !ok {
		return SkillViolation{Reason: err.Error()}
	}
	v := SkillViolation{Line: known.Line, Column: known.Column, Reason: known.Reason}
	if strings.Contains(v.Reason, "not allowed in this context") {
		v.Reason += ": a text with a colon needs quotes"
	}
	return v
}
