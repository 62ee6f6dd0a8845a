// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// A host answers what the agent asks during an evaluation: the gate, the hooks, the tools of the prompt.
// Its methods are called by several goroutines, some of them between the turns. They change only the host's own
// state, which becomes the evaluation's when the turn is over.
type host struct {
	*evaluation
	workingDir *workingDir
	tracker    *guard.Tracker
	deadline   guard.Deadline
	registry   *tool.Registry
	engine     *gate.Engine
	feedback   *guard.Feedbacker
	// probe is counted by the component that counts for the tracker. If there is no such component, the host counts.
	probe  *guard.Tracker
	before guard.Usage // what the probe had when the turn began
	calls  *agent.Ledger

	lock   sync.Mutex
	named  guard.RunContext        // the run of the last turn
	stream func(event.Event)       // into the stream of the turn under way
	halt   context.CancelCauseFunc // ends it
	expand context.CancelCauseFunc // ends the attempt; the next one has more sections
	lost   error                   // why something could not be recorded
	stats  Stats
	models map[int]bool // the model calls of the turn, by number
	check  checkState
}

func (e *evaluation) newHost() (h *host, err error) {
	h = &host{evaluation: e, workingDir: e.workingDir, tracker: e.tracker, deadline: e.deadline, named: e.run, probe: new(guard.Tracker), calls: agent.NewLedger(nil)}
	h.registry, err = tool.NewRegistry(&tool.Options{
		Around: h.around(), Before: e.opts.Before, After: e.opts.After, Context: h.handlerContext,
		Timeout: e.opts.ToolTimeout, Emit: h.toolEvent, Logger: e.opts.Logger,
	})
	return h, err
}

// around wraps each call of our tools: a transaction of session and files together, which leaves one record.
func (h *host) around() tool.Around {
	inner := session.ToolTx(h.opts.Session, &session.ToolTxOptions{Adapter: h.adapter.Agent(), Prompt: h.prompt.Name(), Catalogue: h.adapter.Catalogue(), DispatchValues: true})
	return func(ctx context.Context, call *tool.Call, next func(context.Context) tool.Result) tool.Result {
		defer h.calls.Runs(call)()
		h.beat()
		if call.AgentID == "" { // only the agent's hook knows it
			call.AgentID = h.calls.State(call.ID).AgentID
		}
		begun := false
		run := func(ctx context.Context, call *tool.Call, next func(context.Context) tool.Result) tool.Result {
			begun = true
			h.count(Stats{ToolCalls: 1})
			return inner(ctx, call, next)
		}
		files := h.workingDir.workspace()
		if files == nil {
			return run(ctx, call, next)
		}
		result := workspace.ToolTx(files, run)(ctx, call, next)
		if !begun && !call.DryRun { // the files could not be kept, so that nothing was begun
			h.recordUnbegun(ctx, call, result)
		}
		return result
	}
}

// handlerContext has the prompt, the adapter, the limits and the run's name. Transactions add session and workspace.
func (h *host) handlerContext(ctx context.Context, _ tool.Call) context.Context {
	ctx = agent.WithAdapter(prompt.With(ctx, h.prompt, h.live.Rendered()), h.adapter)
	ctx = guard.WithTracker(guard.WithDeadline(ctx, h.deadline), h.tracker)
	return guard.WithRunContext(guard.WithHeartbeat(ctx, h.opts.Heartbeat), h.runContext())
}

// runContext names the run that is under way, or was last.
func (h *host) runContext() guard.RunContext {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.named
}

// toolEvent emits the events of handlers. The agent reports the calls themselves.
func (h *host) toolEvent(e event.Event) {
	switch e.Payload.(type) {
	case event.ToolLog, event.ToolProgress, event.ToolStep:
		h.emit(e)
	}
}

// opened makes the skills of opened sections available.
func (h *host) opened(ctx context.Context, o prompt.Opened) error {
	if len(o.Skills) == 0 {
		return nil
	}
	h.mu.Lock()
	learner, ok := h.conversation.(agent.Learner)
	h.mu.Unlock()
	if !ok {
		return advice.Wrap(fmt.Errorf("%s takes no skills while it works", h.adapter.Agent()), "set RestartToOpen")
	}
	skills := make([]agent.Skill, 0, len(o.Skills))
	for _, s := range o.Skills {
		skills = append(skills, s)
	}
	return learner.AddSkills(ctx, skills)
}

func (h *host) bind(r *agent.Request) (err error) {
	known := h.opts.KnownNames(h.adapter.Catalogue(), h.registry)
	known.Also = slices.Concat(known.Also, h.live.ToolNames())
	if err := h.opts.CheckNames(known); err != nil {
		return err
	}
	if h.engine, err = h.newEngine(known); err != nil {
		return err
	}
	h.registry.DecideBy(h.engine)
	h.feedback, err = guard.NewFeedback(h.opts.Session, &guard.FeedbackOptions{Files: h.files()}, h.opts.Feedback...)
	if err != nil {
		return err
	}
	r.Host = &gatekeeper{h.engine, h}
	r.Hooks, r.Ledger = h.hooks(), h.calls
	r.Tools, r.UnknownTools = h.listedTools(), known.Also
	if r.Trackers != nil {
		r.Trackers = append(r.Trackers, h.probe)
	}
	return nil
}

// begin begins a turn. Its context ends when something cannot be recorded: an agent does not work unrecorded.
func (h *host) begin(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, halt := context.WithCancelCause(ctx)
	h.lock.Lock()
	defer h.lock.Unlock()
	h.named, h.halt, h.models, h.before = h.run, halt, map[int]bool{}, h.probe.Consumed()
	h.check = checkState{rounds: h.summary.Rounds, last: h.summary.Completion}
	return ctx, func() { halt(nil) }
}

// settle ends a turn: each call has a record, the summary has the counts. The error is why something could not be recorded.
func (h *host) settle(ctx context.Context, t *turn) error {
	ctx = context.WithoutCancel(ctx)
	h.calls.AwaitOwn(settleTimeout)
	// A subagent may go on in the background as long as its agent lives.
	h.recordOpen(ctx, h.conversation == nil || t == nil || t.Status != event.DoneSuccess)
	h.lock.Lock()
	defer h.lock.Unlock()
	if t != nil && h.probe.Consumed() == h.before {
		h.tracker.Record(guard.UsageOf(t.Usage))
	}
	h.summary.Turns += len(h.models)
	h.models, h.stream, h.halt = nil, nil, nil
	h.reportLocked()
	lost := h.lost
	h.lost = nil // the next turn may find room again
	return lost
}

// reportLocked makes what was counted the evaluation's.
func (h *host) reportLocked() {
	h.summary.Stats.add(h.stats)
	h.summary.Rounds, h.summary.Completion = h.check.rounds, h.check.last
	h.stats = Stats{}
}

// settleTimeout is how long the end of a turn waits for calls of our own tools, which were cancelled.
const settleTimeout = 5 * time.Second

// lose notes that something could not be recorded, and ends the turn.
func (h *host) lose(err error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.lost == nil {
		h.lost = advice.Wrap(fmt.Errorf("what happens can no longer be recorded: %w", err),
			"make room for the session's store, or give it another one")
	}
	if h.halt != nil {
		h.halt(h.lost)
	}
}

func (h *host) count(more Stats) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.stats.add(more)
}

// emit puts an event of our own into the stream of the turn.
func (h *host) emit(e event.Event) {
	h.lock.Lock()
	stream := h.stream
	h.lock.Unlock()
	if stream != nil {
		stream(e)
	}
}

func (h *host) beat() {
	if h.opts.Heartbeat != nil {
		h.opts.Heartbeat.Beat()
	}
}

// A gatekeeper is the engine as the agent's host, which also emits its decisions.
type gatekeeper struct {
	*gate.Engine
	h *host
}

// EmitTo implements [agent.Emitter].
func (g *gatekeeper) EmitTo(stream func(event.Event)) {
	g.h.lock.Lock()
	defer g.h.lock.Unlock()
	g.h.stream = stream
}

// newEngine makes the engine that decides every call: the agent's hooks and our own registry ask it.
func (h *host) newEngine(known tool.KnownNames) (*gate.Engine, error) {
	g, err := gate.New(h.policies()...)
	if err != nil {
		return nil, err
	}
	if err := g.CheckNames(known); err != nil {
		return nil, err
	}
	return gate.NewEngine(g, &gate.EngineOptions{
		Facts: h.facts(), Approver: h.opts.Approver, Emit: h.decided, Logger: h.opts.Logger,
	}), nil
}

// policies are all that judge the calls of the evaluation. The gate orders them by stage: limits, lists, risk, capabilities,
// session, the others. A call that no policy decides is allowed, unless the agent has a permission mode.
func (h *host) policies() []gate.Policy {
	all := []gate.Policy{gate.Limits(gate.LimitOptions{}), gate.Blocked(), gate.Knows(h.opts.ToolServer, h.registry), gate.KnowsAgent(h.adapter.Catalogue())}
	if h.opts.Tools != nil {
		all = append(all, gate.AllowTools(h.allowedTools()...))
	}
	if len(h.opts.DisallowedTools) > 0 {
		all = append(all, gate.DenyTools(h.opts.DisallowedTools...))
	}
	if h.opts.Permissions != nil {
		all = append(all, gate.FromCapabilities(h.opts.Permissions), gate.Default(event.Allow))
	} else {
		all = append(all, gate.LeaveToAgent())
	}
	return slices.Concat(all, h.live.Policies(), h.opts.Policies)
}

// allowedTools is the list of the options and, unless it names some of them or is empty, the tools of the
// prompt, which its text mentions: also those of sections that are opened later. Skills need a tool too.
func (h *host) allowedTools() []string {
	list := slices.Clone(h.opts.Tools)
	ours := func(name string) bool {
		name, _, _ = strings.Cut(name, "(")
		_, found := h.registry.Lookup(name)
		_, served := h.opts.ownTool(ident.PresentTool(name))
		return found || served
	}
	if len(list) > 0 && !slices.ContainsFunc(list, ours) {
		list = append(list, tool.NewMCPName(h.opts.ToolServer, "").String())
	}
	if len(h.live.Rendered().Skills) > 0 {
		list = agent.WithSkillTool(list, h.adapter.Catalogue())
	}
	return list
}

// listedTools is the list as the agent gets it. Arguments are for the gate: no agent takes them for a boundary.
func (h *host) listedTools() []string {
	if h.opts.Tools == nil {
		return nil
	}
	names := []string{}
	for _, name := range h.allowedTools() {
		name, _, _ = strings.Cut(name, "(")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// facts is what is known about a call. Every call that the agent wants to make comes through here.
func (h *host) facts() func(context.Context, gate.Call) gate.Facts {
	known := guard.Facts(guard.FactsOptions{Session: h.opts.Session, Tracker: h.tracker, Deadline: h.deadline})
	return func(ctx context.Context, c gate.Call) gate.Facts {
		if _, inRegistry := tool.Candidate(ctx); !inRegistry {
			h.calls.Note(c.ToolCall)
		}
		return known(ctx, c)
	}
}

// decided records a decision or a question before it takes effect, and emits it. If it cannot, the engine denies the call.
func (h *host) decided(e event.Event) error {
	h.beat()
	e.Agent, e.RunID = h.adapter.Agent(), h.runContext().RunID
	if d, ok := e.Payload.(event.Decision); ok {
		h.calls.Decided(d)
	}
	entry, err := h.opts.Session.Dispatch(context.Background(), e)
	if err != nil {
		h.lose(err)
		return err
	}
	e.Position.Entry = entry
	h.emit(e)
	return nil
}

func (h *host) hooks() *agent.Hooks {
	hooks := &agent.Hooks{
		Rewrite:   safely(h, "Rewrite", h.rewrite),
		Submitted: safely(h, "Submitted", h.submitted),
		CallEnded: safely(h, "CallEnded", h.callEnded),
		SubagentStarted: func(ctx context.Context, a agent.Subagent) {
			h.count(Stats{Subagents: 1})
			h.happened(ctx, a.ID, SubagentStarted{ID: a.ID, Type: a.Type})
		},
		SubagentStopped: func(ctx context.Context, a agent.Subagent) {
			h.happened(ctx, a.ID, SubagentStopped{ID: a.ID, Type: a.Type, Text: a.Text})
		},
		Compacting: func(ctx context.Context, c agent.Compaction) {
			h.count(Stats{Compactions: 1})
			h.happened(ctx, "", Compacting{Trigger: c.Trigger, Instructions: c.Instructions})
		},
	}
	if h.opts.RestartToOpen {
		hooks.BatchEnded = h.restart
	}
	if h.opts.Completion != nil {
		hooks.Answering = safely(h, "Answering", h.answering)
		hooks.Stopping = safely(h, "Stopping", h.stopping)
	}
	return hooks
}

// safely is a hook that neither panics nor fails unnoticed. None of them ends the run.
func safely[In, Out any](h *host, name string, hook func(context.Context, In) (Out, error)) func(context.Context, In) (Out, error) {
	return func(ctx context.Context, in In) (out Out, err error) {
		h.beat()
		log := h.opts.Logger
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("drover: the hook %s panicked: %v", name, p)
				log = log.With("stack", string(debug.Stack()))
			}
			if err != nil {
				h.count(Stats{HookErrors: 1})
				log.ErrorContext(ctx, "Hook error", "hook", name, "error", err)
			}
		}()
		return hook(ctx, in)
	}
}

// happened records an event that only a hook reports, and emits it.
func (h *host) happened(ctx context.Context, agentID string, what event.Payload) {
	h.beat()
	e := event.New(what)
	e.Agent, e.RunID, e.AgentID = h.adapter.Agent(), h.runContext().RunID, agentID
	e.Position = h.dispatch(ctx, e)
	h.emit(e)
}

// opening is the first message of the user: what the session knows of the task, and then the prompt.
func (h *host) opening(text string) string {
	lines := session.ContextLines(h.opts.Session)
	if len(lines) == 0 {
		return text
	}
	return strings.Join(lines, "\n") + "\n\n" + text
}

// submitted returns the context lines of the session, unless the message begins with them.
func (h *host) submitted(_ context.Context, s agent.Submission) (string, error) {
	h.count(Stats{Prompts: 1})
	known := strings.Join(session.ContextLines(h.opts.Session), "\n")
	if strings.HasPrefix(s.Prompt, known) {
		return "", nil
	}
	return known, nil
}

// callEnded records a call of the agent's own tools at once, and answers with feedback.
func (h *host) callEnded(ctx context.Context, end agent.CallEnd) (string, error) {
	if c, record := h.calls.TakeEnd(end.ToolCall); record {
		invoked := h.invoked(c)
		invoked.Status, invoked.Value, invoked.Error = end.Status, end.Output, end.Error
		invoked.Duration = cmp.Or(end.Duration, invoked.Duration)
		invoked.Output = shown(end.Output)
		if len(end.Output) == 0 {
			invoked.Output = shown(asText(end.Error))
		}
		h.recordCall(context.WithoutCancel(ctx), invoked, true)
	}
	return h.feedback.AfterCall(ctx, end.ID)
}

// expandable is the context of a run that ends when the model asks for hidden sections.
func (h *host) expandable(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := h.adapter.(agent.Batcher); !ok || !h.opts.RestartToOpen {
		return h.live.Context(ctx)
	}
	ctx, end := context.WithCancelCause(ctx)
	h.lock.Lock()
	defer h.lock.Unlock()
	h.expand = end
	return ctx, func() { end(nil) }
}

// restart ends the run of a model that has asked for hidden sections, when its whole message was carried out: it
// may ask several times in one. The hook waits for the end, so that the model is not asked again.
func (h *host) restart(ctx context.Context) {
	wanted := h.live.Expansion()
	h.lock.Lock()
	end := h.expand
	h.lock.Unlock()
	if wanted == nil || end == nil {
		return
	}
	end(wanted)
	pause(ctx, settleTimeout)
}

func asText(text string) json.RawMessage {
	raw, _ := json.Marshal(text) // a string
	return raw
}

// A checkState is what is known about whether the task is done.
type checkState struct {
	rounds int              // how often the agent was sent back
	last   guard.Completion // what was found last
	fresh  bool             // it was found about what the agent wants to stop with
}

// Why an agent wants to stop.
const (
	stopAnswer = "structured_output"
	stopEnd    = "end_turn"
)

// answering sends the agent back that wants to answer and is not done.
func (h *host) answering(ctx context.Context, a agent.Answer) (string, error) {
	return h.unfinished(ctx, a.Output, stopAnswer, h.reportCheck(ctx))
}

// stopping does the same where it wants to stop without an answer. Once an answer was accepted that has been asked.
func (h *host) stopping(ctx context.Context, s agent.Stop) (string, error) {
	if s.Answered {
		return "", nil
	}
	return h.unfinished(ctx, nil, stopEnd, h.reportCheck(ctx))
}

// reportCheck reports failed checks while the agent works.
func (h *host) reportCheck(ctx context.Context) func(CompletionFailed) {
	return func(f CompletionFailed) { h.happened(ctx, "", f) }
}

// unfinished is the feedback to the agent if the task is not done and it may still be sent back, or "".
// After a checker that fails, the task counts as not done. A check that has failed is given to report.
func (h *host) unfinished(ctx context.Context, output json.RawMessage, reason string, report func(CompletionFailed)) (string, error) {
	found, err := guard.CheckCompletion(ctx, h.opts.Completion, guard.Attempt{
		Session: h.opts.Session, Output: h.unwrapped(output), StopReason: reason, Files: h.files(), Exec: h.exec(),
	}, h.deadline, h.tracker)
	if err != nil {
		found = guard.Incomplete(cmp.Or(found.Feedback, checkFailed))
		h.count(Stats{HookErrors: 1})
		h.opts.Logger.WarnContext(ctx, "the completion check failed; the task counts as not done", "error", err)
	}
	round, sentBack := h.checked(found)
	if found.Done {
		return "", nil
	}
	report(CompletionFailed{Round: round, SentBack: sentBack, Feedback: found.Feedback})
	if !sentBack {
		return "", nil
	}
	return found.Feedback, nil
}

// checked notes the result of a check. It returns the number of the round, and whether the agent is sent back.
func (h *host) checked(found guard.Completion) (round int, sentBack bool) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.check.last = found
	round, sentBack = h.check.rounds+1, !found.Done && h.check.rounds < h.opts.MaxRounds
	if sentBack {
		h.check.rounds++
	}
	h.check.fresh = !sentBack // what it does next is not known yet
	return round, sentBack
}

// verify asks about an agent that has stopped without being asked, or although it was sent back: agents
// bound how often they can be. It returns the next message to the agent, or "".
func (h *host) verify(ctx context.Context, t *turn, report func(CompletionFailed)) string {
	h.lock.Lock()
	known := h.check.fresh
	h.lock.Unlock()
	if h.opts.Completion == nil || known {
		return ""
	}
	reason := stopEnd
	if t.Output != nil {
		reason = stopAnswer
	}
	next, _ := h.unfinished(ctx, t.Output, reason, report) // which never fails
	h.lock.Lock()
	defer h.lock.Unlock()
	h.reportLocked()
	return next
}

func (h *host) files() guard.Files {
	if w := h.workingDir.workspace(); w != nil {
		return guard.Dir(w.Root())
	}
	if h.opts.Dir != "" {
		return guard.Dir(h.opts.Dir)
	}
	if a, ok := h.adapter.(dirAdapter); ok && a.Dir() != "" {
		return guard.Dir(a.Dir())
	}
	return nil
}

// rewrite maps the paths of file tools into the workspace of the session. It decides nothing: the gate judges the new input.
func (h *host) rewrite(_ context.Context, call event.ToolCall) (json.RawMessage, error) {
	native, known := h.adapter.Catalogue().Native(call.Name)
	dir, set := session.Query[session.Workspace](h.opts.Session).Latest()
	if w := h.workingDir.workspace(); w != nil { // whatever was opened with the session since
		dir.Root, set = w.Root(), true
	}
	if !known || native.Files != tool.ReadsFile && native.Files != tool.WritesFile || !set || !filepath.IsAbs(dir.Root) {
		return nil, nil
	}
	var input map[string]json.RawMessage
	if json.Unmarshal(call.Input, &input) != nil {
		return nil, nil // the agent itself reports the fault
	}
	changed := false
	for _, field := range native.Paths {
		var path string
		if json.Unmarshal(input[field], &path) != nil || path == "" {
			continue
		}
		if led := ledInto(dir.Root, call.Dir, path); led != path {
			input[field], changed = asText(led), true
		}
	}
	if !changed {
		return nil, nil
	}
	return plain(input)
}

// ledInto is a path of a tool's input as one of the workspace.
//
// Agents resolve relative paths against the folder that their shell is in before they ask, so the original form of a path is
// unknown. If the shell is in the workspace, a path is unchanged: gate and cell refuse a path that leads elsewhere. If the
// shell is elsewhere, a path below it counts as relative, and belongs to the workspace.
func ledInto(root, dir, path string) string {
	if !filepath.IsAbs(path) {
		if _, inside := within(root, dir); !inside {
			dir = root
		}
		path = filepath.Join(dir, path)
		return path
	}
	if _, inside := within(root, path); inside {
		return path
	}
	if _, inside := within(root, dir); inside || !filepath.IsAbs(dir) {
		return path
	}
	if rel, below := within(dir, path); below {
		return filepath.Join(root, rel)
	}
	return path
}

// within returns a path relative to a folder, and whether it is below it.
func within(folder, path string) (rel string, below bool) {
	if !filepath.IsAbs(path) {
		return "", false
	}
	rel, err := filepath.Rel(folder, path)
	return rel, err == nil && filepath.IsLocal(rel)
}

// plain is JSON without the escapes that are for HTML.
func plain(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// saw takes note of an event of the agent, before it is recorded.
func (h *host) saw(ctx context.Context, ev event.Event) {
	h.beat()
	h.countTurn(ev)
	switch what := ev.Payload.(type) {
	case event.ToolCall:
		what.AgentID = cmp.Or(what.AgentID, ev.AgentID)
		h.calls.MarkRead(what)
		h.past.open = append(h.past.open, openCall{what.ID, h.readOnly(what)})
	case event.ToolResult:
		h.past.ended(what)
		h.recordResult(context.WithoutCancel(ctx), ev.AgentID, what)
	case gateway.ModelCall:
		h.past.retryAfter = time.Duration(what.RetryAfterMS * float64(time.Millisecond))
	}
}

// kindTurnEnd is the kind of the log's entry for the done of a turn. A run may have several turns; it has one done.
const kindTurnEnd event.Kind = "turn:done"

func (h *host) recordTurn(ctx context.Context, ev event.Event) {
	var done struct{ Payload json.RawMessage }
	line, err := ev.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(line, &done)
	}
	if err != nil {
		h.lose(err)
		return
	}
	ev.Seq, ev.Payload = 0, event.Extension{Kind: kindTurnEnd, Data: done.Payload}
	h.dispatch(ctx, ev)
}

// dispatch puts something into the session's log and returns its position. A log that takes nothing more ends the turn.
func (h *host) dispatch(ctx context.Context, what any) event.Position {
	entry, err := h.opts.Session.Dispatch(context.WithoutCancel(ctx), what)
	if err != nil {
		h.lose(err)
	}
	return event.Position{Entry: entry}
}

// countTurn counts the model calls of the main agent.
func (h *host) countTurn(ev event.Event) {
	if ev.Turn == 0 || ev.AgentID != "" || ev.ParentToolUseID != "" {
		return
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	if h.models != nil {
		h.models[ev.Turn] = true
	}
}

// recordResult records a call that no hook reports: it was denied, or the agent itself refused it, or could not
// make it. The registry records its own calls.
func (h *host) recordResult(ctx context.Context, agentID string, r event.ToolResult) {
	c, record, known := h.calls.TakeResult(r.ID)
	if !record {
		return
	}
	c.Name = cmp.Or(c.Name, r.Name)
	c.AgentID = cmp.Or(c.AgentID, agentID)
	invoked := h.invoked(c)
	invoked.Status, invoked.Value = r.Status, r.Output
	if c.Began.IsZero() {
		invoked.Duration = r.Duration
	}
	invoked.Output = shown(r.Output)
	if r.Failure != nil {
		invoked.Error = r.Failure.Message
	}
	h.recordCall(ctx, invoked, known)
}

// recordUnbegun records a call of ours that could not be made.
func (h *host) recordUnbegun(ctx context.Context, call *tool.Call, result tool.Result) {
	t := h.invoked(agent.CallState{ToolCall: call.Event()})
	t.Source, t.Status, t.Error, t.Output = session.BridgedTool, tool.Failed, result.Render(), result.Render()
	h.recordCall(ctx, t, true)
}

// recordOpen records the calls that never came to an end. Those of subagents only if all is over.
func (h *host) recordOpen(ctx context.Context, all bool) {
	for _, c := range h.calls.TakeOpen(all) {
		invoked := h.invoked(c)
		invoked.Status, invoked.Error = event.ToolCancelled, "The turn ended before the call did."
		if d := c.Decision; d != nil && d.Verdict != event.Allow {
			invoked.Status, invoked.Error = event.ToolDenied, d.Reason
		}
		h.recordCall(ctx, invoked, true)
	}
}

// invoked is the record of a call, but for its end.
func (h *host) invoked(c agent.CallState) session.ToolInvoked {
	name, source := h.toolOf(c.Name)
	t := session.ToolInvoked{
		CallID: c.ID, Name: name, Source: source, Adapter: h.adapter.Agent(), Prompt: h.prompt.Name(),
		AgentID: c.AgentID, Params: c.Input, Dir: c.Dir,
	}
	if !c.Began.IsZero() {
		t.Duration = time.Since(c.Began)
	}
	return t
}

// recordCall records a call, once. One of this run that has the id of another is recorded under an id of its own; one
// of an earlier run has its record.
func (h *host) recordCall(ctx context.Context, t session.ToolInvoked, ofThisRun bool) {
	recorded, err := h.opts.Session.RecordTool(ctx, t, h.adapter.Catalogue())
	if ofThisRun && !recorded && err == nil {
		t.CallID = event.CallID(h.opts.Session.NewID())
		recorded, err = h.opts.Session.RecordTool(ctx, t, h.adapter.Catalogue())
	}
	if err != nil {
		h.lose(err)
	}
	if recorded {
		h.count(Stats{ToolCalls: 1})
	}
}

// toolOf is the name of a tool without that of our server, and who runs it.
func (h *host) toolOf(name string) (string, session.ToolSource) {
	if bare, ours := h.opts.ownTool(name); ours {
		return bare, session.BridgedTool
	}
	if _, isMCP := tool.ParseMCPName(name); isMCP {
		return name, session.BridgedTool
	}
	return name, session.NativeTool
}

// ownTool is the name of a tool of the prompt, without that of the server, if a name is of one.
func (o *Options) ownTool(name string) (string, bool) {
	n, isMCP := tool.ParseMCPName(name, o.ToolServer)
	return n.Tool, isMCP && n.Server == tool.NewMCPName(o.ToolServer, "").Server
}

// maxShown is how much of a result is kept as text; the value has all of it.
const maxShown = 1000

// shown is the text of a result, as far as it is known.
func shown(output json.RawMessage) string {
	var text string
	var ran struct{ Stdout, Stderr string }
	switch {
	case json.Unmarshal(output, &text) == nil:
	case json.Unmarshal(output, &ran) == nil && ran.Stdout+ran.Stderr != "":
		text = strings.TrimSuffix(ran.Stdout+"\n"+ran.Stderr, "\n")
	default:
		text = string(output)
	}
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "")
	}
	return text
}

// exec runs the commands of completion checks: the function of the options, or else the adapter, in a second cell
// over the same files. If both are missing it is nil, and no command runs.
//
// Files that such a command writes stay, also in a workspace with checkpoints: it is not a tool call.
func (h *host) exec() guard.Exec {
	if h.opts.Exec != nil {
		return h.opts.Exec
	}
	adapter, ok := h.adapter.(agent.Executor)
	if !ok {
		return nil
	}
	where := agent.Request{Settings: agent.Settings{Dir: h.opts.Dir, Workspace: h.workingDir.workspace()}}
	return func(ctx context.Context, argv []string) (guard.Executed, error) {
		return adapter.Exec(ctx, where, argv)
	}
}
