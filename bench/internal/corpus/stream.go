// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"math/rand/v2"
)

const (
	sessionID = "0b7a1c52-6d0e-4f3a-9a51-2f6e8c1d7b90"
	model     = "claude-sonnet-4-5-20250929"
)

// A maker gives lines ids that differ, as the CLI's do.
type maker struct {
	*rand.Rand
	block Block
}

func newMaker(seed uint64) *maker { return &maker{Rand: rand.New(rand.NewPCG(seed, 1))} }

func (m *maker) id(prefix string) string {
	return fmt.Sprintf("%s_%016x%08x", prefix, m.Uint64(), m.Uint32())
}

func (m *maker) uuid() string {
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", m.Uint32(), m.Uint32()&0xffff, m.Uint32()&0xfff, m.Uint32()&0xfff, m.Uint64()&0xffffffffffff)
}

// Text is a block of assistant messages with one paragraph each.
func Text() *Block {
	m := newMaker(11)
	for range 256 {
		text := prose(m.Rand, 120)
		m.assistant([]string{text}, object{"type", "text", "text", text})
	}
	return &m.block
}

// Mixed is a block of forty model calls with partial messages: twenty deltas, two assistant messages
// with thinking, text and a file of 4 KB to write, and a tool result of 18 KB each.
func Mixed() *Block {
	m := newMaker(12)
	for range 40 {
		for i := range 20 {
			m.delta(i)
		}
		m.reply()
		m.reply()
		m.toolResult(18 << 10)
	}
	return &m.block
}

// Big is a block of one tool result of 4 MB.
func Big() *Block {
	m := newMaker(13)
	m.toolResult(4 << 20)
	return &m.block
}

func (m *maker) delta(i int) {
	text := prose(m.Rand, 12)
	m.block.add(object{
		"type", "stream_event", "session_id", sessionID, "parent_tool_use_id", nil, "uuid", m.uuid(),
		"event",
		object{"type", "content_block_delta", "index", i % 3, "delta", object{"type", "text_delta", "text", text}},
	}, text)
}

func (m *maker) reply() {
	thought, text := prose(m.Rand, 300), prose(m.Rand, 200)
	m.assistant([]string{text},
		object{"type", "thinking", "thinking", thought, "signature", m.id("sig")},
		object{"type", "text", "text", text},
		object{"type", "tool_use", "id", m.id("toolu"), "name", "Write", "input", object{"file_path", "/work/project/main.go", "content", prose(m.Rand, 4<<10)}},
	)
}

func (m *maker) assistant(texts []string, blocks ...object) {
	m.block.add(object{
		"type", "assistant", "parent_tool_use_id", nil, "session_id", sessionID, "uuid", m.uuid(), "request_id", m.id("req"),
		"message",
		object{
			"id", m.id("msg"), "type", "message", "role", "assistant", "model", model, "content", blocks, "stop_reason", nil, "stop_sequence", nil,
			"usage",
			object{"input_tokens", 4 + m.IntN(9), "cache_creation_input_tokens", 350, "cache_read_input_tokens", 18000 + m.IntN(999), "output_tokens", 1 + m.IntN(400), "service_tier", "standard"},
		},
	}, texts...)
}

func (m *maker) toolResult(size int) {
	content := prose(m.Rand, size)
	m.block.add(object{
		"type", "user", "parent_tool_use_id", nil, "session_id", sessionID, "uuid", m.uuid(),
		"message",
		object{"role", "user", "content", []object{{"type", "tool_result", "tool_use_id", m.id("toolu"), "content", content, "is_error", false}}},
	}, content)
}
