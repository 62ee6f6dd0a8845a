// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/drover-agents/drover/bench/internal/corpus"
	"github.com/drover-agents/drover/bench/internal/rig"
)

// envelope is every line in one struct, so that one pass decodes it.
type envelope struct {
	Type            string  `json:"type"`
	Subtype         string  `json:"subtype"`
	UUID            string  `json:"uuid"`
	SessionID       string  `json:"session_id"`
	ParentToolUseID *string `json:"parent_tool_use_id"`
	RequestID       string  `json:"request_id"`
	Message         *struct {
		ID         string          `json:"id"`
		Model      string          `json:"model"`
		Role       string          `json:"role"`
		StopReason *string         `json:"stop_reason"`
		Content    []block         `json:"content"`
		Usage      json.RawMessage `json:"usage"`
	} `json:"message"`
	Event *struct {
		Type  string `json:"type"`
		Index int    `json:"index"`
		Delta struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"delta"`
	} `json:"event"`
	Request *struct {
		Subtype string          `json:"subtype"`
		Input   json.RawMessage `json:"input"`
		Message struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		} `json:"message"`
	} `json:"request"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   string          `json:"content"`
	IsError   bool            `json:"is_error"`
}

func typed(line []byte, out io.Writer, m *rig.Meter) (bool, error) {
	var e envelope
	if err := json.Unmarshal(line, &e); err != nil {
		return false, err
	}
	switch e.Type {
	case "assistant", "user":
		text := 0
		for _, b := range e.Message.Content {
			text += len(b.Text) + len(b.Content)
		}
		m.Message(text)
	case "stream_event":
		m.Message(len(e.Event.Delta.Text))
	case "control_request":
		_, err := fmt.Fprintf(out, `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`+"\n", e.RequestID, reply(&e))
		return false, err
	}
	return e.Type == "result", nil
}

func reply(e *envelope) string {
	switch {
	case e.Request.Subtype == "can_use_tool":
		return `{"behavior":"allow","updatedInput":` + string(e.Request.Input) + `}`
	case e.Request.Message.Method == "tools/call":
		return `{"mcp_response":{"jsonrpc":"2.0","id":` + string(e.Request.Message.ID) + `,"result":{"content":[{"type":"text","text":"` + corpus.Sum + `"}]}}}`
	case e.Request.Subtype == "mcp_message":
		return `{"mcp_response":{"jsonrpc":"2.0","id":0,"result":{}}}`
	}
	return "{}"
}
