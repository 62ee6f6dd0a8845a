// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"strings"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A Block is one part of the content of a message or of a tool result: a [TextBlock], [ThinkingBlock],
// [RedactedThinkingBlock], [ToolUseBlock], [ToolResultBlock], [ServerToolUseBlock], [ServerToolResultBlock], [ImageBlock],
// [DocumentBlock], [SearchResultBlock] or, for everything else, an [UnknownBlock]; always as a pointer.
type Block interface {
	// Raw returns the block as the CLI wrote it. It must not be modified. For content that is a
	// plain string instead of a list of blocks it is that JSON string.
	Raw() json.RawMessage
	// Type returns the "type" of the block.
	Type() string

	isBlock()
}

// BlockHeader is what every [Block] carries.
type BlockHeader struct {
	raw json.RawMessage
	typ string
}

// Raw returns the block as the CLI wrote it. It must not be modified.
func (b *BlockHeader) Raw() json.RawMessage { return b.raw }

// Type returns the "type" of the block.
func (b *BlockHeader) Type() string { return b.typ }

// A TextBlock is text of the model, of the user or of a tool.
type TextBlock struct {
	BlockHeader
	Text string
	// Citations are as the API sends them; nil without citations.
	Citations json.RawMessage
}

// A ThinkingBlock is the model's reasoning. Signature lets the API check it when it is sent back.
type ThinkingBlock struct {
	BlockHeader
	Thinking  string
	Signature string
}

// A RedactedThinkingBlock is reasoning that only the API can read.
type RedactedThinkingBlock struct {
	BlockHeader
	Data string
}

// A ToolUseBlock is the model's request to run a tool.
type ToolUseBlock struct {
	BlockHeader
	ID   string
	Name string
	// Input is the JSON the model wrote, normally an object.
	Input json.RawMessage
}

// A ServerToolUseBlock is the model's request to run a tool on the API's side.
type ServerToolUseBlock struct {
	BlockHeader
	ID    string
	Name  string
	Input json.RawMessage
}

// A ToolResultBlock is the outcome of a tool call.
type ToolResultBlock struct {
	BlockHeader
	ToolUseID string
	// Content is what the tool returned. A plain string becomes one [TextBlock].
	Content []Block
	IsError bool
}

// Text returns the text of the result, blocks joined by newlines.
func (b *ToolResultBlock) Text() string { return joinText(b.Content, "\n") }

// A ServerToolResultBlock is the outcome of a tool on the API's side. Type names the tool:
// "web_search_tool_result", "web_fetch_tool_result", "advisor_tool_result" and others that end so.
type ServerToolResultBlock struct {
	BlockHeader
	ToolUseID string
	// Content is as the API sends it; its shape depends on the type.
	Content json.RawMessage
}

// An ImageBlock is a picture.
type ImageBlock struct {
	BlockHeader
	Source MediaSource
}

// A DocumentBlock is a document, such as a PDF file.
type DocumentBlock struct {
	BlockHeader
	Source  MediaSource
	Title   string
	Context string
}

// A SearchResultBlock is a passage that a tool found, for the model to cite.
type SearchResultBlock struct {
	BlockHeader
	// From names where the passage comes from ("source" on the wire).
	From    string
	Title   string
	Content []Block
}

// An UnknownBlock is of a type that this version does not know. Raw has its whole content.
type UnknownBlock struct{ BlockHeader }

func (*TextBlock) isBlock()             {}
func (*ThinkingBlock) isBlock()         {}
func (*RedactedThinkingBlock) isBlock() {}
func (*ToolUseBlock) isBlock()          {}
func (*ServerToolUseBlock) isBlock()    {}
func (*ToolResultBlock) isBlock()       {}
func (*ServerToolResultBlock) isBlock() {}
func (*ImageBlock) isBlock()            {}
func (*DocumentBlock) isBlock()         {}
func (*SearchResultBlock) isBlock()     {}
func (*UnknownBlock) isBlock()          {}

// A MediaSource is where the data of an image or a document is.
type MediaSource struct {
	// Type is "base64", "url", "file", "text" or "content".
	Type      string
	MediaType string
	// Data is the data itself, for base64 still encoded.
	Data   string
	URL    string
	FileID string
}

func joinText(content []Block, sep string) string {
	if len(content) == 1 {
		if b, ok := content[0].(*TextBlock); ok {
			return b.Text
		}
		return ""
	}
	var parts []string
	for _, b := range content {
		if t, ok := b.(*TextBlock); ok {
			parts = append(parts, t.Text)
		}
	}
	return strings.Join(parts, sep)
}

// content reads a list of blocks. A string becomes one text block, as do elements that are strings.
// Other elements become unknown blocks; a value that is neither list nor string gives nil. The
// result uses one, if it is not nil, as the memory of a list of a single block.
func (d *msgDecoder) content(one *[1]Block) []Block {
	var out []Block
	if one != nil {
		out = one[:0:1]
	} else {
		out = []Block{}
	}
	switch d.Kind() {
	case plainjson.String:
		return append(out, d.textBlock())
	case plainjson.Array:
		d.Array()
		for d.Elem() {
			out = append(out, d.block())
		}
		return out
	}
	d.Skip()
	return nil
}

func blocksOf[B Block](content []Block) []B {
	var out []B
	for _, b := range content {
		if b, ok := b.(B); ok {
			out = append(out, b)
		}
	}
	return out
}
