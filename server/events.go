// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/record/index"
)

// The pace of streams.
const (
	beatEvery   = 15 * time.Second
	firstRetry  = 500 * time.Millisecond // to reach a program that did not answer; doubled up to lastRetry
	lastRetry   = 16 * time.Second
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
	if run.State != record.Running {
		s.sendWhole(ctx, out, &own, after)
		return nil
	}
	watching := &watcher{woken: make(chan struct{}, 1)}
	feed, leave := s.feeds.join(run, watching)
	defer leave()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for state := []byte(nil); ; {
		p := feed.next(watching, after, state)
		for _, text := range p.texts {
			if out.write(text) != nil || ctx.Err() != nil {
				return nil // no client is left, here and below
			}
		}
		after, state = p.pos, p.state
		if p.behind {
			if after, err = out.sendLines(ctx, own.Lines(after), after); errors.Is(err, errLeft) {
				return nil
			}
			p.over, p.run, p.err = err != nil, own, err
			if err == nil {
				continue
			}
		}
		if p.over {
			s.sendEnd(ctx, out, &p.run, p.err)
			return nil
		}
		if err := out.flush(); err != nil {
			return nil
		}
		select {
		case <-watching.woken:
		case <-beat.C:
			if err := out.beat(); err != nil {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// sendWhole sends the events of a run that is over.
func (s *Server) sendWhole(ctx context.Context, out *stream, run *record.Run, after int64) {
	if out.sendJSON("state", liveState{State: run.State, Questions: []Question{}}) != nil {
		return
	}
	if _, err := out.sendLines(ctx, run.Follow(ctx, after), after); !errors.Is(err, errLeft) {
		s.sendEnd(ctx, out, run, err)
	}
}

// errLeft means that no client is left.
var errLeft = errors.New("the client has left")

// sendLines sends entries, and returns the position of the last one.
func (s *stream) sendLines(ctx context.Context, lines iter.Seq2[record.Line, error], after int64) (int64, error) {
	for line, err := range lines {
		if err != nil {
			return after, err
		}
		if s.write(sseText("entry", strconv.FormatInt(line.Pos, 10), line.Event)) != nil || ctx.Err() != nil {
			return after, errLeft
		}
		after = line.Pos
	}
	return after, nil
}

// sendEnd tells how the log ended: with the run, or because it cannot be read any more.
func (s *Server) sendEnd(ctx context.Context, out *stream, run *record.Run, failed error) {
	if ctx.Err() != nil {
		return
	}
	if failed != nil {
		_ = out.sendJSON("failed", problemOf(failed)) // no client is left, here and below
		_ = out.flush()
		return
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
			return nil // no client is left
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
	files := plainfile.NewWatch(dir, socketFile, keyFile)
	defer files.Close()
	told := false // that it says nothing
	pass := func(f frame) bool {
		select {
		case to <- f:
			told = false
			return true
		case <-ctx.Done():
			return false
		}
	}
	for retry := firstRetry; ctx.Err() == nil; {
		var again <-chan time.Time
		if c, err := openControl(dir); err == nil {
			_ = c.watch(ctx, path, func(f frame) bool { // its end is that of the run, or is tried again
				retry = firstRetry
				return pass(f)
			})
			again = time.After(retry)
			retry = min(2*retry, lastRetry)
		}
		if !told {
			told = pass(frame{"state", silent})
		}
		select {
		case <-again:
		case <-files.Changed():
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
	changed chan struct{}        // closed at each change
	states  map[string]liveState // what the programs of runs under way have said last, by folder
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

// state is what the program of a run has said last, if the run is watched.
func (w *watch) state(dir string) (state liveState, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state, known = w.states[dir]
	return state, known
}

// note keeps what the program of a run says, and nil when the run is over.
func (w *watch) note(dir string, state *liveState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state == nil {
		delete(w.states, dir)
		return
	}
	w.states[dir] = *state
}

func (w *watch) change() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.changed)
	w.changed = make(chan struct{})
}

// startWatching follows the journal of the store, and the state of each run that is under way, until the server is closed.
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
	s.logLooking(err)
	for changes, err := range s.o.Store.Follow(ctx, offset) {
		s.logLooking(err)
		for _, c := range changes {
			if c.What == record.ChangeBegin {
				begin(c.Run)
			}
		}
		s.watch.change()
	}
}

func (s *Server) logLooking(err error) {
	if err != nil && !errors.Is(err, context.Canceled) {
		s.o.Logger.Error("server: looking for new runs failed", "folder", s.o.Store.Dir(), "error", err)
	}
}

// watchRun follows the state of a run to its end.
func (s *Server) watchRun(ctx context.Context, folder string) {
	run, err := s.o.Store.Run(folder)
	if err != nil || run.State != record.Running {
		if err == nil { // it was faster than the look at the journal
			s.notify(ctx, run, nil)
		}
		return
	}
	own := *run // AwaitEnd changes the state of the other
	over, done := context.WithCancel(ctx)
	defer done()
	live := make(chan frame)
	s.watch.running.Go(func() {
		defer done()
		if err := run.AwaitEnd(over); err != nil && over.Err() == nil {
			s.o.Logger.Error("server: following a run failed", "run", run.ID, "error", err)
		}
	})
	s.watch.running.Go(func() { watchLive(over, own.Path, "/state?quiet", live) })
	asked := map[string]bool{}
	defer s.watch.note(own.Path, nil)
	for {
		select {
		case f := <-live:
			var state liveState
			if f.name != "state" || json.Unmarshal(f.data, &state) != nil {
				continue
			}
			s.watch.note(own.Path, &state)
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
