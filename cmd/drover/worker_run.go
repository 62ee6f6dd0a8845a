// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	root "github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
	"github.com/drover-agents/drover/session"
)

// arguments are the request to an agent of a file: a JSON object of texts, numbers and booleans.
type arguments map[string]string

func (a *arguments) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var values map[string]any
	if err := d.Decode(&values); err != nil {
		return errors.New("it must be a JSON object of arguments")
	}
	*a = arguments{}
	for name, value := range values {
		switch v := value.(type) {
		case string, json.Number, bool:
			(*a)[name] = fmt.Sprint(v)
		default:
			return fmt.Errorf("the argument %q must be a string, a number or a boolean", name)
		}
		if problem := safetext.PromptProblem((*a)[name]); problem != "" {
			return fmt.Errorf("the argument %q %s", name, problem)
		}
	}
	return nil
}

// A fleetRunner runs the agents of a starter for a fleet, in this process.
type fleetRunner struct {
	starter *starter
	fleet   *fleet.Fleet
	worker  string
	export  *export
	asks    bool      // questions wait for an answer through the API; else they are denied
	out     io.Writer // takes a line for the begin and the end of each attempt
	errs    io.Writer
}

// agents makes the agents of the fleet. A file that could not run is an error now.
func (r *fleetRunner) agents(ctx context.Context) (all []fleet.Agent, err error) {
	for _, name := range slices.Sorted(maps.Keys(r.starter.agents)) {
		o, err := r.options(queuedStart{Start: server.Start{Agent: name}})
		if err == nil {
			err = promptly(ctx, func() error { return cmp.Or(o.checkFile(), o.readFile(), o.applyFile(), o.loadProject(), o.check()) })
		}
		if err == nil && !isFleetName(name) {
			err = advice.Wrap(usageError("%s: an agent of a fleet cannot be called %q", r.starter.agents[name].Path(), name),
				"write up to 64 letters, digits, - and _ under name in the file")
		}
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			o.reportProject(r.errs)
		}
		all = append(all, fleet.HandleEach(name, func(ctx context.Context, run string, given arguments) (h fleet.Handler[arguments, prompt.JSON], end func(error) error, err error) {
			a, err := r.open(ctx, run, queuedStart{Start: server.Start{Agent: name, Args: given}})
			if err != nil {
				return h, nil, err
			}
			h.Adapter, h.Prepare = a.adapter, func(ctx context.Context, _ arguments, s *session.Session) (*prompt.Prompt[prompt.JSON], *root.Options, error) {
				return a.prepare(ctx, s)
			}
			return h, a.end, nil
		}))
	}
	return all, nil
}

// isFleetName reports whether a fleet can have an agent of this name.
func isFleetName(name string) bool {
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// options are the flags of a run, as the starter bounds it.
func (r *fleetRunner) options(s queuedStart) (*runOptions, error) {
	args, text, _, err := r.starter.command(s.Start)
	if err != nil {
		return nil, err
	}
	if err := checkPrompt(text); err != nil {
		return nil, err
	}
	if s.Resume != "" {
		args = append(args, "--resume="+s.Resume)
	}
	o, err := parseRunFlags(args)
	if err != nil {
		return nil, err
	}
	o.prompt, o.quiet, o.agents = text, true, r.starter.o.run.agents
	o.agent = cmp.Or(r.starter.o.run.agent, claudecode.Agent)
	o.keep.command = append([]string{"drover", "run"}, args...)
	return o, nil
}

// checked are the options of a run that could begin.
func (r *fleetRunner) checked(ctx context.Context, s queuedStart) (*runOptions, error) {
	o, err := r.options(s)
	if err == nil {
		err = promptly(ctx, func() error { return cmp.Or(o.checkFile(), o.loadFile(), o.loadProject(), o.check()) })
	}
	return o, err
}

// An attempt is one attempt of a worker at a run.
type attempt struct {
	*job
	runner *fleetRunner
	id     string // of the run in the fleet
	ctx    context.Context
	errs   *safeErrors
	// approver is asked about calls. Nil denies them.
	approver gate.Approver
	began    time.Time
	session  *session.Session // nil if the answer of an earlier attempt is used
	before   int64            // the session's position before the attempt
}

// open opens a run for an attempt. What a request cannot have is a permanent error.
func (r *fleetRunner) open(ctx context.Context, run string, s queuedStart) (*attempt, error) {
	o, err := r.checked(ctx, s)
	if err != nil {
		return nil, fleet.Permanent(withoutSecrets(err, secretValues(r.starter.o.run.keep.secrets)))
	}
	if _, o.live.served, err = keptAttempt(r.starter.store, tokenOf(run)); err != nil {
		return nil, err
	}
	o.verbatim = true // what a submitter sends must not have the CLI read files
	a := &attempt{runner: r, id: run, ctx: ctx, began: time.Now(), errs: newSafeErrors(lineWriter{r.errs, "run " + run + ": "}, o.secrets())}
	a.job = &job{options: *o, streams: streams{out: io.Discard, errs: a.errs}, export: r.export}
	fail := func(err error) (*attempt, error) {
		closing := a.close()
		return nil, a.marked(errors.Join(a.workspace.leave(ctx, err, "", io.Discard), closing), false)
	}
	if a.folder, err = workFolder(); err != nil {
		return fail(err)
	}
	a.dir = a.folder
	if a.workspace, err = o.openWorkspace(ctx, a.errs); err != nil {
		return fail(err)
	}
	if a.workspace != nil {
		a.dir = a.workspace.Root()
	}
	if err := a.job.open(ctx); err != nil {
		return fail(err)
	}
	if a.kept != nil {
		a.live = server.NewLive(a.kept, &server.LiveOptions{Stop: a.stop, Logger: a.logger()})
		a.recorder = a.live
		if r.asks {
			a.approver = a.live
		}
	}
	fmt.Fprintf(r.out, "run       %s began as %s\n", run, o.live.served)
	return a, nil
}

// keptAttempt finds the kept run of the latest attempt at a run, or nil, and the id for the next one. The first attempt on a machine
// has the id of the run.
func keptAttempt(store *record.Store, token string) (latest *record.Run, next string, err error) {
	next = token
	for n := 2; ; n++ {
		run, err := store.Find(next)
		if errors.Is(err, fs.ErrNotExist) || err == nil && run.ID != next { // another one begins with it
			return latest, next, nil
		}
		if err != nil {
			return nil, "", err
		}
		latest, next = run, attemptID(token, n)
	}
}

// attemptID is the id of a later attempt. Its beginning differs from that of the others, as people write it.
func attemptID(token string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", token, n))
	text := hex.EncodeToString(sum[:16])
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

func (a *attempt) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(a.errs, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// stop cancels the run: another attempt must not begin.
func (a *attempt) stop() {
	run, err := a.runner.fleet.Run(a.ctx, a.id)
	if err == nil {
		err = run.Cancel(a.ctx)
	}
	if err != nil {
		report(a.errs, err)
	}
}

func (a *attempt) prepare(ctx context.Context, s *session.Session) (*prompt.Prompt[prompt.JSON], *root.Options, error) {
	a.session, a.before = s, s.Last()
	if limit := time.Duration(a.options.timeout); limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, limit) // for the rules of the evaluation, which has the deadline itself
		defer stop()
	}
	p, err := a.prompt()
	if err != nil {
		return nil, nil, fleet.Permanent(err)
	}
	e := a.evaluation(ctx, a.approver)
	if at, limited := ctx.Deadline(); limited {
		e.Deadline = guard.At(at)
	}
	e.Logger = a.logger()
	spent, calls, err := pastOf(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if e.Budget != nil { // it is that of the run, not of the attempt
		e.Budget, e.Tracker = budgetLeft(*e.Budget, spent)
	}
	if calls > 0 && a.options.files.writeBack { // the model would not repeat them, and a part would be written back
		return nil, nil, fleet.Permanent(errCopiesLost)
	}
	return p, e, nil
}

// budgetLeft is a budget without what is spent of it. A zero there would be no limit: of a budget that is spent it is a tracker.
func budgetLeft(b guard.Budget, spent guard.Usage) (*guard.Budget, *guard.Tracker) {
	t := guard.NewTracker(b)
	t.Record(spent)
	if t.Check() != nil {
		return &b, t
	}
	for _, l := range []struct {
		most  *int64
		spent int64
	}{{&b.MaxTotalTokens, spent.TotalTokens()}, {&b.MaxInputTokens, spent.InputTokens}, {&b.MaxOutputTokens, spent.OutputTokens}, {&b.MaxRequests, spent.Requests}} {
		if *l.most != 0 {
			*l.most -= l.spent
		}
	}
	if b.MaxCostUSD != 0 {
		b.MaxCostUSD -= spent.CostUSD
	}
	return &b, nil
}

// pastOf is what the log of a run has of earlier attempts: what they have spent, and how many calls of tools they have made.
func pastOf(ctx context.Context, s *session.Session) (spent guard.Usage, calls int, err error) {
	last := s.Last()
	if last == 0 {
		return spent, 0, nil
	}
	for entry, err := range s.After(ctx, 0) {
		if err != nil {
			return spent, 0, err
		}
		switch p := entry.Event.Payload.(type) {
		case session.ToolInvoked:
			if p.Status != event.ToolDenied {
				calls++
			}
		case event.Extension:
			var call gateway.ModelCall
			if p.Kind != gateway.KindModelCall {
				break
			}
			if err := json.Unmarshal(p.Data, &call); err != nil {
				return spent, 0, err
			}
			spent.InputTokens += call.Tokens.AllInput()
			spent.OutputTokens += call.Tokens.Output
			spent.CostUSD += call.CostUSD
			spent.Requests++
		}
		if entry.Pos >= last {
			break
		}
	}
	return spent, calls, ctx.Err()
}

// end closes the run, and brings back what it has changed. The result is the error of the attempt.
func (a *attempt) end(err error) error {
	defer func() { _ = a.errs.close() }() // standard error is the only place to report it
	if a.live != nil {
		_ = a.live.Close() // it cannot fail
	}
	lasting := false // the next attempt would have the same error
	if a.session == nil && err == nil && a.workspace != nil && a.options.files.writeBack {
		err, lasting = errChangesLost, true
	}
	code := a.exitCode(err)
	stopped := a.ctx.Err() != nil
	var of error
	if code != 0 {
		of = ending{code, err}
	}
	left := errors.Join(a.close(), a.leave(of))
	if err == nil && left != nil {
		err, code, lasting = left, exitError, true // the next attempt would not have the changes
	} else if left != nil {
		report(a.errs, left)
	}
	err = a.marked(err, lasting)
	if a.session != nil && !stopped { // a worker that has lost the run, or hands it back, reports nothing
		if _, failed := a.session.Dispatch(a.ctx, attemptEnded{Exit: code, Run: a.options.live.served, Worker: a.runner.worker}); failed != nil {
			report(a.errs, fmt.Errorf("the end of the attempt is not recorded: %w", failed))
		}
	}
	how := "answered"
	switch {
	case stopped:
		how = "stopped here"
	case err != nil:
		how = "failed: " + safetext.FirstLine(err.Error())
	}
	fmt.Fprintf(a.runner.out, "run       %s %s after %s\n", a.id, how, safetext.Span(time.Since(a.began)))
	return err
}

// errChangesLost means that the worker that had the answer has ended before it wrote the changes back.
var errChangesLost = advice.Wrap(errors.New("the agent has answered, and its changes are lost with the worker that was to write them back"), "submit the request again")

// errCopiesLost means that an earlier attempt has worked on copies that are gone.
var errCopiesLost = advice.Wrap(errors.New("an earlier attempt has worked on copies that are lost, so its changes cannot be written back"), "submit the request again")

// leave applies the flags to the changes of the run. Only what these report of a run that came to its end is an error of them.
func (a *attempt) leave(ended error) error {
	if left := a.workspace.leave(a.ctx, ended, "", io.Discard); left != nil && cameToItsEnd(ended) && !cameToItsEnd(left) {
		return left
	}
	return nil
}

// exitCode is the code with which drover run would end.
func (a *attempt) exitCode(err error) int {
	failure, _ := errors.AsType[*root.EvaluationError](err)
	switch {
	case err == nil && a.denied() == 0:
		return 0
	case err == nil:
		return exitDenied
	case failure == nil:
		if code, known := errors.AsType[ending](err); known {
			return code.code
		}
		return exitError
	}
	switch failure.Kind {
	case agent.FailureMaxTurns, agent.FailureMaxBudget, agent.FailureIncomplete:
		return exitLimit
	case agent.FailureInterrupted:
		if errors.Is(err, guard.ErrDeadlineExceeded) {
			return exitLimit
		}
		return exitInterrupted
	}
	if refused, ok := errors.AsType[event.Error](err); ok && refused.Code == "CELL_LIMIT" {
		return exitLimit
	}
	return exitError
}

// denied is how many calls of the attempt were denied. What the fleet answers in place of a call is not counted.
func (a *attempt) denied() int {
	var all denials
	if a.session == nil || a.session.Last() == a.before {
		return 0
	}
	last := a.session.Last()
	for entry, err := range a.session.After(a.ctx, a.before) {
		if err != nil {
			return 0
		}
		if made, ok := entry.Event.Payload.(event.Decision); ok && made.Policy != "fleet" {
			all.decision(made)
		}
		if entry.Pos >= last {
			break
		}
	}
	return len(all.all())
}

// marked is an error without secrets, which is permanent if the next attempt would have it too: a refusal of the request, a limit, an
// answer that does not count.
func (a *attempt) marked(err error, lasting bool) error {
	if err == nil || a.ctx.Err() != nil {
		return err
	}
	failure, evaluated := errors.AsType[*root.EvaluationError](err)
	_, refused := errors.AsType[*isolation.RefusedError](err)
	code, _ := errors.AsType[ending](err)
	_, file := errors.AsType[*agentfile.Problem](err)
	lasting = lasting || evaluated && !failure.Retry.Worthwhile || refused || file || code.code == exitUsage
	err = withoutSecrets(err, a.options.secrets())
	if lasting {
		return fleet.Permanent(err)
	}
	return err
}

// attemptEnded is the last record of an attempt in the log of its run.
type attemptEnded struct {
	// Exit is the code with which drover run would end.
	Exit int `json:"exit"`
	// Run is the kept run of the attempt, among those of the worker's user.
	Run    string `json:"run"`
	Worker string `json:"worker"`
}

// EventKind implements [event.Payload].
func (attemptEnded) EventKind() event.Kind { return "drover:attempt_ended" }
