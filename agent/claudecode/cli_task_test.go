// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

var mainAgent = script.Not(script.IsSubagent())

func delegate(background bool) script.ToolCall {
	return script.ToolCall{Name: "Agent", Input: script.Input{
		"subagent_type": "general-purpose", "description": "dig", "prompt": "dig deep", "run_in_background": background,
	}}
}

// What a subagent of a subagent does is reported like all else, with the questions about it in their place.
func TestSubagent_CallsOfANestedOneAreReported(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Reply(delegate(false)).When(mainAgent),
		script.Reply(delegate(false)).When(script.IsSubagent()),
		script.Reply(bash("echo deep")).When(script.IsSubagent()),
		script.Text("Dug.").When(script.IsSubagent()).Always(),
		script.Text("Done.").When(mainAgent).Always())
	runner := newRunner(t, cli.Options(model), &agent.RunnerOptions{
		Approver: gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
			return gate.Answer{Verdict: event.Allow}, nil
		}),
	})
	got := record(t, runner.Run(inTime(t), agent.Request{Prompt: "go", Settings: agent.Settings{Permissions: &gate.Permissions{}}}))
	got.check(t)
	if got.result("Bash") != event.ToolSuccess || !got.asked("Bash") || got.done(t).Usage.ToolUses != 3 {
		t.Errorf("Bash ended with %q, asked: %t, %d calls; want the call of the innermost agent and 3 calls",
			got.result("Bash"), got.asked("Bash"), got.done(t).Usage.ToolUses)
	}
}

// A shell that the last run left in the background was stopped with it. The next one receives a report, after
// its init.
func TestResume_InitComesBeforeReportsOfTheLastRun(t *testing.T) {
	cli := claudetest.CLI(t)
	waits := script.Input{"command": "tail -f /dev/null", "description": "Wait", "run_in_background": true}
	base := cli.Options(claudetest.NewModel(t, script.Call("Bash", waits), script.Text("It runs."), script.Text("Done.").Always()))
	base.PermissionMode = claude.ModeBypassPermissions
	runner := newRunner(t, base, nil)
	record(t, runner.Run(inTime(t), agent.Request{Prompt: "begin"})).check(t)
	got := record(t, runner.Run(inTime(t), agent.Request{Prompt: "go on"}))
	got.check(t)
	if tasks := of[claudecode.Task](got); len(tasks) != 1 || tasks[0].Status != "stopped" || got.done(t).Result != "Done." {
		t.Errorf("tasks are %+v and the answer %q, want one that was stopped and Done.", tasks, got.done(t).Result)
	}
}

// The CLI calls a compaction that was cancelled a success.
func TestCompaction_StoppedIsInterrupted(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("Hello."), script.Hang(), script.Text("Done.").Always())
	runner := newRunner(t, cli.Options(model), nil)
	record(t, runner.Run(inTime(t), agent.Request{Prompt: "the parrot is green"})).check(t)
	ctx, cancel := context.WithCancel(inTime(t))
	defer cancel()
	go func() { // once the model is asked for the summary
		for len(model.Requests()) < 2 && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	got := record(t, runner.Run(ctx, agent.Request{Prompt: "/compact"}))
	got.check(t)
	if done := got.done(t); done.Status != event.DoneInterrupted || done.Reason != context.Canceled.Error() {
		t.Errorf("done is %+v, want interrupted", done)
	}
	again := record(t, runner.Run(inTime(t), agent.Request{Prompt: "which colour"})).done(t)
	if again.Result != "Done." || !model.LastRequest().SawText("the parrot is green") {
		t.Errorf("the next run ended with %+v, want it to go on with the conversation", again)
	}
}

// A run that is stopped after its answer keeps the answer, but what an agent in the background would still
// have used is not in the usage.
func TestUsage_PartialWhenStoppedAfterTheAnswer(t *testing.T) {
	cli := claudetest.CLI(t)
	base := cli.Options(claudetest.NewModel(t,
		script.Reply(delegate(true)).When(mainAgent),
		script.Reply(bash("tail -f /dev/null")).When(script.IsSubagent()),
		script.Text("The answer.").When(mainAgent)))
	base.PermissionMode = claude.ModeBypassPermissions
	ctx, cancel := context.WithCancel(inTime(t))
	defer cancel()
	var got recording
	for e, err := range newRunner(t, base, nil).Run(ctx, agent.Request{Prompt: "go"}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e); e.Kind == event.KindText {
			time.AfterFunc(time.Second, cancel) // its result follows at once
		}
	}
	got.check(t)
	done := got.done(t)
	if done.Status != event.DoneSuccess || done.Result != "The answer." || done.Usage.Tokens == nil || done.Usage.Tokens.Coverage != event.CoveragePartial {
		t.Errorf("done is %+v, want the answer and usage that is partial", done)
	}
}
