// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation"
)

// A track is where evaluations run against the clock. Its model knows when it is asked.
type track struct {
	cli   *claudetest.RealCLI
	url   string
	asked atomic.Int64 // in nanoseconds since 1970
}

func newTrack(b *testing.B) *track {
	b.Helper()
	tr := &track{cli: claudetest.CLI(b)}
	model, err := script.NewModel(script.New(script.Structured(fine).Always()))
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			tr.asked.CompareAndSwap(0, time.Now().UnixNano())
		}
		model.ServeHTTP(w, r)
	}))
	b.Cleanup(server.Close)
	tr.url = server.URL
	return tr
}

func (tr *track) options() *claude.Options {
	return &claude.Options{CLIPath: tr.cli.Path, Dir: tr.cli.Work, SettingSources: []string{}, StrictMCP: true, Env: claude.ExactEnv(tr.cli.Env(tr.url))}
}

// lap times what is done: until the model is asked, and to the end.
func (tr *track) lap(b *testing.B, do func() error) (first, end time.Duration) {
	b.Helper()
	tr.asked.Store(0)
	began := time.Now()
	if err := do(); err != nil {
		b.Fatal(err)
	}
	return time.Unix(0, tr.asked.Load()).Sub(began), time.Since(began)
}

// byHand has the CLI answer in a cell, with the flags of an evaluation and nothing else of it.
func (tr *track) byHand(b *testing.B, text string, schema []byte) error {
	b.Helper()
	o := tr.options()
	o.OutputSchema, o.ForwardSubagentText = schema, true
	cell, err := claudecell.Open(b.Context(), nil, o, isolation.OpenOptions{})
	if err != nil {
		return err
	}
	for _, err := range claude.Query(b.Context(), text, o) {
		if err != nil {
			_ = cell.Close()
			return err
		}
	}
	return cell.Close()
}

func medianOf(all []time.Duration) time.Duration {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// BenchmarkEvaluateBesideTheCLI is one prompt, cold, and the CLI by hand in the same kind of cell. Both take
// turns.
//
//	go test -run '^$' -bench 'BenchmarkEvaluate' -benchtime 9x .
func BenchmarkEvaluateBesideTheCLI(b *testing.B) {
	tr, p := newTrack(b), reviewPrompt(b)
	rendered, err := p.Render(nil)
	if err != nil {
		b.Fatal(err)
	}
	var hand, ours []time.Duration
	for b.Loop() {
		_, end := tr.lap(b, func() error { return tr.byHand(b, rendered.Text, rendered.OutputSchema) })
		hand = append(hand, end)
		_, end = tr.lap(b, func() error {
			_, err := drover.Evaluate(b.Context(), claudecode.New(tr.options()), p, nil)
			return err
		})
		ours = append(ours, end)
	}
	b.ReportMetric(0, "ns/op") // the sum of both says nothing
	b.ReportMetric(medianOf(hand).Seconds()*1000, "by-hand-ms")
	b.ReportMetric(medianOf(ours).Seconds()*1000, "drover-ms")
	b.ReportMetric(float64(medianOf(ours))/float64(medianOf(hand)), "drover/by-hand")
}

// BenchmarkEvaluatePrepared is the time from a request to the first question to the model, of a conversation
// that was prepared and of one that was not. Both take turns.
func BenchmarkEvaluatePrepared(b *testing.B) {
	tr, p := newTrack(b), reviewPrompt(b)
	a := claudecode.New(tr.options())
	begin := func(prepare bool) time.Duration {
		c := drover.Converse(a, p, nil)
		defer func() { _ = c.Close() }()
		if prepare {
			if err := c.Prepare(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		first, _ := tr.lap(b, func() error {
			_, err := c.Begin(b.Context())
			return err
		})
		return first
	}
	var cold, prepared []time.Duration
	for b.Loop() {
		cold, prepared = append(cold, begin(false)), append(prepared, begin(true))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(medianOf(cold).Seconds()*1000, "cold-first-ms")
	b.ReportMetric(medianOf(prepared).Seconds()*1000, "prepared-first-ms")
	b.ReportMetric(float64(medianOf(cold))/float64(medianOf(prepared)), "times-faster")
}
