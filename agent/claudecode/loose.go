// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

// This file reads streams that look like those of Claude Code but are not: of wrappers, older SDKs and
// stand-ins. They leave out the API's message around the content, and spell some names otherwise.

// A looseLine has the fields that such a line may have beside those of the real ones.
type looseLine struct {
	SessionID  string          `json:"sessionId"`
	SessionID2 string          `json:"session_id"`
	Model      string          `json:"model"`
	CWD        string          `json:"cwd"`
	Text       json.RawMessage `json:"text"`
	Delta      json.RawMessage `json:"delta"`
	Content    json.RawMessage `json:"content"`

	Error       json.RawMessage `json:"error"`
	Code        json.RawMessage `json:"code"`
	Message     json.RawMessage `json:"message"`
	Recoverable *bool           `json:"recoverable"`
	Retryable   *bool           `json:"retryable"`
}

// loosely reads an object field by field, so that one of an unexpected type spoils nothing else.
func loosely[T any](raw json.RawMessage) (v T) {
	if json.Unmarshal(raw, &v) == nil {
		return v
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return *new(T)
	}
	v = *new(T)
	for name, value := range fields {
		one, err := json.Marshal(map[string]json.RawMessage{name: value})
		if err == nil {
			_ = json.Unmarshal(one, &v) // of another type: as if it were not there
		}
	}
	return v
}

// loose reports a line whose type the client does not know.
func (n *normaliser) loose(m *claude.UnknownMessage) {
	switch m.Type() {
	case "system":
		if m.Subtype() != "" {
			n.newNotice(m)
			return
		}
		line := loosely[looseLine](m.Raw())
		n.setSession(cmp.Or(line.SessionID, line.SessionID2))
		n.init(m.Raw(), &claude.SystemInit{Model: line.Model, CWD: line.CWD})
	case "stream", "delta":
		n.active = true
		n.looseDelta(n.positionOf("", ""), m.Raw())
	case "error":
		n.active = true
		n.looseError(loosely[looseLine](m.Raw()))
	}
}

// looseDelta reports text that is being written: in delta, then in text.
func (n *normaliser) looseDelta(at eventPosition, raw json.RawMessage) {
	line := loosely[looseLine](raw)
	n.setSession(cmp.Or(line.SessionID, line.SessionID2))
	for _, part := range []json.RawMessage{line.Delta, line.Text} {
		if text := deltaText(part); text != "" {
			n.emit(at, event.TextDelta{Delta: text})
		}
	}
}

// deltaText is a text, or the text inside an object.
func deltaText(raw json.RawMessage) string {
	if plainjson.IsObject(raw) {
		raw = rawField(raw, "text")
	}
	return textOf(raw)
}

// textOf is the string that raw is, or nothing.
func textOf(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // another type leaves it empty
	return s
}

func (n *normaliser) looseError(line looseLine) {
	nested := loosely[struct {
		Code, Type, Message json.RawMessage
	}](line.Error)
	failure := event.Error{
		Code:    cmp.Or(textOf(line.Code), textOf(nested.Code), textOf(nested.Type)),
		Message: cmp.Or(textOf(line.Message), textOf(nested.Message), textOf(line.Error), "the agent reported an error without a message"),
	}
	switch {
	case line.Recoverable != nil:
		failure.Recoverable = *line.Recoverable
	case line.Retryable != nil:
		failure.Recoverable = *line.Retryable
	}
	n.emit(eventPosition{turn: n.turn}, failure)
}

// looseAssistant reports the parts of an assistant line outside of the API's message: text, delta, content.
// The real lines have such a message with an id, and nothing beside it.
func (n *normaliser) looseAssistant(at eventPosition, m *claude.AssistantMessage) {
	if m.MessageID != "" {
		return
	}
	line := loosely[looseLine](m.Raw())
	n.setSession(line.SessionID)
	if text := textOf(line.Text); text != "" {
		n.emit(at, event.Text{Content: text})
	}
	if text := deltaText(line.Delta); text != "" {
		n.emit(at, event.TextDelta{Delta: text})
	}
	if blocks := decodeBlocks(line.Content); blocks != nil {
		m.Content = blocks
	}
}

func decodeBlocks(content json.RawMessage) []claude.Block {
	if len(content) == 0 {
		return nil
	}
	line := slices.Concat([]byte(`{"type":"assistant","message":{"content":`), content, []byte(`}}`))
	m, err := claude.DecodeMessage(line)
	if a, ok := m.(*claude.AssistantMessage); err == nil && ok {
		return a.Content
	}
	return nil
}

// A looseOutcome is the result of a tool inside an assistant line.
type looseOutcome struct {
	ID         string          `json:"toolUseId"`
	Name       string          `json:"toolName"`
	Name2      string          `json:"name"`
	Status     string          `json:"status"`
	Denied     bool            `json:"denied"`
	IsError    bool            `json:"isError"`
	Error      json.RawMessage `json:"error"`
	Output     json.RawMessage `json:"output"`
	Result     json.RawMessage `json:"result"`
	Content    json.RawMessage `json:"content"`
	DurationMS float64         `json:"durationMs"`
	Duration2  float64         `json:"duration_ms"`
}

func (n *normaliser) looseResult(at eventPosition, b *claude.ToolResultBlock) {
	o := loosely[looseOutcome](b.Raw())
	r := event.ToolResult{
		ID: event.CallID(cmp.Or(b.ToolUseID, o.ID)), Name: cmp.Or(o.Name, o.Name2), Status: event.ToolSuccess,
		Duration: milliseconds(cmp.Or(o.DurationMS, o.Duration2)),
	}
	for _, output := range []json.RawMessage{o.Output, o.Result, o.Content, []byte("null")} {
		if len(output) > 0 {
			r.Output = output
			break
		}
	}
	switch failed := len(o.Error) > 0 && !slices.Contains([]string{"null", "false", `""`}, string(o.Error)); {
	case n.wasDenied(r.ID) || o.Denied || o.Status == "denied":
		r.Status = event.ToolDenied
	case b.IsError || o.IsError || failed || o.Status == "error" || o.Status == "failed":
		r.Status = event.ToolError
	}
	n.toolResult(at, r, cmp.Or(textOf(o.Error), textOf(r.Output), b.Text()), time.Time{})
}

// milliseconds is a duration that another program measured; zero for an invalid value.
func milliseconds(ms float64) time.Duration {
	const longest = float64(1<<62) / float64(time.Millisecond)
	if ms > 0 && ms < longest {
		return time.Duration(ms * float64(time.Millisecond))
	}
	return 0
}

// toolNames are the tools of an init line: strings, or objects with a name.
func toolNames(raw json.RawMessage) []string {
	names := []string{}
	var all []json.RawMessage
	_ = json.Unmarshal(rawField(raw, "tools"), &all) // no list: no tools
	for _, one := range all {
		if plainjson.IsObject(one) {
			one = rawField(one, "name")
		}
		if name := textOf(one); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// looseEnd has the fields of a result as others spell them.
type looseEnd struct {
	Status     string   `json:"status"`
	StopReason string   `json:"stopReason"`
	StopWord   string   `json:"stop_reason"`
	IsError    bool     `json:"isError"`
	DurationMS *float64 `json:"durationMs"`
	Duration2  *float64 `json:"duration_ms"`
	Elapsed    *float64 `json:"elapsed"`
}

// endings are the words for how a run ended. Words that are not here mean success.
var endings = map[string]event.DoneStatus{
	"interrupted": event.DoneInterrupted, "aborted": event.DoneInterrupted, "cancelled": event.DoneInterrupted, "canceled": event.DoneInterrupted,
	"max_turns": event.DoneMaxTurns, "maxturns": event.DoneMaxTurns,
	"max_budget": event.DoneMaxBudget, "maxbudget": event.DoneMaxBudget, "max_budget_usd": event.DoneMaxBudget,
	"error": event.DoneError, "failed": event.DoneError, "failure": event.DoneError,
}

// status is how a run ended whose result has no subtype.
func (e looseEnd) status() event.DoneStatus {
	for _, word := range []string{e.Status, e.StopReason, e.StopWord} {
		if word != "" {
			return cmp.Or(endings[strings.ToLower(word)], event.DoneSuccess)
		}
	}
	return event.DoneSuccess
}

func (e looseEnd) duration() time.Duration {
	for _, ms := range []*float64{e.DurationMS, e.Duration2, e.Elapsed} {
		if ms != nil {
			return milliseconds(*ms)
		}
	}
	return 0
}
