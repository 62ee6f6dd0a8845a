// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	root "github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/cmd/drover/internal/runs"
	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/server"
	"github.com/drover-agents/drover/terminal"
	"github.com/drover-agents/drover/tool"
)

// runAgent has an agent work on the prompt and shows what happens. The error knows its exit code.
func runAgent(ctx context.Context, o runOptions, s streams) (err error) {
	if err := promptly(ctx, func() error { return cmp.Or(o.checkFile(), o.loadFile(), o.loadProject(), o.check()) }); err != nil {
		return withoutSecrets(err, o.secrets())
	}
	if terminal.Is(s.errs) {
		s.screen = s.errs
	}
	errs := newSafeErrors(s.errs, o.secrets())
	s.errs = errs
	defer func() {
		_ = errs.close() // standard error is the only place to report it
		err = withoutSecrets(err, o.secrets())
	}()
	if limit := time.Duration(o.timeout); limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, limit, errTimeIsUp)
		defer stop()
	}
	if err := o.readArgument(ctx, s.in); err != nil {
		return err
	}
	if err := o.readPrompt(ctx, s); err != nil {
		return err
	}
	if err := promptly(ctx, o.readSchema); err != nil {
		return err
	}
	o.reportProject(s.errs)
	current, err := workFolder()
	if err != nil {
		return advice.Wrap(fmt.Errorf("the current folder cannot be used: %w", err), "cd into one that there is, and that you may enter")
	}
	if err := o.chooseConversation(ctx, s, current); err != nil {
		return err
	}
	files, err := o.openWorkspace(ctx, s.errs)
	if err != nil {
		return err
	}
	j := &job{options: o, streams: s, folder: current, dir: current, workspace: files}
	if files != nil {
		j.dir = files.Root()
	}
	var leftover error
	defer func() { err = withCleanup(err, errors.Join(leftover, j.summary().Cleanup, j.closing)) }()
	defer func() { err = files.leave(ctx, err, j.keptRun(), s.out) }() // when nothing of the run is left
	defer func() { leftover = j.close() }()
	if err := j.open(ctx); err != nil {
		return err
	}
	j.export = openExport(ctx)
	defer j.export.close(ctx, s.errs)
	err = j.run(ctx)
	if problem := j.model.problem(); problem != nil && err != nil {
		return ending{exitError, problem} // it has more details than the error of the agent
	}
	return err
}

// open opens what the evaluation needs: the source of the model's answers, the conversations, the record of the run and the agent.
// close closes it, also after an error.
func (j *job) open(ctx context.Context) error {
	o, errs := &j.options, j.streams.errs
	in := o.isolate(&j.started)
	var err error
	if j.model, err = o.openModel(ctx, in, j.dir); err != nil {
		return err
	}
	j.closers = append(j.closers, j.model.close)
	kept, err := o.conversations(j.model)
	if err != nil && o.resume == "" { // a new one begins without the folder too
		report(errs, fmt.Errorf("the conversation is not stored, so it cannot be continued: %w", err))
		kept, err = &conversations{}, nil
	}
	if err != nil {
		return err
	}
	j.closers = append(j.closers, kept.close)
	kept.project = j.folder
	if j.kept, j.store, err = o.recorder(j.folder, j.model, errs); err != nil {
		return err
	}
	if j.adapter, err = o.adapter(in, kept); err != nil {
		return err
	}
	if c, ok := j.adapter.(io.Closer); ok { // which knows what a run has left
		j.closers = append(j.closers, c.Close)
	}
	o.isolation.warn(errs)
	return nil
}

// close closes what open has opened, the last one first.
func (j *job) close() error {
	var errs []error
	for _, end := range slices.Backward(j.closers) {
		errs = append(errs, end())
	}
	j.closers = nil
	return errors.Join(errs...)
}

// promptly calls f, and does not wait for it once the context has ended. Then f is left behind, as the program is
// about to end: parsing takes no notice of a context.
func promptly(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return stoppedEarly(ctx)
	}
}

func stoppedEarly(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errTimeIsUp) {
		return ending{exitLimit, cause}
	}
	return ending{exitInterrupted, errors.New("stopped")}
}

// withCleanup is the error of a run and of the cleanup after it. A run that succeeded has printed its answer by
// then: the failed cleanup is what is left to report.
func withCleanup(err, cleanup error) error {
	switch {
	case cleanup == nil:
		return err
	case cameToItsEnd(err):
		return errors.Join(ending{exitError, fmt.Errorf("the cleanup after the run failed: %w", cleanup)}, err)
	}
	return errors.Join(err, cleanup)
}

func (o *runOptions) isolate(started *processes) *isolation.Isolation {
	in := o.isolation.requested()
	in.Started = started.add
	return in
}

// budget has the limits of dollars and tokens, or is nil without one.
func (o *runOptions) budget() *guard.Budget {
	if o.maxTokens == 0 && o.maxUSD == 0 {
		return nil
	}
	return &guard.Budget{MaxTotalTokens: int64(o.maxTokens), MaxCostUSD: float64(o.maxUSD)}
}

func (o *runOptions) check() error {
	switch {
	case o.json && o.quiet:
		return advice.Wrap(usageError("--json and --quiet exclude each other"), "choose one")
	case o.keep.off && o.keep.traffic:
		return advice.Wrap(usageError("--no-keep and --keep-traffic exclude each other"), "choose one, or write the traffic to a file with --record")
	case o.last && o.resume != "":
		return advice.Wrap(usageError("--continue and --resume exclude each other"), "choose one")
	case o.modelScript != "" && (o.last || o.resume != ""):
		return advice.Wrap(usageError("--continue and --resume need a conversation that was kept, and a run with --model-script keeps none"),
			"leave one of the two out")
	case o.others > 0 && o.maxTurns == 0:
		return advice.Wrap(usageError("--side-calls counts for each of --max-turns, and there is no --max-turns"),
			"add --max-turns, or leave --side-calls out")
	}
	if err := o.checkReplay(); err != nil {
		return err
	}
	if err := errors.Join(o.checkTools(), o.isolation.check(), o.files.check(o.json), o.live.check(o.keep)); err != nil {
		return err
	}
	for _, c := range []tool.Capability{tool.FileWrite, tool.ShellExecute} {
		if level := o.permissions.level(c); o.readOnly && (level == gate.LevelAllow || level == gate.LevelAsk) {
			return advice.Wrap(usageError("--read-only refuses what needs %s, and --%s does not", c, level), "leave one of the two out")
		}
	}
	return nil
}

// workFolder is the current folder, which may have been removed or closed to this user.
func workFolder() (string, error) {
	dir, err := os.Getwd()
	if err == nil {
		_, err = os.Stat(".")
	}
	return dir, err
}

// readPrompt reads the prompt from standard input if it is "-", and checks it. Below another prompt it puts standard input.
func (o *runOptions) readPrompt(ctx context.Context, s streams) error {
	if o.file.path != "" {
		return nil // it has its own
	}
	given := o.prompt != "-"
	if !given {
		text, err := readAll(ctx, s.in)
		if err != nil {
			return inputError("the prompt", err, `send it there, and close it: echo "Do it" | drover run -`)
		}
		o.prompt, o.verbatim = text, true
	}
	if strings.TrimSpace(o.prompt) == "" {
		return advice.Wrap(usageError("the prompt is empty"), `drover run "What does this project do?"`)
	}
	if problem := safetext.PromptProblem(o.prompt); problem != "" {
		return advice.Wrap(usageError("the prompt %s", problem), "give the prompt as UTF-8 text")
	}
	if given && hasInput(s.in) {
		return o.addInput(ctx, s)
	}
	return nil
}

// The largest files and inputs that the command reads: a prompt and an argument, and a schema.
const (
	maxTextFile   = 4 << 20
	maxSchemaFile = 1 << 20
)

var errTooMuch = fmt.Errorf("it has more than %d bytes", maxTextFile)

// readAll reads until the end, or until the context ends. A read that nothing can end is left behind, as the program ends.
func readAll(ctx context.Context, in io.Reader) (string, error) {
	type result struct {
		text []byte
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := io.ReadAll(io.LimitReader(in, maxTextFile+1))
		if err == nil && len(text) > maxTextFile {
			err = errTooMuch
		}
		read <- result{text, err}
	}()
	select {
	case r := <-read:
		return string(r.text), r.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// readSchema reads and checks the schema of the answer, before anything is started.
func (o *runOptions) readSchema() error {
	if o.schemaFile == "" {
		return nil
	}
	text, err := plainfile.Read(o.schemaFile, maxSchemaFile)
	if err != nil {
		return advice.Wrap(usageError("--schema: %w", err), "give the path of a file with a JSON Schema")
	}
	o.answer, err = schema.Parse(text)
	if err == nil {
		_, _, err = schema.ForCLI(o.answer)
	}
	if err == nil && !strings.HasPrefix(strings.TrimSpace(string(text)), "{") {
		err = errors.New("it is no object")
	}
	if err != nil {
		return advice.Wrap(usageError("--schema: %s is no JSON Schema for an answer: %w", o.schemaFile, err),
			`correct it; the smallest one is {"type": "object"}`)
	}
	return nil
}

// adapter finds the agent. Settings and servers of the user are ignored: a run depends on its flags only.
func (o *runOptions) adapter(in *isolation.Isolation, kept *conversations) (agent.Adapter, error) {
	makeAgents := o.agents
	if makeAgents == nil {
		makeAgents = newAgents
	}
	base := &claude.Options{
		ClientApp: "drover/" + claude.Version, SystemPrompt: claude.PresetPrompt{}, StrictMCP: true,
		SettingSources: claudecell.SettingSources(), // those of the private home
		// The gate decides in every mode; this one the CLI grants to root too.
		PermissionMode:  claude.ModeDefault,
		VerbatimPrompts: o.verbatim,
	}
	kept.keep(base)
	agents, err := makeAgents(base, in)
	if err != nil {
		return nil, err
	}
	adapter, err := agents.Lookup(o.agent)
	if err != nil {
		return nil, usageError("--agent: %w", err)
	}
	return adapter, nil
}

type job struct {
	options   runOptions
	streams   streams
	adapter   agent.Adapter
	model     *modelSource
	closers   []func() error // of what open has opened
	folder    string         // that the run belongs to
	dir       string         // in which the agent works
	started   processes
	workspace *runWorkspace
	export    *export
	kept      *record.Recorder // nil keeps nothing
	recorder  root.Recorder    // of the evaluation: kept, behind live
	live      *server.Live     // nil without kept
	store     *record.Store    // of kept
	// interrupt ends the turn under way, once there is a conversation, and closing is why that could not be ended in order.
	interrupt atomic.Pointer[func() bool]
	closing   error
	// result is that of the evaluation. Nil means that it has not begun.
	result func() (*root.Response[prompt.JSON], error)
}

// summary is that of the evaluation, which is over.
func (j *job) summary() root.Summary {
	if j.result == nil {
		return root.Summary{}
	}
	resp, err := j.result()
	if failure, ok := errors.AsType[*root.EvaluationError](err); ok {
		return failure.Summary
	}
	if resp == nil {
		return root.Summary{}
	}
	return resp.Summary
}

// keptRun names the run in the store of kept runs. Empty means that it is not there as a whole.
func (j *job) keptRun() string {
	summary := j.summary()
	if j.kept == nil || summary.NotRecorded != nil {
		return ""
	}
	return runs.ShortID(summary.RunID)
}

var errTimeIsUp = errors.New("the time is up")

type outputLost struct{ error }

func (e outputLost) Unwrap() error { return e.error }

func (e outputLost) explain() error {
	what, next := "the output could not be written", "make room, or send it elsewhere"
	if errors.Is(e.error, syscall.EPIPE) || errors.Is(e.error, os.ErrClosed) {
		what, next = "no program reads the output any more", "read it to its end, or send it to a file"
	}
	return advice.Wrap(fmt.Errorf("%s, so the run was stopped: %w", what, e.error), "%s", next)
}

func (j *job) run(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	display, approver := j.display(func(err error) { cancel(outputLost{err}) })
	defer display.Close()
	p, err := j.prompt()
	if err != nil {
		return err
	}
	if j.options.live.served != "" {
		endWithServer()
	}
	if approver = j.goLive(approver, cancel); j.live != nil {
		defer func() { _ = j.live.Close() }() // it cannot fail
		display = liveView{display, j.live}
	}
	announce, stay, err := j.watch(ctx)
	if err != nil {
		return err
	}
	defer stay()
	talk := root.Converse(j.adapter, p, j.evaluation(ctx, approver))
	j.interrupt.Store(new(talk.Interrupt))
	stopping := sync.OnceFunc(display.Stopping)
	defer afterEnd(ctx, stopping)()
	defer j.killWhenAsked(ctx)()
	closeTalk := sync.OnceFunc(func() { j.closing = talk.Close() })
	defer closeTalk() // while it can still be killed
	seen := outcome{options: &j.options, show: display.Show}
	for text, more := "", true; more; text, more = j.nextMessage(ctx) {
		run := talk.Stream(ctx, text)
		j.result = run.Response
		for e, err := range run.Events() {
			if err != nil && seen.done.Status == "" {
				return err
			}
			if err != nil { // the done event has reported it
				break
			}
			if ctx.Err() != nil {
				stopping() // before the summary, however fast the agent was
			}
			announce()
			seen.event(e)
		}
	}
	closeTalk()
	display.Close()                             // before anything is printed on the terminal
	if seen.notKept != nil && !j.options.json { // there it is an event
		report(j.streams.errs, seen.notKept)
	}
	if lost := j.summary().NotRecorded; lost != nil {
		report(j.streams.errs, lost)
	}
	return seen.ending(context.Cause(ctx))
}

func (j *job) prompt() (*prompt.Prompt[prompt.JSON], error) {
	var more []*prompt.Section
	if j.workspace != nil {
		more = append(more, j.workspace.Section())
	}
	if f := j.options.file.agent; f != nil {
		return f.Prompt(j.options.file.args, more...)
	}
	t, err := prompt.Define[prompt.JSON](prompt.Definition{Namespace: "drover", Key: "run", Text: j.options.prompt, Sections: more, Output: j.options.answer})
	if err != nil {
		return nil, err
	}
	return t.Bind()
}

// afterEnd calls f when the context ends. stop undoes that, or waits for f.
func afterEnd(ctx context.Context, f func()) (stop func()) {
	called := make(chan struct{})
	undo := context.AfterFunc(ctx, func() {
		defer close(called)
		f()
	})
	return func() {
		if !undo() {
			<-called
		}
	}
}

func (j *job) policies() []gate.Policy {
	if f := j.options.file.agent; !j.options.readOnly || f != nil && f.Policy.ReadOnly { // it has the policy itself
		return nil
	}
	return []gate.Policy{gate.FromRisk(gate.RiskOptions{ReadOnly: true, AgentTools: true})}
}

// display shows the run as the flags choose. With --json there is no approver. With --diff standard output is the patch's alone.
func (j *job) display(lost func(error)) (terminal.View, gate.Approver) {
	to := j.streams.out
	if j.options.files.diff {
		if to = j.streams.errs; j.streams.screen != nil {
			to = j.streams.screen
		}
	}
	out := &guardedWriter{to: to, failed: lost}
	if j.options.json {
		return terminal.NewJSON(out, j.streams.errs, terminal.Options{Catalogue: catalogue.Tools()}, lost), nil
	}
	shown := terminal.Options{Quiet: j.options.quiet, Dir: j.dir, MaxUSD: float64(j.options.maxUSD), Catalogue: catalogue.Tools(), Reword: wording.Flags}
	if terminal.Is(to) { // never lost without a signal, and the display must see it
		return terminal.New(j.streams.in, to, shown)
	}
	return terminal.New(j.streams.in, out, shown)
}

// killWhenAsked ends all processes of the run when the user does not want to wait. stop ends the waiting.
func (j *job) killWhenAsked(ctx context.Context) (stop func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-killed(ctx):
			j.started.kill()
		case <-over:
		}
	}()
	return func() { close(over) }
}
