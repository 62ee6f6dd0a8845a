// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A ToolResult is what an in-process tool gives back.
//
// The model sees Content, unless Structured is set: then the CLI shows it the JSON of Structured
// and drops Content, also from the messages on our side. The CLI's numbers are doubles: where it would
// show another whole number than Structured has, the JSON is sent as a text instead.
type ToolResult struct {
	Content []ToolContent
	// Structured is a JSON object, or nil.
	Structured json.RawMessage
	// IsError marks a failure that the model should see and may repair.
	IsError bool
	// Meta is passed on as _meta.
	Meta map[string]any
}

// A ToolContent is a [ToolText], [ToolImage], [ToolAudio], [ToolResourceLink] or [ToolResource].
type ToolContent interface {
	appendContent(b []byte) ([]byte, error)
}

// ToolText is text for the model.
type ToolText string

// ToolImage is a picture. The CLI hands it to the model and keeps a copy in a file.
type ToolImage struct {
	Data     []byte
	MIMEType string // "image/png"
}

// ToolAudio is sound.
type ToolAudio struct {
	Data     []byte
	MIMEType string // "audio/wav"
}

// ToolResourceLink points to something; the CLI shows it to the model as text.
type ToolResourceLink struct {
	URI         string
	Name        string
	Description string
	MIMEType    string
}

// ToolResource is the content of a resource: Text, or Blob where that is not nil.
type ToolResource struct {
	URI      string
	MIMEType string
	Text     string
	Blob     []byte
}

// TextResult is a result of one text.
func TextResult(text string) ToolResult { return ToolResult{Content: []ToolContent{ToolText(text)}} }

// ErrorResult is a failure that the model sees.
func ErrorResult(message string) ToolResult {
	return ToolResult{Content: []ToolContent{ToolText(message)}, IsError: true}
}

// ImageResult is a result of one picture.
func ImageResult(data []byte, mimeType string) ToolResult {
	return ToolResult{Content: []ToolContent{ToolImage{data, mimeType}}}
}

// JSONResult is a structured result. A value that is not a JSON object is given as text instead, since
// structured content must be an object. A value that cannot be encoded is an error result.
func JSONResult(value any) ToolResult {
	raw, err := plainjson.Marshal(value)
	if err != nil {
		return ErrorResult(fmt.Sprintf(resultNotJSON, err))
	}
	r := TextResult(string(raw))
	if raw[0] == '{' {
		r.Structured = raw
	}
	return r
}

// appendTo appends the JSON of the result. It fails on what the CLI would read as "no output".
func (r *ToolResult) appendTo(b []byte) ([]byte, error) {
	b = append(b, `{"content":[`...)
	for i, c := range r.Content {
		if i > 0 {
			b = append(b, ',')
		}
		if c == nil {
			return nil, fmt.Errorf("field Content[%d] is nil", i)
		}
		var err error
		if b, err = c.appendContent(b); err != nil {
			return nil, fmt.Errorf("field Content[%d]: %w", i, err)
		}
	}
	b = append(b, ']')
	if r.Structured != nil {
		raw, err := oneLine(r.Structured)
		if raw = bytes.TrimSpace(raw); err != nil || raw[0] != '{' {
			return nil, errors.New("field Structured is not a JSON object")
		}
		b = append(append(b, `,"structuredContent":`...), raw...)
	}
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	if len(r.Meta) > 0 {
		raw, err := json.Marshal(r.Meta)
		if err != nil {
			return nil, fmt.Errorf("field Meta: %w", err)
		}
		b = append(append(b, `,"_meta":`...), raw...)
	}
	return append(b, '}'), nil
}

func (t ToolText) appendContent(b []byte) ([]byte, error) {
	b = append(b, `{"type":"text","text":`...)
	return append(appendJSONText(b, string(t)), '}'), nil
}

func (c ToolImage) appendContent(b []byte) ([]byte, error) {
	return appendBlob(b, "image", c.Data, c.MIMEType)
}

func (c ToolAudio) appendContent(b []byte) ([]byte, error) {
	return appendBlob(b, "audio", c.Data, c.MIMEType)
}

func appendBlob(b []byte, kind string, data []byte, mimeType string) ([]byte, error) {
	if len(data) == 0 || mimeType == "" {
		return nil, fmt.Errorf("%s content needs Data and MIMEType", kind)
	}
	b = append(append(append(b, `{"type":"`...), kind...), `","data":"`...)
	b = base64.StdEncoding.AppendEncode(b, data)
	b = append(b, `","mimeType":`...)
	return append(appendJSONText(b, mimeType), '}'), nil
}

func (c ToolResourceLink) appendContent(b []byte) ([]byte, error) {
	if c.URI == "" || c.Name == "" {
		return nil, errors.New("a resource link needs URI and Name")
	}
	b = append(b, `{"type":"resource_link"`...)
	b = appendField(b, "uri", c.URI)
	b = appendField(b, "name", c.Name)
	b = appendField(b, "description", c.Description)
	b = appendField(b, "mimeType", c.MIMEType)
	return append(b, '}'), nil
}

func (c ToolResource) appendContent(b []byte) ([]byte, error) {
	if c.URI == "" {
		return nil, errors.New("a resource needs URI")
	}
	b = append(b, `{"type":"resource","resource":{"uri":`...)
	b = appendJSONText(b, c.URI)
	b = appendField(b, "mimeType", c.MIMEType)
	if c.Blob != nil {
		b = append(b, `,"blob":"`...)
		b = append(base64.StdEncoding.AppendEncode(b, c.Blob), '"')
	} else {
		b = appendJSONText(append(b, `,"text":`...), c.Text)
	}
	return append(b, "}}"...), nil
}

// appendField appends a member, or nothing for an empty value.
func appendField(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(append(append(b, `,"`...), name...), `":`...)
	return appendJSONText(b, value)
}
