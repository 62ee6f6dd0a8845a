// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"
)

// Metrics count what a [Worker] does. As a handler they serve /metrics in the text format of Prometheus, /live and /ready. The zero
// value is ready to use, for one worker; nothing is served without the program's own server and its protection.
type Metrics struct {
	mu       sync.Mutex
	fleet    *Fleet // nil while no worker runs
	draining bool
	queues   []*queue
	running  map[string]int            // by agent
	attempts map[string]map[string]int // by agent and outcome
}

// Outcomes of attempts that are no states of runs.
const (
	outcomeFailed     = "failed"
	outcomeHandedBack = "handed_back"
	outcomeLost       = "lost"
)

var outcomes = []string{string(Succeeded), outcomeFailed, string(Dead), string(Cancelled), outcomeHandedBack, outcomeLost}

const scrapeTimeout = 5 * time.Second

// begin notes that a worker runs. End notes that it has ended.
func (m *Metrics) begin(f *Fleet) (end func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fleet, m.draining, m.queues = f, false, nil
	m.running, m.attempts = map[string]int{}, map[string]map[string]int{}
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.fleet = nil
	}
}

func (m *Metrics) drain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.draining = true
}

func (m *Metrics) serves(q *queue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues = append(m.queues, q)
	m.running[q.agent], m.attempts[q.agent] = 0, map[string]int{}
}

// attempt counts an attempt that begins, and its outcome.
func (m *Metrics) attempt(agent string) (end func(outcome string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[agent]++
	return func(outcome string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.running[agent]--
		m.attempts[agent][outcome]++
	}
}

// ready is nil if a worker takes requests.
func (m *Metrics) ready() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.fleet == nil:
		return errors.New("the worker does not run")
	case m.draining:
		return errors.New("the worker is stopping")
	case m.fleet.ctx.Err() != nil:
		return errors.New("the fleet is closed")
	case !m.fleet.conn.IsConnected():
		return errors.New("the connection to NATS is down")
	}
	return nil
}

// ServeHTTP implements [http.Handler]. /live is 200 while the worker runs, also while it drains. /ready is 200 while it takes requests.
// The last part of the path counts.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	page := path.Base(r.URL.Path)
	switch page {
	case "metrics":
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(m.text(r.Context())) // the client may be gone
	case "live", "ready":
		err := m.ready()
		m.mu.Lock()
		if page == "live" && m.fleet != nil {
			err = nil
		}
		m.mu.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n")) // as above
	default:
		http.NotFound(w, r)
	}
}

// text is the exposition format 0.0.4. Names of agents need no quoting.
func (m *Metrics) text(ctx context.Context) []byte {
	m.mu.Lock()
	fleet, queues := m.fleet, slices.Clone(m.queues)
	var b bytes.Buffer
	family := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, help, kind) }
	family("drover_fleet_running", "gauge", "Attempts under way in this worker.")
	for _, agent := range slices.Sorted(maps.Keys(m.running)) {
		fmt.Fprintf(&b, "drover_fleet_running{agent=%q} %d\n", agent, m.running[agent])
	}
	family("drover_fleet_attempts_total", "counter", "Attempts of this worker that have ended, by outcome. Lost are those whose lease another worker has.")
	for _, agent := range slices.Sorted(maps.Keys(m.attempts)) {
		for _, outcome := range outcomes {
			fmt.Fprintf(&b, "drover_fleet_attempts_total{agent=%q,outcome=%q} %d\n", agent, outcome, m.attempts[agent][outcome])
		}
	}
	m.mu.Unlock()
	if fleet == nil {
		return b.Bytes()
	}
	ctx, cancel := context.WithTimeout(ctx, scrapeTimeout)
	defer cancel()
	var waiting, taken bytes.Buffer
	for _, q := range queues {
		for l, consumer := range q.levels {
			info, err := consumer.Info(ctx)
			if err != nil {
				fleet.log.Warn("the length of a queue cannot be read", "agent", q.agent, "error", err)
				return b.Bytes()
			}
			fmt.Fprintf(&waiting, "drover_fleet_queue_waiting{agent=%q,priority=%q} %d\n", q.agent, levels[l], info.NumPending)
			fmt.Fprintf(&taken, "drover_fleet_queue_unfinished{agent=%q,priority=%q} %d\n", q.agent, levels[l], info.NumAckPending)
		}
	}
	family("drover_fleet_queue_waiting", "gauge", "Requests that no worker has taken yet.")
	b.Write(waiting.Bytes())
	family("drover_fleet_queue_unfinished", "gauge", "Requests that a worker of the fleet has taken and that have not ended: under way, handed back, or waiting for their time or the next attempt.")
	b.Write(taken.Bytes())
	return b.Bytes()
}
