// SPDX-License-Identifier: Apache-2.0

package drovertest_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/gatewaytest"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
	"github.com/drover-agents/drover/tool"
)

// An oracleAdapter drives the invented agent.
type oracleAdapter struct {
	program   string
	isolation isolation.Isolation

	mu            sync.Mutex
	conversations map[string]string // by token
}

func (a *oracleAdapter) Agent() string              { return "scripted" }
func (a *oracleAdapter) Catalogue() *tool.Catalogue { return agenttest.Tools() }

func (a *oracleAdapter) Ready(context.Context) agent.Readiness {
	if err := launch.CheckProgram(a.program); err != nil {
		return agent.Readiness{State: agent.StateMissing, Detail: err.Error(), Repair: "build the test program", Cause: err}
	}
	return agent.Readiness{State: agent.StateReady, Path: a.program}
}

// refuse refuses what the agent cannot honour.
func refuse(req agent.Request) error {
	for field, set := range map[string]bool{
		"Permissions without Host":     req.Permissions != nil && req.Host == nil,
		"Tools without Host":           req.Tools != nil && req.Host == nil,
		"DisallowedTools without Host": req.DisallowedTools != nil && req.Host == nil,
		"Servers":                      len(req.Servers) > 0,
		"Effort":                       req.Effort != "",
		"PartialText":                  req.PartialText,
		"Hooks.BatchEnded":             req.Hooks != nil && req.Hooks.BatchEnded != nil,
	} {
		if set {
			return fmt.Errorf("the invented agent cannot have %s", field)
		}
	}
	return nil
}

// workDir is the working directory of a request.
func workDir(req agent.Request) (string, error) {
	if req.Workspace == nil {
		return filepath.Abs(req.Dir)
	}
	dir := req.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(req.Workspace.Root(), dir)
	}
	if rel, err := filepath.Rel(req.Workspace.Root(), dir); err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s is not in the workspace", dir)
	}
	return dir, nil
}

func (a *oracleAdapter) Run(ctx context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		r := &oracleRun{adapter: a, ctx: ctx, req: req, more: make(chan struct{}, 1), began: time.Now()}
		if req.Hooks != nil {
			r.hooks = *req.Hooks
		}
		err := cmp.Or(a.Ready(ctx).Err(), refuse(req))
		if err == nil {
			err = r.start()
		}
		if err != nil {
			r.close()
			yield(event.Event{}, err)
			return
		}
		defer r.close()
		r.emit(event.Init{Model: cmp.Or(req.Model, "delphi-2"), Dir: r.dir})
		if r.stream(yield) {
			yield(event.New(r.done()), nil)
		}
	}
}

// An oracleRun is one process of the agent, in its cell.
type oracleRun struct {
	adapter *oracleAdapter
	ctx     context.Context
	req     agent.Request
	hooks   agent.Hooks
	dir     string
	began   time.Time
	cell    *isolation.Cell
	process launch.Process
	ended   chan error // how the agent ended
	failure error
	ledger  *agent.Ledger

	token, before string // of the conversation, and its text

	// Messages of the agent are answered one at a time, and none after the end.
	handling sync.Mutex
	over     bool
	refusals int
	result   string
	output   json.RawMessage
	whole    string // the conversation, when the agent has come to its end
	uses     int

	mu     sync.Mutex
	events []event.Payload
	more   chan struct{} // there are events
}

// start makes the cell and starts the agent in it.
func (r *oracleRun) start() (err error) {
	if err := context.Cause(r.ctx); err != nil {
		return err
	}
	if r.dir, err = workDir(r.req); err != nil {
		return err
	}
	if err := r.resume(); err != nil {
		return err
	}
	r.cell, err = r.adapter.isolation.Open(r.ctx, r.program(), isolation.OpenOptions{
		RunID: r.req.RunID, Trackers: r.req.Limits(), Judged: r.req.Host != nil, MaxTurns: r.req.MaxTurns, SideCallsPerTurn: r.req.SideCallsPerTurn, Emit: r.emit,
	})
	if err != nil {
		return err
	}
	r.ledger = cmp.Or(r.req.Ledger, agent.NewLedger(nil))
	r.ledger.Begin(agent.LedgerOptions{
		Host: r.req.Host, Dir: r.dir, Rewrite: r.hooks.Rewrite, Catalogue: r.adapter.Catalogue(),
		Workspace: r.req.Workspace, ReadOnly: r.readOnly, Within: r.ctx, Emit: r.emit,
	})
	at, err := r.cell.Serve(r)
	if err != nil {
		return err
	}
	in := r.cell.Inside()
	r.process, err = r.cell.Spawn(r.ctx, launch.Command{Path: r.adapter.program, Dir: in.Dir, Env: in.Environ()})
	if err != nil {
		return err
	}
	return r.begin(at)
}

// program describes the agent for its cell.
func (r *oracleRun) program() isolation.Program {
	p := isolation.Program{
		Path: r.adapter.program, Dir: r.dir, Wires: []*gateway.Wire{gatewaytest.Wire()},
		Variables: func(in isolation.Inside) map[string]string {
			return map[string]string{agentVariable: "1", "ORACLE_URL": in.GatewayURL, "ORACLE_TOKEN": in.Token}
		},
		Populate: func(in isolation.Inside) ([]string, error) { return nil, writeSkills(in.Home.Path(), r.req.Skills) },
	}
	if r.req.Workspace != nil && r.req.Workspace.Root() != r.dir {
		p.AddDirs = []string{r.req.Workspace.Root()}
	}
	return p
}

func writeSkills(home string, all []agent.Skill) error {
	at := filepath.Join(home, "skills")
	if err := os.Mkdir(at, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, s := range all {
		err = errors.Join(err, s.WriteIn(root))
	}
	return err
}

// resume finds the conversation that the run continues.
func (r *oracleRun) resume() error {
	r.adapter.mu.Lock()
	defer r.adapter.mu.Unlock()
	if r.token = r.req.Resume; r.token == "" {
		r.token = rand.Text()
		return nil
	}
	var known bool
	if r.before, known = r.adapter.conversations[r.token]; !known {
		return fmt.Errorf("there is no conversation %s", r.token)
	}
	if r.req.Fork {
		r.token = rand.Text()
	}
	return nil
}

// begin gives the agent its task.
func (r *oracleRun) begin(host string) error {
	text := r.before
	for _, part := range []string{r.req.SystemPrompt, r.req.AppendSystemPrompt, r.req.Prompt, r.submitted()} {
		if part != "" {
			text += part + "\n"
		}
	}
	r.transcribe(agent.TranscriptUserMessage, r.req.Prompt)
	r.ended = make(chan error, 2) // by a message, and by the end of the process
	stderr := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(r.process.Stderr())
		stderr <- string(text)
	}()
	go func() {
		_, _ = io.Copy(io.Discard, r.process.Stdout())
		status := r.process.Wait()
		if text := <-stderr; status.Code != 0 {
			r.ended <- fmt.Errorf("the agent ended with %s: %s", status, strings.TrimSpace(text))
			return
		}
		r.ended <- nil
	}()
	err := json.NewEncoder(r.process.Stdin()).Encode(task{Host: host, Model: r.req.Model, Text: text})
	return errors.Join(err, r.process.Stdin().Close())
}

func (r *oracleRun) submitted() string {
	if r.hooks.Submitted == nil {
		return ""
	}
	return r.answered(r.hooks.Submitted(r.ctx, agent.Submission{Prompt: r.req.Prompt, SessionID: r.token, Dir: r.dir}))
}

// answered is the answer of a hook, whose error ends nothing.
func (r *oracleRun) answered(text string, err error) string {
	if err != nil {
		r.emit(event.Error{Message: err.Error(), Recoverable: true, Cause: err})
	}
	return text
}

// emit adds to the events of the run.
func (r *oracleRun) emit(p event.Payload) {
	r.mu.Lock()
	r.events = append(r.events, p)
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// stream yields what happens until the agent has ended, and reports whether the reader is still there.
func (r *oracleRun) stream(yield func(event.Event, error) bool) bool {
	for over := false; ; {
		r.mu.Lock()
		events := r.events
		r.events = nil
		r.mu.Unlock()
		for _, p := range events {
			if !yield(event.New(p), nil) {
				return false
			}
		}
		if over {
			return true
		}
		select {
		case <-r.more:
			continue
		case r.failure = <-r.ended:
		case <-r.ctx.Done():
		}
		r.close() // so that nothing more happens
		over = true
	}
}

// close ends the agent, what it has started, and its calls.
func (r *oracleRun) close() {
	if r.cell == nil || r.over {
		return
	}
	if err := r.cell.Close(); err != nil {
		r.emit(event.Error{Message: err.Error(), Recoverable: true, Cause: err})
	}
	r.handling.Lock()
	defer r.handling.Unlock()
	r.over = true
	if r.ledger != nil {
		r.ledger.Close()
	}
}

// done is the end of the run.
func (r *oracleRun) done() event.Done {
	d := event.Done{Status: event.DoneSuccess, Result: r.result, Output: r.output, ResumeToken: r.token, Duration: time.Since(r.began), Usage: event.Usage{ToolUses: r.uses}}
	switch stopped := r.cell.Stopped(); {
	case errors.Is(stopped, guard.ErrBudgetExhausted):
		d.Status, d.Cause = event.DoneMaxBudget, stopped
	case errors.Is(stopped, gateway.ErrMaxTurns):
		d.Status, d.Cause = event.DoneMaxTurns, stopped
	case r.ctx.Err() != nil:
		d.Status, d.Cause = event.DoneInterrupted, context.Cause(r.ctx)
		d.Reason = d.Cause.Error()
	case stopped != nil || r.failure != nil || r.whole == "":
		d.Status, d.Cause = event.DoneError, cmp.Or(stopped, r.failure, errors.New("the agent sent nothing at its end"))
	}
	if d.Cause != nil {
		d.Result, d.Output = d.Cause.Error(), nil
		r.whole = r.before // a message without an answer is not part of the conversation
	}
	r.adapter.mu.Lock()
	defer r.adapter.mu.Unlock()
	r.adapter.conversations[r.token] = r.whole
	return d
}

// transcribe writes something down.
func (r *oracleRun) transcribe(kind agent.TranscriptType, what any) {
	if r.req.Transcript == nil {
		return
	}
	raw, _ := json.Marshal(what) // plain values
	r.req.Transcript(agent.TranscriptLine{
		Source: agent.MainSource, SessionID: r.token, Time: time.Now(), Raw: raw, Parts: []agent.TranscriptPart{{Type: kind, Detail: raw}},
	})
}

// ServeHTTP answers a message of the agent. A command that the agent runs can send one too, and has no more by that:
// tools of the host are run for calls that were decided here, once.
func (r *oracleRun) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var m message
	if err := json.NewDecoder(req.Body).Decode(&m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.handling.Lock()
	defer r.handling.Unlock()
	if r.over {
		http.Error(w, "the run is over", http.StatusGone)
		return
	}
	m.Call.Dir = r.dir
	_ = json.NewEncoder(w).Encode(r.answer(m)) // an agent that has gone needs no answer
}

func (r *oracleRun) answer(m message) (answer reply) {
	switch m.Kind {
	case sendText:
		r.result = m.Text
		r.emit(event.Text{Content: m.Text})
		r.transcribe(agent.TranscriptAssistantMessage, m.Text)
	case askCall:
		r.uses++
		r.emit(m.Call)
		r.transcribe(agent.TranscriptToolUse, m.Call)
		return r.ask(m.Call)
	case runTool:
		answer.Text = r.runTool(m.Call)
	case endCall:
		result := event.ToolResult{ID: m.Call.ID, Name: m.Call.Name, Status: event.ToolSuccess, Output: quoted(m.Text)}
		if m.Failed {
			result.Status, result.Failure = event.ToolError, &event.ToolFailure{Message: m.Text}
		}
		answer.Text = r.end(m.Call, result)
	case askStop:
		if r.hooks.Stopping == nil {
			break
		}
		why, err := r.hooks.Stopping(r.ctx, agent.Stop{SessionID: r.token, Text: m.Text, Again: r.refusals > 0})
		answer.Refused, answer.Text = r.refuses(why, err)
	case sendAll:
		if r.whole == "" {
			r.ended <- nil // its process may take a while to end: the race detector makes it wait for a second
		}
		r.whole = m.Text
	}
	return answer
}

func quoted(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a string
	return raw
}

// refuses counts a refusal of a hook, as often as it may refuse.
func (r *oracleRun) refuses(why string, err error) (bool, string) {
	if err != nil {
		why = r.answered(err.Error(), err)
	}
	if why == "" || r.refusals >= cmp.Or(r.req.MaxRefusals, 10) {
		return false, ""
	}
	r.refusals++
	return true, why
}

// ask has the ledger decide about a call. The result of one that is not permitted is reported at once.
func (r *oracleRun) ask(call event.ToolCall) reply {
	o, err := r.ledger.Ask(r.ctx, agent.Question{ToolCall: call, Waits: true, Decide: r.decide})
	switch {
	case r.ctx.Err() != nil:
		err = context.Cause(r.ctx)
	case err == nil && o.Verdict != event.Allow:
		err = errors.New(cmp.Or(o.Reason, call.Name+" is not permitted."))
	}
	if err == nil {
		return reply{Input: o.Input}
	}
	more := r.ledger.EndBatch(r.ctx, call)
	r.reportResult(event.ToolResult{
		ID: call.ID, Name: call.Name, Status: event.ToolDenied, Output: quoted(err.Error()), Failure: &event.ToolFailure{Message: err.Error()},
	})
	return reply{Refused: true, Text: err.Error() + "\n" + more}
}

// decide asks the host. The component that judges the call answers.
func (r *oracleRun) decide(ctx context.Context, call event.ToolCall) (_ agent.CallDecision, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the host failed: %v", p)
		}
	}()
	d := event.Decision{Verdict: event.Allow}
	if r.req.Host != nil {
		d = r.req.Host.Decide(gate.WithCallContext(ctx, gate.CallContext{Workspace: r.dir, Begins: true}), call)
	}
	if d.Verdict == event.Allow && call.Name == r.adapter.Catalogue().AnswerTool && r.hooks.Answering != nil {
		why, err := r.hooks.Answering(ctx, agent.Answer{Output: value(call.Input), CallID: call.ID, SessionID: r.token})
		if refused, why := r.refuses(why, err); refused {
			return agent.CallDecision{Verdict: event.Deny, Reason: why}, nil
		}
	}
	switch {
	case d.Verdict != event.Allow:
		return agent.CallDecision{Verdict: event.Deny, Reason: d.Reason}, nil
	case d.Input != nil && !json.Valid(d.Input):
		return agent.CallDecision{}, errors.New("the host has replaced the input by something that is no JSON")
	}
	return agent.CallDecision{Verdict: event.Allow, Input: d.Input}, nil
}

// value is the structured answer in the input of the tool for it.
func value(input json.RawMessage) json.RawMessage {
	var in struct{ Value json.RawMessage }
	_ = json.Unmarshal(input, &in) // the reader checks whether it is as it should be
	return in.Value
}

// lookup finds a tool of the host by the name that the model has for it.
func (r *oracleRun) lookup(name string) (*tool.Tool, bool) {
	bare, ours := strings.CutPrefix(name, tool.NewMCPName(cmp.Or(r.req.ToolServer, tool.DefaultServerName), "").String()+"__")
	if !ours || r.req.Registry == nil {
		return nil, false
	}
	return r.req.Registry.Lookup(bare)
}

func (r *oracleRun) readOnly(name string) bool {
	t, found := r.lookup(name)
	return found && t.Risks() == tool.ReadOnly
}

// runTool makes a call of a tool of the host, and returns what the model reads.
func (r *oracleRun) runTool(call event.ToolCall) string {
	result := event.ToolResult{ID: call.ID, Name: call.Name, Status: event.ToolError}
	var text string
	t, found := r.lookup(call.Name)
	made, err := call, error(nil)
	if !found {
		err = fmt.Errorf("there is no tool %s", call.Name)
	} else {
		made, err = r.ledger.Call(r.ctx, call)
	}
	if err != nil {
		text = err.Error()
		result.Failure = &event.ToolFailure{Message: text}
	} else {
		ran := r.req.Registry.Execute(r.ctx, tool.Call{ID: made.ID, Name: t.ID(), As: t.Name, Input: made.Input})
		text = ran.Render()
		reported := ran.Event()
		result.Status, result.Failure = reported.Status, reported.Failure
	}
	result.Output = quoted(text)
	return text + "\n" + r.end(call, result)
}

// end ends a call that was made, and returns what the model is to know beside the output.
func (r *oracleRun) end(call event.ToolCall, result event.ToolResult) (more string) {
	failed := result.Status != event.ToolSuccess
	more = r.ledger.End(r.ctx, event.ToolCall{ID: call.ID}, failed)
	if call.Name == r.adapter.Catalogue().AnswerTool {
		if !failed {
			r.output = value(call.Input)
		}
	} else if r.hooks.CallEnded != nil {
		end := agent.CallEnd{ToolCall: call, Status: result.Status, Output: result.Output}
		if result.Failure != nil {
			end.Error = result.Failure.Message
		}
		more += "\n" + r.answered(r.hooks.CallEnded(r.ctx, end))
	}
	r.reportResult(result)
	return more
}

func (r *oracleRun) reportResult(result event.ToolResult) {
	r.emit(result)
	r.transcribe(agent.TranscriptToolResult, result)
}
