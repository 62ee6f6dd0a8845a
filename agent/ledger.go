// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/recent"
	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// LedgerOptions configures a [Ledger]. Nil and the zero value are ready to use.
type LedgerOptions struct {
	// Host decides about calls of the program's own tools that come without a decision. Nil lets them pass.
	Host Host
	// Dir is the working directory of such calls.
	Dir string
	// Rewrite may replace the input of a call before it is decided; see [Hooks].
	Rewrite func(ctx context.Context, call event.ToolCall) (json.RawMessage, error)
	// Catalogue is that of the agent.
	Catalogue *tool.Catalogue

	// Workspace makes each call that may change its files a transaction. Nil, or one without checkpoints, makes none.
	Workspace *workspace.Workspace
	// ReadOnly reports tools that are not in the catalogue and change no files. Nil means none.
	ReadOnly func(name string) bool
	// Within is the context that the run is made in. In that of a transaction of the workspace, the calls of the
	// run are part of it: without it they would wait for its end. Nil means none.
	Within context.Context
	// Emit receives each rollback, as [workspace.Restored]. Nil means that rollbacks are not reported.
	Emit func(event.Payload)

	// Logger receives calls that were forgotten while they were open. Nil discards.
	Logger *slog.Logger
}

// A Ledger has one record for each tool call of a run, from the first report of the call to its result. An
// adapter passes on the questions and reports of its agent:
//
//   - [Ledger.Ask] takes the question of a hook, which the agent calls before each call;
//   - [Ledger.AskPermission] takes a permission question of the agent;
//   - [Ledger.Call] takes a call of a tool of this program;
//   - [Ledger.End], [Ledger.Result] and [Ledger.EndBatch] take the end of calls.
//
// An agent may run in one cell with the commands that it starts, and such a command can impersonate it. A call
// of a tool that runs in this program therefore runs only if it was decided here, once.
//
// An id that comes again after its call has ended, with another tool or input, or from an asker that
// has asked about it before, is another call: some services number calls from one in each answer. A ledger holds the
// last 4096 calls; one that was forgotten is decided again. It is safe for concurrent use.
type Ledger struct {
	opts  LedgerOptions
	outer *workspace.Tx // nil if the run is part of no transaction

	mu        sync.Mutex
	calls     map[event.CallID][]*Record // by id, the oldest first
	order     []*Record                  // all of them, the oldest first
	approvals recent.Map[approvalKey, approval]
	read      recent.Map[event.CallID, *Record] // the record that the stream has reported last under an id
	prompt    int                               // how many prompts the stream has had
	run       int                               // how many runs have begun
	closed    bool
	hosted    bool          // a host reads what became of calls, and records them
	running   int           // calls of tools of this program
	idle      chan struct{} // closed when none is left
}

const rememberedCalls = 4096

// NewLedger makes a ledger. Close it when nothing of the run is left that could write.
func NewLedger(opts *LedgerOptions) *Ledger {
	l := &Ledger{calls: map[event.CallID][]*Record{}, approvals: recent.Map[approvalKey, approval]{Size: rememberedCalls}}
	l.read.Size = rememberedCalls
	if opts == nil {
		opts = &LedgerOptions{}
	}
	l.Begin(*opts)
	return l
}

// Begin begins a run with the ledger of a request. The returned function ends that run: it rolls back the calls of the run
// that have not ended, and has no more begin.
func (l *Ledger) Begin(opts LedgerOptions) (end func()) {
	opts.Logger = safelog.Logger(opts.Logger)
	if opts.Workspace != nil && opts.Workspace.Tree() == nil {
		opts.Workspace = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opts, l.closed, l.outer = opts, false, nil
	if opts.Within != nil {
		l.outer = workspace.TxFrom(opts.Within)
	}
	l.run++
	l.prompt += 2 // the stream of another run has reported nothing
	run := l.run
	return func() { l.close(run) }
}

// A Record is what is known of a call.
type Record struct {
	event.ToolCall // as it was asked; ID, Name and Input as first reported

	// Reading is what the stream has reported of the call; see [Ledger.Read]. It belongs to the stream's goroutine.
	Reading *Reading
	prompt  int // in which it was reported

	input    *input                          // with which it was asked
	run      *input                          // with which it is made, as far as that is known
	asked    []int                           // who was asked
	rewrite  func() (json.RawMessage, error) // the new input, made once; nil before
	denied   bool                            // by any hook or host
	begun    bool                            // our tool was called
	tx       *transaction
	runs     int               // the run that it is part of
	ended    ends              // by whom its end was reported
	failure  *event.ToolResult // how our tool failed
	streamed bool              // the stream reported it
	over     bool

	// For the host of the run.
	decision *event.Decision
	began    time.Time
	seen     bool // it has read the call in the stream
	resulted bool // and of its result
	taken    bool // it knows how the call ended
	own      bool // a tool of this program was called, which records the call
	recorded bool
}

// An input is one of a call. Two of them are the same if they mean the same.
type input struct {
	raw    json.RawMessage
	digest string // empty before it is needed
}

func newInput(raw json.RawMessage) *input {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	return &input{raw: raw}
}

// same is called under the lock of the ledger.
func (i *input) same(other *input) bool {
	if i.raw != nil && bytes.Equal(i.raw, other.raw) {
		return true
	}
	for _, each := range []*input{i, other} {
		if each.digest == "" {
			each.digest = plainjson.Digest(each.raw)
		}
	}
	return i.digest == other.digest
}

// largeInput is one of which only the digest is kept when its call is over.
const largeInput = 1 << 10

// shrinkLocked forgets large inputs of a call that is over, once they are no longer needed.
func (l *Ledger) shrinkLocked(r *Record) {
	if !r.over || l.hosted && !r.recorded {
		return
	}
	for _, i := range []*input{r.input, r.run} {
		if len(i.raw) <= largeInput {
			continue
		}
		if i.digest == "" {
			i.digest = plainjson.Digest(i.raw)
		}
		i.raw, r.Input, r.rewrite, r.decision = nil, nil, nil, nil
	}
}

// A CallDecision is the answer to a [Question].
type CallDecision struct {
	// Silent leaves the decision to others. Verdict does not count then; Input does.
	Silent  bool
	Verdict event.Verdict
	// Reason is what the model reads of a denial.
	Reason string
	// Input is what the call is to be made with. Nil leaves it as it is.
	Input json.RawMessage
}

// A Question is one about a call that an agent is going to make.
type Question struct {
	event.ToolCall
	// Asker is the number of the hook that is asked. An agent may ask several at once. A second question to the
	// same hook is about another call.
	Asker int
	// Waits is true if the agent waits without a timeout, so that the call may first wait for its turn in the workspace.
	Waits bool
	// Decide answers the question about the call with the input it would be made with. An error or a panic denies the call.
	Decide func(ctx context.Context, call event.ToolCall) (CallDecision, error)
}

type way uint8

const (
	byHook way = 1 << iota
	byQuestion
	byTool
	byEnd
)

// The stages that a call goes through, in their order, and the ways in that lead through them. An error ends it.
var stages = []struct {
	name string
	ways way
	do   func(*Ledger, context.Context, *passage) error
}{
	{"identify", byHook | byQuestion | byTool | byEnd, (*Ledger).identify},
	{"rewrite", byHook, (*Ledger).rewrite},
	{"decide", byHook | byQuestion | byTool, (*Ledger).decide},
	{"record", byHook | byQuestion | byTool, (*Ledger).record},
	{"begin", byHook | byQuestion, (*Ledger).begin},
	{"end", byEnd, (*Ledger).end},
}

// A passage is a question or a report about a call on its way through the stages.
type passage struct {
	Question
	by     way
	shown  *input // that of the call, as it is shown to who is asked
	record *Record
	answer CallDecision
	// replaced is true if the answer has another input.
	replaced bool
	ends     ends   // byEnd: by whom it is reported
	failed   bool   // byEnd: what the call has changed is put back
	note     string // byEnd: what the model is to know
}

func (l *Ledger) pass(ctx context.Context, p *passage) error {
	for _, s := range stages {
		if s.ways&p.by == 0 {
			continue
		}
		if err := s.do(l, ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Ask passes a question of a hook on, and begins the transaction of a call that was not denied. Input of the answer
// is the new input for the agent, if Rewrite or Decide has replaced it. An error denies the call.
func (l *Ledger) Ask(ctx context.Context, q Question) (CallDecision, error) {
	p := &passage{Question: q, by: byHook}
	err := l.pass(ctx, p)
	return p.answer, err
}

// AskPermission passes on a question that the agent wants answered, after its hooks. A silent answer
// denies. An error denies the call.
func (l *Ledger) AskPermission(ctx context.Context, q Question) (CallDecision, error) {
	p := &passage{Question: q, by: byQuestion}
	err := l.pass(ctx, p)
	return p.answer, err
}

// Call takes a call of a tool of this program. It is an error unless the call was allowed, once; an unknown call is
// decided now. Where the agent gives no id, the returned call has the id of the oldest call with this name and input
// that has not come yet.
func (l *Ledger) Call(ctx context.Context, call event.ToolCall) (event.ToolCall, error) {
	p := &passage{Question: Question{ToolCall: call}, by: byTool}
	err := l.pass(ctx, p)
	return p.ToolCall, err
}

// ends are the reporters of the end of a call. Each reports once, so that a late report does not end another call.
type ends uint8

const (
	endByHook ends = 1 << iota
	endByResult
	endByBatch
)

// End takes the report of a hook that a call has ended, and ends its transaction: the files stay as they are, or are
// restored if it failed. It returns a note for the model, or "". The end of ctx does not leave files half restored.
func (l *Ledger) End(ctx context.Context, call event.ToolCall, failed bool) (note string) {
	return l.endBy(ctx, call, endByHook, failed)
}

// Result takes the result of a call, also of one whose end no hook reports: the agent has refused it.
func (l *Ledger) Result(ctx context.Context, id event.CallID, failed bool) {
	l.endBy(ctx, event.ToolCall{ID: id}, endByResult, failed)
}

// EndBatch ends calls that can no longer be made or end. Calls that have not ended have failed.
func (l *Ledger) EndBatch(ctx context.Context, calls ...event.ToolCall) (note string) {
	var texts []string
	for _, call := range calls {
		if text := l.endBy(ctx, call, endByBatch, true); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

func (l *Ledger) endBy(ctx context.Context, call event.ToolCall, by ends, failed bool) (note string) {
	p := &passage{Question: Question{ToolCall: call}, by: byEnd, ends: by, failed: failed}
	_ = l.pass(ctx, p) // no stage of it fails
	return p.note
}

// Close ends the last run that has begun.
func (l *Ledger) Close() {
	l.mu.Lock()
	run := l.run
	l.mu.Unlock()
	l.close(run)
}

func (l *Ledger) close(run int) {
	l.mu.Lock()
	l.closed = l.closed || l.run == run
	open := slices.DeleteFunc(slices.Clone(l.order), func(r *Record) bool { return r.runs != run })
	l.mu.Unlock()
	for _, r := range open {
		if tx := l.takeTx(r); tx != nil {
			tx.Undo(context.Background())
		}
	}
}

// Serves reports whether the calls of a run in ctx are part of the same transaction as these, or like these of none.
func (l *Ledger) Serves(ctx context.Context) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opts.Workspace == nil || workspace.TxFrom(ctx) == l.outer
}

// identify finds the record of a call, or makes one.
func (l *Ledger) identify(_ context.Context, p *passage) error {
	p.shown = newInput(p.Input)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch p.by {
	case byHook:
		p.record = l.lastLocked(p.ID, func(r *Record) bool {
			return !r.over && r.Name == p.Name && !slices.Contains(r.asked, p.Asker) && (r.asked == nil || p.shown.same(r.input))
		})
		if p.record != nil && p.record.asked == nil { // another source has reported it
			p.record.ToolCall, p.record.input, p.record.run = p.ToolCall, p.shown, p.shown
		}
	case byQuestion:
		p.record = l.lastLocked(p.ID, func(r *Record) bool { return !r.over && r.Name == p.Name })
	case byTool:
		if p.ID == "" {
			p.record = l.waitingLocked(p)
		} else {
			p.record = l.lastLocked(p.ID, func(r *Record) bool { return r.Name == p.Name })
		}
	case byEnd:
		p.record = l.endedLocked(p)
		return nil
	}
	if p.record == nil {
		p.record = l.addLocked(p.ToolCall)
	}
	p.ID = p.record.ID
	if p.by != byHook && !p.record.over {
		p.record.run = p.shown // whatever hooks were asked about
	}
	if p.by == byHook {
		p.record.asked = append(p.record.asked, p.Asker)
	}
	return nil
}

// endedLocked is the call whose end is reported: the oldest with its name and input whose end this reporter has not
// reported, or else the oldest. No hook reports the end of a denied call.
func (l *Ledger) endedLocked(p *passage) (found *Record) {
	for _, r := range l.calls[p.ID] {
		if r.ended&p.ends != 0 || r.denied && p.ends == endByHook {
			continue
		}
		if p.Name == "" || r.Name == p.Name && (p.shown.same(r.run) || p.shown.same(r.input)) {
			return r
		}
		if found == nil {
			found = r
		}
	}
	return found
}

// lastLocked is the last call with an id of which something holds, or nil.
func (l *Ledger) lastLocked(id event.CallID, is func(*Record) bool) *Record {
	for _, r := range slices.Backward(l.calls[id]) {
		if is(r) {
			return r
		}
	}
	return nil
}

// waitingLocked is the oldest call with a name and an input whose tool has not been called. Equal calls are interchangeable.
func (l *Ledger) waitingLocked(p *passage) *Record {
	for _, r := range l.order {
		if r.asked != nil && r.Name == p.Name && !r.begun && !r.denied && !r.over && p.shown.same(r.run) {
			return r
		}
	}
	return nil
}

// addLocked makes a record. If there are too many, the oldest one that is over goes for it, or else the oldest.
func (l *Ledger) addLocked(call event.ToolCall) *Record {
	in := newInput(call.Input)
	r := &Record{ToolCall: call, input: in, run: in, runs: l.run}
	if call.ID == "" {
		return r // it cannot be found again
	}
	if len(l.order) >= rememberedCalls {
		i := slices.IndexFunc(l.order, func(r *Record) bool { return r.over && r.tx == nil })
		if i < 0 {
			i = max(0, slices.IndexFunc(l.order, func(r *Record) bool { return r.tx == nil }))
		}
		old := l.order[i]
		if !old.over {
			l.opts.Logger.Warn("agent: too many calls are open; the oldest is forgotten, and decided again if it comes", "id", old.ID, "tool", old.Name)
		}
		l.order = slices.Delete(l.order, i, i+1)
		l.calls[old.ID] = slices.DeleteFunc(l.calls[old.ID], func(r *Record) bool { return r == old })
		if len(l.calls[old.ID]) == 0 {
			delete(l.calls, old.ID)
		}
	}
	l.order, l.calls[call.ID] = append(l.order, r), append(l.calls[call.ID], r)
	return r
}

// rewrite has Rewrite replace the input, once for all who are asked. An error, or a panic, denies the call.
func (l *Ledger) rewrite(ctx context.Context, p *passage) error {
	l.mu.Lock()
	opts := l.opts
	if opts.Rewrite != nil && p.record.rewrite == nil {
		call := p.ToolCall
		p.record.rewrite = sync.OnceValues(func() (json.RawMessage, error) { return opts.Rewrite(ctx, call) })
	}
	rewrite := p.record.rewrite
	l.mu.Unlock()
	if opts.Rewrite == nil || opts.Catalogue != nil && p.Name == opts.Catalogue.AnswerTool {
		return nil
	}
	settled := false
	defer func() {
		if !settled {
			l.refuse(p)
		}
	}()
	raw, err := rewrite()
	if err == nil && raw != nil && !plainjson.IsObject(raw) {
		err = errors.New(invalidRewrite(p.Name))
	}
	if err != nil {
		return err
	}
	settled = true
	l.mu.Lock()
	defer l.mu.Unlock()
	if changed := newInput(raw); raw != nil && !changed.same(p.shown) {
		p.Input, p.answer.Input, p.shown, p.record.run = raw, raw, changed, changed
	}
	return nil
}

// decide asks who decides. A call of a tool of this program that was allowed is not decided again.
func (l *Ledger) decide(ctx context.Context, p *passage) error {
	if p.by == byTool {
		return l.decideOwn(ctx, p)
	}
	settled := false // by an error or a panic it is denied
	defer func() {
		if !settled {
			l.refuse(p)
		}
	}()
	rewritten := p.answer.Input
	answer, err := p.Decide(ctx, p.ToolCall)
	if err != nil {
		return err
	}
	settled = true
	p.answer, p.replaced = answer, answer.Input != nil
	if !p.replaced {
		p.answer.Input = rewritten
	}
	return nil
}

func (l *Ledger) record(_ context.Context, p *passage) error {
	r := p.record
	if p.by == byQuestion && (p.answer.Silent || p.answer.Verdict == event.Ask) {
		p.answer.Silent, p.answer.Verdict = false, event.Deny // no other component is asked
	}
	l.mu.Lock()
	switch {
	case p.by == byTool:
		r.begun = true
	case p.answer.Silent:
	case p.answer.Verdict == event.Allow:
		made := p.shown
		if p.answer.Input != nil {
			made = newInput(p.answer.Input)
		}
		l.noteApprovalLocked(p, made, approvalGiven)
	default:
		l.noteApprovalLocked(p, p.shown, approvalOpposed)
	}
	if p.by != byTool && p.answer.Input != nil {
		r.run = newInput(p.answer.Input)
	}
	l.mu.Unlock()
	if !p.answer.Silent && p.by != byTool && p.answer.Verdict == event.Deny {
		l.deny(r)
	}
	return nil
}

// refuse denies a call with the input that is shown.
func (l *Ledger) refuse(p *passage) {
	l.mu.Lock()
	l.noteApprovalLocked(p, p.shown, approvalOpposed)
	l.mu.Unlock()
	l.deny(p.record)
}

// deny ends a call that is not made.
func (l *Ledger) deny(r *Record) {
	l.mu.Lock()
	r.denied = true
	l.mu.Unlock()
	if tx := l.takeTx(r); tx != nil {
		tx.Commit()
	}
}

func (l *Ledger) end(ctx context.Context, p *passage) error {
	if p.record == nil {
		return nil
	}
	if tx := l.takeTx(p.record); tx != nil && p.failed {
		p.note = tx.Undo(context.WithoutCancel(ctx))
	} else if tx != nil {
		tx.Commit()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.record.ended |= p.ends
	p.record.over = true
	l.shrinkLocked(p.record)
	return nil
}
