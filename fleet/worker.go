// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// A Handler answers the requests of an agent.
type Handler[Req, Resp any] struct {
	// Adapter runs the agent.
	Adapter agent.Adapter
	// Prepare makes the prompt of a request, and the options of its evaluation; nil options are the defaults. Register the
	// reducers of the session here. The session, a heartbeat and a policy are added to the options, and the workspace gets the files
	// of earlier attempts. It runs once for each attempt.
	Prepare func(ctx context.Context, request Req, s *session.Session) (*prompt.Prompt[Resp], *drover.Options, error)
	// Finish, unless nil, gets the answer and returns the one of the run. It runs after the agent, and again if the worker
	// dies before the end of the run is recorded; the agent does not.
	Finish func(ctx context.Context, request Req, answer Resp) (Resp, error)
}

// An Agent is a [Handler] with a name, for a [Worker]. Make it with [Handle].
type Agent struct {
	name   string
	handle func(ctx context.Context, t *task) (json.RawMessage, error)
}

// A task is one attempt of a run.
type task struct {
	log     *Log
	request []byte
	session *session.Session
	beat    *guard.Heartbeat
	files   *files // nil before they are known, and without a workspace
	// The limits: what admitted the attempt, and what counts it. Both may be nil.
	admission *admission
	tracker   *guard.Tracker
	outcome   string
}

// A permanentError cannot be helped by another attempt.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Handle makes an agent of a handler. A request that does not decode as Req is dead at once.
func Handle[Req, Resp any](name string, h Handler[Req, Resp]) Agent {
	return Agent{name, func(ctx context.Context, t *task) (json.RawMessage, error) {
		var request Req
		if err := json.Unmarshal(t.request, &request); err != nil {
			return nil, permanentError{fmt.Errorf("the request is not one of agent %s: %w", name, err)}
		}
		answer, err := answerOf(ctx, h, t, request)
		if err != nil {
			return nil, err
		}
		if h.Finish != nil {
			if answer, err = h.Finish(ctx, request, answer); err != nil {
				return nil, fmt.Errorf("the finish step: %w", err)
			}
		}
		return plainjson.Marshal(answer)
	}}
}

// answerOf evaluates the prompt of a request, unless an earlier attempt has its answer.
func answerOf[Req, Resp any](ctx context.Context, h Handler[Req, Resp], t *task, request Req) (answer Resp, err error) {
	if at := t.log.tail.answer; at != 0 {
		m, err := t.log.f.message(ctx, t.log.subject, at)
		if err == nil {
			err = json.Unmarshal(m.body, &answer)
		}
		return answer, err
	}
	opened := workspacesOf(t.session)
	p, given, err := h.Prepare(ctx, request, t.session)
	if err != nil {
		return answer, fmt.Errorf("preparing: %w", err)
	}
	past, err := newReplay(ctx, t.session, h.Adapter.Catalogue())
	if err != nil {
		return answer, fmt.Errorf("reading the log: %w", err)
	}
	var o drover.Options
	if given != nil {
		o = *given
	}
	o.Session, o.Policies = t.session, append([]gate.Policy{past.policy()}, o.Policies...)
	if o.Heartbeat == nil {
		o.Heartbeat = t.beat
	} else {
		o.Heartbeat.OnBeat(t.beat.Beat)
	}
	j := &journal{l: t.log}
	kept, closeFiles, err := filesOf(ctx, h.Adapter, p, &o, j, opened)
	defer closeFiles()
	if err != nil {
		return answer, err
	}
	t.files = kept
	if err := t.bound(&o); err != nil {
		return answer, err
	}
	resp, err := evaluate(ctx, h.Adapter, p, &o, past, j)
	if err != nil {
		return answer, err
	}
	return resp.Output, t.log.note(kindAnswer, resp.Output)
}

// A Worker runs the agents of a fleet. Set Fleet and Agents; the zero value of the others is ready to use.
type Worker struct {
	Fleet  *Fleet
	Agents []Agent
	// Name is for people. Empty means one made of the host and the process.
	Name string
	// Concurrency is how many runs of each agent this worker has at once. Zero means 1.
	Concurrency int
	// Lease is how long a run stays with a worker that shows no sign of life. All workers of an agent should have the
	// same. Zero means 30 seconds.
	Lease time.Duration
	// Stuck is how long a run may go on without a sign of life of its agent before it is stopped. Zero means 10 minutes.
	Stuck time.Duration
	// Attempts is how many attempts a run has before it is dead. Zero means 5.
	Attempts int
	// Backoff is the delay before the attempt after a number of attempts. Nil means a second, doubled each time, up to 15 minutes.
	Backoff func(attempts int) time.Duration
	// Drain is how long runs may go on when the context of Run has ended, before they are handed back. Zero means 30 seconds.
	Drain time.Duration
	// Retention is how long ended runs of all agents are kept. The worker removes others when it begins, and each hour.
	Retention Retention
	// Metrics, unless nil, count what this worker does.
	Metrics *Metrics
}

// Causes of the end of an attempt.
var (
	errDraining  = errors.New("the worker is stopping")
	errCancelled = errors.New(reasonCancelled)
	errStuck     = errors.New("the agent showed no sign of life")
)

// Run runs requests until ctx ends, or the fleet is closed, and then hands back what is not over in time.
func (w *Worker) Run(ctx context.Context) error {
	own := *w
	host, _ := os.Hostname() // a name is enough
	own.Name = cmp.Or(own.Name, fmt.Sprintf("%s-%d-%s", host, os.Getpid(), ident.NewUUID()[:8]))
	own.Concurrency, own.Attempts = cmp.Or(own.Concurrency, 1), cmp.Or(own.Attempts, 5)
	own.Lease, own.Stuck, own.Drain = cmp.Or(own.Lease, 30*time.Second), cmp.Or(own.Stuck, 10*time.Minute), cmp.Or(own.Drain, 30*time.Second)
	if own.Backoff == nil {
		own.Backoff = backoff
	}
	own.Metrics = cmp.Or(own.Metrics, new(Metrics))
	defer own.Metrics.begin(own.Fleet)()
	defer context.AfterFunc(ctx, own.Metrics.drain)()
	work, stop := context.WithCancelCause(own.Fleet.ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { time.AfterFunc(own.Drain, func() { stop(errDraining) }) })()
	var wg sync.WaitGroup
	defer wg.Wait()
	for _, a := range own.Agents {
		q, err := own.queueOf(ctx, a.name)
		if err != nil {
			stop(errDraining)
			return advice.Wrap(fmt.Errorf("fleet: the queue of agent %q: %w", a.name, err), "name the agent with letters, digits, - and _")
		}
		own.Metrics.serves(q)
		wg.Go(func() { own.serve(ctx, work, q, a) })
	}
	wg.Go(func() { own.Fleet.fireSchedules(ctx) })
	wg.Go(func() { own.prune(ctx) })
	wg.Wait()
	return nil
}

func backoff(attempts int) time.Duration {
	return min(time.Second<<min(max(attempts-1, 0), 20), 15*time.Minute)
}

// serve takes requests until ctx or work ends, up to Concurrency at once. Runs end with work.
func (w *Worker) serve(ctx, work context.Context, q *queue, a Agent) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(work, cancel)()
	sub, changed, err := w.Fleet.hints(w.Fleet.name + ".*") // limits and admissions
	if err == nil {                                         // else they are read now and then
		defer func() { _ = sub.Unsubscribe() }()
	}
	slots := make(chan struct{}, w.Concurrency)
	var running sync.WaitGroup
	defer running.Wait()
	defer q.pulls.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		if !w.Fleet.awaitRoom(ctx, a.name, changed, w.Lease) {
			return
		}
		m := q.take(ctx)
		if m == nil {
			return
		}
		running.Go(func() {
			defer func() { <-slots }()
			w.deliver(work, m, a)
		})
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// deliver makes one attempt at a run. The request is acknowledged when the end is in the log.
func (w *Worker) deliver(work context.Context, m jetstream.Msg, a Agent) {
	r := w.Fleet.runOf(m.Subject())
	note := w.Fleet.log.With("run", r.id, "worker", w.Name)
	if wait := w.Fleet.early(m.Headers()); wait > 0 {
		if err := m.NakWithDelay(max(wait/4, min(wait, w.Fleet.check))); err != nil {
			note.Warn("a run that waits for its time is not handed back", "error", err)
		}
		return
	}
	adm, refused, err := w.Fleet.admit(work, r)
	if err == nil && refused == "" {
		err = w.admitted(work, m, r, adm, a)
	} else {
		err = errors.Join(err, m.NakWithDelay(time.Second))
	}
	if err != nil {
		note.Warn("the attempt at a run is not recorded; the run goes on with the next delivery", "error", err)
	}
}

func sequenceOf(m jetstream.Msg) uint64 {
	meta, err := m.Metadata()
	if err != nil {
		return 0 // it is no message of a stream
	}
	return meta.Sequence.Stream
}

// admitted makes an attempt that the limits admit. The queue learns of its end after the limits, so that no run counts as under way
// that is not delivered again.
func (w *Worker) admitted(work context.Context, m jetstream.Msg, r *Run, adm *admission, a Agent) error {
	t := &task{beat: guard.NewHeartbeat(nil), admission: adm}
	then, elsewhere := m.Ack, false
	log, err := w.Fleet.openLog(work, r.id, w.Name, sequenceOf(m))
	switch {
	case errors.Is(err, ErrEnded):
		err = nil
	case err != nil:
		then, elsewhere = func() error { return m.NakWithDelay(time.Second) }, adm != nil && adm.counted
	default:
		t.log = log
		ended := w.Metrics.attempt(a.name)
		then, err = w.attempt(work, m, r, t, a)
		select {
		case <-log.Lost():
			elsewhere, t.outcome = true, outcomeLost
		default:
		}
		ended(t.outcome)
	}
	if settled := w.Fleet.settle(r, adm, t.tracker.Consumed(), elsewhere); settled != nil || then == nil {
		return errors.Join(err, settled)
	}
	return errors.Join(err, then())
}

// attempt makes an attempt, and returns what the queue is to know. Nil is nothing.
func (w *Worker) attempt(work context.Context, m jetstream.Msg, r *Run, t *task, a Agent) (then func() error, err error) {
	log := t.log
	defer log.Close()
	attempts := log.tail.attempts
	if attempts > int64(w.Attempts) {
		return w.end(m, t, Result{State: Dead, Reason: w.lastFailure(work, log)})
	}
	ctx, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	var alive sync.WaitGroup
	alive.Go(func() { w.keepAlive(ctx, cancel, m, r, t) })
	output, err := w.handle(ctx, m, t, a)
	cause := context.Cause(ctx)
	cancel(nil)
	alive.Wait()
	switch permanent := (permanentError{}); {
	case errors.Is(cause, ErrLost), errors.Is(err, ErrLost):
		return nil, nil // another worker has the run
	case err == nil:
		return w.end(m, t, Result{State: Succeeded, Output: output})
	case errors.Is(cause, errCancelled):
		return w.end(m, t, Result{State: Cancelled, Reason: reasonCancelled})
	case errors.Is(cause, errStuck):
		err = fmt.Errorf("%w for %s", errStuck, w.Stuck)
	case cause != nil: // drained, or the fleet is closed
		t.outcome = outcomeHandedBack
		return m.Nak, log.note(kindReleased, nil)
	case errors.As(err, &permanent):
		return w.end(m, t, Result{State: Dead, Reason: advice.Text(err)})
	}
	if attempts >= int64(w.Attempts) {
		return w.end(m, t, Result{State: Dead, Reason: advice.Text(err)})
	}
	t.outcome = outcomeFailed
	return func() error { return m.NakWithDelay(w.Backoff(int(attempts))) }, log.note(kindFailed, advice.Text(err))
}

// lastFailure is why a run has no attempts left without one that says so: its worker has died each time.
func (w *Worker) lastFailure(ctx context.Context, log *Log) string {
	reason := fmt.Sprintf("its worker has died in each of %d attempts", w.Attempts)
	if log.tail.failed == 0 {
		return reason
	}
	var last string
	m, err := w.Fleet.message(ctx, log.subject, log.tail.failed)
	if err != nil || json.Unmarshal(m.body, &last) != nil {
		return reason
	}
	return "its worker has died in the last of its attempts; the last failure before: " + last
}

// end records the end of a run. Its request is acknowledged after that.
func (w *Worker) end(m jetstream.Msg, t *task, result Result) (then func() error, err error) {
	result.Attempts, result.Ended, t.outcome = t.log.tail.attempts, time.Now(), string(result.State)
	if err := t.log.note(kindEnd, result); err != nil {
		return nil, err
	}
	return m.Ack, nil
}

// handle calls the agent. What it does with the session is in the log before it returns.
func (w *Worker) handle(ctx context.Context, m jetstream.Msg, t *task, a Agent) (output json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the handler of agent %s panicked: %v", a.name, p)
			w.Fleet.log.Error("a handler panicked", "agent", a.name, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if t.request, err = w.request(ctx, m); err != nil {
		return nil, err
	}
	t.session, err = session.Open(openLog{t.log, t}, &session.Options{Logger: w.Fleet.log})
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := t.session.Close(); err == nil && closed != nil {
			w.Fleet.log.Warn("closing a session", "run", t.log.id, "error", closed)
		}
	}()
	return a.handle(ctx, t)
}

// An openLog is the log of a task as the store of its session. It stays open when its session is closed.
type openLog struct {
	*Log
	t *task
}

func (l openLog) Append(records []session.Record) error {
	if err := l.t.files.before(records); err != nil {
		return err
	}
	return l.Log.Append(records)
}

func (openLog) Close() error { return nil }

func (w *Worker) request(ctx context.Context, m jetstream.Msg) ([]byte, error) {
	name := m.Headers().Get(headerObject)
	if name == "" {
		return m.Data(), nil
	}
	data, err := w.Fleet.objects.GetBytes(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	return data, nil
}

// keepAlive extends the lease of a run as long as its agent shows signs of life, and ends the attempt when it must end.
func (w *Worker) keepAlive(ctx context.Context, cancel context.CancelCauseFunc, m jetstream.Msg, r *Run, t *task) {
	sub, asked, err := w.Fleet.hints(r.subject("cancel"))
	if err == nil { // else the next tick finds it
		defer func() { _ = sub.Unsubscribe() }()
	}
	tick := time.NewTicker(w.Lease / 3)
	defer tick.Stop()
	for {
		if r.cancelled(ctx) {
			cancel(errCancelled)
			return
		}
		if t.beat.Elapsed() > w.Stuck {
			cancel(errStuck)
			return
		}
		if err := m.InProgress(); err != nil {
			w.Fleet.log.Warn("the lease of a run is not extended", "run", r.id, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.log.Lost():
			cancel(ErrLost)
			return
		case <-asked:
			cancel(errCancelled)
			return
		case <-tick.C:
		}
	}
}
