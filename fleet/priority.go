// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/drover-agents/drover/advice"
)

// A Priority is how soon a worker takes a run. Of 16 requests that a worker takes while all levels wait, 11 are high, 4 are
// normal and 1 is low: a lower level is never starved. The zero value is [Normal].
type Priority string

// The priorities of runs.
const (
	High   Priority = "high"
	Normal Priority = "normal"
	Low    Priority = "low"
)

// levels are the priorities, the highest first.
var levels = [...]Priority{High, Normal, Low}

// level is the priority as a token of a subject.
func (p Priority) level() (string, error) {
	if p == "" {
		p = Normal
	}
	for _, l := range levels {
		if p == l {
			return string(p), nil
		}
	}
	return "", advice.Wrap(fmt.Errorf("%q is not a priority", string(p)), "use fleet.High, fleet.Normal or fleet.Low")
}

// turns is after how many requests the turns of the levels repeat.
const turns = 16

// orderOf is the order in which the levels are asked for the next request: the highest first, but one turn in four begins with
// normal, and one in 16 with low. Between two of these is one for high.
func orderOf(turn int) [len(levels)]int {
	switch {
	case turn%turns == turns-4:
		return [...]int{2, 0, 1}
	case turn%4 == 2:
		return [...]int{1, 0, 2}
	}
	return [...]int{0, 1, 2}
}

// A queue is that of one agent, for one worker.
type queue struct {
	f       *Fleet
	agent   string
	levels  [len(levels)]jetstream.Consumer
	turn    int           // begins anywhere, so that workers that are often restarted do not starve a level
	arrived chan delivery // from standing pulls; the sender does not wait long
	pulls   sync.WaitGroup

	mu      sync.Mutex
	pulling [len(levels)]bool
}

type delivery struct {
	m   jetstream.Msg
	err error
}

const (
	// standingPull is how long an idle worker waits at the server for a request, and handBack how long a request that it got
	// then waits for the worker before it is handed back.
	standingPull = 10 * time.Second
	handBack     = 100 * time.Millisecond
)

// queueOf makes the consumers of an agent.
func (w *Worker) queueOf(ctx context.Context, agent string) (*queue, error) {
	q := &queue{f: w.Fleet, agent: agent, turn: rand.IntN(turns), arrived: make(chan delivery)}
	var failed [len(levels)]error
	var made sync.WaitGroup
	for i, l := range levels {
		made.Go(func() {
			q.levels[i], failed[i] = w.Fleet.work.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
				Durable: consumerName(l, agent), FilterSubject: w.Fleet.name + ".work." + agent + ".*." + string(l),
				AckPolicy: jetstream.AckExplicitPolicy, AckWait: w.Lease, MaxDeliver: -1, MaxAckPending: -1,
			})
		})
	}
	made.Wait()
	return q, errors.Join(failed[:]...)
}

// consumerName is that of the consumer of an agent's requests of a level.
func consumerName(l Priority, agent string) string { return string(l) + "-" + agent }

// take waits for the next request. It is nil when ctx has ended.
func (q *queue) take(ctx context.Context) jetstream.Msg {
	for ctx.Err() == nil {
		m, err := q.waiting()
		if m == nil && err == nil {
			m, err = q.await(ctx)
		}
		switch {
		case err != nil && ctx.Err() == nil:
			q.f.log.Warn("no requests can be read; trying again", "agent", q.agent, "error", err)
			pause(ctx, time.Second)
		case m != nil:
			q.turn++
			return m
		}
	}
	return nil
}

// waiting takes a request that waits, in the order of this turn. It is nil if no request waits.
func (q *queue) waiting() (jetstream.Msg, error) {
	for _, l := range orderOf(q.turn) {
		batch, err := q.levels[l].FetchNoWait(1)
		if err != nil {
			return nil, err
		}
		if m := <-batch.Messages(); m != nil {
			return m, nil
		}
		if err := batch.Error(); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// await waits for a request of any level.
func (q *queue) await(ctx context.Context) (jetstream.Msg, error) {
	for l := range levels {
		q.mu.Lock()
		if !q.pulling[l] {
			q.pulling[l] = true
			q.pulls.Go(func() { q.pull(ctx, l) })
		}
		q.mu.Unlock()
	}
	select {
	case <-ctx.Done():
		return nil, nil
	case d := <-q.arrived:
		return d.m, d.err
	}
}

// pull waits for a request of a level. If the worker has taken another one in between and has no room, it hands it back.
func (q *queue) pull(ctx context.Context, level int) {
	wait, cancel := context.WithTimeout(ctx, standingPull)
	m, err := q.levels[level].Next(jetstream.FetchContext(wait))
	if wait.Err() != nil || errors.Is(err, nats.ErrTimeout) {
		err = nil
	}
	cancel()
	q.mu.Lock()
	q.pulling[level] = false
	q.mu.Unlock()
	select {
	case q.arrived <- delivery{m, err}: // without either: await pulls again
	case <-time.After(handBack):
		if m != nil {
			err = m.Nak()
		}
		if err != nil {
			q.f.log.Warn("a request is not handed back", "agent", q.agent, "error", err)
		}
	}
}
