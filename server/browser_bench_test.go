// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/server"
)

// The sizes of BenchmarkPage: a run of 10,000 events with 50 viewers, one of which is a browser.
const (
	benchEvents = 10_000
	benchShown  = 400 // of them while it is watched, 40 in a second
	benchEvery  = 25 * time.Millisecond
	benchReads  = 49
)

// BenchmarkPage measures the page of a run of 10,000 events with 50 viewers: the first paint in milliseconds, how long an event takes
// from the agent to the screen, and how long frames take while the timeline is scrolled.
func BenchmarkPage(b *testing.B) {
	for b.Loop() {
		benchmarkPage(b)
	}
}

func benchmarkPage(b *testing.B) {
	p := openTab(b)
	store := openStore(b)
	s := serve(b, server.Options{Store: store})
	goOn := make(chan struct{})
	proceed := sync.OnceFunc(func() { close(goOn) })
	defer proceed()
	call := func(i int, says string) []event.Payload {
		id := event.CallID(fmt.Sprintf("call-%d", i))
		input, err := json.Marshal(map[string]string{"command": says})
		if err != nil {
			b.Fatal(err)
		}
		return []event.Payload{event.ToolCall{ID: id, Name: "Bash", Input: input}, event.ToolResult{ID: id, Name: "Bash", Status: event.ToolSuccess, Output: json.RawMessage(`"done"`)}}
	}
	const before = (benchEvents - benchShown) / 2
	var steps []agenttest.Step
	for i := range before {
		steps = append(steps, agenttest.Emit(call(i, fmt.Sprintf("go test ./part%d/...", i))...))
	}
	steps = append(steps, func(*agenttest.Run) { <-goOn })
	for i := range benchShown / 2 {
		steps = append(steps, func(r *agenttest.Run) {
			time.Sleep(2 * benchEvery) // the pace of the agent
			agenttest.Emit(call(before+i, fmt.Sprintf("at-%d", time.Now().UnixMilli()))...)(r)
		})
	}
	r := start(b, store, nil, server.LiveOptions{}, append(steps, agenttest.Done("token-1"))...)
	var readers sync.WaitGroup
	ctx, stop := context.WithCancel(b.Context())
	defer readers.Wait()
	defer stop()
	var read atomic.Int64
	for range benchReads {
		readers.Go(func() {
			s.follow(ctx, r.id, 0, func(m message) bool {
				if m.name == "entry" {
					read.Add(1)
				}
				return true
			})
		})
	}
	for read.Load() < benchReads*(benchEvents-benchShown) {
		time.Sleep(50 * time.Millisecond)
	}
	p.open(s.Address(s.base, r.id))
	p.wait("document.querySelectorAll('.row').length > 20 && document.querySelector('.connection').textContent.includes('Live')")
	rows := eval[float64](p, "performance.now()")
	paint := eval[float64](p, "performance.getEntriesByName('first-contentful-paint')[0].startTime")
	p.wait("Number(document.querySelector('.connection').textContent.replace(/\\D/g, '')) >= " + fmt.Sprint(benchEvents-benchShown))
	eval[bool](p, `(() => {
		window.latencies = [];
		window.frames = [];
		const seen = new Set();
		new MutationObserver((changes) => {
			for (const c of changes) for (const n of c.addedNodes) for (const [, at] of n.textContent.matchAll(/at-(\d{13})/g)) {
				if (seen.has(at)) continue;
				seen.add(at);
				requestAnimationFrame(() => window.latencies.push(Date.now() - Number(at)));
			}
		}).observe(document.querySelector(".rows"), { subtree: true, childList: true });
		let last = performance.now();
		const frame = (now) => { window.frames.push(now - last); last = now; requestAnimationFrame(frame); };
		requestAnimationFrame(frame);
		return true;
	})()`)
	proceed()
	p.wait("window.latencies.length >= " + fmt.Sprint(benchShown/2*9/10))
	if dir := os.Getenv("DROVER_PICTURES"); dir != "" {
		p.picture()
	}
	latencies := eval[[]float64](p, "window.latencies")
	eval[bool](p, `(async () => {
		window.frames = [];
		const grid = document.querySelector(".treegrid");
		for (let i = 0; i < 120; i++) { grid.scrollTop = 20000 + i * 66; await new Promise(requestAnimationFrame); }
		return true;
	})()`)
	frames := eval[[]float64](p, "window.frames")
	<-r.done
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(paint, "first-paint-ms")
	b.ReportMetric(rows, "rows-ms")
	b.ReportMetric(quantile(latencies, 0.5), "event-p50-ms")
	b.ReportMetric(quantile(latencies, 0.99), "event-p99-ms")
	b.ReportMetric(quantile(frames, 0.95), "frame-p95-ms")
}

func quantile(of []float64, q float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[min(len(of)-1, int(q*float64(len(of))))]
}
