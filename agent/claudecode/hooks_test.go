// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
)

// Hooks that only notify do not keep the CLI waiting for ever; those that decide may.
func TestHooks_OnlyNotificationsHaveATimeout(t *testing.T) {
	o := optionsOf(t, nil, agent.Request{Hooks: &agent.Hooks{
		Rewrite:         func(context.Context, event.ToolCall) (json.RawMessage, error) { return nil, nil },
		Submitted:       quiet,
		CallEnded:       func(context.Context, agent.CallEnd) (string, error) { return "", nil },
		Answering:       func(context.Context, agent.Answer) (string, error) { return "", nil },
		Stopping:        func(context.Context, agent.Stop) (string, error) { return "", nil },
		SubagentStarted: func(context.Context, agent.Subagent) {},
		SubagentStopped: func(context.Context, agent.Subagent) {},
		Compacting:      func(context.Context, agent.Compaction) {},
	}})
	got := map[string]time.Duration{}
	for _, h := range o.Hooks {
		got[strings.TrimSpace(string(h.Event)+" "+h.Matcher)] = h.Timeout
	}
	want := map[string]time.Duration{
		"PreToolUse": 0, "PreToolUse StructuredOutput": 0, "Stop": 0,
		"PostToolUse": 30 * time.Second, "PostToolUseFailure": 30 * time.Second, "UserPromptSubmit": 10 * time.Second,
		"PostToolUse StructuredOutput": 10 * time.Second, "PostToolBatch": 0, // which may put files back
		"SubagentStart": 10 * time.Second, "SubagentStop": 10 * time.Second, "PreCompact": 10 * time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks and their timeouts (-want +got):\n%s", diff)
	}
}

// The limits of the CLI are beside ours: what it grants the model by itself, the model keeps.
func TestStopping_LimitsOfTheCLIAreRaised(t *testing.T) {
	refuse := func(context.Context, agent.Answer) (string, error) { return "no", nil }
	stop := func(context.Context, agent.Stop) (string, error) { return "no", nil }
	for name, x := range map[string]struct {
		env            map[string]string
		req            agent.Request
		answers, stops string
	}{
		"no hooks":           {nil, agent.Request{}, "", ""},
		"none that refuses":  {nil, agent.Request{Hooks: &agent.Hooks{Submitted: quiet}}, "", ""},
		"answers":            {nil, agent.Request{Hooks: &agent.Hooks{Answering: refuse}}, "15", ""},
		"stops":              {nil, agent.Request{Hooks: &agent.Hooks{Stopping: stop}}, "", "11"},
		"both, twenty times": {nil, agent.Request{Hooks: &agent.Hooks{Answering: refuse, Stopping: stop}, MaxRefusals: 20}, "25", "21"},
		"without an end":     {nil, agent.Request{Hooks: &agent.Hooks{Answering: refuse, Stopping: stop}, MaxRefusals: math.MaxInt}, "1000000005", "1000000001"},
		"another number":     {map[string]string{"MAX_STRUCTURED_OUTPUT_RETRIES": "2"}, agent.Request{Hooks: &agent.Hooks{Answering: refuse}}, "12", ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := optionsOf(t, &claude.Options{Env: claude.ExactEnv(x.env)}, x.req)
			got := [2]string{environ(&o, answersVariable), environ(&o, stopsVariable)}
			if want := [2]string{x.answers, x.stops}; got != want {
				t.Errorf("the limits are %q, want %q", got, want)
			}
		})
	}
}

// A call that was stopped is neither a success nor a failure of its own.
func TestHooks_StoppedCallIsCancelled(t *testing.T) {
	var got []event.ToolStatus
	h := &hooked{Hooks: agent.Hooks{CallEnded: func(_ context.Context, end agent.CallEnd) (string, error) {
		got = append(got, end.Status)
		return "", nil
	}}}
	for _, response := range []string{`{"interrupted":true}`, `{"interrupted":false}`, `{"interrupted":"?"}`, `[]`, ``} {
		if _, err := h.succeeded(t.Context(), &claude.PostToolUseInput{ToolName: "Bash", ToolResponse: json.RawMessage(response)}); err != nil {
			t.Error(err)
		}
	}
	for _, interrupted := range []bool{true, false} {
		if _, err := h.failed(t.Context(), &claude.PostToolUseFailureInput{ToolName: "Bash", IsInterrupt: interrupted}); err != nil {
			t.Error(err)
		}
	}
	const ok = event.ToolSuccess
	if diff := cmp.Diff([]event.ToolStatus{event.ToolCancelled, ok, ok, ok, ok, event.ToolCancelled, event.ToolError}, got); diff != "" {
		t.Errorf("the calls ended (-want +got):\n%s", diff)
	}
}

// The other hooks see the new input. Rewrite is called once for each call, and one answer reports its result.
func TestRewrite_IsMadeOnceAndReturnedOnce(t *testing.T) {
	made := 0
	var seen []string
	watch := func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		seen = append(seen, string(in.ToolInput))
		return nil, nil
	}
	o := optionsOf(t, &claude.Options{Hooks: []claude.Hook{claude.On("Read", watch)}}, agent.Request{Host: allowAll, Hooks: &agent.Hooks{
		Rewrite: func(context.Context, event.ToolCall) (json.RawMessage, error) {
			made++
			return json.RawMessage(`{"n":2}`), nil
		},
	}})
	ask := func(id string) (answers []string) {
		call := &claude.PreToolUseInput{ToolName: "Read", ToolUseID: id, ToolInput: json.RawMessage(`{"n":1}`)}
		for _, h := range o.Hooks {
			if h.Event != claude.HookPreToolUse {
				continue
			}
			out, err := h.Func(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			if answer, ok := out.(*claude.PreToolUseOutput); ok && answer != nil {
				raw, _ := json.Marshal(answer)
				answers = append(answers, string(raw))
			}
		}
		return answers
	}
	for i, id := range []string{"a", "b", "a"} {
		if i == 2 { // the first call is over, and another one has its id
			for _, h := range o.Hooks {
				if h.Event == claude.HookPostToolBatch {
					_, _ = h.Func(t.Context(), &claude.PostToolBatchInput{ToolCalls: []claude.HookToolCall{{ToolUseID: "a"}}})
				}
			}
		}
		if diff := cmp.Diff([]string{`{"permissionDecision":"allow","updatedInput":{"n":2}}`}, ask(id)); diff != "" {
			t.Errorf("call %d: the answers (-want +got):\n%s", i, diff)
		}
	}
	if diff := cmp.Diff([]string{`{"n":2}`, `{"n":2}`, `{"n":2}`}, seen); diff != "" || made != 3 {
		t.Errorf("made %d times, and another hook saw (-want +got):\n%s", made, diff)
	}
}

// An invalid input, or an answer that leaves the call to others, does not let the old one through.
func TestRewrite_OldInputIsNeverUsed(t *testing.T) {
	later := claude.AllowTool()
	later.Async = true
	other := claude.RewriteTool(json.RawMessage(`{"n":3}`))
	for name, x := range map[string]struct {
		input  string
		answer *claude.PreToolUseOutput
		want   string
	}{
		"no opinion":      {`{"n":2}`, nil, `{"updatedInput":{"n":2}}`},
		"allowed":         {`{"n":2}`, claude.AllowTool(), `{"permissionDecision":"allow","updatedInput":{"n":2}}`},
		"asked":           {`{"n":2}`, claude.AskTool("?"), `{"permissionDecision":"ask","permissionDecisionReason":"?","updatedInput":{"n":2}}`},
		"denied":          {`{"n":2}`, claude.DenyTool("no"), `{"permissionDecision":"deny","permissionDecisionReason":"no"}`},
		"too late":        {`{"n":2}`, later, `{"updatedInput":{"n":2}}`},
		"rewritten again": {`{"n":2}`, other, `{"updatedInput":{"n":3}}`},
		"no object":       {`7`, claude.AllowTool(), `{"permissionDecision":"deny","permissionDecisionReason":"call rejected: a hook replaced the input of Read by a value that is not a JSON object. Continue without this call."}`},
	} {
		t.Run(name, func(t *testing.T) {
			o := claude.Options{Hooks: []claude.Hook{claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) { return x.answer, nil })}}
			hooks := &agent.Hooks{Rewrite: func(context.Context, event.ToolCall) (json.RawMessage, error) { return json.RawMessage(x.input), nil }}
			bindAllHooks(t, &o, agent.Request{Hooks: hooks}, func(event.Payload) {})
			out, err := o.Hooks[0].Func(t.Context(), &claude.PreToolUseInput{ToolName: "Read", ToolUseID: "a", ToolInput: json.RawMessage(`{"n":1}`)})
			if err != nil {
				t.Fatal(err)
			}
			if raw, _ := json.Marshal(out); string(raw) != x.want {
				t.Errorf("the answer is %s, want %s", raw, x.want)
			}
		})
	}
}

func testLedger(t *testing.T, o *claude.Options, req agent.Request, h *hooked, emit func(event.Payload)) *agent.Ledger {
	t.Helper()
	l, end := newLedger(t.Context(), o, req, h, emit)
	t.Cleanup(end)
	return l
}

func bindAllHooks(t *testing.T, o *claude.Options, req agent.Request, emit func(event.Payload)) {
	t.Helper()
	h, err := bindHooks(o, req, emit)
	if err == nil {
		err = bindCalls(o, req, testLedger(t, o, req, h, emit))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A hook that fails denies the call. The texts of a deadline and a budget are those of the seeds.
func TestRewrite_ErrorDenies(t *testing.T) {
	for name, x := range map[string]struct {
		err  error
		want string
	}{
		"deadline": {fmt.Errorf("looked up: %w", guard.FromNow(-time.Second).Check()), "Deadline exceeded"},
		"budget":   {fmt.Errorf("looked up: %w", guard.ErrBudgetExhausted), "Budget exhausted"},
		"other":    {errors.New("no such file"), "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			var logged strings.Builder
			var reported []event.Payload
			o := claude.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))}
			hooks := &agent.Hooks{Rewrite: func(context.Context, event.ToolCall) (json.RawMessage, error) { return nil, x.err }}
			bindAllHooks(t, &o, agent.Request{Hooks: hooks}, func(p event.Payload) { reported = append(reported, p) })
			out, err := o.Hooks[0].Func(t.Context(), &claude.PreToolUseInput{ToolName: "Read", ToolUseID: "a", ToolInput: json.RawMessage(`{}`)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(claude.DenyTool(x.want), out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			failed := event.Error{Code: "HOOK_FAILED", Message: "the hook Rewrite failed: " + x.err.Error(), Next: advice.Of(x.err), Recoverable: true, Cause: x.err}
			if diff := cmp.Diff([]event.Payload{failed}, reported, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("the stream reports (-want +got):\n%s", diff)
			}
			if logged.Len() > 0 { // whose hook it is logs its error
				t.Errorf("logged %q", logged.String())
			}
		})
	}
}

// An agent whose work could not be checked goes on, as often as a check may send it back.
func TestStopping_ErrorSendsBack(t *testing.T) {
	var o claude.Options
	hooks := &agent.Hooks{Stopping: func(context.Context, agent.Stop) (string, error) { return "", errors.New("the disk is gone") }}
	bindAllHooks(t, &o, agent.Request{Hooks: hooks, MaxRefusals: 2}, func(event.Payload) {})
	at := slices.IndexFunc(o.Hooks, func(h claude.Hook) bool { return h.Event == claude.HookStop })
	for i, blocks := range []bool{true, true, false} {
		got, err := o.Hooks[at].Func(t.Context(), &claude.StopInput{})
		if err != nil {
			t.Fatal(err)
		}
		out, _ := got.(*claude.StopOutput)
		if blocked := out != nil && out.Reason == "The completion check failed: the disk is gone\nReview your work, finish what is missing, then stop again."; blocked != blocks {
			t.Errorf("stop %d: %+v, want that it is sent back: %t", i+1, out, blocks)
		}
	}
}
