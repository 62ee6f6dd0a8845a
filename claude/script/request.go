// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/drover-agents/drover/internal/ident"
)

// A Request is a request of a client. It is never changed after it was recorded; do not change it.
type Request struct {
	// Number counts the requests for a message from 1. It is 0 for all other requests.
	Number int `json:"-"`
	// Turn names the turn that answers; empty when no turn did.
	Turn string `json:"-"`
	// Method, Path and Query are those of the HTTP request.
	Method string `json:"-"`
	Path   string `json:"-"`
	Query  string `json:"-"`
	// Header is the HTTP header.
	Header http.Header `json:"-"`
	// Body is the raw body.
	Body json.RawMessage `json:"-"`

	// The following fields are decoded from Body.

	Model      string          `json:"model"`
	MaxTokens  int             `json:"max_tokens"`
	Stream     bool            `json:"stream"`
	System     Parts           `json:"system"`
	Messages   []Message       `json:"messages"`
	Tools      []Tool          `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	Thinking   Thinking        `json:"thinking"`
	Output     OutputConfig    `json:"output_config"`
	Metadata   json.RawMessage `json:"metadata"`
}

// A Message is one message of the conversation in a [Request].
type Message struct {
	Role    string `json:"role"`
	Content Parts  `json:"content"`
}

// A Tool is a tool that a [Request] offers.
type Tool struct {
	// Type is empty or "custom" for the client's own tools.
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	// DeferLoading is true if the model sees only the name.
	DeferLoading bool `json:"defer_loading"`
}

// Thinking is the request's setting for reasoning.
type Thinking struct {
	Type         string `json:"type"`
	BudgetTokens int    `json:"budget_tokens"`
	Display      string `json:"display"`
}

// OutputConfig is the request's setting for the answer.
type OutputConfig struct {
	Effort string          `json:"effort"`
	Format json.RawMessage `json:"format"`
}

// A ToolResult is the result of one tool call as the model saw it.
type ToolResult struct {
	ID      string // of the call
	Name    string // of the tool, empty if the call itself is not in the request
	Text    string // all text of the result, joined by newlines
	IsError bool
	Content Parts
}

// Effort is the requested effort, empty if none was.
func (r *Request) Effort() string { return r.Output.Effort }

// Betas lists the beta features that the request asks for.
func (r *Request) Betas() []string {
	var out []string
	for _, line := range r.Header.Values("Anthropic-Beta") {
		for beta := range strings.SplitSeq(line, ",") {
			if beta = strings.TrimSpace(beta); beta != "" {
				out = append(out, beta)
			}
		}
	}
	return out
}

// SystemText is the text of the system prompt: its blocks, then any system messages within the
// conversation, joined by newlines.
func (r *Request) SystemText() string {
	texts := []string{r.System.Text()}
	for _, m := range r.Messages {
		if m.Role == "system" {
			texts = append(texts, m.Content.Text())
		}
	}
	return joinTexts(texts)
}

// LastUserText is the text of the newest user message. It is empty when that message brings tool
// results only; the text of a result does not count.
func (r *Request) LastUserText() string {
	for _, m := range slices.Backward(r.Messages) {
		if m.Role == "user" {
			return m.Content.Text()
		}
	}
	return ""
}

// SawText reports whether s is anywhere in what the model sees as text: system prompt, messages,
// thinking, tool inputs and tool results. Tool definitions do not count.
func (r *Request) SawText(s string) bool {
	if r.System.contain(s) {
		return true
	}
	return slices.ContainsFunc(r.Messages, func(m Message) bool { return m.Content.contain(s) })
}

// ToolNames lists the tools that the request offers, in order.
func (r *Request) ToolNames() []string {
	names := make([]string, 0, len(r.Tools))
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// Tool returns the offered tool of that name. A name of an earlier version, such as mcp__wink__x, finds the tool that
// has it now, mcp__drover__x, unless there is one of just that name.
func (r *Request) Tool(name string) (Tool, bool) {
	for _, name := range []string{name, ident.PresentTool(name)} {
		if i := slices.IndexFunc(r.Tools, func(t Tool) bool { return t.Name == name }); i >= 0 {
			return r.Tools[i], true
		}
	}
	return Tool{}, false
}

// ToolResult returns a tool's result as the model saw it. The tool is given by the id of the call or
// by its name; of several results the newest is returned.
func (r *Request) ToolResult(idOrName string) (text string, isError, ok bool) {
	results := r.ToolResults(idOrName)
	if len(results) == 0 {
		return "", false, false
	}
	last := results[len(results)-1]
	return last.Text, last.IsError, true
}

// ToolResults lists all results of a tool, oldest first. The tool is given by the id of a call or
// by its name; an empty string lists the results of all tools.
func (r *Request) ToolResults(idOrName string) []ToolResult {
	return toolResults(r.Messages, r.callNames(), idOrName, r.present(idOrName))
}

// BringsToolResult reports whether the result of a tool, given by id or name, came since the model's last answer.
func (r *Request) BringsToolResult(idOrName string) bool {
	return len(toolResults(r.newMessages(), r.callNames(), idOrName, r.present(idOrName))) > 0
}

// newMessages are those after the last one of the assistant.
func (r *Request) newMessages() []Message {
	for i, m := range slices.Backward(r.Messages) {
		if m.Role == "assistant" {
			return r.Messages[i+1:]
		}
	}
	return r.Messages
}

func (r *Request) callNames() map[string]string {
	names := map[string]string{}
	for _, m := range r.Messages {
		for _, p := range m.Content {
			if p.Type == "tool_use" {
				names[p.ID] = p.Name
			}
		}
	}
	return names
}

// present is the name of the tool that a name means; see [Request.Tool]. A tool that is loaded later is only named in a text.
func (r *Request) present(name string) string {
	if t, ok := r.Tool(name); ok {
		return t.Name
	}
	if now := ident.PresentTool(name); bytes.Contains(r.Body, []byte(now)) {
		return now
	}
	return name
}

func toolResults(messages []Message, names map[string]string, idOrName, present string) []ToolResult {
	var out []ToolResult
	for _, m := range messages {
		for _, p := range m.Content {
			if p.Type != "tool_result" {
				continue
			}
			name := names[p.ToolUseID]
			if idOrName == "" || idOrName == p.ToolUseID || idOrName == name || present == name {
				out = append(out, ToolResult{p.ToolUseID, name, p.Content.Text(), p.IsError, p.Content})
			}
		}
	}
	return out
}

// AgentID is the CLI's id of the subagent that made the request; empty for the main conversation.
func (r *Request) AgentID() string { return r.Header.Get("X-Claude-Code-Agent-Id") }

// IsSubagent reports whether a subagent of the CLI made the request. A proxy may drop the header of
// subagents; the CLI marks the system prompt as well.
func (r *Request) IsSubagent() bool {
	return r.AgentID() != "" || strings.Contains(r.System.Text(), "cc_is_subagent=true")
}
