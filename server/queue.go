// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/record/index"
)

// Queued is the state of a run that waits for its turn, in a [Queue].
const Queued record.State = "queued"

// A Queue is a [Starter] whose starts wait for their turn.
type Queue interface {
	Starter
	// Queued are the runs that wait, the first one first.
	Queued(ctx context.Context) ([]QueuedRun, error)
	// QueuedRun finds a run that was started here by its id. One that there is not is [fs.ErrNotExist].
	QueuedRun(ctx context.Context, id string) (*QueuedRun, error)
	// Cancel ends a run, whether it waits or is under way.
	Cancel(ctx context.Context, id string) error
	// Retry queues a run again that has ended without an answer. It does nothing for others.
	Retry(ctx context.Context, id string) error
}

// A QueuedRun is a start in a [Queue].
type QueuedRun struct {
	ID    string
	Start Start
	// State is Queued, or that of the run that was made of it.
	State  record.State
	Queued time.Time
	// Kept is the id of the latest kept run that was made of it. Empty means that it has not begun.
	Kept string
	// Status and Error are how it ended.
	Status event.DoneStatus
	Error  string
}

func (s *Server) queue() Queue {
	q, _ := s.o.Starter.(Queue)
	return q
}

// queued is the run of a request if no kept run shows it: it waits, or has ended before it began. Else it is nil.
func (s *Server) queued(ctx context.Context, id string) (*QueuedRun, error) {
	q := s.queue()
	if q == nil {
		return nil, nil
	}
	run, err := q.QueuedRun(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || run.State != Queued && run.Kept != "" {
		return nil, err
	}
	return run, nil
}

// keptID is the id of the kept run that an id means: the latest one that was made of a start.
func (s *Server) keptID(ctx context.Context, id string) string {
	if q := s.queue(); q != nil {
		if run, err := q.QueuedRun(ctx, id); err == nil && run.Kept != "" {
			return run.Kept
		}
	}
	return id
}

var errWaits = problem(http.StatusConflict, "the run waits in the queue", "wait until it begins, or stop it")

func (r *QueuedRun) summary() Summary {
	s := Summary{
		ID: r.ID, Title: cmp.Or(safetext.FirstWords(r.Start.Prompt, 200), r.Start.Agent, r.ID), Name: r.Start.Agent, Folder: r.Start.Folder,
		Model: r.Start.Model, State: r.State, Began: r.Queued, Questions: []Question{},
	}
	s.Status, s.Error = r.Status, r.Error
	return s
}

// whole is all that is known of it.
func (r *QueuedRun) whole() Run {
	run := Run{Summary: r.summary(), Limits: r.Start.Limits}
	if r.State != Queued {
		run.End = &RunEnd{Error: r.Error}
	}
	return run
}

// waiting are the summaries of runs in the queue that a filter chooses, the latest first.
func (s *Server) waiting(ctx context.Context, f index.Filter) (all []Summary, err error) {
	q := s.queue()
	if q == nil || f.Failed || f.State != "" && f.State != Queued {
		return nil, nil
	}
	runs, err := q.Queued(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Backward(runs) {
		words := slices.AppendSeq([]string{r.ID, r.Start.Agent, r.Start.Prompt, r.Start.Folder}, maps.Values(r.Start.Args))
		text := strings.ToLower(strings.Join(words, " "))
		lacks := func(word string) bool { return !strings.Contains(text, strings.ToLower(word)) }
		if f.Agent != "" && f.Agent != r.Start.Agent || f.Folder != "" && f.Folder != r.Start.Folder || r.Queued.Before(f.Since) || slices.ContainsFunc(f.Words, lacks) {
			continue
		}
		all = append(all, r.summary())
	}
	return all[:min(len(all), f.Limit)], nil
}

// serveQueuedStop ends a run of the queue, and reports whether it is one.
func (s *Server) serveQueuedStop(w http.ResponseWriter, r *http.Request) (bool, error) {
	q := s.queue()
	if q == nil {
		return false, nil
	}
	run, err := q.QueuedRun(r.Context(), r.PathValue("run"))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && run.State != Queued && run.State != record.Running {
		err = errOver
	}
	if err == nil {
		err = q.Cancel(r.Context(), run.ID)
	}
	if err != nil {
		return true, err
	}
	s.watch.change()
	w.WriteHeader(http.StatusAccepted)
	return true, nil
}

func (s *Server) serveRetry(w http.ResponseWriter, r *http.Request) error {
	q := s.queue()
	if q == nil {
		return problem(http.StatusForbidden, "this server has no queue", "start it with a queue, or start the run again")
	}
	id := r.PathValue("run")
	run, err := q.QueuedRun(r.Context(), id)
	if errors.Is(err, fs.ErrNotExist) {
		return problem(http.StatusNotFound, "there is no run "+id+" of this queue", "GET /v1/runs lists runs")
	}
	if err == nil {
		err = q.Retry(r.Context(), run.ID)
	}
	if err != nil {
		return err
	}
	s.watch.change()
	return s.started(w, r, id)
}

// lookEvery is how often a run that waits is looked at for those who follow it.
const lookEvery = 500 * time.Millisecond

// serveWaiting streams the state of a run until it does not wait any more. The client then follows the run itself: it connects again.
func (s *Server) serveWaiting(w http.ResponseWriter, r *http.Request) error {
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		w.Header().Set("Content-Type", "application/jsonl")
		return nil // it has no events yet
	}
	ctx, stop, err := s.streaming(r)
	if err != nil {
		return err
	}
	defer stop()
	out := newStream(w)
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	began := time.Now()
	err = out.sendJSON("state", liveState{State: Queued, Questions: []Question{}})
	for err == nil && out.flush() == nil {
		select {
		case <-look.C:
		case <-ctx.Done():
			return nil
		}
		if run, err := s.queued(ctx, r.PathValue("run")); err != nil || run == nil || run.State != Queued {
			return nil
		}
		if time.Since(began) > beatEvery {
			began, err = time.Now(), out.beat()
		}
	}
	return nil
}
