// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

var (
	errBusyModel = errors.New("the model is busy")
	errBadModel  = errors.New("there is no such model")
)

// A moody agent fails as its script says, run by run, and knows what its errors mean.
type moody struct {
	*agenttest.Adapter
	runs int
}

func (m *moody) Classify(err error) agent.Failure {
	if errors.Is(err, errBusyModel) {
		return agent.Failure{Kind: agent.FailureRateLimit}
	}
	return agent.Failure{}
}

// newMoody makes an agent that does the steps of its n-th run. Runs beyond do those of the last.
func newMoody(runs ...[]agenttest.Step) *moody {
	m := &moody{}
	m.Adapter = agenttest.New(func(r *agenttest.Run) {
		steps := runs[min(m.runs, len(runs)-1)]
		m.runs++
		for _, step := range steps {
			step(r)
		}
	})
	m.Tools = catalogue.Tools()
	return m
}

// fails is a run that ends with an error, after the steps.
func fails(err error, token string, before ...agenttest.Step) []agenttest.Step {
	return append(before, agenttest.Emit(
		event.Error{Code: "busy", Message: err.Error(), Cause: err},
		event.Done{Status: event.DoneError, ResumeToken: token, Cause: err, Usage: event.Usage{Cost: &event.Cost{USD: 1}}},
	))
}

func succeeds(text string) []agenttest.Step {
	return []agenttest.Step{agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: text, Usage: event.Usage{Cost: &event.Cost{USD: 0.5}}})}
}

func uses(name string) agenttest.Step {
	return usesAs(event.CallID("call-"+name), name, event.ToolSuccess)
}

func usesAs(id event.CallID, name string, status event.ToolStatus) agenttest.Step {
	return agenttest.Emit(event.ToolCall{ID: id, Name: name}, event.ToolResult{ID: id, Name: name, Status: status})
}

// An evaluation is tried again as long as that can help, is safe and is allowed.
func TestRetry_Conditions(t *testing.T) {
	busy := fails(errBusyModel, "")
	asks := func(wait time.Duration) agenttest.Step {
		return agenttest.Emit(gateway.ModelCall{Status: 429, RetryAfterMS: float64(wait.Milliseconds())})
	}
	for name, x := range map[string]struct {
		runs     [][]agenttest.Step
		opts     drover.Options
		attempts int
		ok       bool
		min, max time.Duration // of all waits
		prompts  []string      // of the requests, the beginning of the prompt
		resumes  []string      // of the requests, what they resume
	}{
		"the second try succeeds":  {runs: [][]agenttest.Step{busy, succeeds("fine")}, opts: retrying(), attempts: 2, ok: true, min: 250 * time.Millisecond, max: 500 * time.Millisecond, resumes: []string{"", ""}},
		"no retry is asked for":    {runs: [][]agenttest.Step{busy, succeeds("fine")}, attempts: 1},
		"it is busy for ever":      {runs: [][]agenttest.Step{busy}, opts: retrying(), attempts: 5, min: 3750 * time.Millisecond, max: 7500 * time.Millisecond},
		"fewer tries":              {runs: [][]agenttest.Step{busy}, opts: drover.Options{Retry: &drover.RetryPolicy{MaxAttempts: 2, BaseDelay: time.Minute, MaxDelay: 4 * time.Second}}, attempts: 2, min: 2 * time.Second, max: 4 * time.Second},
		"it would not help":        {runs: [][]agenttest.Step{fails(errBadModel, ""), succeeds("fine")}, opts: retrying(), attempts: 1},
		"the service asks to wait": {runs: [][]agenttest.Step{fails(errBusyModel, "", asks(20*time.Second)), succeeds("fine")}, opts: retrying(), attempts: 2, ok: true, min: 20 * time.Second, max: 20 * time.Second},
		"for too long":             {runs: [][]agenttest.Step{fails(errBusyModel, "", asks(31*time.Second)), succeeds("fine")}, opts: retrying(), attempts: 1},
		"beyond the deadline":      {runs: [][]agenttest.Step{fails(errBusyModel, "", asks(20*time.Second)), succeeds("fine")}, opts: drover.Options{Retry: &drover.RetryPolicy{}, Deadline: guard.FromNow(0)}, attempts: 1},
		"read-only calls": {
			runs: [][]agenttest.Step{fails(errBusyModel, "", uses("Read"), uses("mcp__drover__look")), succeeds("fine")}, opts: retrying(), attempts: 2, ok: true,
			max: time.Second, prompts: []string{"## ", "## "}, resumes: []string{"", ""},
		},
		"read-only calls of a conversation": {
			runs: [][]agenttest.Step{fails(errBusyModel, "token", uses("Read")), succeeds("fine")}, opts: retrying(), attempts: 2, ok: true,
			max: time.Second, prompts: []string{"## ", "Your work was interrupted"}, resumes: []string{"", "token"},
		},
		"a call that changes something": {runs: [][]agenttest.Step{fails(errBusyModel, "", uses("Bash")), succeeds("fine")}, opts: retrying(), attempts: 1},
		"a call of ours that does":      {runs: [][]agenttest.Step{fails(errBusyModel, "", uses("mcp__drover__act")), succeeds("fine")}, opts: retrying(), attempts: 1},
		"a call of another server":      {runs: [][]agenttest.Step{fails(errBusyModel, "", uses("mcp__other__look")), succeeds("fine")}, opts: retrying(), attempts: 1},
		"a call that was denied": {
			runs: [][]agenttest.Step{fails(errBusyModel, "", usesAs("c", "Bash", event.ToolDenied)), succeeds("fine")},
			opts: retrying(), attempts: 2, ok: true, max: time.Second,
		},
		"a read-only call under the id of one that changes something": {
			runs: [][]agenttest.Step{fails(errBusyModel, "", usesAs("c", "Bash", event.ToolSuccess), usesAs("c", "Read", event.ToolSuccess)), succeeds("fine")},
			opts: retrying(), attempts: 1,
		},
		"a denial that is reported twice": {
			runs: [][]agenttest.Step{fails(errBusyModel, "", uses("Bash"), usesAs("c", "Write", event.ToolDenied), agenttest.Emit(event.ToolResult{ID: "c", Name: "Write", Status: event.ToolDenied})), succeeds("fine")},
			opts: retrying(), attempts: 1,
		},
		"a conversation with such calls goes on": {
			runs: [][]agenttest.Step{fails(errBusyModel, "token", uses("Bash")), busy, succeeds("fine")}, opts: retrying(), attempts: 3, ok: true,
			max: 2 * time.Second, prompts: []string{"## ", "Your work was interrupted", "Your work was interrupted"}, resumes: []string{"", "token", "token"},
		},
		"a conversation that cannot go on": {
			runs: [][]agenttest.Step{fails(errBusyModel, "token", uses("Bash")), fails(errBusyModel, "", uses("Write")), succeeds("fine")}, opts: retrying(), attempts: 2, max: time.Second,
		},
		"what was resumed is resumed again": {
			runs: [][]agenttest.Step{fails(errBusyModel, "other"), succeeds("fine")}, opts: drover.Options{Retry: &drover.RetryPolicy{}, Resume: "first"}, attempts: 2, ok: true,
			max: time.Second, prompts: []string{"## ", "## "}, resumes: []string{"first", "first"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMoody(x.runs...)
				began := time.Now()
				if !x.opts.Deadline.IsZero() {
					x.opts.Deadline = guard.FromNow(10 * time.Second)
				}
				x.opts.Dir, x.opts.Session = t.TempDir(), session.New(nil)
				resp, err := drover.Evaluate(t.Context(), m, lookPrompt(t), &x.opts)
				if (err == nil) != x.ok || m.runs != x.attempts {
					t.Fatalf("after %d attempts: %v; want %d, ok %t", m.runs, err, x.attempts, x.ok)
				}
				if took := time.Since(began); took < x.min || took > x.max {
					t.Errorf("it has waited %s, want %s to %s", took, x.min, x.max)
				}
				checkRequests(t, m.Requests(), x.prompts, x.resumes)
				checkSummary(t, resp, err, x.attempts, x.ok)
			})
		})
	}
}

// An opened agent keeps its conversation over several prompts.
type opened struct{ *moody }

type openedConversation struct {
	agent opened
	req   agent.Request
}

func (o opened) Open(_ context.Context, req agent.Request) (agent.Conversation, error) {
	return &openedConversation{o, req}, nil
}

func (c *openedConversation) Send(ctx context.Context, prompt string) iter.Seq2[event.Event, error] {
	req := c.req
	req.Prompt = prompt
	return c.agent.Run(ctx, req)
}

func (c *openedConversation) Close() error { return nil }

// A background subagent may still have a call when a turn ends. If that is denied later, it says nothing about the
// calls of the next turn.
func TestRetry_LateDenialOfAnEarlierTurn(t *testing.T) {
	late := agenttest.Emit(event.ToolResult{ID: "sub", Name: "Bash", Status: event.ToolDenied})
	for name, x := range map[string]struct {
		second []agenttest.Step
		runs   int
	}{
		"denial first":     {[]agenttest.Step{late, uses("Bash")}, 2},
		"denial last":      {[]agenttest.Step{uses("Bash"), late}, 2},
		"a changing call":  {[]agenttest.Step{uses("Bash")}, 2},
		"the denial alone": {[]agenttest.Step{late}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begins := agenttest.Emit(event.ToolCall{ID: "sub", Name: "Bash", AgentID: "a1"})
				m := newMoody(append([]agenttest.Step{begins}, succeeds("one")...), fails(errBusyModel, "", x.second...), succeeds("two"))
				opts := retrying()
				opts.Dir = t.TempDir()
				c := drover.Converse(opened{m}, lookPrompt(t), &opts)
				defer c.Close()
				if _, err := c.Begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				_, err := c.Send(t.Context(), "Go on.")
				if m.runs != x.runs || (err == nil) != (x.runs == 3) {
					t.Errorf("%d runs and %v, want %d", m.runs, err, x.runs)
				}
			})
		})
	}
}

func retrying() drover.Options { return drover.Options{Retry: &drover.RetryPolicy{}} }

// lookPrompt has a tool that looks and one that acts.
func lookPrompt(t *testing.T) *prompt.Prompt[prompt.Text] {
	t.Helper()
	do := func(context.Context, countInput) (int, error) { return 0, nil }
	p, err := prompt.NewPrompt[prompt.Text]("demo", "task", prompt.Markdown("task", "Task", "Do it.").With(
		tool.Must("look", "Looks.", do, tool.WithTags("readonly")), tool.Must("act", "Acts.", do)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func checkRequests(t *testing.T, requests []agent.Request, prompts, resumes []string) {
	t.Helper()
	for i, words := range prompts {
		if !strings.HasPrefix(requests[i].Prompt, words) {
			t.Errorf("attempt %d sends %q, want %q at the beginning", i+1, requests[i].Prompt, words)
		}
	}
	var got []string
	for _, r := range requests {
		got = append(got, r.Resume)
	}
	if diff := cmp.Diff(resumes, got); resumes != nil && diff != "" {
		t.Errorf("resumed (-want +got):\n%s", diff)
	}
}

// checkSummary looks whether the attempts are counted and their costs added up.
func checkSummary(t *testing.T, resp *drover.Response[prompt.Text], err error, attempts int, ok bool) {
	t.Helper()
	var s drover.Summary
	want := float64(attempts)
	if ok {
		s, want = resp.Summary, want-0.5
	} else if failure, is := errors.AsType[*drover.EvaluationError](err); is {
		s = failure.Summary
		if throttle, is := errors.AsType[*drover.ThrottleError](err); is && throttle.Attempts != attempts {
			t.Errorf("the throttling has %d attempts, want %d", throttle.Attempts, attempts)
		}
	}
	if s.Attempts != attempts || s.CostUSD() != want {
		t.Errorf("the summary has %d attempts for $%v, want %d for $%v", s.Attempts, s.CostUSD(), attempts, want)
	}
}

// A reader of the events receives each attempt. A failure that the evaluation has survived is recoverable, and
// there is one end.
func TestRetry_AttemptsAreEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := session.New(nil)
		m := newMoody(fails(errBusyModel, ""), fails(errBusyModel, ""), succeeds("fine"))
		run := drover.Stream(t.Context(), m, newPrompt[prompt.Text](t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Session: s, Retry: &drover.RetryPolicy{}})
		var got []string
		seq := int64(0)
		for e, err := range run.Events() {
			if err != nil {
				t.Fatal(err)
			}
			if seq++; e.Seq != seq {
				t.Errorf("event %d has the number %d", seq, e.Seq)
			}
			switch p := e.Payload.(type) {
			case event.Error:
				got = append(got, p.Code)
				if !p.Recoverable {
					t.Errorf("%+v is reported as the end", p)
				}
			case event.Done:
				got = append(got, string(p.Status))
			}
		}
		if diff := cmp.Diff([]string{"busy", drover.CodeRetry, "busy", drover.CodeRetry, "success"}, got); diff != "" {
			t.Errorf("emitted (-want +got):\n%s", diff)
		}
	})
}

// A wait ends with the context.
func TestRetry_WaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		m := newMoody(fails(errBusyModel, ""))
		_, err := drover.Evaluate(ctx, m, newPrompt[prompt.Text](t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Retry: &drover.RetryPolicy{}})
		if !errors.Is(err, context.DeadlineExceeded) || m.runs != 1 {
			t.Errorf("after %d attempts: %v, want one and the end of the context", m.runs, err)
		}
	})
}

// The real CLI is asked to wait, and the second attempt succeeds; after a call that changed something the
// conversation goes on.
func TestRealCLI_IsRetried(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Fail(429, "slowly").RetryAfter(time.Second),
		script.Call("Bash", script.Input{"command": "echo once >> did.txt"}),
		script.Fail(529, "too much"),
		script.Func(func(r *script.Request) script.Turn { return script.Text("I was told: " + r.LastUserText()) }),
	).RequireAllUsed()
	resp, err := drover.Evaluate(t.Context(), realCLI(t, cli, model), newPrompt[prompt.Text](t), &drover.Options{Retry: &drover.RetryPolicy{}})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Attempts != 3 || !strings.Contains(string(resp.Output), "Your work was interrupted") {
		t.Errorf("after %d attempts: %q, want 3 and a conversation that goes on", resp.Attempts, resp.Output)
	}
	if n := len(model.Requests()); n != 4 {
		t.Errorf("the model was asked %d times, want 4", n)
	}
}

func TestRetry_HandlersSeeTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []guard.RunContext
		look := tool.Must("look", "Looks.", func(ctx context.Context, _ tool.None) (string, error) {
			seen = append(seen, guard.RunContextFrom(ctx))
			return "", nil
		}, tool.ReadOnly)
		p, err := prompt.NewPrompt[prompt.Text]("demo", "look", prompt.Markdown("task", "Task", "Look.").With(look))
		if err != nil {
			t.Fatal(err)
		}
		looks := calls(call("1", "mcp__drover__look", `{}`))
		again := calls(call("2", "mcp__drover__look", `{}`))
		m := newMoody(fails(errBusyModel, "", looks), append([]agenttest.Step{again}, succeeds("Fine.")...))
		given := guard.RunContext{WorkerID: "w1"}
		resp, err := drover.Evaluate(t.Context(), m, p, &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Retry: &drover.RetryPolicy{}, RunContext: given})
		if err != nil || len(seen) != 2 || resp.Attempts != 2 {
			t.Fatalf("%d calls, and %v", len(seen), err)
		}
		for i, run := range seen {
			if run.Attempt != i+1 || run.RunID != resp.RunID || run.WorkerID != "w1" || run.RequestID == "" || run.RequestID != seen[0].RequestID {
				t.Errorf("call %d is of the run %+v", i+1, run)
			}
		}
	})
}
