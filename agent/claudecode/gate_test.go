// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

func bind(t testing.TB, e *gate.Engine, opts *claude.Options) {
	t.Helper()
	if err := claudecode.BindGate(opts, e); err != nil {
		t.Fatalf("BindGate: %v", err)
	}
}

// judgedBy is a policy made of a function.
func judgedBy(judge func(c *gate.Call) (event.Decision, bool)) gate.Policy {
	return gate.Custom("test", func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) { return judge(c) })
}

// denying denies every call.
func denying() *gate.Engine {
	return gate.NewEngine(gate.Must(gate.KnowsAgent(catalogue.Tools())), nil)
}

func TestBind_RefusesOptionsThatContradictTheGate(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts claude.Options
		want []string // names of the options
	}{
		{"an allow-list", claude.Options{AllowedTools: []string{"Write", "Bash(ls *)"}}, []string{"AllowedTools"}},
		{"an allow-list as an argument", claude.Options{ExtraArgs: []string{"--verbose", "--allowed-tools", "Write"}}, []string{"ExtraArgs[1]"}},
		{"another spelling of it", claude.Options{ExtraArgs: []string{"--allowedTools=Write"}}, []string{"ExtraArgs[0]"}},
		{"another tool that answers", claude.Options{PermissionPromptTool: "mcp__x__ask"}, []string{"PermissionPromptTool"}},
		{"and as an argument", claude.Options{ExtraArgs: []string{"--permission-prompt-tool=mcp__x__ask"}}, []string{"ExtraArgs[0]"}},
		{"bare mode", claude.Options{ExtraArgs: []string{"--bare"}}, []string{"ExtraArgs[0]"}},
		{"settings that cannot be added to", claude.Options{SettingsFile: "settings.json"}, []string{"SettingsFile"}},
		{"no hooks", claude.Options{Settings: json.RawMessage(`{"disableAllHooks":true}`)}, []string{"Settings"}},
		{"no hooks, managed", claude.Options{ManagedSettings: json.RawMessage(`{"disableAllHooks":true}`)}, []string{"ManagedSettings"}},
		{
			"all at once",
			claude.Options{AllowedTools: []string{"Write"}, PermissionPromptTool: "x", Settings: json.RawMessage(`{"disableAllHooks":true}`)},
			[]string{"AllowedTools", "PermissionPromptTool", "Settings"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := tt.opts
			err := claudecode.BindGate(&tt.opts, denying())
			if diff := cmp.Diff(tt.want, refusedOptions(err)); diff != "" {
				t.Errorf("refused options (-want +got):\n%s\n%v", diff, err)
			}
			if diff := cmp.Diff(before, tt.opts, cmpopts.IgnoreUnexported(claude.Env{})); diff != "" {
				t.Errorf("the options were changed (-before +after):\n%s", diff)
			}
		})
	}
	if err := claudecode.BindGate(nil, denying()); err == nil {
		t.Error("no options at all are not refused")
	}
}

// refusedOptions are the names in the OptionErrors of err.
func refusedOptions(err error) []string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var names []string
		for _, err := range joined.Unwrap() {
			names = append(names, refusedOptions(err)...)
		}
		return names
	}
	if e, ok := errors.AsType[*claude.OptionError](err); ok {
		return []string{e.Option}
	}
	return nil
}

func TestBind_AcceptsOtherOptions(t *testing.T) {
	opts := &claude.Options{
		DisallowedTools: []string{"Bash"}, ToolAliases: map[string]string{"Writer": "Write"}, PermissionPrompts: "none",
		Settings: json.RawMessage(`{"disableAllHooks":false,"permissions":{"allow":["Bash(ls)"]}}`), ExtraArgs: []string{"--safe-mode"},
	}
	bind(t, denying(), opts)
	if err := opts.Validate(); err != nil {
		t.Errorf("the options cannot be used: %v", err)
	}
}

func TestBind_PutsTheGateFirst(t *testing.T) {
	called := ""
	mine := claude.On("Read", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		called = "mine"
		return nil, nil
	})
	opts := &claude.Options{Hooks: []claude.Hook{mine}}
	bind(t, denying(), opts)
	if len(opts.Hooks) != 2 || opts.Hooks[0].Matcher != "" || opts.Hooks[1].Matcher != "Read" {
		t.Fatalf("hooks %+v, want the gate's and then mine", opts.Hooks)
	}
	in := &claude.PreToolUseInput{ToolName: "Read", ToolUseID: "c", ToolInput: json.RawMessage(`{}`)}
	out, err := opts.Hooks[0].Func(t.Context(), in)
	if diff := cmp.Diff(claude.HookOutput(claude.DenyTool("Tool not allowed: Read")), out); err != nil || diff != "" || called != "" {
		t.Errorf("%v, called %q, answer (-want +got):\n%s", err, called, diff)
	}
	if _, err := opts.Hooks[1].Func(t.Context(), in); err != nil || called != "mine" {
		t.Errorf("my hook: %v, called %q", err, called)
	}
	result, err := opts.CanUseTool(t.Context(), &claude.PermissionRequest{ToolName: "Read", Input: json.RawMessage(`{}`)})
	if diff := cmp.Diff(claude.PermissionResult(claude.Deny{Message: "Tool not allowed: Read"}), result); err != nil || diff != "" {
		t.Errorf("%v, the callback (-want +got):\n%s", err, diff)
	}
}

// Some who stand between the CLI and the model number calls from one in each answer.
func TestCalls_ReusedIDIsDecidedAgain(t *testing.T) {
	asked := 0
	e := gate.NewEngine(gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.AskTools("Write")), &gate.EngineOptions{
		Approver: gate.ApproverFunc(func(context.Context, gate.Question) (gate.Answer, error) {
			asked++
			return gate.Answer{Verdict: event.Allow}, nil
		}),
	})
	opts := new(claude.Options)
	bind(t, e, opts)
	input := json.RawMessage(`{"file_path":"/x"}`)
	for round := 1; round <= 3; round++ {
		in := &claude.PreToolUseInput{ToolName: "Write", ToolUseID: "call_1", ToolInput: input}
		if _, err := opts.Hooks[0].Func(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		if _, err := opts.CanUseTool(t.Context(), &claude.PermissionRequest{ToolName: "Write", ToolUseID: "call_1", Input: input}); err != nil {
			t.Fatal(err)
		}
		e.Decide(t.Context(), event.ToolCall{ID: "call_1", Name: "Write", Input: input})
		if asked != round {
			t.Errorf("round %d: asked %d times, want once for each call that begins", round, asked)
		}
	}
}

func TestBind_ModeAndCallbackOfAGate(t *testing.T) {
	level := func(f, s, n gate.Level) gate.Policy {
		return gate.FromCapabilities(&gate.Permissions{FileWrite: f, ShellExecute: s, NetworkAccess: n})
	}
	allow, ask := gate.LevelAllow, gate.LevelAsk
	custom := judgedBy(func(*gate.Call) (event.Decision, bool) { return event.Decision{}, false })
	for _, tt := range []struct {
		name     string
		policies []gate.Policy
		given    claude.PermissionMode
		want     claude.PermissionMode
		callback bool
	}{
		{"nothing", nil, "", claude.ModeDefault, true},
		{"everything allowed", []gate.Policy{level(allow, allow, allow)}, "", claude.ModeBypassPermissions, false},
		{"and a further policy", []gate.Policy{level(allow, allow, allow), custom}, "", claude.ModeDefault, true},
		{"files allowed", []gate.Policy{level(allow, ask, ask)}, "", claude.ModeAcceptEdits, true},
		{"files allowed below a path", []gate.Policy{gate.FromCapabilities(&gate.Permissions{FileWrite: allow, WritablePaths: []string{"src"}})}, "", claude.ModeDefault, true},
		{"everything allowed, without bypass", []gate.Policy{level(allow, allow, allow)}, claude.ModeDefault, claude.ModeDefault, true},
		{"everything allowed, with the same mode", []gate.Policy{level(allow, allow, allow)}, claude.ModeBypassPermissions, claude.ModeBypassPermissions, false},
		{"no permissions at all", []gate.Policy{gate.FromCapabilities(nil), gate.Default(event.Allow)}, "", claude.ModeDefault, true},
		{"the agent judges", []gate.Policy{gate.FromCapabilities(&gate.Permissions{Mode: gate.ModeAuto})}, "", claude.ModeAuto, false},
		{"a mode of the options", []gate.Policy{level(ask, ask, ask)}, claude.ModePlan, claude.ModePlan, true},
		{"bypass in the options", nil, claude.ModeBypassPermissions, claude.ModeBypassPermissions, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opts := &claude.Options{PermissionMode: tt.given}
			bind(t, gate.NewEngine(gate.Must(append(tt.policies, gate.KnowsAgent(catalogue.Tools()))...), nil), opts)
			if opts.PermissionMode != tt.want || (opts.CanUseTool != nil) != tt.callback {
				t.Errorf("mode %q, callback %t; want %q, %t", opts.PermissionMode, opts.CanUseTool != nil, tt.want, tt.callback)
			}
		})
	}
}

// Where the agent is to judge by itself, the hook must not allow what the gate lets pass: auto would
// be bypass.
func TestBind_AutoModeDecidesAboutAllowedCalls(t *testing.T) {
	deny := judgedBy(func(c *gate.Call) (event.Decision, bool) { return event.Decision{Reason: "no"}, c.Tool == "WebFetch" })
	opts := new(claude.Options)
	bind(t, gate.NewEngine(gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.FromCapabilities(&gate.Permissions{Mode: gate.ModeAuto}), deny), nil), opts)
	for name, want := range map[string]*claude.PreToolUseOutput{"Bash": {}, "WebFetch": claude.DenyTool("no")} {
		out, err := opts.Hooks[0].Func(t.Context(), &claude.PreToolUseInput{ToolName: name, ToolUseID: name, ToolInput: json.RawMessage(`{}`)})
		if diff := cmp.Diff(claude.HookOutput(want), out); err != nil || diff != "" {
			t.Errorf("%s: %v, answer (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestBind_KeepsTheCallbackForQuestionsToAPerson(t *testing.T) {
	allow := gate.Must(gate.KnowsAgent(catalogue.Tools()), judgedBy(func(*gate.Call) (event.Decision, bool) { return event.Decision{Verdict: event.Allow}, true }))
	opts := &claude.Options{CanUseTool: func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
		return claude.Deny{Message: "Not now."}, nil
	}}
	bind(t, gate.NewEngine(allow, nil), opts)
	got, err := opts.CanUseTool(t.Context(), &claude.PermissionRequest{ToolName: "ExitPlanMode", Input: json.RawMessage(`{}`), RequiresUserInteraction: true})
	if diff := cmp.Diff(claude.PermissionResult(claude.Deny{Message: "Not now."}), got); err != nil || diff != "" {
		t.Errorf("%v, result (-want +got):\n%s", err, diff)
	}
}

// deskGate allows the tools of a registry under the key "my_desk", and nothing else.
func deskGate() *gate.Gate {
	save := tool.Must[tool.None, string]("save", "Saves.", nil)
	return gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.Knows("my_desk", tool.MustRegistry(nil, save)), judgedBy(func(c *gate.Call) (event.Decision, bool) {
		return event.Decision{Verdict: event.Allow}, c.Origin == gate.Registered
	}))
}

func TestBind_RefusesAmbiguousServers(t *testing.T) {
	servers := func(names ...string) *claude.Options {
		o := &claude.Options{MCPServers: map[string]claude.MCPServer{}}
		for _, name := range names {
			o.MCPServers[name] = &claude.MCPInProcess{}
		}
		return o
	}
	for _, tt := range []struct {
		name string
		opts *claude.Options
		want []string
	}{
		{"one", servers("my_desk"), nil},
		{"one that is known by another spelling", servers("my.desk"), nil},
		{"two of one key", servers("my_desk", "my.desk"), []string{`MCPServers["my_desk"]`}},
		{"two of one key that the gate does not know", servers("my_desk", "a.b", "a_b"), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, refusedOptions(claudecode.BindGate(tt.opts, gate.NewEngine(deskGate(), nil)))); diff != "" {
				t.Errorf("refused options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBind_RefusesARegistryUnderAnotherKey(t *testing.T) {
	for _, tt := range []struct {
		name, server string // of the policy
		servers      map[string]claude.MCPServer
		want         []string
	}{
		{"no key, so the default one", "", map[string]claude.MCPServer{"shop": &claude.MCPInProcess{}}, []string{`MCPServers["shop"]`}},
		{"the key", "shop", map[string]claude.MCPServer{"shop": &claude.MCPInProcess{}}, nil},
		{"the key and one more", "shop", map[string]claude.MCPServer{"other": &claude.MCPInProcess{}, "shop": &claude.MCPInProcess{}}, nil},
		{"a key as tool names carry it", "my_shop", map[string]claude.MCPServer{"my.shop": &claude.MCPInProcess{}}, nil},
		{"a server of another program", "shop", map[string]claude.MCPServer{"other": claude.MCPStdio{Command: "other"}}, nil},
		{"for programs only", "shop", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.FromRisk(gate.RiskOptions{Registry: tool.MustRegistry(nil), Server: tt.server}))
			err := claudecode.BindGate(&claude.Options{MCPServers: tt.servers}, gate.NewEngine(g, nil))
			if diff := cmp.Diff(tt.want, refusedOptions(err)); diff != "" {
				t.Errorf("refused options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServers_ImpostorIsDenied(t *testing.T) {
	var events []event.Decision
	e := gate.NewEngine(deskGate(), &gate.EngineOptions{Emit: func(ev event.Event) error { events = append(events, ev.Payload.(event.Decision)); return nil }})
	opts := &claude.Options{MCPServers: map[string]claude.MCPServer{"my_desk": &claude.MCPInProcess{}}}
	bind(t, e, opts)
	for i, tt := range []struct {
		server claude.HookMCPServer
		want   claude.ToolDecision
	}{
		{claude.HookMCPServer{Name: "my_desk", Source: "sdk"}, claude.DecideAllow},
		{claude.HookMCPServer{Name: "my_desk"}, claude.DecideAllow},
		{claude.HookMCPServer{}, claude.DecideAllow}, // an old CLI
		{claude.HookMCPServer{Name: "my.desk", Source: "sdk"}, claude.DecideDeny},
		{claude.HookMCPServer{Name: "my_desk", Source: "project"}, claude.DecideDeny},
	} {
		in := &claude.PreToolUseInput{ToolName: "mcp__my_desk__save", ToolUseID: fmt.Sprint(i), ToolInput: json.RawMessage(`{}`), MCPServer: tt.server}
		out, err := opts.Hooks[0].Func(t.Context(), in)
		if got, ok := out.(*claude.PreToolUseOutput); err != nil || !ok || got.PermissionDecision != tt.want {
			t.Errorf("%+v: %+v, %v; want %s", tt.server, out, err, tt.want)
		}
		if len(events) != i+1 || events[i].Verdict.String() != string(tt.want) {
			t.Errorf("%+v: events %+v, want one that says %s", tt.server, events, tt.want)
		}
		if d := events[len(events)-1]; len(d.Chain) == 0 || d.Chain[len(d.Chain)-1].Policy != d.Policy || d.Chain[len(d.Chain)-1].Reason != d.Reason {
			t.Errorf("%+v: the chain of %+v does not end with the policy that decided", tt.server, d)
		}
	}
}

// A mode that the options name decides where no policy has an opinion, and nowhere else.
func TestPermissionMode_DecidesWhereNoPolicyDoes(t *testing.T) {
	own := tool.Tools{tool.Must("note", "Notes.", func(context.Context, tool.None) (string, error) { return "", nil })}
	g := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.LeaveToAgent(), gate.Knows("desk", own), gate.Rules(gate.RuleOptions{Allow: []string{"Read"}, Deny: []string{"WebFetch"}}))
	for _, x := range []struct {
		mode             claude.PermissionMode
		tool             string
		want             claude.ToolDecision
		answersQuestions bool
	}{
		{"", "Bash", claude.DecideAllow, true},
		{claude.ModeBypassPermissions, "Bash", claude.DecideAllow, true},
		{claude.ModePlan, "Bash", "", false},
		{claude.ModePlan, "Read", claude.DecideAllow, false},
		{claude.ModePlan, "WebFetch", claude.DecideDeny, false},
		{claude.ModePlan, "mcp__desk__note", claude.DecideAllow, false},
	} {
		opts := &claude.Options{PermissionMode: x.mode}
		bind(t, gate.NewEngine(g, nil), opts)
		out, err := opts.Hooks[0].Func(t.Context(), &claude.PreToolUseInput{ToolName: x.tool, ToolUseID: "1", ToolInput: json.RawMessage(`{}`)})
		answer, ok := out.(*claude.PreToolUseOutput)
		if err != nil || !ok || answer.PermissionDecision != x.want {
			t.Errorf("mode %q, %s: %+v, %v, want %q", x.mode, x.tool, out, err, x.want)
		}
		if answers := opts.CanUseTool != nil; answers != x.answersQuestions {
			t.Errorf("mode %q: the gate answers the questions of the mode: %v", x.mode, answers)
		}
	}
}

// A gate that does not know the tools of Claude Code would let pass what it cannot judge.
func TestBindGate_NeedsTheCatalogue(t *testing.T) {
	for name, known := range map[string]gate.Policy{"no agent": gate.Default(event.Deny), "another agent": gate.KnowsAgent(&tool.Catalogue{Agent: "another"})} {
		t.Run(name, func(t *testing.T) {
			opts := new(claude.Options)
			err := claudecode.BindGate(opts, gate.NewEngine(gate.Must(known, gate.Default(event.Allow)), nil))
			if err == nil || !strings.Contains(advice.Text(err), "gate.KnowsAgent(catalogue.Tools())") || opts.Hooks != nil {
				t.Errorf("got %v, with %d hooks", err, len(opts.Hooks))
			}
		})
	}
}
