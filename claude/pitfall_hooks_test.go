// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// preTool is a PreToolUse hook.
func preTool(matcher string, fn func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error)) claude.Hook {
	return claude.On(matcher, fn)
}

// writing is a turn of the model that writes a file in the work folder.
func writing(cli *claudetest.RealCLI, name string) script.Turn {
	return script.Call("Write", script.Input{"file_path": filepath.Join(cli.Work, name), "content": "written by the model"})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// The CLI takes an answer with a misspelt key for no opinion, in silence: "continue" and "async" in
// particular are awkward names in some languages. Each field must arrive under its exact name, and
// what is not set must not arrive at all.
func TestPitfall42_HookAnswersHaveExactNames(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer *claude.PreToolUseOutput
		want   string
	}{
		{"no opinion", nil, `{}`},
		{"zero value", &claude.PreToolUseOutput{}, `{}`},
		{"stop", &claude.PreToolUseOutput{HookControl: claude.HookControl{StopRun: true, StopReason: "enough"}}, `{"continue":false,"stopReason":"enough"}`},
		{"async", &claude.PreToolUseOutput{HookControl: claude.HookControl{Async: true, AsyncTimeout: 2 * time.Second}}, `{"async":true,"asyncTimeout":2000}`},
		{"deny", claude.DenyTool("<no>"), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"<no>"}}`},
		{"rewrite", claude.RewriteTool(map[string]int{"n": 1}), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"n":1}}}`},
		{"context", &claude.PreToolUseOutput{AdditionalContext: "c"}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"c"}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan json.RawMessage, 1)
			cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Initialize("")
				id := s.Ask("hook_callback", `{"callback_id":"hook_1_0","input":{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{},"tool_use_id":"t"}}`)
				got <- s.Reply(id)
				s.UntilEOF()
			})
			opts := cli.Options()
			opts.Hooks = []claude.Hook{preTool("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
				return tt.answer, nil
			})}
			claudetest.Connect(t, opts)
			var reply struct {
				Response json.RawMessage `json:"response"`
			}
			if err := json.Unmarshal(<-got, &reply); err != nil || string(reply.Response) != tt.want {
				t.Errorf("answered %s (%v), want %s", reply.Response, err, tt.want)
			}
		})
	}
}

// The CLI runs the tool when a hook fails, and does not when it is late: a guard that crashes is
// then no guard. Whatever goes wrong in a PreToolUse hook, the tool must not run.
func TestPitfall43_FailedHooksBlockTheTool(t *testing.T) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(version, func(t *testing.T) {
			cli := get(t)
			model := claudetest.NewModel(t, writing(cli, "error.txt"), writing(cli, "panic.txt"), writing(cli, "late.txt"), writing(cli, "fine.txt"), script.Text("Done."))
			opts := cli.Options(model)
			opts.Tools, opts.PermissionMode = []string{"Write"}, claude.ModeAcceptEdits
			withdrawn := make(chan error, 1)
			guard := preTool("Write", func(ctx context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
				switch text := string(in.ToolInput); {
				case strings.Contains(text, "error.txt"):
					return nil, errors.New("a secret of the guard")
				case strings.Contains(text, "panic.txt"):
					panic("a secret of the guard")
				case strings.Contains(text, "late.txt"):
					<-ctx.Done()
					withdrawn <- ctx.Err()
				}
				return nil, nil
			})
			guard.Timeout = 500 * time.Millisecond
			opts.Hooks = []claude.Hook{guard}
			turn(t, claudetest.Connect(t, opts), "write")
			for _, name := range []string{"error.txt", "panic.txt", "late.txt"} {
				if exists(filepath.Join(cli.Work, name)) {
					t.Errorf("%s was written although its hook failed", name)
				}
			}
			if !exists(filepath.Join(cli.Work, "fine.txt")) {
				t.Errorf("fine.txt was not written, so that this test shows nothing")
			}
			if err := <-withdrawn; err == nil {
				t.Errorf("the late hook's context ended without an error")
			}
			if model.SawText("a secret of the guard") {
				t.Errorf("the model read the error of the hook")
			}
		})
	}
}

// A CLI that does not know how to block after a failed hook ignores the wish. Such a client must
// not be had at all.
func TestPitfall43_OnFailureNeedsACLIThatKnowsIt(t *testing.T) {
	cli := claudetest.OldestCLI(t)
	opts := cli.Options(claudetest.NewModel(t))
	guard := preTool("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) { return nil, nil })
	guard.OnFailure = claude.FailBlock
	opts.Hooks = []claude.Hook{guard}
	c, err := claude.Connect(t.Context(), opts)
	if !errors.Is(err, claude.ErrTooOld) || !strings.Contains(advice.Text(err), "OnFailure") {
		t.Errorf("Connect: %v, want ErrTooOld that names OnFailure", err)
	}
	if c != nil {
		_ = c.Close()
	}
}

// All hooks of an event are called at once, not one after the other. A client that serves them in
// turn waits for ever when they depend on one another, and multiplies their times when they do not.
func TestPitfall44_HooksOfOneEventRunAtOnce(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "echo hi"}), script.Text("Done."))
	const hooks = 3
	var here sync.WaitGroup
	here.Add(hooks)
	opts := cli.Options(model)
	opts.Tools = []string{"Bash"}
	for range hooks {
		opts.Hooks = append(opts.Hooks, preTool("Bash", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
			here.Done()
			here.Wait()
			return nil, nil
		}))
	}
	turn(t, claudetest.Connect(t, opts), "go")
	if text, failed, _ := model.ToolResult("Bash"); failed || !strings.Contains(text, "hi") {
		t.Errorf("the model saw %q", text)
	}
}

// Some hooks are accepted and then never called: those of the start and the end of the process, and
// of the set-up. Registering one must be an error that names it and says what to do instead; the
// part that the CLI does call must work.
func TestPitfall45_HooksThatNeverFireAreRefused(t *testing.T) {
	opts := &claude.Options{Hooks: []claude.Hook{
		claude.On("", func(context.Context, *claude.SessionStartInput) (*claude.SessionStartOutput, error) { return nil, nil }),
		claude.On("startup", func(context.Context, *claude.SessionStartInput) (*claude.SessionStartOutput, error) { return nil, nil }),
		claude.On("", func(context.Context, *claude.SessionEndInput) (*claude.SessionEndOutput, error) { return nil, nil }),
		claude.On("", func(context.Context, *claude.SetupInput) (*claude.SetupOutput, error) { return nil, nil }),
	}}
	_, err := claude.Connect(t.Context(), opts)
	for i, event := range []string{"SessionStart", "SessionStart", "SessionEnd", "Setup"} {
		if want := "Hooks[" + string(rune('0'+i)) + "].Event"; err == nil || !strings.Contains(advice.Text(err), want) || !strings.Contains(advice.Text(err), event) {
			t.Errorf("the error %v does not name %s, %s", err, want, event)
		}
	}
}

// A suggestion of the CLI that loses a field on the way, or gains a null, is refused when it is sent
// back as the user's wish. It must go back as it came, kinds of the future included, and the CLI
// must act on it: the second question is not asked.
func TestPitfall46_SuggestionsGoBackAsTheyCame(t *testing.T) {
	const future = `{"type":"paintRules","colour":"<red>","rules":[{"toolName":"Bash","ruleContent":"x","weight":3}],"destination":"session"}`
	reply := make(chan string, 1)
	scripted := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Line(`{"type":"control_request","request_id":"ask","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"x"},"tool_use_id":"t","permission_suggestions":[` + future + `]}}`)
		reply <- string(s.Reply("ask"))
		s.UntilEOF()
	})
	accept := func(_ context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
		return claude.Allow{UpdatedPermissions: r.Suggestions}, nil
	}
	opts := scripted.Options()
	opts.CanUseTool = accept
	claudetest.Connect(t, opts)
	if got := <-reply; !strings.Contains(got, `"updatedPermissions":[`+future+`]`) {
		t.Errorf("answered %s, want the suggestion as it came", got)
	}

	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("Bash", script.Input{"command": "touch a.txt"}), script.Call("Bash", script.Input{"command": "touch a.txt"}), script.Text("Done."))
	asked := 0
	opts = cli.Options(model)
	opts.Tools = []string{"Bash"}
	opts.CanUseTool = func(ctx context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
		asked++
		if len(r.Suggestions) == 0 {
			t.Errorf("the CLI suggests nothing, so that this test shows nothing")
		}
		return accept(ctx, r)
	}
	turn(t, claudetest.Connect(t, opts), "touch it twice")
	if asked != 1 {
		t.Errorf("asked %d times, want once: the suggestions were not taken", asked)
	}
}

// A permission callback is never asked where the mode or a rule has decided, which looks like a
// callback that works. The log must report it.
func TestPitfall47_ShadowedPermissionCallback(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*claude.Options)
		want   string // empty: no warning
	}{
		{"bypass", func(o *claude.Options) { o.PermissionMode = claude.ModeBypassPermissions }, "bypassPermissions"},
		{"whole tool", func(o *claude.Options) { o.AllowedTools = []string{"Read", "Bash(git *)"} }, "about Read"},
		{"part of a tool", func(o *claude.Options) { o.AllowedTools = []string{"Bash(git *)"} }, ""},
		{"no callback", func(o *claude.Options) { o.AllowedTools, o.CanUseTool = []string{"Read"}, nil }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.UntilEOF()
			})
			log, written := logTo()
			opts := cli.Options()
			opts.Logger = log
			opts.CanUseTool = func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
				return claude.Allow{}, nil
			}
			tt.change(opts)
			claudetest.Connect(t, opts)
			warned := strings.Contains(written.String(), "CanUseTool is")
			if warned != (tt.want != "") || !strings.Contains(written.String(), tt.want) {
				t.Errorf("log %q, want a warning with %q", written, tt.want)
			}
		})
	}
}
