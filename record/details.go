// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/session"
)

// Details are what the log of a run tells about it.
type Details struct {
	// Prompt is the text that the agent was given first, and Name that of the prompt.
	Prompt, Name string
	// AgentVersion is that of the agent's program, Model its model, and SessionID its name for the conversation.
	AgentVersion, Model, SessionID string
	// Isolation is the level, empty if the agent was not started; Missing are protections that it lacks.
	Isolation string
	Missing   []string
	// Tools are those that the agent had.
	Tools []string
	// Calls are the tool calls, in the order in which the model made them.
	Calls []Call
	// Errors are the failures on the way, and the one at the end.
	Errors []event.Error
	// Models are the consumption by model, the most expensive first.
	Models []ModelUse
	// Files are those that tools have written.
	Files []string
	// Texts are the messages of the main agent.
	Texts []string
}

// A Call is a tool call.
type Call struct {
	// Pos is where it is in the log.
	Pos   int64
	ID    event.CallID
	Name  string
	Agent string // the subagent that called; empty means the main agent
	Input json.RawMessage
	Began time.Time
	// Decisions are those about the call, in their order. The last one counts.
	Decisions []event.Decision
	// Result is nil for a call that has none.
	Result *event.ToolResult
}

// Status is how the call ended, or empty.
func (c Call) Status() event.ToolStatus {
	if c.Result == nil {
		return ""
	}
	return c.Result.Status
}

// Denied returns the decision that denied the call, or nil.
func (c Call) Denied() *event.Decision {
	if n := len(c.Decisions); n > 0 && c.Decisions[n-1].Verdict == event.Deny {
		return &c.Decisions[n-1]
	}
	return nil
}

// A ModelUse is what a run consumed of a model.
type ModelUse struct {
	Model string
	Calls int
	// Input is all that the model read, cached or not.
	Input, Output, CacheRead, CacheWrite int64
	CostUSD                              float64
	Unpriced                             bool // the cost of a call is not known
}

// Details reads the log. If that is damaged, they are of what is before the damage.
func (r *Run) Details() (*Details, error) {
	d, err := fold(r.Entries())
	d.Model = cmp.Or(d.Model, r.Model)
	d.Name = cmp.Or(d.Name, r.Prompt)
	if len(d.Models) == 0 && r.End != nil && r.End.Usage.Tokens != nil { // an agent that no gateway serves
		d.Models = usesOf(r.End.Usage)
	}
	return d, err
}

func fold(entries iter.Seq2[session.Entry, error]) (*Details, error) {
	f := folding{models: map[string]*ModelUse{}, last: map[event.CallID]int{}}
	for entry, err := range entries {
		if err != nil {
			f.end()
			return &f.Details, err
		}
		f.entry(entry)
	}
	f.end()
	return &f.Details, nil
}

type folding struct {
	Details
	models map[string]*ModelUse
	last   map[event.CallID]int // the last call of each id: an id may be used again
}

func (f *folding) entry(entry session.Entry) {
	e := entry.Event
	switch p := e.Payload.(type) {
	case event.Init:
		f.Model, f.SessionID, f.Tools = p.Model, e.SessionID, p.Tools
		for name, value := range p.Capabilities {
			if strings.HasSuffix(name, "Version") {
				_ = json.Unmarshal(value, &f.AgentVersion)
			}
		}
	case session.PromptRendered:
		if f.Prompt == "" {
			f.Prompt, f.Name = p.Text, p.Name
		}
	case event.Text:
		if e.AgentID == "" {
			f.Texts = append(f.Texts, p.Content)
		}
	case event.ToolCall:
		c := f.call(p.ID)
		if c == nil || c.Input != nil || c.Result != nil { // and not one of which only the decision is known
			c = f.add(Call{ID: p.ID})
		}
		c.Pos, c.Name, c.Agent, c.Input, c.Began = entry.Pos, p.Name, p.AgentID, p.Input, e.Time
	case event.Decision:
		f.decision(entry.Pos, e, p)
	case event.ToolResult:
		if c := f.call(p.ID); c != nil && c.Result == nil {
			c.Result = &p
			c.Name = cmp.Or(c.Name, p.Name)
		}
	case event.Error:
		f.Errors = append(f.Errors, p)
	case session.FileModified:
		if !slices.Contains(f.Files, p.Path) {
			f.Files = append(f.Files, p.Path)
		}
	case event.Extension:
		f.extension(p)
	}
}

// decision notes a decision about a call. It may come before the call is in the log.
func (f *folding) decision(pos int64, e event.Event, d event.Decision) {
	c := f.call(d.CallID)
	if c == nil || c.Result != nil {
		c = f.add(Call{Pos: pos, ID: d.CallID, Name: d.Tool, Began: e.Time})
	}
	c.Decisions = append(c.Decisions, d)
}

func (f *folding) add(c Call) *Call {
	f.last[c.ID] = len(f.Calls)
	f.Calls = append(f.Calls, c)
	return &f.Calls[len(f.Calls)-1]
}

// call is the last call of an id, or nil.
func (f *folding) call(id event.CallID) *Call {
	if i, ok := f.last[id]; ok {
		return &f.Calls[i]
	}
	return nil
}

func (f *folding) extension(x event.Extension) {
	switch x.Kind {
	case isolation.KindProtection:
		var p isolation.Protection
		if json.Unmarshal(x.Data, &p) == nil {
			f.Isolation, f.Missing = p.Level.String(), p.Missing
		}
	case gateway.KindModelCall:
		var c gateway.ModelCall
		if json.Unmarshal(x.Data, &c) != nil || c.Model == "" {
			return
		}
		use := f.models[c.Model]
		if use == nil {
			use = &ModelUse{Model: c.Model}
			f.models[c.Model] = use
		}
		use.Calls++
		use.Input += c.Tokens.AllInput()
		use.Output += c.Tokens.Output
		use.CacheRead += c.Tokens.CacheRead
		use.CacheWrite += c.Tokens.CacheWrite5m + c.Tokens.CacheWrite1h
		use.CostUSD += c.CostUSD
		use.Unpriced = use.Unpriced || c.Unpriced
	}
}

func (f *folding) end() {
	for _, use := range f.models {
		f.Models = append(f.Models, *use)
	}
	slices.SortFunc(f.Models, func(a, b ModelUse) int {
		return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), cmp.Compare(a.Model, b.Model))
	})
}

// usesOf is the consumption by model as the agent reports it.
func usesOf(u event.Usage) []ModelUse {
	var uses []ModelUse
	for _, t := range u.Tokens.Records {
		use := ModelUse{Model: t.Model, Unpriced: t.Cost == nil}
		use.Calls = int(t.Requests)
		use.Input, use.Output = t.Tokens.Input.Total, t.Tokens.Output.Total
		if n := t.Tokens.Input.CacheRead; n != nil {
			use.CacheRead = *n
		}
		if n := t.Tokens.Input.CacheWrite; n != nil {
			use.CacheWrite = *n
		}
		if t.Cost != nil {
			use.CostUSD = t.Cost.USD
		}
		uses = append(uses, use)
	}
	return uses
}
