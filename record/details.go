// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/internal/plainjson"
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
	// Files are those that tools have written, and Writes how often each.
	Files  []string
	Writes map[string]int
	// Turns is how many model calls of the main agent the log has.
	Turns int
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
	// Began and Ended are zero where they are not known.
	Began, Ended time.Time
	// Decisions are those about the call, in their order. The last one counts.
	Decisions []event.Decision
	// Result is nil for a call that has none.
	Result *event.ToolResult

	reported bool // by the session alone, after the call: what the agent reports replaces it
	invoked  bool // the session has reported it
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
	c := r.Collector()
	for entry, err := range r.Entries() {
		if err != nil {
			return c.Details(), err
		}
		c.Add(entry)
	}
	return c.Details(), nil
}

// A Collector makes the Details of a run of the entries of its log, for a reader that has another use for them too.
type Collector struct {
	run    *Run
	d      Details
	models map[string]*ModelUse
	last   map[event.CallID]int // the last call of each id: an id may be used again
	// Calls that the session may report under another id, by what they ask for.
	unreported map[callKey][]int
}

type callKey struct {
	name  string
	input uint64 // its hash
}

var inputSeed = maphash.MakeSeed()

func keyOf(name string, input json.RawMessage) callKey {
	return callKey{name, maphash.Bytes(inputSeed, input)}
}

// Collector returns a collector without entries.
func (r *Run) Collector() *Collector {
	return &Collector{
		run: r, d: Details{Writes: map[string]int{}}, models: map[string]*ModelUse{}, last: map[event.CallID]int{}, unreported: map[callKey][]int{},
	}
}

// Add adds the next entry.
func (c *Collector) Add(entry session.Entry) {
	e := entry.Event
	c.d.Turns = max(c.d.Turns, e.Turn)
	switch p := e.Payload.(type) {
	case event.Init:
		c.d.Model, c.d.SessionID, c.d.Tools = p.Model, e.SessionID, p.Tools
		c.d.AgentVersion = cmp.Or(versionIn(p.Capabilities), c.d.AgentVersion)
	case session.PromptRendered:
		if c.d.Prompt == "" {
			c.d.Prompt, c.d.Name = p.Text, p.Name
		}
	case event.Text:
		if e.AgentID == "" {
			c.d.Texts = append(c.d.Texts, p.Content)
		}
	case event.ToolCall:
		call := c.call(p.ID)
		if !call.reported && (call.Input != nil || call.Result != nil) { // and not one of which only the decision is known
			call = c.add(p.ID)
		}
		call.Pos, call.Name, call.Agent, call.Input, call.Began = entry.Pos, p.Name, p.AgentID, p.Input, e.Time
		key := keyOf(p.Name, p.Input)
		c.unreported[key] = append(c.unreported[key], c.last[p.ID])
	case event.Decision:
		c.decision(entry.Pos, e.Time, p)
	case event.ToolResult:
		if call := c.call(p.ID); call.Result == nil || call.reported {
			p.Duration = cmp.Or(p.Duration, call.duration())
			call.Result, call.Ended, call.Name, call.reported = &p, e.Time, cmp.Or(call.Name, p.Name), false
		}
	case session.ToolInvoked:
		if p.CallID != "" {
			c.invoked(entry.Pos, e.Time, p)
		}
	case event.Error:
		c.d.Errors = append(c.d.Errors, p)
	case session.FileModified:
		if p.Path != "" {
			if c.d.Writes[p.Path]++; c.d.Writes[p.Path] == 1 {
				c.d.Files = append(c.d.Files, p.Path)
			}
		}
	case event.Extension:
		c.extension(p)
	}
}

// Details are those of the entries so far.
func (c *Collector) Details() *Details {
	d := c.d
	d.Model, d.Name = cmp.Or(d.Model, c.run.Model), cmp.Or(d.Name, c.run.Prompt)
	if len(c.models) == 0 && c.run.End != nil { // an agent that no gateway serves
		c.reported(c.run.End.Usage, d.Model)
	}
	for _, use := range c.models {
		d.Models = append(d.Models, *use)
	}
	slices.SortFunc(d.Models, func(a, b ModelUse) int {
		return cmp.Or(cmp.Compare(b.CostUSD, a.CostUSD), cmp.Compare(a.Model, b.Model))
	})
	return &d
}

// decision notes a decision about a call. It may come before the call is in the log.
func (c *Collector) decision(pos int64, at time.Time, d event.Decision) {
	if d.CallID == "" {
		return
	}
	call := c.call(d.CallID)
	if call.Result != nil && !call.reported {
		call = c.add(d.CallID)
	}
	if call.Pos == 0 {
		call.Pos, call.Name, call.Began = pos, d.Tool, at
	}
	call.Decisions = append(call.Decisions, d)
}

// invoked notes the session's report of a call that has ended. What the agent has reported stays.
func (c *Collector) invoked(pos int64, at time.Time, t session.ToolInvoked) {
	if _, known := c.last[t.CallID]; !known { // the session has another id for a call whose id was used before
		key := keyOf(t.Name, t.Params)
		for len(c.unreported[key]) > 0 {
			i := c.unreported[key][0]
			c.unreported[key] = c.unreported[key][1:]
			if call := &c.d.Calls[i]; !call.invoked && call.Name == t.Name && bytes.Equal(call.Input, t.Params) {
				call.ID, c.last[t.CallID] = t.CallID, i
				break
			}
		}
	}
	call := c.call(t.CallID)
	call.invoked = true
	if call.Input == nil {
		call.Pos, call.Name, call.Agent, call.Input, call.Began = pos, cmp.Or(call.Name, t.Name), t.AgentID, t.Params, at.Add(-t.Duration)
		call.reported = true
	}
	if call.Result == nil {
		result := event.ToolResult{ID: t.CallID, Name: t.Name, Status: t.Status}
		result.Output, _ = plainjson.Marshal(cmp.Or(t.Output, t.Error)) // a text can always be written
		if t.Status != event.ToolSuccess {
			result.Failure = &event.ToolFailure{Message: t.Error}
		}
		call.Result, call.Ended, call.reported = &result, at, true
	}
	call.Result.Duration = cmp.Or(call.Result.Duration, t.Duration)
}

func (c Call) duration() time.Duration {
	if c.Result == nil {
		return 0
	}
	return c.Result.Duration
}

func (c *Collector) add(id event.CallID) *Call {
	c.last[id] = len(c.d.Calls)
	c.d.Calls = append(c.d.Calls, Call{ID: id})
	return &c.d.Calls[len(c.d.Calls)-1]
}

// call is the last call of an id. It adds one for an id that it does not know.
func (c *Collector) call(id event.CallID) *Call {
	if i, ok := c.last[id]; ok {
		return &c.d.Calls[i]
	}
	return c.add(id)
}

func (c *Collector) extension(x event.Extension) {
	switch x.Kind {
	case isolation.KindProtection:
		var p isolation.Protection
		if json.Unmarshal(x.Data, &p) == nil {
			c.d.Isolation, c.d.Missing = p.Level.String(), p.Missing
		}
	case gateway.KindModelCall:
		var call gateway.ModelCall
		if json.Unmarshal(x.Data, &call) != nil || call.Model == "" || call.Operation == "count_tokens" || call.Operation == "inference_profiles" {
			return // those ask for no answer, and cost nothing
		}
		use := c.use(call.Model)
		use.Calls++
		use.Input += call.Tokens.AllInput()
		use.Output += call.Tokens.Output
		use.CacheRead += call.Tokens.CacheRead
		use.CacheWrite += call.Tokens.CacheWrite5m + call.Tokens.CacheWrite1h
		use.CostUSD += call.CostUSD
		use.Unpriced = use.Unpriced || call.Unpriced
	}
}

func (c *Collector) use(model string) *ModelUse {
	if c.models[model] == nil {
		c.models[model] = &ModelUse{Model: model}
	}
	return c.models[model]
}

// reported adds what the agent reports at the end, of model where that names none.
func (c *Collector) reported(u event.Usage, model string) {
	if u.Tokens == nil && u.Cost == nil {
		return
	}
	records := []event.TokenRecord{{Cost: u.Cost}}
	switch {
	case u.Tokens == nil:
	case len(u.Tokens.Records) == 0:
		records[0].Tokens = u.Tokens.Totals
	default:
		records = slices.Clone(u.Tokens.Records)
		if len(records) == 1 {
			records[0].Cost = cmp.Or(records[0].Cost, u.Cost)
		}
	}
	for _, r := range records {
		use := c.use(cmp.Or(r.Model, model))
		use.Calls += int(r.Requests)
		use.Input += r.Tokens.Input.Total
		use.Output += r.Tokens.Output.Total
		if n := r.Tokens.Input.CacheRead; n != nil {
			use.CacheRead += *n
		}
		if n := r.Tokens.Input.CacheWrite; n != nil {
			use.CacheWrite += *n
		}
		if r.Cost != nil {
			use.CostUSD += r.Cost.USD
		}
		use.Unpriced = use.Unpriced || r.Cost == nil
	}
}

// versionIn is the version among what an agent reports about itself, such as claudeCodeVersion.
func versionIn(capabilities map[string]json.RawMessage) string {
	for _, name := range slices.Sorted(maps.Keys(capabilities)) {
		var version string
		if (name == "version" || strings.HasSuffix(name, "Version")) && json.Unmarshal(capabilities[name], &version) == nil {
			return version
		}
	}
	return ""
}
