// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/tool"
)

// A run for which a CLI was waiting is one like any other: the same events, and the model and the hooks are
// asked the same, once. The CLI is used once, and only for the same request.
func TestWarm_RunEqualsAColdOne(t *testing.T) {
	for name, newCLI := range eachCLI {
		t.Run(name, func(t *testing.T) {
			cli := newCLI(t)
			model := claudetest.NewModel(t, script.Text("Done.").Metered(script.Usage{Input: 10, Output: 5}).Always())
			var starts, prompts atomic.Int64
			hooks := &agent.Hooks{Submitted: func(context.Context, agent.Submission) (string, error) {
				prompts.Add(1)
				return "", nil
			}}
			a := newAdapter(t, cli.Options(model)).In(&isolation.Isolation{Started: func(claude.Process) { starts.Add(1) }})
			defer func() { _ = a.Close() }()
			req := agent.Request{Hooks: hooks, Settings: agent.Settings{DisallowedTools: []string{"WebFetch"}}}
			if err := a.Warm(inTime(t), req); err != nil {
				t.Fatal(err)
			}
			if n := len(model.Traffic()); n != 0 || prompts.Load() != 0 {
				t.Errorf("before the run there were %d requests and %d prompts", n, prompts.Load())
			}
			var kinds [][]event.Kind
			var asks []string
			for _, want := range []struct {
				request agent.Request
				starts  int64
			}{
				{agent.Request{Prompt: "go"}, 2}, // another request
				{agent.Request{Prompt: "go", Hooks: hooks, Settings: agent.Settings{DisallowedTools: []string{"WebFetch"}}, RunID: "mine"}, 2},
				{agent.Request{Prompt: "go", Hooks: hooks, Settings: agent.Settings{DisallowedTools: []string{"WebFetch"}}}, 3},
			} {
				got := record(t, a.Run(inTime(t), want.request))
				done := got.done(t)
				if done.Status != event.DoneSuccess || done.ResumeToken == "" || done.Usage.InputTokens() != 10 || gatewayUsage(t, got).Total.Requests != 1 {
					t.Errorf("the run ended with %+v", got[len(got)-1])
				}
				if starts.Load() != want.starts {
					t.Errorf("%d CLIs have started, want %d", starts.Load(), want.starts)
				}
				kinds = append(kinds, got.kinds())
				asks = append(asks, asked(t, model.LastRequest())+strings.Join(model.LastRequest().Header["Anthropic-Beta"], ","))
			}
			if !slices.Equal(kinds[1], kinds[2]) {
				t.Errorf("a warm run emits %v, another %v", kinds[1], kinds[2])
			}
			if diff := cmp.Diff(asks[2], asks[1]); diff != "" {
				t.Errorf("the model is asked otherwise (-cold +warm):\n%s", diff)
			}
			if prompts.Load() != 2 {
				t.Errorf("the hook received %d prompts, want 2", prompts.Load())
			}
		})
	}
}

// An agent that works does not warm up: the model would be kept from what it is asked.
func TestWarmUp_FailsBesideAPrompt(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("mcp__drover__try", nil), script.Text("Done."))
	var conversation agent.Conversation
	var beside error
	try := tool.Must("try", "Tries.", func(ctx context.Context, _ struct{}) (string, error) {
		beside = conversation.(agent.Warmer).WarmUp(ctx)
		return "tried", nil
	}, tool.ReadOnly)
	var err error
	if conversation, err = newAdapter(t, cli.Options(model)).Open(inTime(t), agent.Request{Registry: tool.MustRegistry(nil, try)}); err != nil {
		t.Fatal(err)
	}
	if err := conversation.(agent.Warmer).WarmUp(inTime(t)); err != nil {
		t.Error(err)
	}
	if done := record(t, conversation.Send(inTime(t), "go")).done(t); done.Status != event.DoneSuccess || !errors.Is(beside, agent.ErrBusy) {
		t.Errorf("beside a prompt: %v, which ended with %+v; want %v", beside, done, agent.ErrBusy)
	}
	if err := conversation.(agent.Warmer).WarmUp(inTime(t)); err != nil || len(model.Traffic()) != 2 {
		t.Errorf("after a prompt: %v, and %d requests in all, want 2", err, len(model.Traffic()))
	}
	if err := conversation.Close(); err != nil {
		t.Error(err)
	}
	if err := conversation.(agent.Warmer).WarmUp(inTime(t)); err == nil || !strings.Contains(advice.Text(err), "closed") {
		t.Errorf("a conversation that is closed warmUps: %v", err)
	}
}

// What waits is gone with the adapter, and nothing is run by it any more.
func TestWarm_CloseEndsTheWaitingCLI(t *testing.T) {
	cli := claudetest.CLI(t) // it looks for what is left
	model, ctx := claudetest.NewModel(t), inTime(t)
	goroutines := goleak.IgnoreCurrent()
	var home string
	a := newAdapter(t, cli.Options(model)).In(&isolation.Isolation{Populate: func(h *isolation.Home) error {
		home = h.Path()
		return nil
	}})
	if err := a.Warm(ctx, agent.Request{}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	goleak.VerifyNone(t, goroutines)
	if _, err := os.Stat(home); !os.IsNotExist(err) {
		t.Errorf("the home %q is still there: %v", home, err)
	}
	_, opening := a.Open(inTime(t), agent.Request{})
	running := error(nil)
	for _, err := range a.Run(inTime(t), agent.Request{Prompt: "go"}) {
		running = err
	}
	for name, err := range map[string]error{"Open": opening, "Run": running, "Warm": a.Warm(inTime(t), agent.Request{})} {
		if err == nil || !strings.Contains(advice.Text(err), "the adapter is closed") {
			t.Errorf("%s gives %v after the end", name, err)
		}
	}
}

// Nothing is prepared for a request that cannot be distinguished from another.
func TestWarm_RefusesIncomparableRequests(t *testing.T) {
	cli := claudetest.CLI(t)
	a := newAdapter(t, cli.Options(claudetest.NewModel(t)))
	defer func() { _ = a.Close() }()
	for name, x := range map[string]struct {
		req  agent.Request
		want string
	}{
		"a function":                 {agent.Request{Transcript: func(agent.TranscriptLine) {}}, "request is not comparable"},
		"a host without an identity": {agent.Request{Host: allow{}}, "request is not comparable"},
		"a conversation":             {agent.Request{Resume: "6f9619ff-8b86-4d11-b42d-00c04fc964ff"}, "goes on"},
	} {
		if err := a.Warm(inTime(t), x.req); err == nil || !strings.Contains(advice.Text(err), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

type allow struct{}

func (allow) Decide(context.Context, event.ToolCall) event.Decision {
	return event.Decision{Verdict: event.Allow}
}
