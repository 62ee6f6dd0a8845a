// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// A rule of the settings makes the CLI ask about Bash although the hook allowed it, so that the
// engine decides at the hook, at the callback and, for a tool of ours, where it runs. The approver
// is asked once for each call.
func TestCLI_EachCallIsAskedAboutOnce(t *testing.T) {
	cli := claudetest.CLI(t)
	commands := []string{"yes", "no", "never", "late", "changed"}
	var turns []script.Turn
	for _, name := range commands {
		turns = append(turns, script.Reply(bash("toolu_"+name, "touch "+name+".txt")))
	}
	turns = append(turns, script.Reply(script.ToolCall{ID: "toolu_save", Name: "mcp__desk__save"}), script.Text("Done."),
		script.Reply(bash("toolu_p1", "touch p1.txt"), bash("toolu_p2", "touch p2-no.txt"), bash("toolu_p3", "touch p3.txt"), write(cli, "p4.txt")), script.Text("Done."))
	model := claudetest.NewModel(t, turns...)

	asked, called, decided, ran := newTally(), newTally(), newTally(), newTally()
	var e *gate.Engine
	registry, server := desk(t, &e, ran)
	lateAnswers := make(chan struct{})
	answer := func(ctx context.Context, q gate.Question) (gate.Answer, error) {
		asked.add(string(q.Call.ID))
		switch text := string(q.Call.Input); {
		case strings.Contains(text, "touch no"), strings.Contains(text, "-no"):
			return gate.Answer{Reason: "I said no."}, nil
		case strings.Contains(text, "never"):
			<-ctx.Done()
			return gate.Answer{}, ctx.Err()
		case strings.Contains(text, "late"):
			<-ctx.Done()
			close(lateAnswers)
			return gate.Answer{Verdict: event.Allow, Remember: gate.SameTool}, nil
		case strings.Contains(text, "touch changed"):
			return gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`{"command":"touch other.txt && echo other"}`)}, nil
		}
		return gate.Answer{Verdict: event.Allow}, nil
	}
	e = gate.NewEngine(askingGate(gate.Knows("desk", registry)), &gate.EngineOptions{
		Approver: gate.ApproverFunc(answer), ApprovalTimeout: 400 * time.Millisecond,
		Emit: func(ev event.Event) error {
			if d, ok := ev.Payload.(event.Decision); ok {
				decided.add(string(d.CallID))
			}
			return nil
		},
	})
	opts := cli.Options(model)
	opts.MCPServers = map[string]claude.MCPServer{"desk": server}
	opts.Settings = json.RawMessage(`{"permissions":{"ask":["Bash","mcp__desk__save"]}}`)
	opts.CanUseTool = func(_ context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
		called.add(r.ToolUseID)
		return claude.Allow{}, nil
	}
	bind(t, e, opts)
	c := claudetest.Connect(t, opts)
	turn(t, c, "one by one")
	turn(t, c, "at once")
	<-lateAnswers

	for name, want := range map[string]string{
		"yes": "", "no": "I said no.", "never": "no answer came within 400ms", "late": "no answer came within 400ms", "changed": "other",
	} {
		text, failed, _ := model.ToolResult("toolu_" + name)
		if refused := name != "yes" && name != "changed"; !strings.Contains(text, want) || failed != refused {
			t.Errorf("%s: the model saw %q (failed: %t), want %q", name, text, failed, want)
		}
	}
	for name, want := range map[string]bool{
		"yes.txt": true, "no.txt": false, "never.txt": false, "late.txt": false, "changed.txt": false, "other.txt": true,
		"p1.txt": true, "p2-no.txt": false, "p3.txt": true, "p4.txt": true,
	} {
		if exists(cli, name) != want {
			t.Errorf("%s exists: %t, want %t", name, !want, want)
		}
	}
	for _, id := range []string{"toolu_yes", "toolu_no", "toolu_never", "toolu_late", "toolu_changed", "toolu_save", "toolu_p1", "toolu_p2", "toolu_p3"} {
		if asked.of(id) != 1 || decided.of(id) != 1 {
			t.Errorf("%s: asked %d times, decided %d times, want once", id, asked.of(id), decided.of(id))
		}
	}
	if ran.of("save") != 1 || ran.of("decided save") != 1 {
		t.Errorf("save ran %d times after %d decisions in the registry, want once after one", ran.of("save"), ran.of("decided save"))
	}
	for _, id := range []string{"toolu_yes", "toolu_changed", "toolu_save"} {
		if called.of(id) != 1 {
			t.Errorf("%s: the CLI asked %d times by itself, so that this test does not show what its name says", id, called.of(id))
		}
	}
}

// A person's answers go to the model; the gate only decides whether the model may ask.
func TestCLI_QuestionsOfTheModelReachThePerson(t *testing.T) {
	cli := claudetest.CLI(t)
	question := script.Input{"questions": []any{script.Input{
		"question": "Which colour?", "header": "Colour", "multiSelect": false,
		"options": []any{script.Input{"label": "Red", "description": "warm"}, script.Input{"label": "Blue", "description": "cold"}},
	}}}
	model := claudetest.NewModel(t, script.Call(claude.AskUserQuestionTool, question), script.Text("Done."))
	opts := cli.Options(model)
	opts.CanUseTool = func(_ context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
		return r.Answer(map[string][]string{"Which colour?": {"Blue"}})
	}
	p := answering(gate.Answer{Verdict: event.Allow})
	bind(t, gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p}), opts)
	turn(t, claudetest.Connect(t, opts), "paint")
	if text, failed, _ := model.ToolResult(claude.AskUserQuestionTool); failed || !strings.Contains(text, "Blue") || p.asked.Load() != 1 {
		t.Errorf("the model saw %q; the approver was asked %d times", text, p.asked.Load())
	}
}
