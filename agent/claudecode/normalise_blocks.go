// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
)

const unknownTool = "unknown_tool"

// synthetic is the model of messages that the CLI wrote itself. They are not model calls.
const synthetic = "<synthetic>"

// assistant reports a line of the model: one block of an answer. The lines of one answer share the message id.
func (n *normaliser) assistant(m *claude.AssistantMessage) {
	n.active = true
	if m.ParentToolUseID == "" {
		n.written = m.Model == synthetic
	}
	if m.IsAPIErrorMessage || m.Error != "" {
		n.apiError(m)
		return
	}
	if m.ParentToolUseID == "" && m.Model != synthetic {
		n.turnOf(m.MessageID)
	}
	at := n.positionOf(event.CallID(m.ParentToolUseID), m.AgentID)
	if at.parent == "" && n.turns[m.MessageID] > 0 {
		at.turn = n.turns[m.MessageID]
	}
	n.message = m.MessageID
	n.looseAssistant(at, m)
	for _, b := range m.Content {
		if !n.isRepeated(m.UUID, b.Raw()) {
			n.block(at, b, m.Timestamp)
		}
	}
}

// apiError reports an answer that is an error of the API. The main agent's ends the turn, and is reported
// by the result; after a subagent's the run continues.
func (n *normaliser) apiError(m *claude.AssistantMessage) {
	if m.ParentToolUseID == "" {
		return
	}
	at := n.positionOf(event.CallID(m.ParentToolUseID), m.AgentID)
	n.failed(at, cmp.Or(m.APIErrorType, m.Error, codeResult), m.Text(), nil)
}

func (n *normaliser) block(at eventPosition, b claude.Block, stamp time.Time) {
	switch b := b.(type) {
	case *claude.TextBlock:
		if b.Text != "" {
			n.emit(at, event.Text{Content: b.Text})
		}
	case *claude.ThinkingBlock:
		text := b.Thinking
		if text == "" {
			text = textField(b.Raw(), "summary") // as other producers write it
		}
		if text != "" {
			n.emit(at, event.Thinking{Summary: text})
		}
	case *claude.ToolUseBlock:
		n.toolUse(at, event.CallID(b.ID), b.Name, b.Input, stamp)
	case *claude.ServerToolUseBlock:
		n.toolUse(at, event.CallID(b.ID), b.Name, b.Input, stamp)
	case *claude.ServerToolResultBlock:
		n.serverResult(at, b, stamp)
	case *claude.ToolResultBlock:
		n.looseResult(at, b)
	}
}

// toolUse reports a call, once.
func (n *normaliser) toolUse(at eventPosition, id event.CallID, name string, input json.RawMessage, stamp time.Time) {
	if id == "" {
		id = n.makeID()
	}
	known := n.ledger.Read(id)
	if known != nil && known.Reading.Over && known.Reading.Message != n.message {
		known = nil // an id that comes again, in another answer, is another call
	}
	if known != nil && known.Reading.Name != "" {
		return
	}
	if !plainjson.IsObject(input) {
		input = json.RawMessage("{}")
	}
	name = cmp.Or(name, unknownTool)
	r := n.ledger.AddReported(event.ToolCall{ID: id, Name: name, Input: input, AgentID: at.agent}).Reading
	r.Name, r.Message, r.Turn, r.Started, r.Stamped = name, n.message, at.turn, n.clock(), stamp
	r.Denied = known != nil && known.Reading.Denied
	n.toolUses++
	if name == structuredTool && at.agent == "" {
		n.answers = append(n.answers, answer{r, input})
	}
	n.emit(at, event.ToolCall{ID: id, Name: name, Input: input, Description: textField(input, "description"), AgentID: at.agent})
}

// textField is a field of an object that is a text, or "". Most objects have none, which shows at a glance.
func textField(object json.RawMessage, name string) string {
	if !bytes.Contains(object, []byte(`"`+name+`"`)) {
		return ""
	}
	return objectOf(object).text(name)
}

// user reports the results of tool calls; all else on the user's side is text of the CLI to the model.
func (n *normaliser) user(m *claude.UserMessage) {
	if m.IsReplay {
		return
	}
	n.active = true
	at := n.positionOf(event.CallID(m.ParentToolUseID), m.AgentID)
	content := m.Content
	if content == nil { // it may be outside of the API's message
		content = decodeBlocks(loosely[looseLine](m.Raw()).Content)
	}
	for _, b := range content {
		if b, ok := b.(*claude.ToolResultBlock); ok {
			n.userResult(at, b, m)
		}
	}
}

func (n *normaliser) userResult(at eventPosition, b *claude.ToolResultBlock, m *claude.UserMessage) {
	r := event.ToolResult{ID: event.CallID(b.ToolUseID), Status: event.ToolSuccess, Output: outputOf(b)}
	verdict := n.verdict(b, m)
	switch {
	case n.wasDenied(r.ID) || verdict == event.ToolDenied:
		r.Status = event.ToolDenied
	case verdict == event.ToolCancelled:
		r.Status = event.ToolCancelled
	case b.IsError:
		r.Status = event.ToolError
	}
	n.toolResult(at, r, b.Text(), m.Timestamp)
}

// wasDenied reports whether our side or the CLI denied the call.
func (n *normaliser) wasDenied(id event.CallID) bool {
	r := n.ledger.Read(id)
	return r != nil && r.Reading.Denied || n.ledger.Denied(n.recordOf(id))
}

// recordOf is the record of a call. It is nil for a call that the stream has not reported.
func (n *normaliser) recordOf(id event.CallID) *agent.Record {
	if r := n.ledger.Read(id); r != nil && r.Reading.Name != "" {
		return r
	}
	return n.ledger.Last(id)
}

// A resultMeta is what the CLI adds to a result about why the tool did not run.
type resultMeta struct {
	ID               string `json:"id"`
	NonExecutionKind string `json:"non_execution_kind"`
	Decision         *struct {
		Decision string `json:"decision"`
	} `json:"permission_decision"`
}

// verdict is the CLI's status of a call that did not run, or not to its end: denied, cancelled, or
// nothing. A call that was cut off by an interrupt is, in its words, rejected without a decision to do so.
func (n *normaliser) verdict(b *claude.ToolResultBlock, m *claude.UserMessage) event.ToolStatus {
	if !b.IsError {
		return ""
	}
	for _, raw := range m.ToolResultMeta {
		var meta resultMeta
		if json.Unmarshal(raw, &meta) != nil || meta.ID != b.ToolUseID {
			continue
		}
		switch {
		case meta.Decision != nil && meta.Decision.Decision == "reject":
			return event.ToolDenied
		case meta.NonExecutionKind == "user-rejected":
			return event.ToolCancelled
		}
		return ""
	}
	return n.verdictInWords(b, m)
}

// verdictInWords is the verdict of a CLI that gives it only in words, as those before 2.1.325 do. Its
// words about paths that it guards are too many to be known; they count as errors.
func (n *normaliser) verdictInWords(b *claude.ToolResultBlock, m *claude.UserMessage) event.ToolStatus {
	if textOf(m.ToolUseResult) == "User rejected tool use" {
		return event.ToolCancelled
	}
	r := n.ledger.Read(event.CallID(b.ToolUseID))
	if text := b.Text(); r != nil && strings.HasPrefix(text, "Permission to use "+r.Reading.Name) && strings.HasSuffix(text, " has been denied.") {
		return event.ToolDenied
	}
	return ""
}

func (n *normaliser) serverResult(at eventPosition, b *claude.ServerToolResultBlock, stamp time.Time) {
	r := event.ToolResult{ID: event.CallID(b.ToolUseID), Status: event.ToolSuccess, Output: orNull(b.Content)}
	var failure struct {
		Type string `json:"type"`
		Code string `json:"error_code"`
	}
	if plainjson.IsObject(b.Content) && json.Unmarshal(b.Content, &failure) == nil && strings.HasSuffix(failure.Type, "_error") {
		r.Status = event.ToolError
	}
	n.toolResult(at, r, cmp.Or(failure.Code, failure.Type), stamp)
}

// toolResult completes a result and reports it, once. text is what the model reads of it.
func (n *normaliser) toolResult(at eventPosition, r event.ToolResult, text string, stamp time.Time) {
	if r.ID == "" {
		r.ID = n.makeID()
	}
	record := n.ledger.Read(r.ID)
	if record == nil { // a call of an earlier run
		record = n.ledger.AddReportedEnd(r.ID)
		record.Reading.Turn = at.turn
	}
	c := record.Reading
	if c.Over {
		return
	}
	c.Over, c.Succeeded = true, r.Status == event.ToolSuccess
	at.turn = c.Turn
	r.Name = cmp.Or(r.Name, c.Name, unknownTool)
	if r.Duration == 0 {
		r.Duration = n.took(c, stamp)
	}
	if r.Status != event.ToolSuccess {
		r.Failure = failureOf(r.Status, text)
		n.ledger.Complete(n.recordOf(r.ID), &r)
	}
	n.emit(at, r)
}

// took is the time from the call to its result, by the CLI's clock where it stamps both lines, since a
// reader may be slow. Calls of one answer may have waited for each other.
func (n *normaliser) took(c *agent.Reading, stamp time.Time) time.Duration {
	switch {
	case c.Started.IsZero():
		return 0 // the call was not reported
	case !c.Stamped.IsZero() && stamp.After(c.Stamped):
		return stamp.Sub(c.Stamped)
	}
	return max(0, n.clock().Sub(c.Started))
}

// hookPrefix are the words that the CLI puts before the reason of a denial for the model. Nothing went wrong in the
// hook. Output keeps them.
var hookPrefix = regexp.MustCompile(`^PreToolUse:\S+ hook error: `)

func failureOf(status event.ToolStatus, text string) *event.ToolFailure {
	f := &event.ToolFailure{Message: cmp.Or(text, string(status))}
	switch status {
	case event.ToolDenied, event.ToolNeedsApproval:
		f.Category, f.Message = "permission", strings.TrimPrefix(f.Message, hookPrefix.FindString(f.Message))
	case event.ToolCancelled:
		f.Category = "cancelled"
	}
	return f
}

// outputOf is what the model got: text as a JSON string, all else as the CLI wrote it.
func outputOf(b *claude.ToolResultBlock) json.RawMessage {
	if len(b.Content) == 0 {
		return rawField(b.Raw(), "content")
	}
	for _, part := range b.Content {
		if _, ok := part.(*claude.TextBlock); !ok {
			return rawField(b.Raw(), "content")
		}
	}
	if len(b.Content) == 1 && b.Content[0].Raw()[0] == '"' {
		return b.Content[0].Raw()
	}
	text, _ := plainjson.Marshal(b.Text()) // strings always encode
	return text
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// rawField is one field of an object, null if the object lacks it.
func rawField(object json.RawMessage, name string) json.RawMessage {
	return orNull(objectOf(object)[name])
}

// stream reports text while it is written. Thinking and the input of calls are reported when they are complete.
func (n *normaliser) stream(m *claude.StreamEvent) {
	n.active = true
	if m.ParentToolUseID == "" {
		id := m.APIMessageID
		if id == "" {
			id = startedMessage(m)
		}
		n.turnOf(id)
	}
	at := n.positionOf(event.CallID(m.ParentToolUseID), "")
	text, ok := m.TextDelta()
	if !ok && m.Event == nil {
		n.looseDelta(at, m.Raw())
		return
	}
	if text != "" {
		n.emit(at, event.TextDelta{Delta: text})
	}
	n.countTokens(at, m)
}

// startedMessage is the id of the message that begins with an event. Older CLIs do not repeat it.
func startedMessage(m *claude.StreamEvent) string {
	if !bytes.Contains(m.Event, []byte(`"message_start"`)) {
		return ""
	}
	var start struct {
		Type    string
		Message struct {
			ID string
		}
	}
	if json.Unmarshal(m.Event, &start) != nil || start.Type != "message_start" {
		return ""
	}
	return start.Message.ID
}
