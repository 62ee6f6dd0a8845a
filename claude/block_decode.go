// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"strings"

	"github.com/drover-agents/drover/internal/plainjson"
)

// blockFields are the fields of all known blocks, collected first: the type of a block may come after its other fields.
type blockFields struct {
	start     int // offset of the block in the line
	typ       string
	text      string
	thinking  string
	signature string
	data      string
	id        string
	name      string
	toolUseID string
	title     string
	context   string
	input     []byte
	content   []byte
	source    []byte
	citations []byte
	isError   bool
	// plain is the content decoded, if it is a string.
	plain string
}

func (d *msgDecoder) textBlock() *TextBlock {
	b := &TextBlock{BlockHeader: BlockHeader{typ: "text"}}
	start := d.Pos()
	b.Text = d.str()
	b.raw = d.Since(start)
	return b
}

func (d *msgDecoder) block() Block {
	switch d.Kind() {
	case plainjson.Object:
	case plainjson.String:
		return d.textBlock()
	default:
		return &UnknownBlock{BlockHeader{raw: d.Raw()}}
	}
	f := blockFields{start: d.Pos()}
	d.Object()
	for key, ok := d.Field(); ok; key, ok = d.Field() {
		d.blockField(&f, key)
	}
	return d.build(&f, BlockHeader{raw: d.Since(f.start), typ: f.typ})
}

func (d *msgDecoder) blockField(f *blockFields, key []byte) {
	switch string(key) {
	case "type":
		f.typ = d.blockType()
	case "text":
		f.text = d.str()
	case "thinking":
		f.thinking = d.str()
	case "signature":
		f.signature = d.str()
	case "data":
		f.data = d.str()
	case "id":
		f.id = d.str()
	case "name":
		f.name = d.str()
	case "tool_use_id":
		f.toolUseID = d.str()
	case "title":
		f.title = d.str()
	case "context":
		f.context = d.str()
	case "input":
		f.input = d.raw()
	case "source":
		f.source = d.raw()
	case "citations":
		f.citations = d.raw()
	case "is_error":
		f.isError = d.bool()
	case "content":
		f.plain = ""
		if d.Kind() != plainjson.String {
			f.content = d.raw()
			return
		}
		start := d.Pos()
		f.plain = d.str()
		f.content = d.Since(start)
	default:
		d.Skip()
	}
}

// blockType reads the type of a block; known ones need no memory.
func (d *msgDecoder) blockType() string {
	raw, plain, ok := d.Text()
	switch {
	case !ok:
		return ""
	case !plain:
		return string(plainjson.Unescape(nil, raw))
	}
	switch string(raw) {
	case "text":
		return "text"
	case "thinking":
		return "thinking"
	case "redacted_thinking":
		return "redacted_thinking"
	case "tool_use":
		return "tool_use"
	case "tool_result":
		return "tool_result"
	case "image":
		return "image"
	case "document":
		return "document"
	}
	return d.keep(raw)
}

func (d *msgDecoder) build(f *blockFields, h BlockHeader) Block {
	switch f.typ {
	case "text":
		return &TextBlock{BlockHeader: h, Text: f.text, Citations: f.citations}
	case "thinking":
		return &ThinkingBlock{BlockHeader: h, Thinking: f.thinking, Signature: f.signature}
	case "redacted_thinking":
		return &RedactedThinkingBlock{BlockHeader: h, Data: f.data}
	case "tool_use":
		return &ToolUseBlock{BlockHeader: h, ID: f.id, Name: f.name, Input: f.input}
	case "tool_result":
		return d.buildResult(f, h)
	case "server_tool_use":
		return &ServerToolUseBlock{BlockHeader: h, ID: f.id, Name: f.name, Input: f.input}
	case "image":
		return &ImageBlock{BlockHeader: h, Source: d.buildSource(f)}
	case "document":
		return &DocumentBlock{BlockHeader: h, Source: d.buildSource(f), Title: f.title, Context: f.context}
	case "search_result":
		return d.buildSearch(f, h)
	}
	if strings.HasSuffix(f.typ, "_tool_result") {
		return &ServerToolResultBlock{BlockHeader: h, ToolUseID: f.toolUseID, Content: f.content}
	}
	return &UnknownBlock{h}
}

// A plainResult is a tool result whose content is a string, the usual case, in one piece of memory.
type plainResult struct {
	ToolResultBlock
	text TextBlock
	list [1]Block
}

func (d *msgDecoder) buildResult(f *blockFields, h BlockHeader) Block {
	result := ToolResultBlock{BlockHeader: h, ToolUseID: f.toolUseID, IsError: f.isError}
	if len(f.content) == 0 || f.content[0] != '"' {
		result.Content = d.nested(f.content)
		return &result
	}
	p := &plainResult{ToolResultBlock: result}
	p.text = TextBlock{BlockHeader: BlockHeader{raw: f.content, typ: "text"}, Text: f.plain}
	p.list[0] = &p.text
	p.Content = p.list[:]
	return &p.ToolResultBlock
}

func (d *msgDecoder) buildSearch(f *blockFields, h BlockHeader) Block {
	b := &SearchResultBlock{BlockHeader: h, Title: f.title, Content: d.nested(f.content)}
	if len(f.source) > 0 {
		s := newMsgDecoder(f.source, true)
		defer s.free()
		b.From = s.str()
	}
	return b
}

func (d *msgDecoder) buildSource(f *blockFields) (src MediaSource) {
	if len(f.source) > 0 {
		s := newMsgDecoder(f.source, true)
		defer s.free()
		s.fill(&src)
	}
	return src
}

// maxNested is how deep blocks inside blocks are decoded. The API has one level; every level reads
// its content once more, so that without a limit a hostile line could cost the square of its length.
const maxNested = 8

// nested reads blocks inside a block, which were checked with the line.
func (d *msgDecoder) nested(content []byte) []Block {
	if len(content) == 0 {
		return nil
	}
	if d.level == maxNested {
		return []Block{&UnknownBlock{BlockHeader{raw: content}}}
	}
	s := newMsgDecoder(content, true)
	defer s.free()
	s.level = d.level + 1
	return s.content(nil)
}
