// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/session"
)

// Errors of requests.
var (
	// ErrKeyTaken: a run of this key has another request.
	ErrKeyTaken = errors.New("fleet: the key belongs to another request")
	// ErrNoRun: there is no run of this id.
	ErrNoRun = errors.New("fleet: there is no such run")
)

// SubmitOptions configure [Fleet.Submit]. Nil and the zero value are ready to use.
type SubmitOptions struct {
	// Key makes the request idempotent: the same agent, key and request are one run, however often they are submitted.
	// Empty means a new run each time.
	Key string
	// Priority is how soon a worker takes the run. A run that exists already keeps its own.
	Priority Priority
	// NotBefore is when the run may begin. The zero value means at once. A run that exists already keeps its own.
	NotBefore time.Time
}

// A Run is one request to an agent, wherever it runs.
type Run struct {
	f         *Fleet
	agent, id string // id is the whole one
}

const (
	headerDigest    = "Drover-Digest"     // of a request
	headerNotBefore = "Drover-Not-Before" // of a request that waits for its time
	// pollEvery is how often a waiting caller reads the log. Between, it is told of appends.
	pollEvery = 2 * time.Second
	settle    = 10 * time.Millisecond
)

// Submit queues a request to an agent, as JSON. When it returns, the request is kept, also if no worker knows the agent yet.
func (f *Fleet) Submit(ctx context.Context, agent string, request any, opts *SubmitOptions) (*Run, error) {
	if !validToken(agent) {
		return nil, advice.Wrap(fmt.Errorf("fleet: %q cannot be the name of an agent", agent), "use up to 64 letters, digits, - and _")
	}
	body, err := plainjson.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("fleet: the request to %s: %w", agent, err)
	}
	var o SubmitOptions
	if opts != nil {
		o = *opts
	}
	level, err := o.Priority.level()
	if err != nil {
		return nil, fmt.Errorf("fleet: submitting to %s: %w", agent, err)
	}
	token := ident.NewUUID()
	if o.Key != "" {
		sum := sha256.Sum256([]byte(o.Key))
		token = hex.EncodeToString(sum[:16])
	}
	r := &Run{f, agent, agent + "." + token}
	m := nats.NewMsg(r.subject("work") + "." + level)
	m.Header.Set(headerDigest, plainjson.Digest(body))
	if !o.NotBefore.IsZero() {
		m.Header.Set(headerNotBefore, o.NotBefore.UTC().Format(time.RFC3339Nano))
	}
	for {
		if err := f.setBody(ctx, m, r.id, body); err != nil {
			return nil, fmt.Errorf("fleet: submitting to %s: %w", agent, err)
		}
		if _, err = f.append(ctx, m, 0); err == nil {
			return r, nil
		}
		f.dropBody(m, err)
		if !errors.Is(err, errBehind) {
			return nil, advice.Wrap(fmt.Errorf("fleet: submitting to %s: %w", agent, err), "submit again with the same Key")
		}
		first, gone, err := r.existing(ctx)
		switch {
		case err != nil:
			return nil, fmt.Errorf("fleet: submitting to %s: %w", agent, err)
		case gone:
		case first.header.Get(headerDigest) != m.Header.Get(headerDigest):
			return nil, advice.Wrap(fmt.Errorf("%w: agent %s, run %s", ErrKeyTaken, agent, r.id), "use another Key for another request")
		default:
			return r, nil
		}
	}
}

// existing is the request of the run, unless the run is removed. A removal that was interrupted goes on.
func (r *Run) existing(ctx context.Context) (request message, gone bool, err error) {
	if request, err = r.request(ctx); err != nil || request.seq == 0 {
		return request, true, err
	}
	m, err := r.f.last(ctx, r.subject("log"))
	if err != nil || m.kind() != kindRemoved || request.seq > requestOf(&m) {
		return request, false, err
	}
	if err := r.Remove(ctx); err != nil && !errors.Is(err, ErrNoRun) && !errors.Is(err, ErrNotEnded) {
		return request, false, err
	}
	return request, true, nil
}

// Run finds a run by its id.
func (f *Fleet) Run(ctx context.Context, id string) (*Run, error) {
	agent, token, ok := strings.Cut(id, ".")
	if !ok || !validToken(agent) || !validToken(token) {
		return nil, fmt.Errorf("%w: %q is not an id of a run", ErrNoRun, id)
	}
	r := &Run{f, agent, id}
	m, err := r.request(ctx)
	if err != nil {
		return nil, fmt.Errorf("fleet: finding the run %s: %w", id, err)
	}
	if m.seq == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoRun, id)
	}
	return r, nil
}

func (r *Run) subject(what string) string { return r.f.name + "." + what + "." + r.id }

// request is the last message with the request, or the zero value.
func (r *Run) request(ctx context.Context) (message, error) {
	return r.f.last(ctx, r.subject("work")+".*")
}

// exclusive is the subject of which an append must be the next message. The requests of a run are one, whatever their priority.
func (f *Fleet) exclusive(subject string) string {
	if strings.HasPrefix(subject, f.name+".work.") {
		return subject[:strings.LastIndexByte(subject, '.')] + ".*"
	}
	return subject
}

// runOf is the run of the subject of a request.
func (f *Fleet) runOf(subject string) *Run {
	id := strings.TrimPrefix(subject, f.name+".work.")
	id = id[:strings.LastIndexByte(id, '.')]
	agent, _, _ := strings.Cut(id, ".")
	return &Run{f, agent, id}
}

// early is how long a request has to wait for its time.
func (f *Fleet) early(request nats.Header) time.Duration {
	at, err := time.Parse(time.RFC3339Nano, request.Get(headerNotBefore))
	if err != nil {
		return 0 // it has none
	}
	return at.Sub(f.now())
}

// ID names the run. It begins with the name of the agent.
func (r *Run) ID() string { return r.id }

// A State is how far a run is.
type State string

// The states of runs.
const (
	// Queued: it waits for a worker, for its next attempt, or for its time; see [Run.NotBefore].
	Queued State = "queued"
	// Running: a worker has it. If that worker has died, it is running until its lease is over.
	Running State = "running"
	// Succeeded: it has an answer.
	Succeeded State = "succeeded"
	// Dead: it has failed too often, or cannot succeed. [Run.Retry] queues it again.
	Dead State = "dead"
	// Cancelled: it was cancelled.
	Cancelled State = "cancelled"
)

// A Result is the end of a run.
type Result struct {
	// State is Succeeded, Dead or Cancelled.
	State State `json:"state"`
	// Output is the answer as JSON, if there is one.
	Output json.RawMessage `json:"output,omitempty"`
	// Reason is why there is no answer.
	Reason string `json:"reason,omitzero"`
	// Attempts is how often a worker began.
	Attempts int64     `json:"attempts"`
	Ended    time.Time `json:"ended"`
}

// Decode stores the answer in the value that v points to. A run without an answer is an error with its reason.
func (r *Result) Decode(v any) error {
	if r.State != Succeeded {
		return advice.Wrap(fmt.Errorf("fleet: the run is %s: %s", r.State, r.Reason), "fix the cause, then Run.Retry")
	}
	if err := json.Unmarshal(r.Output, v); err != nil {
		return fmt.Errorf("fleet: the answer of the run: %w", err)
	}
	return nil
}

// State reads how far the run is.
func (r *Run) State(ctx context.Context) (State, error) {
	m, err := r.f.last(ctx, r.subject("log"))
	if err != nil {
		return "", fmt.Errorf("fleet: the run %s: %w", r.id, err)
	}
	state, _, err := r.stateAt(ctx, &m)
	return state, err
}

// stateAt is how far a run is whose log ends with a message, and its end if it has one.
func (r *Run) stateAt(ctx context.Context, m *message) (State, *Result, error) {
	switch m.kind() {
	case "", kindFailed, kindReleased, kindRetry:
		return Queued, nil, nil
	case kindEnd:
		result, err := r.resultIn(ctx, m.seq)
		if err != nil {
			return "", nil, err
		}
		return result.State, result, nil
	case kindRemoved:
		if gone, err := r.gone(ctx, m); err != nil || gone {
			return "", nil, fmt.Errorf("fleet: the run %s: %w", r.id, cmp.Or(err, ErrNoRun))
		}
		return Queued, nil, nil
	}
	return Running, nil, nil
}

func (r *Run) resultIn(ctx context.Context, seq uint64) (*Result, error) {
	m, err := r.f.message(ctx, r.subject("log"), seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrObjectNotFound) || err == nil && m.seq != seq {
		err = ErrNoRun // it was removed meanwhile
	}
	if err != nil {
		return nil, fmt.Errorf("fleet: the run %s: %w", r.id, err)
	}
	result := new(Result)
	if err := json.Unmarshal(m.body, result); err != nil {
		return nil, fmt.Errorf("fleet: the end of the run %s: %w", r.id, err)
	}
	return result, nil
}

// NotBefore is when the run may begin, or the zero time. [Run.Retry] removes it.
func (r *Run) NotBefore(ctx context.Context) (time.Time, error) {
	m, err := r.request(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("fleet: the run %s: %w", r.id, err)
	}
	at, _ := time.Parse(time.RFC3339Nano, m.header.Get(headerNotBefore)) // else it has none
	return at, nil
}

// Wait waits for the end of the run.
func (r *Run) Wait(ctx context.Context) (*Result, error) {
	for m, err := range r.follow(ctx) {
		if err != nil {
			return nil, err
		}
		if m.kind() == kindEnd {
			return r.resultIn(ctx, m.seq)
		}
	}
	return nil, context.Cause(ctx)
}

// follow yields the last message of the log, and each later last one as it is seen.
func (r *Run) follow(ctx context.Context) iter.Seq2[*message, error] {
	return func(yield func(*message, error) bool) {
		sub, appended, err := r.f.hints(r.subject("log"))
		if err != nil {
			yield(nil, fmt.Errorf("fleet: following the run %s: %w", r.id, err))
			return
		}
		defer func() { _ = sub.Unsubscribe() }()
		seen, wait := uint64(0), time.Duration(0)
		for {
			select {
			case <-ctx.Done():
				yield(nil, fmt.Errorf("fleet: following the run %s: %w", r.id, context.Cause(ctx)))
				return
			case <-appended: // it is not kept yet
				wait = settle
				continue
			case <-time.After(wait):
			}
			wait = min(max(2*wait, settle), pollEvery)
			m, err := r.f.last(ctx, r.subject("log"))
			if err != nil && ctx.Err() == nil {
				r.f.log.Warn("following a run", "run", r.id, "error", err)
				continue // the server may come back
			}
			if err == nil && m.seq > seen {
				seen = m.seq
				if gone, err := r.gone(ctx, &m); err != nil || gone {
					yield(nil, fmt.Errorf("fleet: following the run %s: %w", r.id, cmp.Or(err, ErrNoRun)))
					return
				}
				if !yield(&m, nil) {
					return
				}
			}
		}
	}
}

// hints reports messages to a subject: at once, before they are kept, and not for sure.
func (f *Fleet) hints(subject string) (*nats.Subscription, <-chan struct{}, error) {
	sent := make(chan struct{}, 1)
	sub, err := f.conn.Subscribe(subject, func(*nats.Msg) {
		select {
		case sent <- struct{}{}:
		default:
		}
	})
	return sub, sent, err
}

// Events yields the records of the run above a number, those of the future too, until the run ends. An error is the last pair.
func (r *Run) Events(ctx context.Context, after int64) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for m, err := range r.follow(ctx) {
			if err != nil {
				yield(session.Record{}, err)
				return
			}
			tail, err := positionOf(m)
			if err == nil && tail.records > after {
				wanted := true
				l := &Log{f: r.f, id: r.id, subject: r.subject("log")}
				err = l.records(after, tail, func(record session.Record, err error) bool {
					after, wanted = record.Pos, yield(record, err)
					return wanted
				})
				if !wanted {
					return
				}
			}
			if err != nil {
				yield(session.Record{}, fmt.Errorf("fleet: the events of the run %s: %w", r.id, err))
				return
			}
			if m.kind() == kindEnd {
				return
			}
		}
	}
}

// Cancel ends a run that waits, and asks the worker of a running one to end it. It does nothing for a run that has ended.
func (r *Run) Cancel(ctx context.Context) error {
	for {
		m, err := r.f.last(ctx, r.subject("log"))
		if err != nil {
			return fmt.Errorf("fleet: cancelling the run %s: %w", r.id, err)
		}
		tail, err := positionOf(&m)
		if err != nil {
			return fmt.Errorf("fleet: cancelling the run %s: %w", r.id, err)
		}
		gone, err := r.gone(ctx, &m)
		if err != nil {
			return fmt.Errorf("fleet: cancelling the run %s: %w", r.id, err)
		}
		switch kind := m.kind(); {
		case kind == kindEnd || gone:
			return nil
		case slices.Contains([]string{"", kindFailed, kindReleased, kindRetry, kindRemoved}, kind):
			end := newMessage(r.subject("log"), kindEnd, tail)
			end.Data, _ = plainjson.Marshal(Result{State: Cancelled, Reason: reasonCancelled, Attempts: tail.attempts, Ended: time.Now()}) // it has a JSON form
			if _, err = r.f.append(ctx, end, m.seq); errors.Is(err, errBehind) {
				continue // a worker was faster
			}
		default:
			_, err = r.f.js.PublishMsg(ctx, nats.NewMsg(r.subject("cancel")))
		}
		if err != nil {
			return fmt.Errorf("fleet: cancelling the run %s: %w", r.id, err)
		}
		return nil
	}
}

const reasonCancelled = "it was cancelled"

// cancelled reports whether someone has asked to cancel the run.
func (r *Run) cancelled(ctx context.Context) bool {
	m, err := r.f.last(ctx, r.subject("cancel"))
	return err == nil && m.seq != 0
}

// Retry queues a run again that is dead or was cancelled. It goes on with its log: calls that it has finished are not repeated.
func (r *Run) Retry(ctx context.Context) error {
	fail := func(err error) error { return fmt.Errorf("fleet: retrying the run %s: %w", r.id, err) }
	request, err := r.request(ctx)
	if err != nil || request.seq == 0 {
		return fail(errors.Join(err, ErrNoRun))
	}
	m, err := r.f.last(ctx, r.subject("log"))
	if err != nil {
		return fail(err)
	}
	tail, err := positionOf(&m)
	if err != nil {
		return fail(err)
	}
	switch m.kind() {
	case kindEnd:
		result, err := r.resultIn(ctx, m.seq)
		if err != nil {
			return err
		}
		if result.State == Succeeded {
			return advice.Wrap(fail(errors.New("it has succeeded")), "submit the request with another Key")
		}
		if err := r.f.work.Purge(ctx, jetstream.WithPurgeSubject(r.subject("cancel"))); err != nil {
			return fail(err)
		}
		tail.attempts, tail.failed = 0, 0
		if _, err := r.f.append(ctx, newMessage(r.subject("log"), kindRetry, tail), m.seq); err != nil {
			return fail(err)
		}
	case kindRemoved:
		if gone, err := r.gone(ctx, &m); err != nil || gone {
			return fail(cmp.Or(err, ErrNoRun))
		}
		return nil // it was submitted again
	case kindRetry: // an earlier Retry may have got no further
	default:
		return nil // it is queued or running
	}
	again := nats.NewMsg(request.subject)
	again.Data = request.body
	for _, name := range []string{headerDigest, headerObject} {
		if v := request.header.Get(name); v != "" {
			again.Header.Set(name, v)
		}
	}
	if _, err := r.f.append(ctx, again, request.seq); err != nil && !errors.Is(err, errBehind) {
		return fail(err)
	}
	return nil
}

// Runs yields the runs of the fleet in the order of their requests. An error is the last pair.
func (f *Fleet) Runs(ctx context.Context) iter.Seq2[*Run, error] {
	return func(yield func(*Run, error) bool) {
		subject := f.name + ".work.*.*.*"
		last, err := f.last(ctx, subject)
		if err != nil {
			yield(nil, fmt.Errorf("fleet: listing runs: %w", err))
			return
		}
		for seq := uint64(1); seq <= last.seq; seq++ {
			m, err := f.work.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			if err != nil {
				yield(nil, fmt.Errorf("fleet: listing runs: %w", err))
				return
			}
			if !yield(f.runOf(m.Subject), nil) {
				return
			}
			seq = m.Sequence
		}
	}
}
