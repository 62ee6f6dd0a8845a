// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// A diary keeps the events of an engine, by the call that they are about.
type diary struct {
	mu  sync.Mutex
	all map[string][]string
}

func (d *diary) emit(ev event.Event) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string][]string{}
	}
	entry := string(ev.Kind)
	if p, ok := ev.Payload.(event.Decision); ok {
		entry += " " + p.Verdict.String() + " by " + p.Policy
		for word, isSet := range map[string]bool{" asked": p.Asked, " remembered": p.Remembered} {
			if isSet {
				entry += word
			}
		}
	}
	d.all[string(ev.CallID())] = append(d.all[string(ev.CallID())], entry)
	return nil
}

func (d *diary) entries() map[string][]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all
}

// places count how often each place has asked the engine about a call.
type places struct{ hook, callback, registry int }

// countPlaces counts who asks an engine that is bound to options.
func countPlaces(opts *claude.Options, seen func(id string, count func(*places))) {
	decide, ask := opts.Hooks[0].Func, opts.CanUseTool
	opts.Hooks[0].Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		seen(in.(*claude.PreToolUseInput).ToolUseID, func(p *places) { p.hook++ })
		return decide(ctx, in)
	}
	opts.CanUseTool = func(ctx context.Context, r *claude.PermissionRequest) (claude.PermissionResult, error) {
		seen(r.ToolUseID, func(p *places) { p.callback++ })
		return ask(ctx, r)
	}
}

// An eventCase is a call, with the places that ask about it and all events about it.
type eventCase struct {
	id, tool string
	input    script.Input
	at       places
	want     []string
}

var eventCases = []eventCase{
	{"hook-allow", "Write", script.Input{"file_path": "free/a.txt", "content": "x"}, places{hook: 1}, []string{"gate:decision allow by test"}},
	{"hook-deny", "Write", script.Input{"file_path": "free/forbidden.txt", "content": "x"}, places{hook: 1}, []string{"gate:decision deny by test"}},
	{"hook-ask", "Write", script.Input{"file_path": "b.txt", "content": "x"}, places{hook: 1}, []string{"permission_request", "gate:decision allow by approver asked"}},
	{"hook-ask-no", "Write", script.Input{"file_path": "no.txt", "content": "x"}, places{hook: 1}, []string{"permission_request", "gate:decision deny by approver asked"}},
	// The settings say ask, so that the CLI asks by itself about what the hook has allowed.
	{"callback-allow", "Bash", script.Input{"command": "echo free"}, places{1, 1, 0}, []string{"gate:decision allow by test"}},
	{"callback-ask", "Bash", script.Input{"command": "echo b"}, places{1, 1, 0}, []string{"permission_request", "gate:decision allow by approver asked"}},
	{"callback-deny", "Bash", script.Input{"command": "echo forbidden"}, places{hook: 1}, []string{"gate:decision deny by test"}},
	// What is answered for the tool is asked once, and reported for each call.
	{"remember", "mcp__desk__keep", script.Input{}, places{1, 0, 1}, []string{"permission_request", "gate:decision allow by approver asked"}},
	{"remembered", "mcp__desk__keep", script.Input{}, places{1, 0, 1}, []string{"gate:decision allow by approver remembered"}},
	// Tools of a registry: at the hook, where the settings say so at the callback, and where they run.
	{"ours-allow", "mcp__desk__look", script.Input{"path": "free"}, places{1, 0, 1}, []string{"gate:decision allow by test"}},
	{"ours-deny", "mcp__desk__look", script.Input{"path": "forbidden"}, places{hook: 1}, []string{"gate:decision deny by test"}},
	{"ours-ask", "mcp__desk__look", script.Input{"path": "b"}, places{1, 0, 1}, []string{"permission_request", "gate:decision allow by approver asked"}},
	{"ours-ask-no", "mcp__desk__look", script.Input{"path": "no"}, places{hook: 1}, []string{"permission_request", "gate:decision deny by approver asked"}},
	{"ours-changed", "mcp__desk__look", script.Input{"path": "change"}, places{1, 0, 1}, []string{"permission_request", "gate:decision allow by approver asked"}},
	{"ours-callback", "mcp__desk__save", script.Input{"path": "b"}, places{1, 1, 1}, []string{"permission_request", "gate:decision allow by approver asked"}},
	{"ours-invalid", "mcp__desk__look", script.Input{"path": 7, "free": true}, places{hook: 1}, []string{"gate:decision allow by test"}},
	// What the CLI itself refuses never reaches the engine.
	{"invalid", "Write", script.Input{"file_path": "free/c.txt"}, places{}, nil},
	{"unknown", "Frob", script.Input{"free": true}, places{}, nil},
}

// helperCases are the calls of a subagent.
var helperCases = []eventCase{
	{"helper-allow", "Write", script.Input{"file_path": "free/h.txt", "content": "x"}, places{hook: 1}, []string{"gate:decision allow by test"}},
	{"helper-ask", "Bash", script.Input{"command": "echo h"}, places{1, 1, 0}, []string{"permission_request", "gate:decision allow by approver asked"}},
	{"helper-deny", "Bash", script.Input{"command": "echo forbidden"}, places{hook: 1}, []string{"gate:decision deny by test"}},
	{"helper-ours", "mcp__desk__look", script.Input{"path": "h"}, places{1, 0, 1}, []string{"permission_request", "gate:decision allow by approver asked"}},
}

// eventGate asks about all calls but those that contain "free", and denies those that contain "forbidden".
func eventGate(more ...gate.Policy) *gate.Gate {
	return gate.ForClaude(append(more, judgedBy(func(c *gate.Call) (event.Decision, bool) {
		switch input := string(c.Input); {
		case strings.Contains(input, "forbidden"):
			return event.Decision{Reason: "That is forbidden."}, true
		case strings.Contains(input, "free"), c.Tool == "Agent":
			return event.Decision{Verdict: event.Allow}, true
		}
		return event.Decision{Verdict: event.Ask, Reason: "just to be sure"}, true
	}))...)
}

func answerForEvents(_ context.Context, q gate.Question) (gate.Answer, error) {
	switch input := string(q.Call.Input); {
	case strings.Contains(input, "no"):
		return gate.Answer{Reason: "No."}, nil
	case strings.Contains(input, "change"):
		return gate.Answer{Verdict: event.Allow, Input: json.RawMessage(`{"path":"other"}`)}, nil
	case strings.HasSuffix(q.Call.Name, "keep"):
		return gate.Answer{Verdict: event.Allow, Remember: gate.SameTool}, nil
	}
	return gate.Answer{Verdict: event.Allow}, nil
}

// However many places ask about a call, its question is emitted at most once and then its decision
// once, both under the id that the call has in the stream of the CLI.
func TestCLI_EachCallIsReportedOnceUnderItsID(t *testing.T) {
	for name, get := range map[string]func(testing.TB) *claudetest.RealCLI{"the tested CLI": claudetest.CLI, "the oldest": claudetest.OldestCLI} {
		t.Run(name, func(t *testing.T) { testEvents(t, get(t)) })
	}
}

// reply is a turn of the model that makes the call. Files are in the work folder.
func (c eventCase) reply(cli *claudetest.RealCLI) script.Turn {
	input := maps.Clone(c.input)
	if name, ok := input["file_path"].(string); ok {
		input["file_path"] = filepath.Join(cli.Work, name)
	}
	return script.Reply(script.ToolCall{ID: c.id, Name: c.tool, Input: input})
}

// eventTurns make all the calls, with three at once at the end.
func eventTurns(cli *claudetest.RealCLI) (turns []script.Turn, all []eventCase) {
	agent := eventCase{"agent", "Agent", script.Input{"subagent_type": "helper", "description": "help", "prompt": "help"}, places{hook: 1}, []string{"gate:decision allow by test"}}
	all = append(slices.Clone(eventCases), agent)
	for _, c := range all {
		turns = append(turns, c.reply(cli).When(script.Not(script.IsSubagent())))
	}
	for _, c := range helperCases {
		turns = append(turns, c.reply(cli).When(script.IsSubagent()))
	}
	all = append(all, helperCases...)
	turns = append(turns, script.Text("Helped.").When(script.IsSubagent()))
	var atOnce []script.Block
	for _, id := range []string{"at-once-1", "at-once-2", "at-once-3"} {
		c := eventCase{id, "mcp__desk__look", script.Input{"path": "same"}, places{1, 0, 1}, []string{"permission_request", "gate:decision allow by approver asked"}}
		atOnce = append(atOnce, c.reply(cli).Content...)
		all = append(all, c)
	}
	return append(turns, script.Reply(atOnce...), script.Text("Done.")), all
}

// eventRegistry has three tools that run behind a decider of their own.
func eventRegistry() *tool.Registry {
	look := func(_ context.Context, in file) (string, error) {
		return "looked at " + in.Path, nil
	}
	keep := func(context.Context, struct{}) (string, error) { return "kept", nil }
	return tool.MustRegistry(nil, tool.Must("look", "Looks.", look, tool.Mutates), tool.Must("save", "Saves.", look, tool.Mutates), tool.Must("keep", "Keeps.", keep, tool.Mutates))
}

func testEvents(t *testing.T, cli *claudetest.RealCLI) {
	turns, calls := eventTurns(cli)
	want, wantAt := map[string][]string{}, map[string]places{}
	for _, c := range calls {
		if c.want != nil {
			want[c.id], wantAt[c.id] = c.want, c.at
		}
	}
	model := claudetest.NewModel(t, turns...).RequireAllUsed()

	var mu sync.Mutex
	at := map[string]places{}
	seen := func(id string, count func(*places)) {
		mu.Lock()
		defer mu.Unlock()
		p := at[id]
		count(&p)
		at[id] = p
	}
	registry := eventRegistry()
	server, err := claudecode.NewSDKServer(registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	var emitted diary
	e := gate.NewEngine(eventGate(gate.Knows("desk", registry)), &gate.EngineOptions{Approver: gate.ApproverFunc(answerForEvents), Emit: emitted.emit})
	registry.DecideBy(tool.DeciderFunc(func(ctx context.Context, c event.ToolCall) event.Decision {
		seen(string(c.ID), func(p *places) { p.registry++ })
		return e.Decide(ctx, c)
	}))
	opts := cli.Options(model)
	opts.MCPServers = map[string]claude.MCPServer{"desk": server.Server()}
	opts.Agents = map[string]claude.AgentDefinition{"helper": {Description: "helps", Prompt: "You help."}}
	opts.Settings = json.RawMessage(`{"permissions":{"ask":["Bash","mcp__desk__save"]}}`)
	cli.SetEnv(opts, model, map[string]string{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "ENABLE_TOOL_SEARCH": "false"})
	bind(t, e, opts)
	countPlaces(opts, seen)

	var inStream []string // the ids of tool_use blocks
	for m, err := range claudetest.Connect(t, opts).Turn(t.Context(), claude.Text("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if a, ok := m.(*claude.AssistantMessage); ok {
			for _, u := range a.ToolUses() {
				inStream = append(inStream, u.ID)
			}
		}
	}
	if diff := cmp.Diff(want, emitted.entries()); diff != "" {
		t.Errorf("events by call (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantAt, at, cmp.AllowUnexported(places{})); diff != "" {
		t.Errorf("who asked (-want +got):\n%s", diff)
	}
	for id := range emitted.entries() {
		if !slices.Contains(inStream, id) {
			t.Errorf("the stream has no tool_use %q", id)
		}
	}
	if text, _, _ := model.ToolResult("ours-changed"); text != "looked at other" {
		t.Errorf("the tool ran with another input than the one of the answer: %q", text)
	}
}

// The approver is notified when no caller waits for its answer any longer, and the stream reports it.
func TestCLI_InterruptWithdrawsTheQuestion(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(bash("toolu_1", "touch late.txt")), script.Text("Done."))
	asked, withdrawn := make(chan struct{}), make(chan error, 1)
	var emitted diary
	e := gate.NewEngine(askingGate(), &gate.EngineOptions{Emit: emitted.emit, Approver: gate.ApproverFunc(func(ctx context.Context, _ gate.Question) (gate.Answer, error) {
		close(asked)
		<-ctx.Done()
		withdrawn <- ctx.Err()
		return gate.Answer{Verdict: event.Allow}, nil
	})})
	opts := cli.Options(model)
	bind(t, e, opts)
	c := claudetest.Connect(t, opts)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		<-asked
		if _, err := c.Interrupt(t.Context()); err != nil {
			t.Errorf("Interrupt: %v", err)
		}
	})
	for _, err := range c.Turn(t.Context(), claude.Text("go")) {
		if err != nil {
			break // an interrupted turn may end with an error
		}
	}
	if err := <-withdrawn; err == nil {
		t.Error("the question ended without an end of its context")
	}
	want := map[string][]string{"toolu_1": {"permission_request", "gate:decision deny by approver asked"}}
	if diff := cmp.Diff(want, emitted.entries()); diff != "" || exists(cli, "late.txt") {
		t.Errorf("the late answer counted: %t; events (-want +got):\n%s", exists(cli, "late.txt"), diff)
	}
}
