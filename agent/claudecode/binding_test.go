// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// Whatever keeps a call from running is a denial: the answer itself, an error, a panic.
func TestObserve_Denials(t *testing.T) {
	blocked := claude.AllowTool()
	blocked.Decision = claude.DecisionBlock
	later := claude.DenyTool("no")
	later.Async = true
	for name, x := range map[string]struct {
		hook   func() (*claude.PreToolUseOutput, error)
		denied bool
	}{
		"allowed":       {func() (*claude.PreToolUseOutput, error) { return claude.AllowTool(), nil }, false},
		"no opinion":    {func() (*claude.PreToolUseOutput, error) { return nil, nil }, false},
		"asked":         {func() (*claude.PreToolUseOutput, error) { return claude.AskTool("?"), nil }, false},
		"denied":        {func() (*claude.PreToolUseOutput, error) { return claude.DenyTool("no"), nil }, true},
		"blocked":       {func() (*claude.PreToolUseOutput, error) { return blocked, nil }, true},
		"too late":      {func() (*claude.PreToolUseOutput, error) { return later, nil }, false},
		"with an error": {func() (*claude.PreToolUseOutput, error) { return nil, errors.New("broken") }, true},
		"by a panic":    {func() (*claude.PreToolUseOutput, error) { panic("broken") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := agent.NewLedger(nil)
			o := claude.Options{Hooks: []claude.Hook{claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) { return x.hook() })}}
			if err := bindCalls(&o, agent.Request{}, l); err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() { _ = recover() }()
				_, _ = o.Hooks[0].Func(t.Context(), &claude.PreToolUseInput{ToolUseID: "t1"})
			}()
			if l.Denied(l.Last("t1")) != x.denied {
				t.Errorf("denied: %t, want %t", l.Denied(l.Last("t1")), x.denied)
			}
		})
	}
}

func TestObserve_AnswersToPermissionQuestions(t *testing.T) {
	for name, x := range map[string]struct {
		answer func() (claude.PermissionResult, error)
		denied bool
	}{
		"allowed":          {func() (claude.PermissionResult, error) { return claude.Allow{}, nil }, false},
		"allowed, pointer": {func() (claude.PermissionResult, error) { return &claude.Allow{}, nil }, false},
		"denied":           {func() (claude.PermissionResult, error) { return claude.Deny{}, nil }, true},
		"nothing":          {func() (claude.PermissionResult, error) { return nil, nil }, true},
		"with an error":    {func() (claude.PermissionResult, error) { return claude.Allow{}, errors.New("broken") }, true},
		"by a panic":       {func() (claude.PermissionResult, error) { panic("broken") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := agent.NewLedger(nil)
			o := claude.Options{CanUseTool: func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) { return x.answer() }}
			if err := bindCalls(&o, agent.Request{}, l); err != nil {
				t.Fatal(err)
			}
			func() {
				defer func() { _ = recover() }()
				_, _ = o.CanUseTool(t.Context(), &claude.PermissionRequest{ToolUseID: "t1"})
			}()
			if l.Denied(l.Last("t1")) != x.denied {
				t.Errorf("denied: %t, want %t", l.Denied(l.Last("t1")), x.denied)
			}
		})
	}
}

// The mode is left alone wherever the CLI takes it.
func TestPermissionMode_BypassIsAvoidedOnlyForRootOutsideOfASandbox(t *testing.T) {
	root := os.Geteuid() == 0
	all := &gate.Permissions{FileWrite: gate.LevelAllow, ShellExecute: gate.LevelAllow, NetworkAccess: gate.LevelAllow}
	for name, x := range map[string]struct {
		env     map[string]string
		user    string
		avoided bool
	}{
		"nothing set":  {nil, "", root},
		"a sandbox":    {map[string]string{"IS_SANDBOX": "1"}, "", false},
		"no sandbox":   {map[string]string{"IS_SANDBOX": "0"}, "", root},
		"bubblewrap":   {map[string]string{"CLAUDE_CODE_BUBBLEWRAP": "1"}, "", false},
		"another user": {nil, "nobody", false},
	} {
		t.Run(name, func(t *testing.T) {
			host := gate.NewEngine(gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.FromCapabilities(all)), nil)
			o := optionsOf(t, &claude.Options{Env: claude.ExactEnv(x.env), User: x.user}, agent.Request{Host: host, Settings: agent.Settings{Permissions: all}})
			avoidRootBypass(&o)
			want := claude.ModeBypassPermissions
			if x.avoided {
				want = claude.ModeDefault
			}
			if o.PermissionMode != want || o.CanUseTool != nil {
				t.Errorf("the mode is %q, want %q", o.PermissionMode, want)
			}
		})
	}
}

// A host of another type that embeds an engine sets the mode of the CLI, as the engine itself does.
func TestBind_HostThatEmbedsAnEngineIsAGate(t *testing.T) {
	auto := gate.FromCapabilities(&gate.Permissions{Mode: gate.ModeAuto})
	host := struct{ *gate.Engine }{gate.NewEngine(gate.Must(gate.KnowsAgent(catalogue.Tools()), auto), nil)}
	if o := optionsOf(t, &claude.Options{}, agent.Request{Host: host}); o.PermissionMode != claude.ModeAuto {
		t.Errorf("the mode is %q, want %q", o.PermissionMode, claude.ModeAuto)
	}
}

// A host that cannot be enforced is refused: the CLI would not call its hook.
func TestBind_RefusesAHostThatCannotBeEnforced(t *testing.T) {
	base := &claude.Options{Settings: []byte(`{"disableAllHooks":true}`)}
	for name, host := range map[string]agent.Host{
		"a gate":    gate.NewEngine(gate.Must(gate.KnowsAgent(catalogue.Tools())), nil),
		"a decider": allowAll,
	} {
		_, err := New(base).newRun(t.Context(), agent.Request{Prompt: "go", Host: host})
		if _, ok := errors.AsType[*claude.OptionError](err); !ok {
			t.Errorf("%s: %v, want an OptionError", name, err)
		}
	}
}

// A hook of the base that rewrites a call does not go around the host.
func TestHost_DecidesAboutRewrittenCalls(t *testing.T) {
	base := &claude.Options{Hooks: []claude.Hook{claude.On("", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		return claude.RewriteTool(map[string]string{"path": "secret"}), nil
	})}}
	host := tool.DeciderFunc(func(_ context.Context, call event.ToolCall) event.Decision {
		if strings.Contains(string(call.Input), "secret") {
			return event.Decision{Reason: "That is secret."}
		}
		return event.Decision{Verdict: event.Allow}
	})
	o := optionsOf(t, base, agent.Request{Host: host})
	if len(o.Hooks) != 3 {
		t.Fatalf("there are %d hooks, want the host's, the base's and the one for the CLI's own files", len(o.Hooks))
	}
	out, err := o.Hooks[1].Func(t.Context(), &claude.PreToolUseInput{ToolUseID: "t1", ToolName: "Read", ToolInput: []byte(`{"path":"open"}`)})
	if err != nil || !claude.Denies(out) {
		t.Errorf("the rewritten call gives %+v, %v; want a denial", out, err)
	}
}
