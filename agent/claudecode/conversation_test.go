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

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
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

// conversationRunner is a runner of a conversation.
func conversationRunner(t testing.TB, a agent.Opener, c agent.Conversation) *agent.Runner {
	t.Helper()
	r, err := agent.NewRunner(agent.ConversationAdapter(a, c), nil)
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

// Each prompt is a run of its own, with its own count, in one process that remembers the messages.
func TestConversation_IsOneProcessForManyPrompts(t *testing.T) {
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
			runner := conversationRunner(t, a, open(t, a, agent.Request{}))
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
func TestConversation_StoppedTurnLeavesItUsable(t *testing.T) {
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
				runner := conversationRunner(t, a, open(t, a, agent.Request{Settings: agent.Settings{PartialText: true}}))
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
					t.Error("the model does not know the earlier messages")
				}
			})
		}
	}
}

// A reader who leaves ends the turn, not the conversation.
func TestConversation_ReaderThatLeavesEndsTheTurn(t *testing.T) {
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
func TestConversation_SecondPromptAtOnceIsRefused(t *testing.T) {
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

// Close ends a conversation also while a prompt runs; the reader of the events or another goroutine may call it.
func TestConversation_CloseEndsARunningPrompt(t *testing.T) {
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
				if err == nil || !strings.Contains(advice.Text(err), "closed") {
					t.Errorf("a prompt after the end gives %v", err)
				}
			}
		})
	}
}

// The limits of a request are for all its prompts together.
func TestBudget_IsForAllPromptsTogether(t *testing.T) {
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

// Two branches of a conversation do not see each other's messages.
func TestFork_BranchesAreIndependent(t *testing.T) {
	for name, newCLI := range eachCLI {
		t.Run(name, func(t *testing.T) {
			cli := newCLI(t)
			model := claudetest.NewModel(t, script.Text("Hello.").Always())
			a := newAdapter(t, cli.Options(model))
			trunk := open(t, a, agent.Request{})
			first := record(t, trunk.Send(inTime(t), "the word is marzipan")).done(t)
			branch := open(t, a, agent.Request{Resume: first.ResumeToken, Fork: true})
			forked := record(t, branch.Send(inTime(t), "only in the branch")).done(t)
			if forked.ResumeToken == "" || forked.ResumeToken == first.ResumeToken {
				t.Errorf("the branch has the token %q, the trunk %q", forked.ResumeToken, first.ResumeToken)
			}
			saw := func(texts ...string) (seen []string) {
				for _, text := range texts {
					if model.LastRequest().SawText(text) {
						seen = append(seen, text)
					}
				}
				return seen
			}
			if got := saw("marzipan", "only in the branch"); len(got) != 2 {
				t.Errorf("the branch knows %q", got)
			}
			if done := record(t, trunk.Send(inTime(t), "only in the trunk")).done(t); done.ResumeToken != first.ResumeToken {
				t.Errorf("the trunk goes on as %q, want %q", done.ResumeToken, first.ResumeToken)
			}
			if got := saw("marzipan", "only in the branch"); len(got) != 1 {
				t.Errorf("the trunk knows %q", got)
			}
			record(t, branch.Send(inTime(t), "again in the branch"))
			if got := saw("marzipan", "only in the branch", "only in the trunk"); len(got) != 2 {
				t.Errorf("the branch knows %q at last", got)
			}
		})
	}
}

// Each call to a CLI that has ended returns an error that says so, and how to go on elsewhere.
func TestConversation_EndedCLIIsAnErrorWithAToken(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("Hello.").Always())
	var process claude.Process
	a := newAdapter(t, cli.Options(model)).In(&isolation.Isolation{Started: func(p claude.Process) { process = p }})
	c := open(t, a, agent.Request{})
	first := record(t, c.Send(inTime(t), "the word is marzipan")).done(t)
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	process.Wait()
	for range 2 {
		got := record(t, c.Send(inTime(t), "still there?"))
		done, failures := got.done(t), of[event.Error](got)
		if done.Status != event.DoneError || done.ResumeToken != first.ResumeToken || len(failures) != 1 || failures[0].Code != "CLI_ENDED" {
			t.Fatalf("the prompt ended with %+v and %+v", done, failures)
		}
	}
	record(t, a.Run(inTime(t), agent.Request{Prompt: "go on", Resume: first.ResumeToken}))
	if !model.LastRequest().SawText("marzipan") {
		t.Error("the conversation did not go on")
	}
}

// What the CLI does by itself between two prompts is reported with the second, after its init, and is not taken
// for its answer.
func TestConversation_EventsBetweenPromptsAreNotTheAnswer(t *testing.T) {
	sent := make(chan bool)
	base := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize(`{"claude_code_version":"` + claude.PinnedVersion + `"}`)
		s.Turn("one")
		s.Line(`{"type":"assistant","uuid":"u","session_id":"s","message":{"id":"m9","role":"assistant","model":"m","content":[{"type":"text","text":"a task is done"}]}}`)
		s.Line(`{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"unasked","session_id":"s","origin":{"kind":"task-notification"}}`)
		s.Line(`{"type":"result","subtype":"success","is_error":false,"num_turns":0,"result":"","session_id":"s"}`)
		close(sent)
		s.Await("user")
		s.State("running")
		s.Line(`{"type":"system","subtype":"init","session_id":"s","cwd":"/","model":"m","tools":[]}`)
		s.SendText("two")
		s.Result("two")
		s.State("idle")
		s.UntilEOF()
	}).Options()
	c := open(t, claudecode.New(base), agent.Request{})
	record(t, c.Send(inTime(t), "one"))
	<-sent
	time.Sleep(500 * time.Millisecond) // no event reports that the lines were read
	got := record(t, c.Send(inTime(t), "two"))
	if done := got.done(t); done.Status != event.DoneSuccess || done.Result != "two" {
		t.Errorf("the second prompt ended with %+v", done)
	}
	if texts := of[event.Text](got); got[0].Kind != event.KindInit || len(texts) != 2 || texts[0].Content != "a task is done" {
		t.Errorf("it reports %v with %+v, want the init and the text from in between first", got.kinds(), texts)
	}
}

// An empty prompt is refused before anything is started, and so is one that would not arrive as it is.
func TestPrompt_EmptyIsRefused(t *testing.T) {
	for prompt, want := range map[string]string{" \n": "is empty", "a\xffb": "is not UTF-8: byte 1 is 0xff", "ab\x00c": "has a NUL byte at byte 2"} {
		for _, err := range claudecode.New(nil).Run(t.Context(), agent.Request{Prompt: prompt}) {
			if err == nil || !strings.Contains(advice.Text(err), "Request.Prompt: "+want) {
				t.Errorf("%q: got %v", prompt, err)
			}
		}
	}
}
