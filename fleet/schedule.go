// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainjson"
)

// A Schedule submits a request again and again. Workers do it, whatever their agents are: each tick is one run, however many
// workers live.
type Schedule struct {
	// Name is that of the schedule: up to 64 letters, digits, - and _.
	Name string `json:"name"`
	// Agent gets the Request, which is JSON.
	Agent   string          `json:"agent"`
	Request json.RawMessage `json:"request"`
	// Cron are the times, as in crontab(5): minute, hour, day of month, month and day of week, such as "30 6 * * mon-fri".
	Cron string `json:"cron"`
	// TimeZone is a name of the IANA database, such as "Europe/Berlin". Empty means UTC.
	TimeZone string `json:"timeZone,omitzero"`
	// Priority is that of each run.
	Priority Priority `json:"priority,omitzero"`
}

// Next is the first tick after a time.
func (s *Schedule) Next(after time.Time) (time.Time, error) {
	c, err := parseCron(s.Cron, s.TimeZone)
	if err != nil {
		return time.Time{}, fmt.Errorf("fleet: the schedule %s: %w", s.Name, err)
	}
	return c.next(after), nil
}

// A keptSchedule is the message of a schedule.
type keptSchedule struct {
	Schedule
	// Last is the last tick that has its run, or when the times were set.
	Last time.Time `json:"last"`
	seq  uint64
}

const (
	// clockCheck bounds how long a worker waits for a time: a clock that jumps is noticed then.
	clockCheck = 15 * time.Second
	// clockSkew is how far the clocks of workers may be apart. A last tick that is later than that in the future was made by
	// a clock that has gone back since.
	clockSkew = time.Minute
)

func (f *Fleet) scheduleSubject(name string) string { return f.name + ".schedule." + name }

// PutSchedule keeps a schedule under its name, and replaces another one there. The first tick is after this moment. A
// schedule whose times are kept unchanged loses no tick.
func (f *Fleet) PutSchedule(ctx context.Context, s Schedule) error {
	if !validToken(s.Name) || !validToken(s.Agent) {
		return advice.Wrap(fmt.Errorf("fleet: %q for agent %q cannot be a schedule", s.Name, s.Agent), "use up to 64 letters, digits, - and _ in both names")
	}
	fail := func(err error) error { return fmt.Errorf("fleet: keeping the schedule %s: %w", s.Name, err) }
	if _, err := parseCron(s.Cron, s.TimeZone); err != nil {
		return fail(err)
	}
	if _, err := s.Priority.level(); err != nil {
		return fail(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, s.Request); err != nil {
		return fail(fmt.Errorf("the request is not JSON: %w", err))
	}
	s.Request = compact.Bytes()
	for {
		m, err := f.last(ctx, f.scheduleSubject(s.Name))
		if err != nil {
			return fail(err)
		}
		next := keptSchedule{Schedule: s, Last: f.now(), seq: m.seq}
		if old, err := decodeSchedule(&m); err == nil && old.Cron == s.Cron && old.TimeZone == s.TimeZone {
			if next.Last = old.Last; old.Agent == s.Agent && old.Priority == s.Priority && bytes.Equal(old.Request, s.Request) {
				return nil
			}
		}
		if err = f.saveSchedule(ctx, &next); err == nil {
			return nil
		}
		if !errors.Is(err, errBehind) {
			return fail(err)
		}
	}
}

func (f *Fleet) saveSchedule(ctx context.Context, s *keptSchedule) (err error) {
	m := nats.NewMsg(f.scheduleSubject(s.Name))
	if m.Data, err = plainjson.Marshal(s); err != nil {
		return err
	}
	if len(m.Data) > f.limit {
		return advice.Wrap(fmt.Errorf("its request has %d bytes, more than %d", len(s.Request), f.limit), "name what is large in the request instead")
	}
	_, err = f.append(ctx, m, s.seq)
	return err
}

func decodeSchedule(m *message) (*keptSchedule, error) {
	s := &keptSchedule{seq: m.seq}
	if err := json.Unmarshal(m.body, s); err != nil {
		return nil, fmt.Errorf("fleet: the schedule %s: %w", m.subject[strings.LastIndexByte(m.subject, '.')+1:], err)
	}
	return s, nil
}

// RemoveSchedule removes a schedule, if it is there. A tick of this moment may still have its run.
func (f *Fleet) RemoveSchedule(ctx context.Context, name string) error {
	if !validToken(name) {
		return nil
	}
	if err := f.work.Purge(ctx, jetstream.WithPurgeSubject(f.scheduleSubject(name))); err != nil {
		return fmt.Errorf("fleet: removing the schedule %s: %w", name, err)
	}
	return nil
}

// Schedules yields the schedules in the order of their last change. An error is the last pair.
func (f *Fleet) Schedules(ctx context.Context) iter.Seq2[Schedule, error] {
	return func(yield func(Schedule, error) bool) {
		for s, err := range f.schedules(ctx) {
			if err != nil {
				yield(Schedule{}, err)
				return
			}
			if !yield(s.Schedule, nil) {
				return
			}
		}
	}
}

func (f *Fleet) schedules(ctx context.Context) iter.Seq2[*keptSchedule, error] {
	return func(yield func(*keptSchedule, error) bool) {
		subject := f.scheduleSubject("*")
		for seq := uint64(1); ; {
			m, err := f.message(ctx, subject, seq)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				return
			}
			var s *keptSchedule
			if err == nil {
				s, err = decodeSchedule(m)
			}
			if err != nil {
				yield(nil, fmt.Errorf("fleet: listing schedules: %w", err))
				return
			}
			if !yield(s, nil) {
				return
			}
			seq = m.seq + 1
		}
	}
}

// fireSchedules submits the requests of schedules until ctx ends.
func (f *Fleet) fireSchedules(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)()
	sub, changed, err := f.hints(f.scheduleSubject("*"))
	if err == nil { // else changes are noticed later
		defer func() { _ = sub.Unsubscribe() }()
	}
	for ctx.Err() == nil {
		wait := f.check
		next, err := f.fireDue(ctx)
		if err != nil && ctx.Err() == nil {
			f.log.Warn("schedules cannot be read or fired; trying again", "error", err)
			wait = time.Second
		}
		if !next.IsZero() {
			wait = min(wait, max(next.Sub(f.now()), settle))
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		case <-changed: // it is not kept yet
			pause(ctx, 10*settle)
		}
	}
}

// fireDue submits what is due, and returns the next tick of all schedules.
func (f *Fleet) fireDue(ctx context.Context) (next time.Time, err error) {
	for s, err := range f.schedules(ctx) {
		if err != nil {
			return next, err
		}
		tick, err := f.fire(ctx, s)
		if err != nil {
			f.log.Warn("a schedule is not fired; trying again", "schedule", s.Name, "error", err)
			tick = f.now().Add(f.check)
		}
		if next.IsZero() || tick.Before(next) {
			next = tick
		}
	}
	return next, nil
}

// fire submits the request of a schedule if a tick is due, and returns the next tick. Of ticks that were missed it is the last
// one. Each tick is a key, so that it has one run, however many workers fire it, and also if their clocks go back.
func (f *Fleet) fire(ctx context.Context, s *keptSchedule) (time.Time, error) {
	c, err := parseCron(s.Cron, s.TimeZone)
	if err != nil {
		return time.Time{}, err
	}
	now, last := f.now(), s.Last
	if last.After(now.Add(clockSkew)) {
		last = now
	}
	if tick := c.latest(last, now); !tick.IsZero() {
		key := "schedule " + s.Name + " " + tick.UTC().Format(time.RFC3339)
		_, err := f.Submit(ctx, s.Agent, s.Request, &SubmitOptions{Key: key, Priority: s.Priority})
		if err != nil && !errors.Is(err, ErrKeyTaken) { // the request was changed after another worker had fired
			return time.Time{}, err
		}
		last = tick
	}
	next := c.next(last)
	if last.Equal(s.Last) {
		return next, nil
	}
	s.Last = last
	if err := f.saveSchedule(ctx, s); err != nil && !errors.Is(err, errBehind) { // another worker has done it, or someone changed it
		return time.Time{}, err
	}
	return next, nil
}
