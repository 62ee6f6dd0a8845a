// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// A Match is a condition on a request: all fields that are set must hold. The zero value holds
// always. Except for Func it is plain data, which a file can contain.
type Match struct {
	// LastUserText must be contained in [Request.LastUserText].
	LastUserText string `yaml:"last_user_text,omitempty"`
	// SystemText must be contained in [Request.SystemText].
	SystemText string `yaml:"system_text,omitempty"`
	// Text must be contained anywhere in what the model sees: see [Request.SawText].
	Text string `yaml:"text,omitempty"`
	// Model must be the requested model; a final * matches any end.
	Model string `yaml:"model,omitempty"`
	// ToolOffered must be the name of a tool in the request.
	ToolOffered string `yaml:"tool_offered,omitempty"`
	// AfterTool is the name or id of a tool call whose result this request is the first to bring.
	AfterTool string `yaml:"after_tool,omitempty"`
	// HasToolResult is the name or id of a tool call whose result is anywhere in the conversation.
	HasToolResult string `yaml:"has_tool_result,omitempty"`
	// Subagent, if set, must equal [Request.IsSubagent].
	Subagent *bool `yaml:"subagent,omitempty"`
	// Stream, if set, must equal the stream field of the request.
	Stream *bool `yaml:"stream,omitempty"`
	// Headers must each be present, with a value that contains the one given.
	Headers map[string]string `yaml:"headers,omitempty"`
	// All, Any and Not combine conditions.
	All []Match `yaml:"all,omitempty"`
	Any []Match `yaml:"any,omitempty"`
	Not *Match  `yaml:"not,omitempty"`
	// Func must report true. It may be called for requests that another turn answers, from several goroutines, but never
	// from two at once for the same [Model], and must not call back into the Model.
	Func func(*Request) bool `yaml:"-"`
}

// LastUserText holds for requests whose newest user message contains s.
func LastUserText(s string) Match { return Match{LastUserText: s} }

// SawText holds for requests that contain s anywhere the model sees it.
func SawText(s string) Match { return Match{Text: s} }

// ModelIs holds for requests to a model; a final * matches any end.
func ModelIs(name string) Match { return Match{Model: name} }

// AfterTool holds for the request that brings the result of a tool call, given by name or id.
func AfterTool(idOrName string) Match { return Match{AfterTool: idOrName} }

// HasToolResult holds for requests whose conversation has the result of a tool call, given by name or id.
func HasToolResult(idOrName string) Match { return Match{HasToolResult: idOrName} }

// IsSubagent holds for requests that a subagent of the CLI makes.
func IsSubagent() Match { return Match{Subagent: new(true)} }

// Not holds for requests for which m does not.
func Not(m Match) Match { return Match{Not: &m} }

type condition struct {
	words string
	holds func(*Request) bool
}

func (m Match) holds(r *Request) bool {
	for _, c := range m.conditions() {
		if !c.holds(r) {
			return false
		}
	}
	return true
}

// String describes the requirements of m.
func (m Match) String() string {
	var words []string
	for _, c := range m.conditions() {
		words = append(words, c.words)
	}
	if words == nil {
		return "always"
	}
	return strings.Join(words, " and ")
}

func (m Match) isZero() bool { return len(m.conditions()) == 0 }

func (m Match) conditions() []condition {
	var cs []condition
	add := func(set bool, holds func(*Request) bool, format string, args ...any) {
		if set {
			cs = append(cs, condition{fmt.Sprintf(format, args...), holds})
		}
	}
	add(m.LastUserText != "", func(r *Request) bool { return strings.Contains(r.LastUserText(), m.LastUserText) },
		"last user text contains %q", m.LastUserText)
	add(m.SystemText != "", func(r *Request) bool { return strings.Contains(r.SystemText(), m.SystemText) },
		"system text contains %q", m.SystemText)
	add(m.Text != "", func(r *Request) bool { return r.SawText(m.Text) }, "request contains %q", m.Text)
	add(m.Model != "", func(r *Request) bool { return modelMatches(m.Model, r.Model) }, "model is %s", m.Model)
	add(m.ToolOffered != "", func(r *Request) bool { _, ok := r.Tool(m.ToolOffered); return ok },
		"tool %s is offered", m.ToolOffered)
	add(m.AfterTool != "", func(r *Request) bool { return r.BringsToolResult(m.AfterTool) },
		"the result of %s has just come", m.AfterTool)
	add(m.HasToolResult != "", func(r *Request) bool { return len(r.ToolResults(m.HasToolResult)) > 0 },
		"the result of %s is known", m.HasToolResult)
	return append(cs, m.otherConditions()...)
}

func (m Match) otherConditions() []condition {
	var cs []condition
	if m.Subagent != nil {
		cs = append(cs, condition{
			fmt.Sprintf("subagent is %t", *m.Subagent),
			func(r *Request) bool { return r.IsSubagent() == *m.Subagent },
		})
	}
	if m.Stream != nil {
		cs = append(cs, condition{
			fmt.Sprintf("stream is %t", *m.Stream),
			func(r *Request) bool { return r.Stream == *m.Stream },
		})
	}
	if len(m.Headers) > 0 {
		cs = append(cs, condition{fmt.Sprintf("headers contain %v", m.Headers), m.headersHold})
	}
	for _, all := range m.All {
		cs = append(cs, all.conditions()...)
	}
	if len(m.Any) > 0 {
		cs = append(cs, condition{"any of " + joinMatches(m.Any), m.anyHolds})
	}
	if m.Not != nil {
		cs = append(cs, condition{
			"not (" + m.Not.String() + ")",
			func(r *Request) bool { return !m.Not.holds(r) },
		})
	}
	if m.Func != nil {
		cs = append(cs, condition{"a Go function agrees", m.Func})
	}
	return cs
}

func (m Match) headersHold(r *Request) bool {
	for name, want := range m.Headers {
		values, ok := r.Header[http.CanonicalHeaderKey(name)]
		if !ok || !strings.Contains(strings.Join(values, ","), want) {
			return false
		}
	}
	return true
}

func (m Match) anyHolds(r *Request) bool {
	return slices.ContainsFunc(m.Any, func(one Match) bool { return one.holds(r) })
}

func joinMatches(ms []Match) string {
	var words []string
	for _, m := range ms {
		words = append(words, "("+m.String()+")")
	}
	return strings.Join(words, " ")
}

func modelMatches(pattern, model string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(model, prefix)
	}
	return pattern == model
}
