// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/drover-agents/drover/advice"
)

// Retention is how long runs are kept that have ended. The zero value keeps all of them.
type Retention struct {
	// Age is how long a run is kept after its end. Zero means without end.
	Age time.Duration
	// Runs is how many ended runs of each agent are kept: those that ended last. Zero means all.
	Runs int
}

// ErrNotEnded means that the run is queued or running.
var ErrNotEnded = errors.New("fleet: the run has not ended")

const (
	kindRemoved   = "removed"        // of a log: what came before is removed, or about to be
	headerRequest = "Drover-Request" // the sequence of the request of a removed run
	headerTTL     = "Nats-TTL"       // after which the server removes a message
	removedTTL    = 24 * time.Hour   // how long a delivery of a removed run may still come
	orphanAge     = 24 * time.Hour   // of an object, until it is in use
	pruneEvery    = time.Hour        // of a worker
)

// Prune removes the runs beyond a retention: requests, logs and objects. It never removes a run that is queued or running. It also removes
// objects of runs that do not exist. Several may prune at once.
func (f *Fleet) Prune(ctx context.Context, keep Retention) (removed int, err error) {
	fail := func(err error) (int, error) { return removed, fmt.Errorf("fleet: removing runs: %w", err) }
	type end struct {
		r  *Run
		at time.Time
	}
	ended := map[string][]end{}
	var again []*Run // their removal was interrupted
	for r, err := range f.Runs(ctx) {
		if err != nil {
			return removed, err
		}
		m, err := f.last(ctx, r.subject("log"))
		if err != nil {
			return fail(err)
		}
		switch m.kind() {
		case kindEnd:
			ended[r.agent] = append(ended[r.agent], end{r, m.time})
		case kindRemoved:
			again = append(again, r)
		}
	}
	for _, runs := range ended {
		slices.SortFunc(runs, func(a, b end) int { return b.at.Compare(a.at) })
		for i, e := range runs {
			if keep.Runs > 0 && i >= keep.Runs || keep.Age > 0 && f.now().Sub(e.at) > keep.Age {
				again = append(again, e.r)
			}
		}
	}
	for _, r := range again {
		err := r.Remove(ctx)
		switch {
		case err == nil:
			removed++
		case !errors.Is(err, ErrNotEnded) && !errors.Is(err, ErrNoRun): // it was retried, or removed and submitted again
			return fail(err)
		}
	}
	if err := f.removeOrphans(ctx); err != nil {
		return fail(err)
	}
	return removed, nil
}

// Remove removes a run that has ended: its request, its log and its objects. Its key is free then. A removal that was interrupted goes on with
// the next one.
func (r *Run) Remove(ctx context.Context) error {
	fail := func(err error) error { return fmt.Errorf("fleet: removing the run %s: %w", r.id, err) }
	// In this order: if the log is still the same when the mark is appended, or the request is the one of the mark, what is read here is of
	// the run that has ended, and not of a later one of the same key.
	m, err := r.f.last(ctx, r.subject("log"))
	if err != nil {
		return fail(err)
	}
	asked, err := r.f.last(ctx, r.subject("cancel"))
	if err != nil {
		return fail(err)
	}
	request, err := r.request(ctx)
	if err != nil {
		return fail(err)
	}
	mark := m.seq
	switch m.kind() {
	case kindEnd:
		if mark, err = r.markRemoved(ctx, request.seq, m.seq, ""); errors.Is(err, errBehind) {
			return fail(ErrNotEnded)
		}
		if err != nil {
			return fail(err)
		}
	case kindRemoved:
		if request.seq != requestOf(&m) {
			return fail(ErrNoRun)
		}
	case "":
		if request.seq == 0 {
			return fail(ErrNoRun)
		}
		fallthrough
	default:
		return advice.Wrap(fail(ErrNotEnded), "cancel it first")
	}
	if err := r.removeObjects(ctx, &request, mark); err != nil {
		return fail(err)
	}
	if err := r.f.logs.Purge(ctx, jetstream.WithPurgeSubject(r.subject("log")), jetstream.WithPurgeSequence(mark)); err != nil {
		return fail(err)
	}
	err = r.f.changeAdmissions(ctx, func(a *admissions) bool { // its worker may have died just after the end
		before := len(a.Running)
		a.Running = slices.DeleteFunc(a.Running, func(id string) bool { return id == r.id })
		return len(a.Running) != before
	})
	if err != nil {
		return fail(err)
	}
	for _, seq := range []uint64{asked.seq, request.seq} {
		if err := r.f.deleteRequest(ctx, seq); err != nil {
			return fail(err)
		}
	}
	last, err := r.markRemoved(ctx, request.seq, mark, removedTTL.String())
	if err == nil {
		err = r.f.logs.Purge(ctx, jetstream.WithPurgeSubject(r.subject("log")), jetstream.WithPurgeSequence(last))
	}
	if err != nil && !errors.Is(err, errBehind) { // else it was submitted again, and has begun
		return fail(err)
	}
	return nil
}

// markRemoved appends to the log that the run of a request is removed.
func (r *Run) markRemoved(ctx context.Context, request, last uint64, ttl string) (uint64, error) {
	m := newMessage(r.subject("log"), kindRemoved, logPosition{})
	m.Header.Set(headerRequest, strconv.FormatUint(request, 10))
	if ttl != "" {
		m.Header.Set(headerTTL, ttl)
	}
	return r.f.append(ctx, m, last)
}

// requestOf is the sequence of the request that a mark is about.
func requestOf(m *message) uint64 {
	seq, _ := strconv.ParseUint(m.header.Get(headerRequest), 10, 64) // it was made by markRemoved
	return seq
}

// gone reports whether a message of the log says that the run is removed, and it was not submitted again.
func (r *Run) gone(ctx context.Context, m *message) (bool, error) {
	if m.kind() != kindRemoved {
		return false, nil
	}
	request, err := r.request(ctx)
	return request.seq <= requestOf(m), err
}

// deleteRequest deletes the message of a sequence, which may be deleted already.
func (f *Fleet) deleteRequest(ctx context.Context, seq uint64) error {
	if seq == 0 {
		return nil
	}
	err := f.work.DeleteMsg(ctx, seq)
	if err == nil {
		return nil
	}
	if _, failed := f.work.GetMsg(ctx, seq); errors.Is(failed, jetstream.ErrMsgNotFound) {
		return nil
	}
	return err
}

// removeObjects removes what the request and the log up to a mark refer to.
func (r *Run) removeObjects(ctx context.Context, request *message, mark uint64) error {
	remove := func(name string) error {
		if name == "" {
			return nil
		}
		if err := r.f.objects.Delete(ctx, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return fmt.Errorf("the object %s: %w", name, err)
		}
		return nil
	}
	if err := remove(request.header.Get(headerObject)); err != nil {
		return err
	}
	for seq := uint64(1); seq < mark; seq++ {
		m, err := r.f.logs.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(r.subject("log")))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.Header.Get(headerKind) == kindFiles {
			names, err := r.contentNames(ctx, m.Sequence)
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := remove(name); err != nil {
					return err
				}
			}
		}
		if err := remove(m.Header.Get(headerObject)); err != nil {
			return err
		}
		seq = m.Sequence
	}
	return nil
}

// contentNames are the objects of a message about files. It has none any more if its own object is gone, which goes last.
func (r *Run) contentNames(ctx context.Context, seq uint64) (names []string, err error) {
	m, err := r.f.message(ctx, r.subject("log"), seq)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, nil
	}
	var kept []keptFile
	if err == nil {
		err = json.Unmarshal(m.body, &kept)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the files of message %d: %w", seq, err)
	}
	for _, k := range kept {
		if k.Hash != "" {
			names = append(names, contentName(r.id, k.Hash))
		}
	}
	return names, nil
}

// removeOrphans removes objects of logs and requests that do not exist: those whose names begin with an id. An object is kept before the
// message that refers to it, so that young ones stay.
func (f *Fleet) removeOrphans(ctx context.Context) error {
	all, err := f.objects.List(ctx)
	if errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil
	}
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, o := range all {
		if f.now().Sub(o.ModTime) < orphanAge {
			continue
		}
		owned, err := f.owned(ctx, o.Name, known)
		if err != nil {
			return err
		}
		if owned {
			continue
		}
		if err := f.objects.Delete(ctx, o.Name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return err
		}
	}
	return nil
}

// owned reports whether the name of an object begins with the id of a log or a run that exists, or with none at all.
func (f *Fleet) owned(ctx context.Context, name string, known map[string]bool) (bool, error) {
	tokens := strings.Split(name, ".")
	if len(tokens) < 2 || slices.ContainsFunc(tokens, func(t string) bool { return !validToken(t) }) {
		return true, nil
	}
	for n := 1; n < len(tokens); n++ {
		id := strings.Join(tokens[:n], ".")
		exists, looked := known[id]
		if !looked {
			m, err := f.last(ctx, f.name+".log."+id)
			if err != nil {
				return false, err
			}
			request, err := f.last(ctx, f.name+".work."+id+".*")
			if err != nil {
				return false, err
			}
			exists = m.seq != 0 && m.kind() != kindRemoved || request.seq != 0
			known[id] = exists
		}
		if exists {
			return true, nil
		}
	}
	return false, nil
}

// prune removes runs beyond the retention until ctx ends.
func (w *Worker) prune(ctx context.Context) {
	if w.Retention == (Retention{}) {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.Fleet.ctx, cancel)()
	for ctx.Err() == nil {
		if n, err := w.Fleet.Prune(ctx, w.Retention); err != nil && ctx.Err() == nil {
			w.Fleet.log.Warn("runs beyond the retention are not removed; trying again later", "error", err)
		} else if n > 0 {
			w.Fleet.log.Info("runs beyond the retention are removed", "runs", n)
		}
		pause(ctx, pruneEvery)
	}
}
