// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
)

// A stopwatch is an adapter whose model knows when it is asked.
type stopwatch struct {
	*claudecode.Adapter
	asked atomic.Int64 // in nanoseconds since 1970
}

func newStopwatch(b *testing.B) *stopwatch {
	b.Helper()
	cli, w := claudetest.CLI(b), &stopwatch{}
	model, err := script.NewModel(script.New(script.Text("done").Always()))
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.asked.CompareAndSwap(0, time.Now().UnixNano())
		}
		model.ServeHTTP(out, r)
	}))
	b.Cleanup(server.Close)
	w.Adapter = newAdapter(b, &claude.Options{
		CLIPath: cli.Path, Dir: cli.Work, SettingSources: []string{}, StrictMCP: true, Env: claude.ExactEnv(cli.Env(server.URL)),
	})
	b.Cleanup(func() { _ = w.Close() })
	return w
}

// A lap is how long it took until the model was asked, and until the answer was there.
type lap struct{ first, done time.Duration }

// measure times a run. What is to be done before it belongs to it.
func (w *stopwatch) measure(b *testing.B, before func() error, events iter.Seq2[event.Event, error]) (l lap) {
	b.Helper()
	w.asked.Store(0)
	began := time.Now()
	if err := before(); err != nil {
		b.Fatal(err)
	}
	for e, err := range events {
		if err != nil {
			b.Fatal(err)
		}
		if done, ok := e.Payload.(event.Done); ok {
			l.done = time.Since(began)
			if done.Status != event.DoneSuccess {
				b.Fatalf("the run ended with %+v", done)
			}
		}
	}
	l.first = time.Unix(0, w.asked.Load()).Sub(began)
	return l
}

func nothing() error { return nil }

func (w *stopwatch) cold(b *testing.B) lap {
	b.Helper()
	return w.measure(b, nothing, w.Run(b.Context(), agent.Request{Prompt: "go"}))
}

type laps struct{ first, done []time.Duration }

func (l *laps) add(one lap) {
	l.first, l.done = append(l.first, one.first), append(l.done, one.done)
}

func (l *laps) report(b *testing.B, name string) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // it has more in it than what is measured
	b.ReportMetric(fastest(l.first)*1000, name+"-first-ms")
	b.ReportMetric(fastest(l.done)*1000, name+"-done-ms")
}

// fastest is in seconds. What else the machine does can only add to it.
func fastest(all []time.Duration) float64 { return slices.Min(all).Seconds() }

// BenchmarkColdRun is a run with a CLI and a cell of its own.
//
//	go test -run '^$' -bench 'ColdRun|WarmRun|FreshConversation' -benchtime 10x ./agent/claudecode
func BenchmarkColdRun(b *testing.B) {
	w := newStopwatch(b)
	var cold laps
	for b.Loop() {
		cold.add(w.cold(b))
	}
	cold.report(b, "cold")
}

// BenchmarkWarmRun is a run for which a CLI waits in its cell, and how many times faster than a cold one it
// comes to ask the model. Both take turns.
func BenchmarkWarmRun(b *testing.B) {
	w := newStopwatch(b)
	var cold, warm laps
	for b.Loop() {
		cold.add(w.cold(b))
		if err := w.Warm(b.Context(), agent.Request{}); err != nil {
			b.Fatal(err)
		}
		warm.add(w.measure(b, nothing, w.Run(b.Context(), agent.Request{Prompt: "go"})))
	}
	cold.report(b, "cold")
	warm.report(b, "warm")
	b.ReportMetric(fastest(cold.first)/fastest(warm.first), "times-faster")
}

// BenchmarkFreshConversation is a prompt in a new conversation of a process that has had others, and how many
// times faster than with a process of its own it is answered. Both take turns.
func BenchmarkFreshConversation(b *testing.B) {
	w := newStopwatch(b)
	opened, err := w.Open(b.Context(), agent.Request{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	c := opened.(agent.Resetter)
	w.measure(b, nothing, c.Send(b.Context(), "go"))
	var cold, fresh laps
	for b.Loop() {
		cold.add(w.cold(b))
		fresh.add(w.measure(b, func() error { return c.Reset(b.Context()) }, c.Send(b.Context(), "go")))
	}
	cold.report(b, "cold")
	fresh.report(b, "fresh")
	b.ReportMetric(fastest(cold.done)/fastest(fresh.done), "times-faster")
}
