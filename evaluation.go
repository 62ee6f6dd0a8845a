// SPDX-License-Identifier: Apache-2.0

// Package drover has coding agents answer typed prompts.
//
// [Ask] answers a question about a folder. [Evaluate] takes a prompt and returns a typed answer. It renders the prompt and starts an agent
// in a working directory of its own, with the tools and skills of the prompt. Every tool call is decided,
// made as a transaction and recorded in a session. The answer is checked against the type of the prompt.
// [Stream] also yields the events of the run, and a [Conversation] continues after the first answer.
//
// An adapter connects to one agent; package claudecode has that of Claude Code. A prompt is made with package prompt:
//
//	p, err := prompt.NewPrompt[Review]("docs", "review", prompt.Markdown("task", "Task", "Review it."))
//	...
//	adapter := claudecode.New(nil)
//	defer adapter.Close()
//	resp, err := drover.Evaluate(ctx, adapter, p, &drover.Options{
//		Settings: agent.Settings{Budget: &guard.Budget{MaxTotalTokens: 50_000}},
//		Deadline: guard.FromNow(5 * time.Minute),
//	})
//	...
//	fmt.Println(resp.Output, resp.CostUSD())
//
// Every failure is an [*EvaluationError], with the next step and whether to retry.
package drover

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/telemetry"
	"github.com/drover-agents/drover/workspace"
)

// A Stage is how far an evaluation has come.
type Stage string

// The stages, in their order. An evaluation that is sent back or restarted passes some of them again.
const (
	StagePrepare  Stage = "prepare"  // limits, session, workspace
	StageRender   Stage = "render"   // the prompt becomes text, tools and skills
	StageBind     Stage = "bind"     // gate, hooks and tools are wired
	StageRun      Stage = "run"      // the agent works
	StageParse    Stage = "parse"    // the answer is read
	StageComplete Stage = "complete" // whether the task is done
)

// An evaluation is a prompt on its way to an answer, and the conversation that follows. It is the part that
// does not depend on the type of the answer.
type evaluation struct {
	adapter agent.Adapter
	prompt  prompt.Bound
	parse   func(json.RawMessage) (any, error)
	opts    Options
	turns   chan struct{} // full while something is under way
	// deliveries counts up when a reader is given an event, and again when it comes for the next: it is odd in the body
	// of the reader's loop.
	deliveries atomic.Int64

	mu        sync.Mutex
	interrupt context.CancelCauseFunc // of what is under way
	ended     bool
	token     string // what continues the conversation

	stage      Stage
	run        guard.RunContext
	tracker    *guard.Tracker
	deadline   guard.Deadline
	workingDir *workingDir

	live         *prompt.Live
	host         *host
	runner       *agent.Runner
	asked        agent.Request
	conversation agent.Conversation // nil if the adapter cannot keep one
	before       string             // the conversation as it was before the turn under way
	forks        bool               // the conversation that is resumed stays as it is
	record       *Transcript
	recorded     RunRecord // of the run under way, nil without a recorder
	after        int64     // the session's position before the run
	seq          int64     // of the last event
	began        time.Time
	past         pastCalls
	resumeText   string // sent first instead of the prompt
	summary      Summary
	trace        *telemetry.Run // nil without telemetry
	// traceState goes with the trace context; logged is true once the begin was logged.
	traceState string
	logged     bool
}

// An outcome is an answer, and what became of it.
type outcome struct {
	Summary
	value any
}

func newEvaluation(a agent.Adapter, p prompt.Bound, parse func(json.RawMessage) (any, error), opts *Options) *evaluation {
	return &evaluation{adapter: a, prompt: p, parse: parse, opts: opts.filled(), turns: make(chan struct{}, 1)}
}

// reserve begins something that excludes all else, if nothing is under way. Free ends it.
func (e *evaluation) reserve() bool {
	select {
	case e.turns <- struct{}{}:
		return true
	default:
		return false
	}
}

func (e *evaluation) free() { <-e.turns }

func (e *evaluation) evaluate(ctx context.Context, emit emitFunc) (*outcome, error) {
	return e.exclusively(ctx, emit, func(ctx context.Context, emit emitFunc) (*outcome, error) {
		return e.attempts(ctx, e.first, emit)
	})
}

func (e *evaluation) proceed(ctx context.Context, text string, emit emitFunc) (*outcome, error) {
	return e.exclusively(ctx, emit, func(ctx context.Context, emit emitFunc) (*outcome, error) {
		return e.attempts(ctx, func() string { return e.more(text) }, emit)
	})
}

func (e *evaluation) warm(ctx context.Context) error {
	if !e.reserve() {
		return e.refused(agent.ErrBusy)
	}
	defer e.free()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !e.begins(cancel) {
		return e.refused(ErrClosed)
	}
	defer e.begins(nil)
	e.start()
	err := errors.Join(e.limits(), e.transcribe())
	if err == nil {
		bounded, end := e.bounded(ctx)
		defer end()
		if err = e.openWorkingDir(bounded); err == nil {
			err = e.ready(bounded)
		}
		if p, ok := e.conversation.(agent.Warmer); ok && err == nil {
			if err = p.WarmUp(bounded); err != nil {
				e.discard() // the next message begins another one
			}
		}
	}
	if err != nil {
		return e.failed(because(ctx, err))
	}
	return nil
}

// exclusively runs one evaluation or turn at a time, from its first event to its last.
func (e *evaluation) exclusively(ctx context.Context, emit emitFunc, do func(context.Context, emitFunc) (*outcome, error)) (*outcome, error) {
	if !e.reserve() {
		return nil, e.refused(agent.ErrBusy)
	}
	defer e.free()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !e.begins(cancel) {
		return nil, e.refused(ErrClosed)
	}
	defer e.begins(nil)
	out := &output{evaluation: e, emit: emit, leave: func() { cancel(errLeft) }}
	ctx, end, err := e.prepare(ctx)
	out.ctx = context.WithoutCancel(ctx)
	if err != nil {
		return nil, e.finish(ctx, out, nil, err)
	}
	defer end()
	o, err := do(ctx, out.take)
	if err != nil && broken[e.classify(err).Kind] {
		e.discard() // the next turn begins another one, which goes on
	}
	return o, e.finish(ctx, out, o, err)
}

// broken are the failures after which an agent takes no more.
var broken = map[agent.FailureKind]bool{agent.FailureProcess: true, agent.FailureProtocol: true, agent.FailureNoResult: true}

// begins notes how the turn that begins can be interrupted, and nil that it is over. It reports false if
// the conversation is closed.
func (e *evaluation) begins(interrupt context.CancelCauseFunc) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended && interrupt != nil {
		return false
	}
	e.interrupt = interrupt
	return true
}

// stop interrupts what is under way, and reports whether there was something.
func (e *evaluation) stop(why error) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.interrupt == nil {
		return false
	}
	e.interrupt(why)
	return true
}

var errLeft = errors.New("drover: the reader of the events has left")

// ErrClosed is why a conversation takes no more messages.
var ErrClosed = advice.Wrap(errors.New("drover: the conversation is closed"), "begin another one, or resume this one with its token")

// prepare makes everything that holds for the whole evaluation. The returned function ends the limits.
func (e *evaluation) prepare(ctx context.Context) (_ context.Context, end func(), err error) {
	e.start()
	end = func() {}
	ctx, err = e.observe(ctx)
	if err := errors.Join(err, e.limits(), e.transcribe()); err != nil {
		return ctx, end, err
	}
	ctx, end = e.bounded(ctx)
	if err = e.openWorkingDir(ctx); err == nil {
		e.beginRecord(ctx)
	}
	return ctx, end, err
}

// start forgets what came before, and names the run.
func (e *evaluation) start() {
	e.stage, e.began, e.seq, e.past, e.resumeText, e.logged = StagePrepare, time.Now(), 0, pastCalls{}, "", false
	e.after = e.opts.Session.Last()
	e.summary = Summary{PromptName: e.prompt.Name(), Session: e.opts.Session, Completion: guard.Complete(), ResumeToken: e.resumeToken()}
	e.identify()
}

func (e *evaluation) identify() {
	made := guard.NewRunContext(ident.NewUUID)
	given := e.opts.RunContext // its name is that of the first message
	if e.run.RunID != "" || e.forks {
		given.RunID = ""
	}
	e.run = given
	e.run.RunID, e.run.RequestID = cmp.Or(e.run.RunID, made.RunID), cmp.Or(e.run.RequestID, made.RequestID)
	e.run.Attempt = cmp.Or(e.run.Attempt, made.Attempt)
	e.run.SessionID = e.opts.Session.ID()
	e.summary.RunID = e.run.RunID
}

// limits finds out what bounds the evaluation, and refuses one that could not even begin.
func (e *evaluation) limits() error {
	if e.opts.Tracker == nil && e.opts.Budget != nil {
		if err := e.opts.Budget.Validate(); err != nil {
			return err
		}
	}
	tracker := e.sharedTracker()
	e.deadline = e.opts.Deadline.Earlier(tracker.Budget().Deadline)
	return errors.Join(e.deadline.Check(), tracker.Check())
}

// sharedTracker is the tracker of the conversation and of its forks, or nil if nothing limits them.
func (e *evaluation) sharedTracker() *guard.Tracker {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch { // a turn reads the tracker while a fork asks for it: once set it is not written again
	case e.tracker != nil:
	case e.opts.Tracker != nil:
		e.tracker = e.opts.Tracker
	case e.opts.Budget != nil:
		e.tracker = guard.NewTracker(*e.opts.Budget)
	}
	return e.tracker
}

func (e *evaluation) bounded(ctx context.Context) (context.Context, func()) {
	ctx = guard.WithRunContext(session.With(ctx, e.opts.Session), e.run)
	ctx = guard.WithTracker(guard.WithHeartbeat(guard.WithDeadline(ctx, e.deadline), e.opts.Heartbeat), e.tracker)
	return e.deadline.Context(ctx)
}

// open renders the prompt and makes an agent ready for it.
func (e *evaluation) open(ctx context.Context) error {
	e.reach(ctx, StageRender)
	h, err := e.newHost()
	if err != nil {
		return err
	}
	e.host = h
	e.live, err = e.prompt.Live(ctx, &prompt.LiveOptions{
		RenderOptions: prompt.RenderOptions{Session: e.opts.Session, Visibility: e.opts.Visibility, Overrides: e.opts.Overrides},
		Adapter:       e.adapter.Agent(), Registry: h.registry, OnOpen: h.opened, Restart: e.opts.RestartToOpen,
	})
	if err != nil {
		return err
	}
	e.reach(ctx, StageBind)
	request, err := e.request()
	if err != nil {
		return err
	}
	return e.engage(ctx, request)
}

// request is what the agent is asked for, but for the user's message.
func (e *evaluation) request() (agent.Request, error) {
	rendered := e.live.Rendered()
	r := agent.Request{
		Settings: e.opts.Settings,
		Registry: e.live.Registry(), OutputSchema: rendered.OutputSchema,
		Resume: e.resumeToken(), Fork: e.forks, RunID: e.run.RunID, TraceParent: e.run.Traceparent(), TraceState: e.traceState,
		MaxRefusals: e.opts.MaxRounds, Transcript: e.record.receiver(),
	}
	r.Workspace, r.Permissions = e.workingDir.workspace(), nil // the gate of the host has the permissions
	if e.tracker != nil {
		r.Trackers = []*guard.Tracker{e.tracker}
	}
	if e.opts.Tracker != nil {
		r.Budget = nil
	}
	for _, s := range rendered.Skills {
		r.Skills = append(r.Skills, s)
	}
	switch e.opts.Placement {
	case AsSystem:
		r.SystemPrompt = rendered.Text
	case AppendedToSystem:
		r.AppendSystemPrompt = strings.TrimLeft(e.opts.AppendSystemPrompt+"\n\n"+rendered.Text, "\n")
	}
	err := e.host.bind(&r)
	return r, err
}

// engage makes the runner of the agent, which is kept alive for the whole conversation if it can be.
func (e *evaluation) engage(ctx context.Context, r agent.Request) (err error) {
	e.reach(ctx, StageRun)
	adapter := e.adapter
	o := &agent.RunnerOptions{Logger: e.opts.Logger}
	if opener, ok := adapter.(agent.Opener); ok {
		conversation, err := opener.Open(ctx, r)
		if err != nil {
			return err
		}
		e.setConversation(conversation)
		adapter = agent.ConversationAdapter(adapter, conversation)
	}
	e.asked = r
	if e.runner, err = agent.NewRunner(adapter, o); err != nil {
		return errors.Join(err, e.dismiss())
	}
	return nil
}

// resumeToken is what continues the conversation.
func (e *evaluation) resumeToken() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return cmp.Or(e.token, e.opts.Resume)
}

// dismiss ends the agent, not the evaluation.
func (e *evaluation) dismiss() error {
	e.runner = nil
	conversation := e.setConversation(nil)
	if conversation == nil {
		return nil
	}
	err := conversation.Close()
	e.host.recordOpen(context.Background(), true) // what a turn has left to subagents in the background
	return err
}

// discard is dismiss where a failure of it does not change how the evaluation goes on.
func (e *evaluation) discard() {
	if err := e.dismiss(); err != nil {
		e.log(context.Background(), slog.LevelError, logCleanup, slog.Any("error", err))
		e.summary.Cleanup = errors.Join(e.summary.Cleanup, err)
	}
}

// setConversation replaces the current conversation and returns the old one. Safe for hook goroutines.
func (e *evaluation) setConversation(next agent.Conversation) (before agent.Conversation) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, e.conversation = e.conversation, next
	return before
}

// close ends what is under way and the agent, and removes what was made for it.
func (e *evaluation) close() error {
	e.mu.Lock()
	e.ended = true
	if e.interrupt != nil {
		e.interrupt(ErrClosed)
	}
	e.mu.Unlock()
	grace := time.NewTicker(closeGrace)
	defer grace.Stop()
	for before := e.deliveries.Load(); ; before = e.deliveries.Load() {
		select {
		case e.turns <- struct{}{}:
			defer e.free()
			return errors.Join(e.dismiss(), e.record.close(), e.setWorkingDir(nil).leave())
		case <-grace.C:
			if before%2 == 1 && e.deliveries.Load() == before {
				return ErrReading
			}
		}
	}
}

// closeGrace is how long Close waits for a reader that does not leave the body of its loop. Close may have been called
// there, and would wait forever.
const closeGrace = 5 * time.Second

// fork is another evaluation that has come as far: the agent remembers the same, the session is a clone, and
// the working directory is the same. A nil budget shares that of e.
func (e *evaluation) fork(budget *guard.Budget) (*evaluation, error) {
	token, dir, err := e.shared()
	if err != nil {
		return nil, err
	}
	if token, err = e.snapshot(token, dir); err != nil {
		return nil, errors.Join(err, dir.leave())
	}
	clone, err := e.opts.Session.Clone(nil)
	if err != nil {
		return nil, errors.Join(err, dir.leave())
	}
	forked := &evaluation{adapter: e.adapter, prompt: e.prompt, parse: e.parse, opts: e.opts, forks: true, workingDir: dir, turns: make(chan struct{}, 1)}
	forked.opts.Session, forked.opts.Resume = clone, token
	if budget != nil {
		forked.opts.Budget, forked.opts.Tracker = new(*budget), nil
	} else {
		forked.tracker = e.sharedTracker()
	}
	return forked, nil
}

// shared is what a fork begins with. A working directory that is shared stays when this conversation is closed.
func (e *evaluation) shared() (token string, p *workingDir, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch token = cmp.Or(e.token, e.opts.Resume); {
	case e.ended:
		return "", nil, ErrClosed
	case token == "":
		return "", nil, advice.Wrap(errors.New("drover: there is nothing to fork yet"), "begin the conversation first")
	}
	return token, e.workingDir.shared(), nil
}

// snapshotTime bounds how long a store may take for a snapshot.
const snapshotTime = 10 * time.Second

// snapshot is a token for the conversation of another token as it is now, or as it was before the turn under way.
func (e *evaluation) snapshot(token string, p *workingDir) (string, error) {
	s, ok := e.adapter.(agent.Snapshotter)
	if !ok {
		return token, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), snapshotTime)
	defer cancel()
	now, err := s.Snapshot(ctx, agent.Request{Settings: agent.Settings{Dir: e.opts.Dir, Workspace: p.workspace()}, Resume: token})
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.before != "" {
		return e.before, nil
	}
	return now, err
}

// noteBefore takes the snapshot that a fork gets while a turn is under way.
func (e *evaluation) noteBefore() {
	token := e.resumeToken()
	if token == "" {
		return
	}
	before, err := e.snapshot(token, e.workingDir)
	if err != nil {
		before = token
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.before = before
}

// A workingDir is where an agent works, if that is known here. A folder that was made for a conversation is removed
// when the conversation and all its forks are closed.
type workingDir struct {
	w     *workspace.Workspace // nil is a folder that only the agent knows
	own   bool
	users atomic.Int64
}

// A dirAdapter has a working directory of its own.
type dirAdapter interface{ Dir() string }

// openWorkingDir finds the working directory. An evaluation without one gets an empty folder.
func (e *evaluation) openWorkingDir(ctx context.Context) error {
	if e.workingDir != nil {
		return nil
	}
	w, err := e.chosenWorkspace()
	if err != nil {
		return err
	}
	p := &workingDir{w: w}
	a, ok := e.adapter.(dirAdapter)
	if elsewhere := e.opts.Dir != "" || ok && a.Dir() != ""; p.w == nil && !elsewhere {
		if p.w, err = workspace.Open(ctx, &workspace.Options{Session: e.opts.Session}); err != nil {
			return err
		}
		p.own = true
		ownWorkspaces.Store(p.w, true)
	}
	p.users.Add(1)
	e.setWorkingDir(p)
	return nil
}

// ownWorkspaces are the workspaces that evaluations have made for themselves. No other evaluation uses them.
var ownWorkspaces sync.Map

// chosenWorkspace is the workspace of the options, of the prompt's sections, or of the session, in this order. The
// text of the prompt describes its own workspace, so no other can be used.
func (e *evaluation) chosenWorkspace() (*workspace.Workspace, error) {
	described, err := e.prompt.Workspace(&prompt.RenderOptions{Session: e.opts.Session})
	if err != nil {
		return nil, err
	}
	if described == nil && e.opts.Workspace == nil {
		w, ok := workspace.OfSession(e.opts.Session)
		if _, own := ownWorkspaces.Load(w); !ok || own {
			return nil, nil
		}
		return w, nil
	}
	if described == nil {
		return stillOpen(e.opts.Workspace, "Options.Workspace")
	}
	w, ok := described.(*workspace.Workspace)
	switch {
	case !ok:
		return nil, advice.Wrap(fmt.Errorf("the prompt is about the workspace %s, which is a %T", described.Root(), described),
			"open it with package workspace")
	case e.opts.Workspace != nil && e.opts.Workspace != w:
		return nil, advice.Wrap(fmt.Errorf("the prompt is about the workspace %s, and Options.Workspace is %s", w.Root(), e.opts.Workspace.Root()),
			"leave Options.Workspace out, or use its Section in the prompt")
	}
	return stillOpen(w, "the section")
}

// stillOpen refuses a workspace that is closed. from is what names it.
func stillOpen(w *workspace.Workspace, from string) (*workspace.Workspace, error) {
	if w.Closed() {
		return nil, advice.Wrap(fmt.Errorf("the workspace %s is closed", w.Root()), "open it again with workspace.Open, or leave %s out", from)
	}
	return w, nil
}

// setWorkingDir replaces the working directory and returns the one before. Forks may ask meanwhile.
func (e *evaluation) setWorkingDir(p *workingDir) (before *workingDir) {
	e.mu.Lock()
	defer e.mu.Unlock()
	before, e.workingDir = e.workingDir, p
	return before
}

func (p *workingDir) workspace() *workspace.Workspace {
	if p == nil {
		return nil
	}
	return p.w
}

// shared is the working directory for one more conversation.
func (p *workingDir) shared() *workingDir {
	if p != nil {
		p.users.Add(1)
	}
	return p
}

// leave removes the working directory if it was made here and no other conversation uses it.
func (p *workingDir) leave() error {
	if p == nil || p.users.Add(-1) > 0 || !p.own {
		return nil
	}
	ownWorkspaces.Delete(p.w)
	return p.w.Close()
}
