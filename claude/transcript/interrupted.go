// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/plainjson"
)

// An Interrupted conversation is one whose CLI was killed, perhaps in the middle of a turn. Add the result of each open call;
// then a CLI that resumes the conversation at the line At goes on with the next prompt. Without that, the CLI would make up results
// and an answer of the model.
type Interrupted struct {
	// At is the last line of the conversation that a prompt can follow. Empty if no line is.
	At string
	// Open are the calls without a result, in order.
	Open []OpenCall
	// Calls are the ids of all calls in the conversation.
	Calls []string

	last Entry
}

// An OpenCall is a call of a tool that has no result.
type OpenCall struct {
	ID, Name string
	line     string // uuid of its entry
}

// A block is what matters here of a block of a message.
type block struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Text      string          `json:"text"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

func (e Entry) blocks() []block {
	var message struct{ Content json.RawMessage }
	var all []block
	if json.Unmarshal(e.Message, &message) != nil || json.Unmarshal(message.Content, &all) != nil {
		return nil // a prompt is a text
	}
	return all
}

// CallsIn are the ids of the calls in entries.
func CallsIn(entries []json.RawMessage) (ids []string) {
	for _, e := range parseEntries(entries) {
		for _, b := range e.calls() {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// FindInterrupted looks where the conversation of entries from a [Store] ends. What the CLI writes about an interruption is
// no part of it, such as the rejection of a call that it has cut off.
func FindInterrupted(entries []json.RawMessage) *Interrupted {
	i := &Interrupted{}
	all := parseEntries(entries)
	path := chain(all)
	if len(path) == 0 || path[0].ParentUUID != "" { // a line is missing
		return i
	}
	path = visible(path, false)
	for len(path) > 0 && !path[len(path)-1].complete() {
		path = path[:len(path)-1]
	}
	if len(path) == 0 {
		return i
	}
	i.last = path[len(path)-1]
	i.At = i.last.UUID
	message := ""
	for _, e := range path {
		id, _ := e.messageID()
		message = cmp.Or(id, message)
	}
	done := map[string]bool{}
	for _, e := range all { // parallel calls and their results are beside the path
		for _, b := range e.blocks() {
			if b.Type == "tool_result" && !b.rejected() {
				done[b.ToolUseID] = true
			}
		}
	}
	for _, e := range visible(all, false) {
		for _, b := range e.calls() {
			i.Calls = append(i.Calls, b.ID)
			if id, _ := e.messageID(); !done[b.ID] && id == message {
				i.Open = append(i.Open, OpenCall{b.ID, b.Name, e.UUID})
			}
		}
	}
	return i
}

// WithoutRejections returns the entries without the rejections of calls that have another result. The CLI finds the results of
// a message wherever they are, and would show the model the first.
func WithoutRejections(entries []json.RawMessage) []json.RawMessage {
	done := map[string]bool{}
	rejected := func(raw json.RawMessage) (call string) {
		e, err := ParseEntry(raw)
		if err != nil || e.Type != "user" {
			return ""
		}
		for _, b := range e.blocks() {
			if b.Type == "tool_result" && b.rejected() {
				call = b.ToolUseID
			} else if b.Type == "tool_result" {
				done[b.ToolUseID] = true
			}
		}
		return call
	}
	calls := make([]string, len(entries))
	for i, raw := range entries {
		calls[i] = rejected(raw)
	}
	var kept []json.RawMessage
	for i, raw := range entries {
		if !done[calls[i]] {
			kept = append(kept, raw)
		}
	}
	return kept
}

// messageID is the id of the model's message that an entry is a part of, and model who wrote it. Only such messages have both.
func (e Entry) messageID() (id, model string) {
	var message struct{ ID, Model string }
	_ = json.Unmarshal(e.Message, &message) // else it has none
	return message.ID, message.Model
}

func (e Entry) calls() []block {
	if e.Type != "assistant" {
		return nil
	}
	return slices.DeleteFunc(e.blocks(), func(b block) bool { return b.Type != "tool_use" })
}

// complete reports whether a prompt can follow an entry: it has a text, a call or a result, and the CLI has not written it in place of
// the model, or about an interruption.
func (e Entry) complete() bool {
	blocks := e.blocks()
	if _, model := e.messageID(); model == "<synthetic>" {
		return false
	}
	if blocks == nil {
		return true // a prompt
	}
	return slices.ContainsFunc(blocks, func(b block) bool {
		switch b.Type {
		case "thinking", "redacted_thinking": // what follows it was not written any more
			return false
		case "text":
			return e.Type != "user" || !strings.HasPrefix(b.Text, "[Request interrupted by user")
		case "tool_result":
			return !b.rejected()
		}
		return true
	})
}

// rejected reports whether a result is what the CLI writes for a call that an interruption has cut off.
func (b block) rejected() bool {
	var text string
	return json.Unmarshal(b.Content, &text) == nil && strings.HasPrefix(text, "The user doesn't want to proceed with this tool use.")
}

// Result makes the line with the result of an open call, and moves At to it.
func (i *Interrupted) Result(call OpenCall, text string, failed bool) json.RawMessage {
	type result struct {
		ToolUseID string `json:"tool_use_id"`
		Type      string `json:"type"`
		Content   string `json:"content"`
		IsError   bool   `json:"is_error,omitzero"`
	}
	type message struct {
		Role    string   `json:"role"`
		Content []result `json:"content"`
	}
	line := struct {
		Type          string  `json:"type"`
		ParentUUID    string  `json:"parentUuid"`
		UUID          string  `json:"uuid"`
		SessionID     string  `json:"sessionId"`
		IsSidechain   bool    `json:"isSidechain"`
		CWD           string  `json:"cwd"`
		Version       string  `json:"version"`
		Timestamp     string  `json:"timestamp"`
		CalledBy      string  `json:"sourceToolAssistantUUID"`
		ToolUseResult string  `json:"toolUseResult"`
		Message       message `json:"message"`
	}{
		"user", call.line, ident.NewUUID(), i.last.SessionID, false, i.last.CWD, i.last.Version, time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		call.line, text,
		message{"user", []result{{call.ID, "tool_result", text, failed}}},
	}
	i.At = line.UUID
	raw, _ := plainjson.Marshal(line) // texts have a JSON form
	return raw
}
