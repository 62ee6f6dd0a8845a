// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
)

// open opens a conversation that is closed when the test ends.
func open(t testing.TB, a agent.Opener, req agent.Request) agent.Conversation {
	t.Helper()
	c, err := a.Open(inTime(t), req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// talk is a runner of a conversation.
func talk(t testing.TB, a agent.Opener, c agent.Conversation) *agent.Runner {
	t.Helper()
	r, err := agent.NewRunner(agent.Talk(a, c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func gatewayUsage(t testing.TB, got recording) gateway.Usage {
	t.Helper()
	var usage gateway.Usage
	if err := json.Unmarshal(got[len(got)-1].Metadata[claudecode.GatewayUsage], &usage); err != nil {
		t.Fatal(err)
	}
	return usage
}

// Each prompt is a run of its own, with its own count, in one process that remembers what was said.
func TestAConversationIsOneProcessForManyPrompts(t *testing.T) {
	for name, newCLI := range eachCLI {
		t.Run(name, func(t *testing.T) {
			cli := newCLI(t)
			model := claudetest.NewModel(t,
				script.Reply(bash("echo $PPID")).Metered(script.Usage{Input: 1000, Output: 10}), script.Text("one").Metered(script.Usage{Input: 2000, Output: 20}),
				script.Reply(bash("echo $PPID")).Metered(script.Usage{Input: 100, Output: 7}), script.Text("two").Metered(script.Usage{Input: 200, Output: 3}),
				script.Text("three").Metered(script.Usage{Input: 5, Output: 5}))
			base := cli.Options(model)
			base.PermissionMode = claude.ModeBypassPermissions
			a := newAdapter(t, base)
			runner := talk(t, a, open(t, a, agent.Request{}))
			var parents, tokens []string
			for i, want := range []struct {
				result  string
				in, out int64
				calls   int
			}{{"one", 3000, 30, 1}, {"two", 300, 10, 1}, {"three", 5, 5, 0}} {
				got := record(t, runner.Run(inTime(t), agent.Request{Prompt: fmt.Sprint("question ", i)}))
				got.check(t)
				got.init(t)
				done := got.done(t)
				if done.Status != event.DoneSuccess || done.Result != want.result || done.Usage.ToolUses != want.calls {
					t.Errorf("prompt %d ended with %+v, want %+v", i, done, want)
				}
				counted := gatewayUsage(t, got).Total
				if done.Usage.InputTokens() != want.in || done.Usage.OutputTokens() != want.out || counted.AllInput() != want.in || counted.Output != want.out {
					t.Errorf("prompt %d used %d and %d by the CLI, %d and %d by the gateway; want %d and %d",
						i, done.Usage.InputTokens(), done.Usage.OutputTokens(), counted.AllInput(), counted.Output, want.in, want.out)
				}
				if differs := got[len(got)-1].Metadata[claudecode.UsageDiffers]; differs != nil {
					t.Errorf("the counts of prompt %d differ: %s", i, differs)
				}
				for _, result := range of[event.ToolResult](got) {
					parents = append(parents, string(result.Output))
				}
				tokens = append(tokens, done.ResumeToken)
			}
			if len(parents) != 2 || parents[0] != parents[1] {
				t.Errorf("the commands are children of %q, want one process", parents)
			}
			if tokens[0] == "" || tokens[0] != tokens[1] || tokens[1] != tokens[2] {
				t.Errorf("the tokens are %q, want one", tokens)
			}
			if !model.LastRequest().SawText("question 0") {
				t.Error("the last prompt does not know of the first")
			}
		})
	}
}

// A turn that is stopped ends soon, and the same process works on the next prompt.
func TestAStoppedTurnLeavesTheConversationUsable(t *testing.T) {
	for name, newCLI := range eachCLI {
		for moment, turn := range map[string]script.Turn{
			"waiting": script.Hang(), "streaming": slowly(strings.Repeat("word ", 400)), "a command": script.Reply(bash("tail -f /dev/null")),
		} {
			t.Run(name+"/"+moment, func(t *testing.T) {
				cli := newCLI(t)
				model := claudetest.NewModel(t, script.Text("Hello."), turn, script.Text("I remember.").Always())
				base := cli.Options(model)
				base.PermissionMode = claude.ModeBypassPermissions
				a := newAdapter(t, base)
				runner := talk(t, a, open(t, a, agent.Request{PartialText: true}))
				first := record(t, runner.Run(inTime(t), agent.Request{Prompt: "the first question"})).done(t)
				ctx, cancel := context.WithCancelCause(inTime(t))
				go func() {
					_ = model.WaitRequests(ctx, 2)
					time.Sleep(100 * time.Millisecond)
					cancel(errors.New("that is enough"))
				}()
				stopped := record(t, runner.Run(ctx, agent.Request{Prompt: "the second question"}))
				if done := stopped.done(t); done.Status != event.DoneInterrupted || done.Reason != "that is enough" || done.ResumeToken != first.ResumeToken {
					t.Errorf("the second prompt ended with %+v", done)
				}
				got := record(t, runner.Run(inTime(t), agent.Request{Prompt: "the third question"}))
				got.check(t)
				if done := got.done(t); done.Status != event.DoneSuccess || done.Result != "I remember." || done.ResumeToken != first.ResumeToken {
					t.Errorf("the third prompt ended with %+v", done)
				}
				if last := model.LastRequest(); !last.SawText("the first question") || !last.SawText("the third question") {
					t.Error("the model does not know what was said")
				}
			})
		}
	}
}

// A reader who leaves ends the turn, not the conversation.
func TestAReaderWhoLeavesEndsTheTurn(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(bash("tail -f /dev/null")), script.Text("Here.").Always())
	base := cli.Options(model)
	base.PermissionMode = claude.ModeBypassPermissions
	c := open(t, newAdapter(t, base), agent.Request{})
	for e := range c.Send(inTime(t), "sleep") {
		if e.Kind == event.KindToolUse {
			break
		}
	}
	if done := record(t, c.Send(inTime(t), "still there?")).done(t); done.Result != "Here." {
		t.Errorf("the next prompt ended with %+v", done)
	}
}

// One prompt at a time.
func TestASecondPromptIsRefusedWhileOneIsWorkedOn(t *testing.T) {
	cli := claudetest.CLI(t)
	c := open(t, newAdapter(t, cli.Options(claudetest.NewModel(t, script.Text("Done.")))), agent.Request{})
	for range c.Send(inTime(t), "one") {
		for _, err := range c.Send(inTime(t), "two") {
			if !errors.Is(err, agent.ErrBusy) {
				t.Errorf("the second prompt gives %v, want ErrBusy", err)
			}
		}
	}
}

// Close ends a conversation also while a prompt is worked on, by whoever reads the events or another.
func TestCloseEndsAConversationInTheMiddleOfAPrompt(t *testing.T) {
	for name, inside := range map[string]bool{"by the reader": true, "by another": false} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t, script.Reply(bash("tail -f /dev/null")))
			base := cli.Options(model)
			base.PermissionMode = claude.ModeBypassPermissions
			c := open(t, newAdapter(t, base), agent.Request{})
			closed := make(chan error, 1)
			var got recording
			for e, err := range c.Send(inTime(t), "sleep") {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e)
				if e.Kind == event.KindToolUse && inside {
					closed <- c.Close()
				} else if e.Kind == event.KindToolUse {
					go func() { closed <- c.Close() }()
				}
			}
			if done := got.done(t); done.Status != event.DoneInterrupted || !strings.Contains(done.Reason, "closed") || done.ResumeToken == "" {
				t.Errorf("the prompt ended with %+v", done)
			}
			if err := errors.Join(<-closed, c.Close()); err != nil {
				t.Error(err)
			}
			for _, err := range c.Send(inTime(t), "still there?") {
				if err == nil || !strings.Contains(err.Error(), "closed") {
					t.Errorf("a prompt after the end gives %v", err)
				}
			}
		})
	}
}

// The limits of a request are for all its prompts together.
func TestABudgetIsForAllPromptsTogether(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("Done.").Metered(script.Usage{Input: 1000, Output: 100}).Always())
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 2000})
	c := open(t, newAdapter(t, cli.Options(model)), agent.Request{Trackers: []*guard.Tracker{tracker}, RunID: "run"})
	for i, want := range []event.DoneStatus{event.DoneSuccess, event.DoneMaxBudget, event.DoneMaxBudget} {
		if done := record(t, c.Send(inTime(t), "go")).done(t); done.Status != want || done.ResumeToken == "" {
			t.Errorf("prompt %d ended with %+v, want %s", i, done, want)
		}
	}
	if n := len(model.Requests()); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
}
