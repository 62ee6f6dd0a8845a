// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/record/index"
)

// The pace of streams.
const (
	beatEvery   = 15 * time.Second
	lookEvery   = 250 * time.Millisecond // at the journal of the store
	retryEvery  = 500 * time.Millisecond // a program that did not answer
	changePause = 200 * time.Millisecond // between two notices of changes
)

// streaming is a context that ends with the request or the server. It refuses a stream too many.
func (s *Server) streaming(r *http.Request) (context.Context, context.CancelFunc, error) {
	leave, ok := s.streams.take()
	if !ok {
		return nil, nil, tooMany(fmt.Sprintf("%d streams are open", maxStreams), "close one, or try again later", retryAfter)
	}
	ctx, cancel := context.WithCancel(r.Context())
	go func() {
		select {
		case <-s.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, sync.OnceFunc(func() { cancel(); leave() }), nil
}

func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request) error {
	if waiting, err := s.queued(r.Context(), r.PathValue("run")); err == nil && waiting != nil && waiting.State == Queued {
		return s.serveWaiting(w, r)
	}
	run, err := s.find(r)
	if err != nil {
		return err
	}
	own := *run // Follow changes its state
	after := int64(0)
	if text := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after")); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return problem(http.StatusBadRequest, fmt.Sprintf("the position %q is not a number", text), "give the id of the last event that was seen")
		}
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		return writeLines(w, &own, after)
	}
	ctx, stop, err := s.streaming(r)
	if err != nil {
		return err
	}
	defer stop()
	out := newStream(w)
	entries, live := make(chan record.Line, 256), make(chan frame, 64)
	failed := make(chan error, 1)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	readers.Go(func() {
		defer close(entries)
		for line, err := range own.Follow(ctx, after) {
			if err != nil {
				failed <- err
				return
			}
			select {
			case entries <- line:
			case <-ctx.Done():
				return
			}
		}
	})
	if run.State == record.Running {
		readers.Go(func() { watchLive(ctx, run.Path, "/state", live) })
	} else if err := out.sendJSON("state", liveState{State: run.State, Questions: []Question{}}); err != nil {
		return nil // nobody is left to be told
	}
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for {
		var err error
		select {
		case line, more := <-entries:
			if !more {
				s.sendEnd(ctx, out, &own, failed)
				return nil
			}
			err = out.send("entry", strconv.FormatInt(line.Pos, 10), line.Event)
		case f := <-live:
			err = out.send(f.name, "", f.data)
		case <-beat.C:
			err = out.beat()
		case <-ctx.Done():
			return nil
		}
		if err == nil && len(entries) == 0 && len(live) == 0 {
			err = out.flush()
		}
		if err != nil {
			return nil // nobody is left to be told
		}
	}
}

// sendEnd tells how the log ended: with the run, or because it cannot be read any more.
func (s *Server) sendEnd(ctx context.Context, out *stream, run *record.Run, failed <-chan error) {
	if ctx.Err() != nil {
		return
	}
	select {
	case err := <-failed:
		_ = out.sendJSON("failed", problemOf(err)) // nobody is left to be told, here and below
		_ = out.flush()
		return
	default:
	}
	whole, err := s.describe(ctx, run)
	if err != nil {
		_ = out.sendJSON("failed", problemOf(err))
	} else if out.sendJSON("state", liveState{State: run.State, Questions: []Question{}}) == nil {
		_ = out.sendJSON("end", whole.Summary)
	}
	_ = out.flush()
}

func (s *stream) sendJSON(name string, v any) error {
	text, err := plainjson.Marshal(v)
	if err != nil {
		return err
	}
	return s.send(name, "", text)
}

// writeLines writes the events that there are.
func writeLines(w http.ResponseWriter, run *record.Run, after int64) error {
	w.Header().Set("Content-Type", "application/jsonl")
	for line, err := range run.Lines(after) {
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line.Event, '\n')); err != nil {
			return nil // nobody is left to be told
		}
	}
	return nil
}

// watchLive passes on what the program of a run says, until ctx ends. A run whose program says nothing cannot be controlled.
func watchLive(ctx context.Context, dir, path string, to chan<- frame) {
	silent, err := plainjson.Marshal(liveState{State: record.Running, Questions: []Question{}})
	if err != nil {
		panic(err) // it is a constant
	}
	for ctx.Err() == nil {
		c, err := openControl(dir)
		if err == nil {
			_ = c.watch(ctx, path, func(f frame) bool { // its end is that of the run, or is tried again
				select {
				case to <- f:
					return true
				case <-ctx.Done():
					return false
				}
			})
		}
		select {
		case to <- frame{"state", silent}:
		case <-ctx.Done():
		}
		select {
		case <-time.After(retryEvery):
		case <-ctx.Done():
		}
	}
}

// A Notice reports that a run waits for an answer, or has ended.
type Notice struct {
	// Event is "question" or "end".
	Event    string    `json:"event"`
	Run      Summary   `json:"run"`
	Question *Question `json:"question,omitempty"`
}

// A watch knows when runs begin, end or ask.
type watch struct {
	mu      sync.Mutex
	started bool
	changed chan struct{} // closed at each change
	running sync.WaitGroup
	notices sync.Mutex // one notice at a time
}

func (w *watch) wait() { w.running.Wait() }

// next returns a channel that is closed at the next change.
func (w *watch) next() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed
}

func (w *watch) change() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// startWatching looks at the journal of the store, and at the state of each run that is under way, until the server is closed.
func (s *Server) startWatching() {
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	if s.watch.started {
		return
	}
	s.watch.started = true
	ctx, cancel := context.WithCancel(context.Background())
	s.watch.running.Go(func() {
		<-s.closing
		cancel()
	})
	s.watch.running.Go(func() { s.watchRuns(ctx) })
}

func (s *Server) watchRuns(ctx context.Context) {
	seen := map[string]bool{}
	begin := func(folder string) {
		if !seen[folder] {
			seen[folder] = true
			s.watch.running.Go(func() { s.watchRun(ctx, folder) })
		}
	}
	_, offset, _, err := s.o.Store.Changes(0)
	if err == nil {
		err = s.index.Sync(ctx)
	}
	if err == nil {
		var open []index.Row
		open, err = s.index.Runs(ctx, index.Filter{State: record.Running})
		for _, row := range open {
			begin(row.Run)
		}
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		if err != nil && ctx.Err() == nil {
			s.o.Logger.Error("server: looking for new runs failed", "folder", s.o.Store.Dir(), "error", err)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
		var changes []record.Change
		if changes, offset, _, err = s.o.Store.Changes(offset); len(changes) == 0 {
			continue
		}
		for _, c := range changes {
			if c.What == record.ChangeBegin {
				begin(c.Run)
			}
		}
		s.watch.change()
	}
}

// watchRun follows the state of a run to its end.
func (s *Server) watchRun(ctx context.Context, folder string) {
	run, err := s.o.Store.Run(folder)
	if err != nil || run.State != record.Running {
		if err == nil && run.State == record.Ended { // it was faster than the look at the journal
			s.notify(ctx, run, nil)
		}
		return
	}
	own := *run // Follow changes the state of the other
	over, done := context.WithCancel(ctx)
	defer done()
	live := make(chan frame)
	s.watch.running.Go(func() {
		defer done()
		for _, err := range run.Follow(over, 1<<62) { // no entry: until it ends
			if err != nil {
				s.o.Logger.Error("server: following a run failed", "run", run.ID, "error", err)
			}
		}
	})
	s.watch.running.Go(func() { watchLive(over, own.Path, "/state?quiet", live) })
	asked := map[string]bool{}
	for {
		select {
		case f := <-live:
			var state liveState
			if f.name != "state" || json.Unmarshal(f.data, &state) != nil {
				continue
			}
			for _, q := range state.Questions {
				if !asked[q.ID] {
					asked[q.ID] = true
					s.notify(ctx, &own, &q)
				}
			}
			s.watch.change()
		case <-over.Done():
			if ctx.Err() == nil {
				s.watch.change()
				if run, err := s.o.Store.Run(folder); err == nil {
					s.notify(ctx, run, nil)
				}
			}
			return
		}
	}
}

// notify reports a question, or without one the end of a run.
func (s *Server) notify(ctx context.Context, run *record.Run, q *Question) {
	if s.o.Notify == nil {
		return
	}
	whole, err := s.describe(ctx, run)
	if err != nil {
		s.o.Logger.Error("server: a notice could not be made", "run", run.ID, "error", err)
		return
	}
	n := Notice{Event: "end", Run: whole.Summary, Question: q}
	if q != nil {
		n.Event = "question"
	}
	s.watch.notices.Lock()
	defer s.watch.notices.Unlock()
	s.o.Notify(n)
}

func (s *Server) serveChanges(w http.ResponseWriter, r *http.Request) error {
	s.startWatching()
	ctx, stop, err := s.streaming(r)
	if err != nil {
		return err
	}
	defer stop()
	out := newStream(w)
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	next := s.watch.next()
	err = out.send("runs", "", []byte("{}"))
	for err == nil && out.flush() == nil {
		select {
		case <-next:
			select {
			case <-time.After(changePause): // a burst is one notice
			case <-ctx.Done():
				return nil
			}
			next = s.watch.next()
			err = out.send("runs", "", []byte("{}"))
		case <-beat.C:
			err = out.beat()
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
