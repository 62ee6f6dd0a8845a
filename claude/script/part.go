// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// A Part is one content block that a client sent. Only the fields of its Type are set; Raw holds all of it.
type Part struct {
	Type string `json:"type"`
	// Text is set for "text".
	Text string `json:"text"`
	// Thinking and Signature are set for "thinking".
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
	// ID, Name and Input are set for "tool_use".
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	// ToolUseID, IsError and Content are set for "tool_result".
	ToolUseID string `json:"tool_use_id"`
	IsError   bool   `json:"is_error"`
	Content   Parts  `json:"content"`

	// Raw is the block as it was sent.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON decodes a block of any type. Of a type that this package does not know, only Type
// and Raw are set, because its fields may have other shapes.
func (p *Part) UnmarshalJSON(data []byte) error {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	*p = Part{Type: head.Type}
	if isPlainPart(head.Type) {
		type fields Part
		if err := json.Unmarshal(data, (*fields)(p)); err != nil {
			return err
		}
	}
	p.Raw = bytes.Clone(data)
	return nil
}

func isPlainPart(kind string) bool {
	switch kind {
	case "text", "thinking", "tool_use", "tool_result":
		return true
	}
	return false
}

// Parts is the content of a message. The API also takes a string for it, which decodes to one part of type "text".
type Parts []Part

// UnmarshalJSON decodes a list of blocks or a string.
func (ps *Parts) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, (*[]Part)(ps))
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*ps = Parts{{Type: "text", Text: text, Raw: bytes.Clone(data)}}
	return nil
}

// Text joins the text parts with newlines.
func (ps Parts) Text() string {
	var texts []string
	for _, p := range ps {
		texts = append(texts, p.Text)
	}
	return joinTexts(texts)
}

func (ps Parts) contain(s string) bool {
	return slices.ContainsFunc(ps, func(p Part) bool {
		return strings.Contains(p.Text, s) || strings.Contains(p.Thinking, s) ||
			strings.Contains(string(p.Input), s) || p.Content.contain(s)
	})
}

func joinTexts(texts []string) string {
	texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" })
	return strings.Join(texts, "\n")
}
