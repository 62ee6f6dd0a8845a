// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
)

const realKey = "sk-ant-the-real-key-0123456789"

// A recorder keeps the events of a run.
type recorder struct {
	mu  sync.Mutex
	all []event.Payload
}

func (r *recorder) emit(p event.Payload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, p)
}

// eventsOf are the recorded events of one type.
func eventsOf[T event.Payload](r *recorder) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []T
	for _, p := range r.all {
		if e, ok := p.(T); ok {
			out = append(out, e)
		}
	}
	return out
}

// endpoint is an upstream that leads to a scripted model.
func endpoint(t testing.TB, url string) gateway.Upstream {
	t.Helper()
	u, err := gateway.Endpoint(url, gateway.APIKey(realKey))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// serve opens a run on a loopback port until the end of the test.
func serve(t testing.TB, g *gateway.Gateway, o gateway.RunOptions) (run *gateway.Run, url string) {
	t.Helper()
	run, err := g.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- run.Serve(l) }()
	t.Cleanup(func() {
		if err := run.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-done; err != gateway.ErrClosed {
			t.Errorf("Serve: %v", err)
		}
	})
	return run, "http://" + l.Addr().String()
}

// through are options for a CLI that knows the gateway and its token only.
func through(cli *claudetest.RealCLI, run *gateway.Run, url string, vars map[string]string) *claude.Options {
	env := cli.Env(url)
	env["ANTHROPIC_API_KEY"] = run.Token()
	for name, value := range vars {
		env[name] = value
	}
	return &claude.Options{CLIPath: cli.Path, Dir: cli.Work, Env: claude.ExactEnv(env), SettingSources: []string{}, StrictMCP: true}
}

func TestCLI_WorksThroughTheGateway(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("Bash", map[string]any{"command": "echo through", "description": "say it"}).Metered(script.Usage{Input: 100, Output: 20, CacheRead: 7}),
		script.Text("done").Chunked(1, 0).Metered(script.Usage{Input: 150, Output: 30, CacheCreation: 5}))
	var events recorder
	run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: endpoint(t, model.URL()), Emit: events.emit})
	opts := through(cli, run, url, nil)
	opts.PermissionMode = claude.ModeBypassPermissions

	answer := ask(t, opts)
	if answer.Result != "done" {
		t.Errorf("the CLI answered %q", answer.Result)
	}
	for _, r := range model.Requests() {
		if got := r.Header.Get("X-Api-Key"); got != realKey {
			t.Errorf("the model got the key %q", got)
		}
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding is %q", got)
		}
	}
	got := run.Usage()
	want := gateway.Count{Requests: 2, Tokens: gateway.Tokens{Input: 250, CacheRead: 7, CacheWrite5m: 5, Output: 50}, USD: math.Round(answer.TotalCostUSD*1e9) / 1e9}
	if diff := cmp.Diff(want, got.Total); diff != "" {
		t.Errorf("the gateway and the CLI disagree (-CLI +gateway)\n%s", diff)
	}
	if calls := eventsOf[gateway.ModelCall](&events); len(calls) != 2 || calls[0].StopReason != "tool_use" || !calls[1].Streamed {
		t.Errorf("the events are %+v", calls)
	}
	if err := run.Stopped(); err != nil {
		t.Errorf("the run was stopped: %v", err)
	}
}

// What the CLI counts for itself is compared with the price table, for models that both know, and for
// one that only the CLI guesses.
func TestCLI_CountsTheSameDollars(t *testing.T) {
	cases := []struct {
		model    string
		usage    script.Usage
		unpriced bool
	}{
		{"claude-sonnet-4-5", script.Usage{Input: 1234, Output: 567, CacheRead: 8901, CacheCreation: 234}, false},
		{"claude-haiku-5-5", script.Usage{Input: 100, Output: 50, CacheRead: 120_000, CacheCreation: 7}, false}, // a long input
		{"model-nobody-knows", script.Usage{Input: 100, Output: 50}, true},
	}
	for _, tc := range cases {
		t.Run(tc.model, func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t, script.Text("done").Metered(tc.usage))
			run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: endpoint(t, model.URL())})
			opts := through(cli, run, url, nil)
			opts.Model = tc.model
			answer, got := ask(t, opts), run.Usage()
			if tc.unpriced {
				if got.Total.USD != 0 || !slices.Equal(got.Unpriced, []string{tc.model}) || answer.TotalCostUSD == 0 {
					t.Errorf("got %+v; the CLI guesses %v", got, answer.TotalCostUSD)
				}
				return
			}
			if diff := math.Abs(got.Total.USD - answer.TotalCostUSD); diff > 1e-9 || got.Total.USD == 0 {
				t.Errorf("the gateway reports %v, the CLI %v", got.Total.USD, answer.TotalCostUSD)
			}
		})
	}
}

// The budget is spent by the first answer; the second request ends the CLI.
func TestCLI_EndsWhenItsBudgetIsSpent(t *testing.T) {
	for name, find := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(name, func(t *testing.T) {
			cli := find(t)
			model := claudetest.NewModel(t,
				script.Call("Bash", map[string]any{"command": "echo hi", "description": "say it"}).Metered(script.Usage{Input: 100, Output: 20}))
			var events recorder
			tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 120})
			run, url := serve(t, gateway.New(nil), gateway.RunOptions{
				Upstream: endpoint(t, model.URL()), Emit: events.emit, Trackers: []*guard.Tracker{tracker},
			})
			opts := through(cli, run, url, nil)
			opts.PermissionMode = claude.ModeBypassPermissions
			answer := ask(t, opts)
			if !answer.IsError || answer.APIErrorStatus != http.StatusPaymentRequired || !strings.Contains(answer.Result, "MaxTotalTokens is 120") {
				t.Errorf("the CLI answered %q (status %d)", answer.Result, answer.APIErrorStatus)
			}
			assertStopped(t, run, &events, "MaxTotalTokens", guard.ErrBudgetExhausted)
			if got := len(model.Requests()); got != 1 {
				t.Errorf("the model got %d requests, want 1", got)
			}
		})
	}
}

// assertStopped checks what a run reports that a limit has ended.
func assertStopped(t testing.TB, run *gateway.Run, events *recorder, limit string, target error) {
	t.Helper()
	if err := run.Stopped(); !errors.Is(err, target) {
		t.Errorf("Stopped: %v, want one that matches %v", err, target)
	}
	if limits := eventsOf[gateway.Limit](events); len(limits) != 1 || limits[0].Limit != limit {
		t.Errorf("got the limits %+v, want %s once", limits, limit)
	}
}

// The input alone spends the budget: the stream ends in the middle, with and without the CLI's
// second try that is not streamed.
func TestCLI_EndsWhenAnAnswerIsCut(t *testing.T) {
	for _, fallback := range []bool{true, false} {
		t.Run(fmt.Sprintf("fallback %v", fallback), func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t,
				script.Text("a long answer that nobody gets to the end of").Chunked(2, 20*time.Millisecond).Metered(script.Usage{Input: 500, Output: 40}))
			var events recorder
			tracker := guard.NewTracker(guard.Budget{MaxInputTokens: 500})
			run, url := serve(t, gateway.New(nil), gateway.RunOptions{
				Upstream: endpoint(t, model.URL()), Emit: events.emit, Trackers: []*guard.Tracker{tracker},
			})
			var vars map[string]string
			if !fallback {
				vars = map[string]string{"CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1"}
			}
			answer := ask(t, through(cli, run, url, vars))
			if !answer.IsError || !strings.Contains(answer.Result, "MaxInputTokens is 500") {
				t.Errorf("the CLI answered %+v", answer)
			}
			if fallback != (answer.APIErrorStatus == http.StatusPaymentRequired) {
				t.Errorf("the CLI ends with status %d", answer.APIErrorStatus)
			}
			assertStopped(t, run, &events, "MaxInputTokens", guard.ErrBudgetExhausted)
			if got := len(model.Requests()); got != 1 {
				t.Errorf("the model got %d requests, want 1", got)
			}
			if got := run.Usage().Total.Output; got > 10 {
				t.Errorf("%d output tokens are counted of an answer that was cut", got)
			}
		})
	}
}

// A stream that the upstream itself breaks off makes the CLI ask again without streaming, which is
// metered as well.
func TestCLI_UnstreamedRetryIsMetered(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Text("broken").Metered(script.Usage{Input: 10, Output: 20}).Breaking(script.ErrorEventAfter(2, script.APIError{Status: 500})),
		script.Text("whole").Metered(script.Usage{Input: 300, Output: 40}))
	var events recorder
	run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: endpoint(t, model.URL()), Emit: events.emit})
	if answer := ask(t, through(cli, run, url, nil)); answer.Result != "whole" {
		t.Errorf("the CLI answered %+v", answer)
	}
	calls := eventsOf[gateway.ModelCall](&events)
	if len(calls) != 2 || calls[0].Error != "api_error" || calls[1].Streamed || calls[1].Tokens.Output != 40 {
		t.Errorf("the events are %+v", calls)
	}
	if got := run.Usage().Total; got.Input != 310 || got.Requests != 2 {
		t.Errorf("got %+v, want the input of both", got)
	}
}

// ask runs the CLI with one prompt and returns the result that counts.
func ask(t *testing.T, opts *claude.Options) *claude.ResultMessage {
	t.Helper()
	for m, err := range claude.Query(context.Background(), "go", opts) {
		if err != nil {
			t.Logf("the CLI ends with %v", err)
		}
		if end, ok := m.(*claude.TurnEnd); ok {
			return end.Answer
		}
	}
	t.Fatal("no answer of the CLI")
	return nil
}
