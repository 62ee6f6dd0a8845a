// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
)

func get(m *fleet.Metrics, path string) (status int, text, contentType string) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String(), w.Header().Get("Content-Type")
}

var sample = regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="[A-Za-z0-9_-]+"(,[a-z]+="[a-z_]+")*\})? ([0-9]+)$`)

// samples reads the text format: each family has its help and its type once, before its samples, which are unlike each other.
func samples(t *testing.T, text string) map[string]string {
	t.Helper()
	all, family, types := map[string]string{}, "", map[string]string{}
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		if !ended {
			t.Errorf("the line %q does not end", line)
		}
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			family, _, _ = strings.Cut(rest, " ")
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			if name != family || types[name] != "" || kind != "gauge" && kind != "counter" || strings.HasSuffix(name, "_total") != (kind == "counter") {
				t.Errorf("the line %q is wrong after the help of %s", line, family)
			}
			types[name] = kind
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil || m[1] != family || types[family] == "" {
			t.Errorf("the line %q is no sample of %s", line, family)
			continue
		}
		if _, twice := all[m[1]+m[2]]; twice {
			t.Errorf("the sample %s is there twice", m[1]+m[2])
		}
		all[m[1]+m[2]] = m[4]
	}
	return all
}

func TestMetrics_CountWhatAWorkerDoes(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f, m := open(t), new(fleet.Metrics)
		status := func(when string, live, ready int) {
			t.Helper()
			gotLive, _, _ := get(m, "/live")
			gotReady, reason, _ := get(m, "/worker/ready")
			if gotLive != live || gotReady != ready {
				t.Errorf("%s: /live is %d and /ready is %d (%s), want %d and %d", when, gotLive, gotReady, reason, live, ready)
			}
		}
		status("before Run", 503, 503)
		begun, release := make(chan string, 10), make(chan struct{})
		a := asks(nil, func(r *agenttest.Run) {
			text := r.Request.Prompt
			switch {
			case strings.Contains(text, "fail"):
				r.Yield(event.Event{}, errors.New("no"))
			case strings.Contains(text, "block"):
				begun <- text
				if strings.Contains(text, "lost") {
					<-release
					return
				}
				agenttest.Block()(r)
			}
		}, answers("ok"))
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		done := make(chan error, 1)
		w := fleet.Worker{Fleet: f, Agents: []fleet.Agent{a}, Metrics: m, Attempts: 2, Backoff: quick, Concurrency: 2, Drain: time.Millisecond}
		go func() { done <- w.Run(ctx) }()
		wait(t, submit(t, f, "Why?", ""))
		wait(t, submit(t, f, "fail", ""))
		cancelled := submit(t, f, "block: cancelled", "")
		<-begun
		if err := cancelled.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait(t, cancelled)
		lost := submit(t, f, "block: lost", "")
		<-begun
		if _, err := open(t).OpenLog(t.Context(), lost.ID(), "another"); err != nil {
			t.Fatal(err)
		}
		close(release) // its next append is refused
		for range 1000 {
			if _, text, _ := get(m, "/metrics"); samples(t, text)[`drover_fleet_attempts_total{agent="asks",outcome="lost"}`] == "1" {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		first := submit(t, f, "block: drained", "")
		<-begun
		if _, err := f.Submit(t.Context(), "asks", question{"Later?"}, &fleet.SubmitOptions{NotBefore: time.Now().Add(time.Hour), Priority: fleet.Low}); err != nil {
			t.Fatal(err)
		}
		second := submit(t, f, "block: drained, too", "")
		<-begun
		for range 3 {
			submit(t, f, "block: waits", "")
		}
		status("while it runs", 200, 200)
		var got map[string]string
		for range 1000 {
			_, text, contentType := get(m, "/metrics")
			if contentType != "text/plain; version=0.0.4; charset=utf-8" {
				t.Fatalf("the content type is %q", contentType)
			}
			got = samples(t, text)
			waiting, _ := strconv.Atoi(got[`drover_fleet_queue_waiting{agent="asks",priority="normal"}`])
			unfinished, _ := strconv.Atoi(got[`drover_fleet_queue_unfinished{agent="asks",priority="normal"}`])
			if waiting+unfinished == 6 && waiting >= 2 && got[`drover_fleet_queue_unfinished{agent="asks",priority="low"}`] == "1" {
				break // two are under way, one is lost, three wait; one of these was handed back if the worker was idle when it came
			}
			time.Sleep(10 * time.Millisecond)
		}
		for name, want := range map[string]string{
			`drover_fleet_running{agent="asks"}`:                              "2",
			`drover_fleet_attempts_total{agent="asks",outcome="succeeded"}`:   "1",
			`drover_fleet_attempts_total{agent="asks",outcome="failed"}`:      "1",
			`drover_fleet_attempts_total{agent="asks",outcome="dead"}`:        "1",
			`drover_fleet_attempts_total{agent="asks",outcome="cancelled"}`:   "1",
			`drover_fleet_attempts_total{agent="asks",outcome="lost"}`:        "1",
			`drover_fleet_attempts_total{agent="asks",outcome="handed_back"}`: "0",
			`drover_fleet_queue_unfinished{agent="asks",priority="low"}`:      "1",
			`drover_fleet_queue_waiting{agent="asks",priority="high"}`:        "0",
			`drover_fleet_queue_unfinished{agent="asks",priority="high"}`:     "0",
		} {
			if got[name] != want {
				t.Errorf("%s is %q, want %s", name, got[name], want)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
		status("after Run", 503, 503)
		_, text, _ := get(m, "/metrics")
		if got := samples(t, text)[`drover_fleet_attempts_total{agent="asks",outcome="handed_back"}`]; got != "2" {
			t.Errorf("%s attempts were handed back, want 2", got)
		}
		for _, r := range []*fleet.Run{first, second} {
			wantState(t, r, fleet.Queued)
		}
		if code, _, _ := get(m, "/other"); code != 404 {
			t.Errorf("another path is %d", code)
		}
		rec := httptest.NewRecorder()
		m.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/metrics", nil))
		if rec.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST is %d", rec.Code)
		}
	})
}

// A worker that drains is live and not ready; so is one without a connection.
func TestMetrics_Ready(t *testing.T) {
	onEach(t, func(t *testing.T, open func(*testing.T) *fleet.Fleet) {
		f, m := open(t), new(fleet.Metrics)
		begun, release := make(chan struct{}), make(chan struct{})
		stop := work(t, fleet.Worker{Fleet: f, Metrics: m, Agents: []fleet.Agent{asks(nil, func(*agenttest.Run) {
			close(begun)
			<-release
		}, answers("ok"))}})
		r := submit(t, f, "Why?", "")
		<-begun
		stopped := make(chan struct{})
		go func() {
			stop()
			close(stopped)
		}()
		for range 1000 {
			if code, _, _ := get(m, "/ready"); code == http.StatusServiceUnavailable {
				break
			}
			time.Sleep(time.Millisecond)
		}
		live, _, _ := get(m, "/live")
		ready, reason, _ := get(m, "/ready")
		if live != 200 || ready != 503 || !strings.Contains(reason, "stopping") {
			t.Errorf("a worker that drains: /live is %d, /ready is %d: %s", live, ready, reason)
		}
		close(release)
		<-stopped
		if result := wait(t, r); result.State != fleet.Succeeded {
			t.Errorf("the run ended with %+v", result)
		}
	})
}
