// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
)

// A run is a CLI in its cell, and everything that belongs to it. It works on one prompt after the other.
type run struct {
	adapter      *Adapter
	asked        agent.Request // as it came
	req          agent.Request // with the working directory
	opts         claude.Options
	rules        ruleChanges
	release      func()
	cell         *isolation.Cell
	cellEvents   *cellEvents
	calls        *agent.Ledger
	endCalls     func()
	conversation *conversation // nil if there was nothing to start

	life      context.Context // ends when Close begins
	end       context.CancelFunc
	closing   sync.Once
	busy      sync.Mutex // held while a prompt is worked on
	closeFail error

	// The state that a turn leaves to the next one. The goroutine that holds speaking owns it.
	normal    normaliser
	init      *claude.SystemInit // how the first turn began
	session   continuity
	counted   gateway.Usage // by the end of the last turn
	aborted   Tokens        // the same, of calls that the agent did not wait for
	uncounted bool          // the CLI's count of the last turn was partial
	pending   bool          // the last turn has not come to its end
	broken    error         // why no more messages will come
	late      []event.Event // of messages after the last turn
}

// newRun makes the options of a run. It starts no process.
func (a *Adapter) newRun(ctx context.Context, req agent.Request) (*run, error) {
	r := &run{adapter: a, req: req, opts: a.base, cellEvents: newCellEvents()}
	r.life, r.end = context.WithCancel(context.Background())
	if err := errors.Join(a.checkSkills(req.Skills), overlay(&r.opts, req)); err != nil {
		return nil, err
	}
	if err := a.settleEffort(&r.opts, req.Effort); err != nil {
		return nil, err
	}
	if req.Workspace != nil {
		r.opts.AddDirs = append(slices.Clone(r.opts.AddDirs), req.Workspace.Root())
	}
	r.opts.ForwardSubagentText = true // else calls of nested subagents are not reported
	r.session = continueConversation(&r.opts, req)
	release, err := serveTools(&r.opts, req, func(failed event.ToolResult) { r.calls.Failed(failed) })
	if err != nil {
		return nil, err
	}
	r.release = release
	if err := r.bindAll(ctx, req); err != nil {
		release()
		return nil, err
	}
	req.Dir, req.Model, req.Resume = r.opts.Dir, r.opts.Model, r.opts.Resume
	r.normal = normaliser{req: req, ledger: r.calls, wrapped: wrapsOutput(r.opts.OutputSchema)}
	return r, nil
}

func (r *run) bindAll(ctx context.Context, req agent.Request) error {
	if err := bind(&r.opts, req); err != nil {
		return err
	}
	if req.Host != nil {
		r.opts.Hooks = append(r.opts.Hooks[:len(r.opts.Hooks):len(r.opts.Hooks)], denyOwnFiles(r.home))
	}
	hooks, err := bindHooks(&r.opts, req, r.cellEvents.add)
	if err := errors.Join(err, r.opts.Validate()); err != nil {
		return err
	}
	r.rules.observe(&r.opts)
	r.calls, r.endCalls = newLedger(ctx, &r.opts, req, hooks, r.cellEvents.add)
	if err := bindCalls(&r.opts, req, r.calls); err != nil {
		return err
	}
	if kept, ok := r.opts.Store.(*keptStore); ok {
		r.opts.Hooks = append(r.opts.Hooks[:len(r.opts.Hooks):len(r.opts.Hooks)], kept.hold(toolsOf(req).readOnly))
	}
	return nil
}

// start begins a run: its cell is made, and the CLI is starting when it returns. If ctx has ended it
// starts no CLI, which is not an error.
func (a *Adapter) start(ctx context.Context, req agent.Request) (*run, error) {
	asked := req
	req = a.withDefaults(req)
	dir, err := workDir(req)
	if err != nil {
		return nil, err
	}
	req.Dir = dir
	if err := a.located(a.workspace(req.Dir)).Err(); err != nil {
		return nil, err
	}
	r, err := a.newRun(ctx, req)
	if err != nil {
		return nil, err
	}
	r.asked = asked
	if err := r.enter(ctx, req); err != nil && ctx.Err() == nil {
		_ = r.Close() // nothing of it has begun to work
		return nil, err
	}
	if req.Transcript != nil {
		r.opts.Recorder = newTranscriptRecorder(req.Transcript)
	}
	if ctx.Err() == nil {
		r.conversation = r.converse(ctx)
	}
	return r, nil
}

func (r *run) awaitStart(ctx context.Context) error {
	if r.conversation == nil {
		return context.Cause(ctx)
	}
	select {
	case <-r.conversation.started:
		return r.conversation.refused
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func checkPrompt(prompt string) error {
	if strings.TrimSpace(prompt) == "" {
		return advice.Wrap(refusal("Prompt", "is empty"), "write what the agent is to do")
	}
	if problem := safetext.PromptProblem(prompt); problem != "" {
		return refusal("Prompt", "%s", problem)
	}
	return nil
}

// Send implements [agent.Conversation].
func (r *run) Send(ctx context.Context, prompt string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := checkPrompt(prompt); err != nil {
			yield(event.Event{}, err)
			return
		}
		if err := r.occupy(); err != nil {
			yield(event.Event{}, err)
			return
		}
		defer r.busy.Unlock()
		r.runPrompt(ctx, prompt, yield)
		if r.pending && ctx.Err() == nil { // the reader has left
			r.settle(context.Background(), patience)
		}
	}
}

var errClosed = advice.Wrap(errors.New("claudecode: the conversation is closed"), "open another one; with the last ResumeToken as Request.Resume it goes on")

// occupy reserves the run for one prompt.
func (r *run) occupy() error {
	if !r.busy.TryLock() {
		return agent.ErrBusy
	}
	if r.life.Err() != nil {
		r.busy.Unlock()
		return errClosed
	}
	return nil
}

func (r *run) runPrompt(ctx context.Context, prompt string, yield yieldFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.life, func() { cancel(errClosed) })()
	ctx, release := r.limited(ctx)
	defer release()
	t := &turn{run: r, prompt: prompt}
	t.stream(ctx, yield)
	r.pending = t.sent && !t.ended && r.broken == nil
	r.normal = r.normal.next()
}

// settle takes the CLI's messages between prompts, ends a turn that is still under way, and reports whether the CLI is idle.
func (r *run) settle(ctx context.Context, limit time.Duration) (rested bool) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	if r.pending {
		r.conversation.interrupt()
	}
	for r.broken == nil {
		select {
		case next, more := <-r.conversation.outputs:
			r.keepLate(next, more)
			continue
		default:
		}
		if !r.pending {
			return true
		}
		select {
		case next, more := <-r.conversation.outputs:
			r.keepLate(next, more)
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// keepLate keeps messages without a prompt for the next turn, which begins with its init.
func (r *run) keepLate(next cliOutput, more bool) {
	if !more || next.refused != nil || next.failed != nil {
		r.broken = gone(errors.Join(next.refused, next.failed))
		return
	}
	for _, e := range r.normal.events(next.message) {
		if e.Kind == event.KindInit {
			r.late = slices.Insert(r.late, 0, e)
		} else {
			r.late = append(r.late, e)
		}
	}
	if _, over := next.message.(*claude.TurnEnd); over {
		r.pending = false
	}
}

func (r *run) yieldLate(yield yieldFunc) (goOn bool) {
	late := r.late
	r.late = nil
	for _, e := range late {
		if !yield(e, nil) {
			return false
		}
	}
	return true
}

var (
	errGone     = advice.Wrap(errors.New("claudecode: the CLI has ended; the conversation can go on only in another one"), "open one with the last ResumeToken as Request.Resume")
	errRestless = advice.Wrap(errors.New("claudecode: interrupted turn did not finish in time"), "close the conversation, and open another one with the last ResumeToken as Request.Resume")
)

// gone is the error for a prompt to a CLI that has ended, for a reason that may be nil. One that refused to start would
// refuse in another conversation too: its reason is the error.
func gone(reason error) error {
	if reason == nil {
		return errGone
	}
	if startRefusal(reason) != "" {
		return reason
	}
	return fmt.Errorf("%w\n  it ended with: %w", errGone, reason)
}

// startRefusal is the code of an error by which the CLI refused to start; empty if it is another.
func startRefusal(err error) string {
	if result, ok := errors.AsType[*claude.ResultError](err); ok {
		return result.StartupFailureReason
	}
	return ""
}

// Close implements [agent.Conversation].
func (r *run) Close() error {
	r.closing.Do(func() {
		r.end()
		if r.conversation != nil {
			r.conversation.leave()
		}
		if r.cell != nil {
			r.closeFail = r.cell.Close()
		}
		r.endCalls() // when nothing is left that could write
		r.release()
	})
	return r.closeFail
}

// closeQuietly is Close after the done event: a failure is logged, and [Adapter.Close] returns it. The next run tries again.
func (r *run) closeQuietly() {
	if err := r.Close(); err != nil {
		logger(&r.opts).Warn("claudecode: the cell could not be removed", "error", err)
		r.adapter.waiting.failed(err)
	}
}
