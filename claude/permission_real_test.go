// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// The test shows the fields of the CLI's questions and the effect of the answers.
func TestCanUseTool_AnswersTakeEffect(t *testing.T) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(version, func(t *testing.T) {
			cli := get(t)
			const refusal = `Ask the <owner> first, "please".`
			model := claudetest.NewModel(t,
				script.Reply(script.ToolCall{ID: "toolu_denied", Name: "Bash", Input: script.Input{"command": "touch denied.txt", "description": "Make a file"}}),
				bash("touch failing.txt"), bash("touch panicking.txt"), bash("touch original.txt"), script.Call("mcp__tools__ok", nil), script.Text("Done."))
			opts := cli.Options(model)
			opts.Tools = []string{"Bash"}
			opts.MCPServers = map[string]claude.MCPServer{"tools": toolServer(t, fixedTool("ok", claude.TextResult("fine"))).Server()}
			var first *claude.PermissionRequest
			opts.CanUseTool = func(_ context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
				if first == nil {
					first = r
				}
				switch text := string(r.Input); {
				case strings.Contains(text, "denied"):
					return claude.Deny{Message: refusal}, nil
				case strings.Contains(text, "failing"):
					return nil, errors.New("a secret of the policy")
				case strings.Contains(text, "panicking"):
					panic("a secret of the policy")
				case strings.Contains(text, "original"):
					return claude.Allow{UpdatedInput: map[string]string{"command": "touch changed.txt && echo changed"}}, nil
				}
				if r.ToolName != "mcp__tools__ok" {
					t.Errorf("a question about %s %s", r.ToolName, r.Input)
				}
				return claude.Allow{}, nil
			}
			end, _ := turn(t, claudetest.Connect(t, opts), "go")
			checkQuestion(t, first)
			requests := model.Requests()
			if text, failed, _ := requests[1].ToolResult("toolu_denied"); !failed || text != refusal {
				t.Errorf("the model saw %q, want the refusal word for word", text)
			}
			for i, request := range requests[2:4] {
				if text, failed, _ := request.ToolResult("Bash"); !failed || strings.Contains(text, "secret") {
					t.Errorf("callback failure %d: the model saw %q (failed: %t), want a denial without the error", i, text, failed)
				}
			}
			if text, failed, _ := requests[4].ToolResult("Bash"); failed || strings.TrimSpace(text) != "changed" {
				t.Errorf("the model saw %q of the changed command", text)
			}
			if text, _, _ := model.ToolResult("mcp__tools__ok"); text != "fine" {
				t.Errorf("the model saw %q of the tool that was allowed", text)
			}
			for name, want := range map[string]bool{"denied.txt": false, "failing.txt": false, "panicking.txt": false, "original.txt": false, "changed.txt": true} {
				if exists(filepath.Join(cli.Work, name)) != want {
					t.Errorf("%s exists: %t, want %t", name, !want, want)
				}
			}
			if got := len(end.Answer.PermissionDenials); got != 3 {
				t.Errorf("%d denials, want 3", got)
			}
		})
	}
}

func checkQuestion(t *testing.T, r *claude.PermissionRequest) {
	t.Helper()
	if r == nil {
		t.Fatal("nothing was asked")
	}
	if r.ToolName != "Bash" || r.ToolUseID != "toolu_denied" || r.Description != "Make a file" || !strings.Contains(string(r.Input), "touch denied.txt") {
		t.Errorf("question %+v lacks the call", r)
	}
	if len(r.Suggestions) == 0 || r.DecisionReason == "" && r.BlockedPath == "" || len(r.Raw) == 0 {
		t.Errorf("question %s lacks suggestions, reason or raw form", r.Raw)
	}
}

// A denial that interrupts ends the turn; the conversation goes on.
func TestCanUseTool_DenyWithInterruptEndsTheTurn(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, bash("touch a.txt"), script.Text("Sorry."))
	opts := cli.Options(model)
	opts.Tools = []string{"Bash"}
	opts.CanUseTool = func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
		return claude.Deny{Message: "stop it", Interrupt: true}, nil
	}
	c := claudetest.Connect(t, opts)
	_, _, err := collect(c.Turn(t.Context(), claude.Text("go")))
	var failed *claude.ResultError
	if !errors.As(err, &failed) || !errors.Is(err, claude.ErrInterrupted) || failed.TerminalReason != "aborted_tools" {
		t.Errorf("the turn ended with %v, want ErrInterrupted", err)
	}
	if err != nil && strings.Contains(advice.Text(err), "ede_diagnostic") {
		t.Errorf("the error shows an internal diagnostic: %v", err)
	}
	if end, _ := turn(t, c, "and now?"); end.Answer.Result != "Sorry." {
		t.Errorf("after the denial: %q", end.Answer.Result)
	}
}

func TestCanUseTool_AnswersQuestionsOfTheModel(t *testing.T) {
	cli := claudetest.CLI(t)
	question := script.Input{"questions": []any{script.Input{
		"question": "Which colour?", "header": "Colour", "multiSelect": false,
		"options": []any{script.Input{"label": "Red", "description": "warm"}, script.Input{"label": "Blue", "description": "cold"}},
	}}}
	model := claudetest.NewModel(t, script.Call(claude.AskUserQuestionTool, question), script.Text("Blue it is."))
	opts := cli.Options(model)
	opts.CanUseTool = func(_ context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
		if !r.RequiresUserInteraction {
			t.Errorf("the question does not say that it is for a person")
		}
		questions, err := r.Questions()
		if err != nil {
			return nil, err
		}
		return r.Answer(map[string][]string{questions[0].Question: {questions[0].Options[1].Label}})
	}
	turn(t, claudetest.Connect(t, opts), "paint")
	if text, failed, _ := model.ToolResult(claude.AskUserQuestionTool); failed || !strings.Contains(text, "Blue") || !strings.Contains(text, "Which colour?") {
		t.Errorf("the model saw %q, want the answer", text)
	}
}

// The hook and the callback are asked at the same moment. Who answers first decides, and the other
// one's context ends.
func TestCanUseTool_FirstAnswerOfHookAndCallbackDecides(t *testing.T) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(version, func(t *testing.T) {
			cli := get(t)
			model := claudetest.NewModel(t, bash("touch hook.txt"), bash("touch callback.txt"), script.Text("Done."))
			opts := cli.Options(model)
			opts.Tools = []string{"Bash"}
			withdrawn := make(chan string, 2)
			lose := func(ctx context.Context, who string) error {
				<-ctx.Done()
				withdrawn <- who
				return ctx.Err()
			}
			opts.CanUseTool = func(ctx context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
				if strings.Contains(string(r.Input), "hook.txt") {
					return nil, lose(ctx, "callback")
				}
				return claude.Allow{}, nil
			}
			opts.Hooks = []claude.Hook{claude.On("Bash", func(ctx context.Context, in *claude.PermissionRequestInput) (*claude.PermissionRequestOutput, error) {
				if strings.Contains(string(in.ToolInput), "hook.txt") {
					return &claude.PermissionRequestOutput{Answer: claude.Allow{}}, nil
				}
				return nil, nil // leaves it to the callback
			})}
			turn(t, claudetest.Connect(t, opts), "go")
			select {
			case who := <-withdrawn:
				if who != "callback" {
					t.Errorf("withdrawn from %s", who)
				}
			case <-time.After(time.Minute):
				t.Errorf("the callback's context did not end")
			}
			for _, name := range []string{"hook.txt", "callback.txt"} {
				if !exists(filepath.Join(cli.Work, name)) {
					t.Errorf("%s was not made", name)
				}
			}
		})
	}
}

// An interrupt withdraws an open question: the callback's context ends, and its answer is not sent.
func TestCanUseTool_InterruptWithdrawsTheQuestion(t *testing.T) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(version, func(t *testing.T) {
			cli := get(t)
			model := claudetest.NewModel(t, bash("touch late.txt"), script.Text("Next."))
			opts := cli.Options(model)
			opts.Tools = []string{"Bash"}
			asked, ended := make(chan struct{}), make(chan struct{})
			opts.CanUseTool = func(ctx context.Context, _ *claude.PermissionRequest) (claude.PermissionResult, error) {
				close(asked)
				<-ctx.Done()
				close(ended)
				return claude.Allow{}, nil // too late
			}
			c := claudetest.Connect(t, opts)
			go func() {
				<-asked
				if _, err := c.Interrupt(t.Context()); err != nil {
					t.Errorf("Interrupt: %v", err)
				}
			}()
			if _, _, err := collect(c.Turn(t.Context(), claude.Text("go"))); !errors.Is(err, claude.ErrInterrupted) {
				t.Errorf("the turn ended with %v, want ErrInterrupted", err)
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Fatal("the callback's context did not end")
			}
			if end, _ := turn(t, c, "go on"); end.Answer.Result != "Next." || exists(filepath.Join(cli.Work, "late.txt")) {
				t.Errorf("after the interrupt: %q; late.txt exists: %t", end.Answer.Result, exists(filepath.Join(cli.Work, "late.txt")))
			}
		})
	}
}
