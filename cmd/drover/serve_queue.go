// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	root "github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
	"github.com/drover-agents/drover/session"
)

// queueAgent is the agent of the fleet that runs all starts of a server, so that one number bounds them.
const queueAgent = "start"

// How a server works on its queue.
const (
	// queueLease is short: only this process has the folder. After a kill the next server begins with it.
	queueLease = 10 * time.Second
	// queueStuck leaves people time to answer a question.
	queueStuck = 30 * 24 * time.Hour
	// queueDrain hands runs back at once: the next server continues them.
	queueDrain = time.Millisecond
)

// A queuedStart is the request of a start in the queue.
type queuedStart struct {
	server.Start
	// Resume is the token of the conversation that the run continues.
	Resume string `json:"resume,omitzero"`
}

// A queueStarter keeps starts in a queue, and runs them in this process. It is a [server.Queue].
type queueStarter struct {
	*starter
	fleet *fleet.Fleet
	stop  context.CancelFunc
	done  chan error
	ended sync.Map // ids of runs that a list need not look at: only Retry continues them
}

// openQueue opens the queue of a folder, and begins to work on it.
func openQueue(ctx context.Context, st *starter, log *slog.Logger, errs io.Writer) (*queueStarter, error) {
	current, err := workFolder()
	if err != nil {
		return nil, err
	}
	if len(st.folders) != 1 || st.folders[0] != realPath(current) {
		return nil, advice.Wrap(usageError("--queue has its runs in the current folder, and --folder names another"), "start drover serve in that folder, and leave --folder out")
	}
	if _, off, err := keepSetting(os.Getenv(envKeep)); err != nil || off {
		return nil, cmp.Or(err, advice.Wrap(usageError("--queue needs kept runs, and %s keeps none", envKeep), "unset it, or set limits such as runs=500"))
	}
	if info, err := os.Stat(st.o.queue); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, advice.Wrap(usageError("--queue: other users can reach %s, and the queue has all that agents read and write", st.o.queue),
			"chmod 700 %s, or name a folder that is not there yet", st.o.queue)
	}
	f, err := fleet.Open(ctx, &fleet.Options{Dir: st.o.queue, Logger: log})
	if err != nil {
		return nil, err
	}
	q := &queueStarter{starter: st, fleet: f, done: make(chan error, 1)}
	runner := &fleetRunner{starter: st, fleet: f, worker: workerName(), asks: true, out: io.Discard, errs: errs}
	w := fleet.Worker{
		Fleet: f, Name: runner.worker, Concurrency: st.o.most, Lease: queueLease, Stuck: queueStuck, Drain: queueDrain,
		Agents: []fleet.Agent{fleet.HandleEach(queueAgent, func(ctx context.Context, run string, s queuedStart) (h fleet.Handler[queuedStart, prompt.JSON], end func(error) error, err error) {
			a, err := runner.open(ctx, run, s)
			if err != nil {
				return h, nil, err
			}
			h.Adapter, h.Prepare = a.adapter, func(ctx context.Context, _ queuedStart, s *session.Session) (*prompt.Prompt[prompt.JSON], *root.Options, error) {
				return a.prepare(ctx, s)
			}
			return h, a.end, nil
		})},
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	q.stop = stop
	go func() { q.done <- w.Run(working) }()
	return q, nil
}

// close hands the runs under way back to the queue, and closes it.
func (q *queueStarter) close() error {
	q.stop()
	var err error
	select {
	case err = <-q.done:
	case <-time.After(patience):
		err = fmt.Errorf("runs did not end within %s", patience)
	}
	return errors.Join(err, q.fleet.Close(), q.starter.close())
}

// Start implements [server.Starter].
func (q *queueStarter) Start(ctx context.Context, s server.Start) (string, error) {
	return q.submit(ctx, queuedStart{Start: s})
}

// Continue implements [server.Starter].
func (q *queueStarter) Continue(ctx context.Context, run *record.Run, text string) (string, error) {
	s, token, err := q.continued(run, text)
	if err != nil {
		return "", err
	}
	return q.submit(ctx, queuedStart{Start: *s, Resume: token})
}

func (q *queueStarter) submit(ctx context.Context, s queuedStart) (string, error) {
	if _, err := (&fleetRunner{starter: q.starter}).checked(ctx, s); err != nil {
		if _, is := errors.AsType[*server.Problem](err); is {
			return "", err
		}
		return "", refused("%s", err)
	}
	run, err := q.fleet.Submit(ctx, queueAgent, s, &fleet.SubmitOptions{Key: s.Key})
	if errors.Is(err, fleet.ErrKeyTaken) {
		p := refused("the key belongs to another start")
		p.Status, p.Title, p.Next = http.StatusConflict, http.StatusText(http.StatusConflict), "use another key for another start"
		return "", p
	}
	if err != nil {
		return "", err
	}
	return tokenOf(run.ID()), nil
}

// tokenOf is the part of a run's id behind the name of its agent.
func tokenOf(id string) string { return id[strings.IndexByte(id, '.')+1:] }

// QueuedRun implements [server.Queue].
func (q *queueStarter) QueuedRun(ctx context.Context, id string) (*server.QueuedRun, error) {
	run, err := q.fleet.Run(ctx, queueAgent+"."+id)
	if errors.Is(err, fleet.ErrNoRun) {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	status, err := run.Status(ctx)
	if err != nil {
		return nil, err
	}
	r, err := q.describe(ctx, run, status.Submitted)
	if err != nil {
		return nil, err
	}
	kept, _, err := keptAttempt(q.store, r.ID)
	if err != nil {
		return nil, err
	}
	if kept != nil {
		r.Kept = kept.ID
	}
	switch {
	case status.Result != nil:
		r.State, r.Status, r.Error = record.Ended, endOf[status.State], status.Result.Reason
	case status.State == fleet.Running && kept != nil && kept.State == record.Running: // else its worker is gone, or only opens it
		r.State = record.Running
	}
	return r, nil
}

// endOf is how runs of the API end.
var endOf = map[fleet.State]event.DoneStatus{fleet.Succeeded: event.DoneSuccess, fleet.Cancelled: event.DoneInterrupted, fleet.Dead: event.DoneError}

// describe is a run that waits.
func (q *queueStarter) describe(ctx context.Context, run *fleet.Run, submitted time.Time) (*server.QueuedRun, error) {
	request, err := run.Request(ctx)
	if err != nil {
		return nil, err
	}
	r := &server.QueuedRun{ID: tokenOf(run.ID()), State: server.Queued, Queued: submitted}
	if err := json.Unmarshal(request, &r.Start); err != nil {
		return nil, fmt.Errorf("the start %s: %w", r.ID, err)
	}
	r.Start.Folder = cmp.Or(r.Start.Folder, q.folders[0])
	return r, nil
}

// Queued implements [server.Queue].
func (q *queueStarter) Queued(ctx context.Context) (all []server.QueuedRun, err error) {
	for run, err := range q.fleet.Runs(ctx) {
		if err != nil {
			return nil, err
		}
		if _, over := q.ended.Load(run.ID()); over {
			continue
		}
		status, err := run.Status(ctx)
		if err != nil {
			return nil, err
		}
		switch {
		case status.Result != nil:
			q.ended.Store(run.ID(), true)
		case status.State == fleet.Queued:
			r, err := q.describe(ctx, run, status.Submitted)
			if err != nil {
				return nil, err
			}
			all = append(all, *r)
		}
	}
	return all, nil
}

// Cancel implements [server.Queue].
func (q *queueStarter) Cancel(ctx context.Context, id string) error {
	run, err := q.fleet.Run(ctx, queueAgent+"."+id)
	if err != nil {
		return err
	}
	return run.Cancel(ctx)
}

// Retry implements [server.Queue].
func (q *queueStarter) Retry(ctx context.Context, id string) error {
	run, err := q.fleet.Run(ctx, queueAgent+"."+id)
	if err == nil {
		if state, failed := run.State(ctx); failed == nil && state == fleet.Succeeded {
			p := refused("the run has its answer")
			p.Status, p.Title, p.Next = http.StatusConflict, http.StatusText(http.StatusConflict), "start another one"
			return p
		}
		q.ended.Delete(run.ID())
		err = run.Retry(ctx)
	}
	return err
}

// checkPrompt refuses a prompt that is no text.
func checkPrompt(text string) error {
	if problem := safetext.PromptProblem(text); problem != "" {
		return advice.Wrap(usageError("the prompt %s", problem), "send the prompt as UTF-8 text")
	}
	return nil
}
