// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// bash is a turn of the model that runs a command.
func bash(command string) script.Turn { return script.Call("Bash", script.Input{"command": command}) }

// What hooks decide about tools, as the model sees it.
func TestHook_DecisionsReachTheModel(t *testing.T) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(version, func(t *testing.T) {
			cli := get(t)
			const reason = `Not on my watch: "rm" is <forbidden>, naïve friend.`
			model := claudetest.NewModel(t, bash("echo denied"), bash("echo original"), bash("echo with context"), bash("ls nothing-here"), script.Text("Done."))
			opts := cli.Options(model)
			opts.Tools = []string{"Bash"}
			opts.Hooks = []claude.Hook{
				preTool("Bash", func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
					switch text := string(in.ToolInput); {
					case strings.Contains(text, "echo denied"):
						return claude.DenyTool(reason), nil
					case strings.Contains(text, "echo original"):
						return claude.RewriteTool(map[string]string{"command": "echo rewritten"}), nil
					}
					return nil, nil
				}),
				claude.On("Bash", func(_ context.Context, in *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
					if strings.Contains(string(in.ToolInput), "with context") {
						return &claude.PostToolUseOutput{AdditionalContext: "the moon is full"}, nil
					}
					return nil, nil
				}),
				claude.On("Bash", func(_ context.Context, in *claude.PostToolUseFailureInput) (*claude.PostToolUseFailureOutput, error) {
					return &claude.PostToolUseFailureOutput{AdditionalContext: "failed with " + in.Error}, nil
				}),
				claude.On("", func(_ context.Context, in *claude.UserPromptSubmitInput) (*claude.UserPromptSubmitOutput, error) {
					return &claude.UserPromptSubmitOutput{AdditionalContext: "asked: " + in.Prompt}, nil
				}),
			}
			end, _ := turn(t, claudetest.Connect(t, opts), "go")
			requests := model.Requests()
			if text, failed, _ := requests[1].ToolResult("Bash"); !failed || !strings.Contains(text, reason) {
				t.Errorf("the model saw %q, want the reason word for word", text)
			}
			if text, failed, _ := requests[2].ToolResult("Bash"); failed || strings.TrimSpace(text) != "rewritten" {
				t.Errorf("the model saw %q, want the output of the rewritten command", text)
			}
			for i, text := range []string{"asked: go", "", "", "the moon is full", "failed with Exit code 2"} {
				if !requests[i].SawText(text) {
					t.Errorf("request %d lacks %q", i, text)
				}
			}
			if denials := end.Answer.PermissionDenials; len(denials) != 1 || denials[0].ToolName != "Bash" {
				t.Errorf("denials %+v, want the one of the hook", denials)
			}
		})
	}
}

// What hooks decide about the run: a Stop hook that blocks makes another turn, and one that defers a
// tool ends the turn with the call undone.
func TestHook_StopBlocksAndDeferEndsTheTurn(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("I am done."), script.Text("Now really."),
		script.Call("Bash", script.Input{"command": "echo later"}), bash("echo now"))
	opts := cli.Options(model)
	opts.Tools = []string{"Bash"}
	var stops []bool
	opts.Hooks = []claude.Hook{
		claude.On("", func(_ context.Context, in *claude.StopInput) (*claude.StopOutput, error) {
			stops = append(stops, in.StopHookActive)
			if !in.StopHookActive {
				return claude.BlockStop("the tests are still red"), nil
			}
			return nil, nil
		}),
		preTool("Bash", func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
			if strings.Contains(string(in.ToolInput), "later") {
				return &claude.PreToolUseOutput{PermissionDecision: claude.DecideDefer}, nil
			}
			return &claude.PreToolUseOutput{HookControl: claude.HookControl{StopRun: true, StopReason: "enough"}}, nil
		}),
	}
	c := claudetest.Connect(t, opts)
	end, _ := turn(t, c, "finish")
	if end.Answer.Result != "Now really." || len(end.Results) != 1 || len(stops) != 2 || !stops[1] {
		t.Errorf("answer %q of %d results, stops %v; want another turn within the same one", end.Answer.Result, len(end.Results), stops)
	}
	if !model.LastRequest().SawText("the tests are still red") {
		t.Errorf("the model did not receive the reason to go on")
	}
	end, _ = turn(t, c, "defer")
	if d := end.Answer.DeferredToolUse; d == nil || d.Name != "Bash" || !strings.Contains(string(d.Input), "later") || end.Answer.TerminalReason != "tool_deferred" {
		t.Errorf("deferred %+v, terminal reason %q", d, end.Answer.TerminalReason)
	}
	end, _ = turn(t, c, "stop")
	if end.Answer.TerminalReason != "hook_stopped" {
		t.Errorf("terminal reason %q, want hook_stopped: the wish to stop was not understood", end.Answer.TerminalReason)
	}
}

func TestHook_SubagentEvents(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("Agent", script.Input{"subagent_type": "helper", "description": "help", "prompt": "dig"}).When(script.Not(script.IsSubagent())),
		bash("echo dug").When(script.IsSubagent()), script.Text("Dug.").When(script.IsSubagent()),
		script.Text("All done.").When(script.Not(script.IsSubagent())))
	opts := cli.Options(model)
	cli.SetEnv(opts, model, map[string]string{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"})
	opts.Tools = []string{"Agent", "Bash"}
	opts.Agents = map[string]claude.AgentDefinition{"helper": {Description: "digs", Prompt: "You dig."}}
	var mu sync.Mutex
	seen := map[string]string{}
	note := func(what, agent string) {
		mu.Lock()
		defer mu.Unlock()
		seen[what] = agent
	}
	opts.Hooks = []claude.Hook{
		claude.On("helper", func(_ context.Context, in *claude.SubagentStartInput) (*claude.SubagentStartOutput, error) {
			note("start", in.AgentID)
			return &claude.SubagentStartOutput{AdditionalContext: "mind the cables"}, nil
		}),
		claude.On("helper", func(_ context.Context, in *claude.SubagentStopInput) (*claude.SubagentStopOutput, error) {
			note("stop", in.AgentID)
			if in.LastAssistantMessage != "Dug." || in.AgentType != "helper" {
				t.Errorf("SubagentStop of %q has the message %q", in.AgentType, in.LastAssistantMessage)
			}
			return nil, nil
		}),
		preTool("Bash", func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
			note("tool", in.AgentID)
			return nil, nil
		}),
	}
	end, _ := turn(t, claudetest.Connect(t, opts), "dig a hole")
	if end.Answer.Result != "All done." {
		t.Errorf("answer %q", end.Answer.Result)
	}
	if seen["start"] == "" || seen["stop"] != seen["start"] || seen["tool"] != seen["start"] {
		t.Errorf("agent ids %v, want the same one everywhere", seen)
	}
	if !model.SawText("mind the cables") {
		t.Errorf("the subagent did not read the context of its start hook")
	}
}

// SetHooks replaces hooks, none included, while the conversation goes on. A CLI that answers the
// second handshake without acting on it must not lose the hooks that it has.
func TestSetHooks_ReplacesAllHooks(t *testing.T) {
	for version, tt := range map[string]struct {
		get  func(testing.TB) *claudetest.RealCLI
		fail error
		want string
	}{
		"pinned": {claudetest.CLI, nil, "old new"},
		"oldest": {claudetest.OldestCLI, claude.ErrTooOld, "old old old"},
	} {
		t.Run(version, func(t *testing.T) {
			cli := tt.get(t)
			model := claudetest.NewModel(t, bash("echo 1"), script.Text("1"), bash("echo 2"), script.Text("2"), bash("echo 3"), script.Text("3"))
			opts := cli.Options(model)
			opts.Tools = []string{"Bash"}
			var called []string
			hook := func(name string) []claude.Hook {
				return []claude.Hook{preTool("Bash", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
					called = append(called, name)
					return nil, nil
				})}
			}
			opts.Hooks = hook("old")
			c := claudetest.Connect(t, opts)
			turn(t, c, "one")
			for _, hooks := range [][]claude.Hook{hook("new"), nil} {
				if err := c.SetHooks(t.Context(), hooks); !errors.Is(err, tt.fail) {
					t.Errorf("SetHooks: %v, want %v", err, tt.fail)
				}
				turn(t, c, "next")
			}
			if got := strings.Join(called, " "); got != tt.want {
				t.Errorf("called %q, want %q", got, tt.want)
			}
			if text, failed, _ := model.ToolResult("Bash"); failed || strings.TrimSpace(text) != "3" {
				t.Errorf("the last command gave %q, failed %t", text, failed)
			}
		})
	}
}

// A SessionStart hook is called where the CLI does call it: after /clear.
func TestHook_SessionStartAfterClear(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Text("One."))
	opts := cli.Options(model)
	sources := make(chan string, 4)
	opts.Hooks = []claude.Hook{claude.On("clear", func(_ context.Context, in *claude.SessionStartInput) (*claude.SessionStartOutput, error) {
		sources <- in.Source
		return nil, nil
	})}
	c := claudetest.Connect(t, opts)
	turn(t, c, "one")
	turn(t, c, "/clear")
	if len(sources) != 1 || <-sources != "clear" {
		t.Errorf("%d calls more, want one for clear", len(sources))
	}
}

// OnFailure "block" holds also for an answer that the CLI itself cannot use.
func TestOnFailure_BlocksOnAnInvalidAnswer(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, writing(cli, "guarded.txt"), writing(cli, "open.txt"), script.Text("Done."))
	opts := cli.Options(model)
	opts.Tools, opts.PermissionMode = []string{"Write"}, claude.ModeAcceptEdits
	bad := func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		return &claude.PreToolUseOutput{PermissionDecision: "perhaps"}, nil // no decision that the CLI knows
	}
	guard := preTool("Write", func(ctx context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		if strings.Contains(string(in.ToolInput), "open.txt") {
			return nil, nil
		}
		return bad(ctx, in)
	})
	guard.OnFailure = claude.FailBlock
	opts.Hooks = []claude.Hook{guard}
	turn(t, claudetest.Connect(t, opts), "write")
	if exists(filepath.Join(cli.Work, "guarded.txt")) {
		t.Errorf("the file was written although its hook gave an answer that cannot be used")
	}
	if !exists(filepath.Join(cli.Work, "open.txt")) {
		t.Errorf("the other file was not written, so that this test shows nothing")
	}
}
