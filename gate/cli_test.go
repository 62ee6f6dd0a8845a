// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

func connect(t testing.TB, opts *claude.Options) *claude.Client {
	t.Helper()
	c, err := claude.Connect(t.Context(), opts)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// turn plays one turn, which must end with the text Done.
func turn(t testing.TB, c *claude.Client, prompt string) {
	t.Helper()
	answer := ""
	for m, err := range c.Turn(t.Context(), claude.Text(prompt)) {
		if err != nil {
			t.Fatalf("turn %q: %v", prompt, err)
		}
		if r, ok := m.(*claude.ResultMessage); ok {
			answer = r.Result
		}
	}
	if answer != "Done." {
		t.Errorf("turn %q ended with %q, want it to end as usual", prompt, answer)
	}
}

func bind(t testing.TB, e *gate.Engine, opts *claude.Options) {
	t.Helper()
	if err := e.Bind(opts); err != nil {
		t.Fatalf("Bind: %v", err)
	}
}

func exists(cli *claudetest.RealCLI, name string) bool {
	_, err := os.Stat(filepath.Join(cli.Work, name))
	return err == nil
}

func write(cli *claudetest.RealCLI, name string) script.ToolCall {
	return script.ToolCall{Name: "Write", Input: script.Input{"file_path": filepath.Join(cli.Work, name), "content": "one\n"}}
}

func bash(id, command string) script.ToolCall {
	return script.ToolCall{ID: id, Name: "Bash", Input: script.Input{"command": command, "description": "Run it"}}
}

// desk is an MCP server in this process, under the key "desk", with two tools that count their runs,
// and the registry that knows their risks.
func desk(t testing.TB, run func(ctx context.Context, name string) error) (claude.MCPServer, gate.Policy) {
	t.Helper()
	var tools []claude.Tool
	registry := tool.MustRegistry(nil)
	for name, risk := range map[string]tool.Risk{"look": tool.ReadOnly, "save": tool.Mutates} {
		tools = append(tools, claude.MustTool(name, "Does "+name+".", func(ctx context.Context, _ struct{}) (claude.ToolResult, error) {
			err := run(ctx, name)
			return claude.TextResult(name + " ran"), err
		}))
		if err := registry.Add(tool.Must(name, "Does "+name+".", func(context.Context, struct{}) (string, error) { return "", nil }, risk)); err != nil {
			t.Fatal(err)
		}
	}
	server, err := claude.NewToolServer("desk", "1", nil, tools...)
	if err != nil {
		t.Fatal(err)
	}
	return server.Server(), gate.Policy{Name: "desk", Tools: map[string]gate.Lookup{"desk": registry}}
}

// A tool of a registry that changes something, under a gate that lets nothing be changed, in the mode
// in which the CLI lets everything pass. And a hook that rewrites what the gate has seen.
func TestAMutatingToolIsDeniedInBypassMode(t *testing.T) {
	cli := claudetest.CLI(t)
	const reason = "Nothing may be changed here."
	model := claudetest.NewModel(t,
		script.Call("mcp__desk__save", nil), script.Call("mcp__desk__look", nil),
		script.Reply(bash("toolu_rewritten", "echo harmless")), script.Text("Done.")).RequireAllUsed()
	var save, look atomic.Int64
	server, known := desk(t, func(_ context.Context, name string) error {
		map[string]*atomic.Int64{"save": &save, "look": &look}[name].Add(1)
		return nil
	})
	readOnly := judgedBy(func(c gate.Call) (event.Decision, bool) {
		if c.Risk.Has(tool.Mutates) || strings.Contains(string(c.Input), "touch") {
			return event.Decision{Reason: reason}, true
		}
		return event.Decision{Verdict: event.Allow}, true
	})
	var decisions []event.Decision
	e := gate.NewEngine(gate.Must(known, readOnly), &gate.EngineOptions{Emit: func(ev event.Event) { decisions = append(decisions, ev.Payload.(event.Decision)) }})
	opts := cli.Options(model)
	opts.MCPServers = map[string]claude.MCPServer{"desk": server}
	opts.PermissionMode = claude.ModeBypassPermissions
	opts.Hooks = []claude.Hook{claude.On("Bash", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		return claude.RewriteTool(map[string]string{"command": "touch rewritten.txt"}), nil
	})}
	bind(t, e, opts)
	turn(t, connect(t, opts), "save it")
	if text, failed, _ := model.Requests()[1].ToolResult("mcp__desk__save"); !failed || !strings.Contains(text, reason) {
		t.Errorf("the model saw %q (failed: %t), want the reason", text, failed)
	}
	if save.Load() != 0 {
		t.Error("the tool ran although the gate denied it")
	}
	if text, failed, _ := model.ToolResult("mcp__desk__look"); failed || text != "look ran" || look.Load() != 1 {
		t.Errorf("the model saw %q of the tool that may run, which ran %d times", text, look.Load())
	}
	if text, failed, _ := model.ToolResult("toolu_rewritten"); !failed || !strings.Contains(text, reason) || exists(cli, "rewritten.txt") {
		t.Errorf("the model saw %q of a call that a hook rewrote to one that is denied", text)
	}
	if len(decisions) != 4 || decisions[0].Verdict != event.Deny || decisions[0].Tool != "mcp__desk__save" || decisions[1].Verdict != event.Allow {
		t.Errorf("decisions %+v, want one for each call and one for the new input", decisions)
	}
}

// The CLI itself would let the tool pass without a question.
func TestTheHookDeniesWhatTheCLIAllows(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(write(cli, "denied.txt")), script.Text("Done."))
	opts := cli.Options(model)
	opts.AllowedTools = []string{"Write"}
	opts.Hooks = []claude.Hook{tool.Hook(gate.NewEngine(gate.Must(judgedBy(func(gate.Call) (event.Decision, bool) {
		return event.Decision{Reason: "Not this one."}, true
	})), nil))}
	turn(t, connect(t, opts), "write it")
	if text, failed, _ := model.ToolResult("Write"); !failed || !strings.Contains(text, "Not this one.") || exists(cli, "denied.txt") {
		t.Errorf("the model saw %q; the file exists: %t", text, exists(cli, "denied.txt"))
	}
}

// needs are the capabilities of the tools in TestNativeToolsByCapability.
var needs = map[string]tool.Capability{
	"Write": tool.FileWrite, "Edit": tool.FileWrite, "Bash": tool.ShellExecute, "WebFetch": tool.NetworkAccess, "WebSearch": tool.NetworkAccess,
}

// The tools of the CLI that need a capability, with it and without it, in three modes that each let
// something else pass. A tool has run if the CLI says so after it.
func TestNativeToolsByCapability(t *testing.T) {
	cli := claudetest.CLI(t)
	modes := []claude.PermissionMode{claude.ModeBypassPermissions, claude.ModeAcceptEdits, claude.ModeDefault}
	names := []string{"Write", "Edit", "Bash", "WebFetch", "WebSearch"}
	var turns []script.Turn
	var cases []string // prompts
	for _, mode := range modes {
		for _, permitted := range []bool{false, true} {
			prompt := fmt.Sprintf("%s-%t", mode, permitted)
			cases = append(cases, prompt)
			cli.WriteFile(t, prompt+".edited", "one\n")
			turns = append(turns, nativeCalls(cli, prompt)...)
			turns = append(turns, script.Text("Done."))
		}
	}
	search := script.Text("Found nothing.").Always().WhenFunc(func(r *script.Request) bool {
		return slices.ContainsFunc(r.Tools, func(t script.Tool) bool { return strings.HasPrefix(t.Type, "web_search") })
	})
	model := claudetest.NewModel(t, append([]script.Turn{search}, turns...)...)

	var permitted atomic.Bool
	capabilities := judgedBy(func(c gate.Call) (event.Decision, bool) {
		if needs[c.Tool] != 0 && !permitted.Load() {
			return event.Decision{Reason: "No " + needs[c.Tool].String() + " here."}, true
		}
		return event.Decision{Verdict: event.Allow}, true
	})
	ran := newTally()
	opts := cli.Options(model)
	opts.Settings = json.RawMessage(`{"skipWebFetchPreflight":true}`)
	opts.PermissionMode = claude.ModeBypassPermissions
	opts.AllowBypass = true
	opts.Hooks = []claude.Hook{
		claude.On("", func(_ context.Context, in *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
			ran.add(in.ToolName)
			return nil, nil
		}),
		claude.On("", func(_ context.Context, in *claude.PostToolUseFailureInput) (*claude.PostToolUseFailureOutput, error) {
			ran.add(in.ToolName)
			return nil, nil
		}),
	}
	bind(t, gate.NewEngine(gate.Must(capabilities), nil), opts)
	c := connect(t, opts)
	for i, prompt := range cases {
		if err := c.SetPermissionMode(t.Context(), modes[i/2]); err != nil {
			t.Fatal(err)
		}
		permitted.Store(i%2 == 1)
		ran.reset()
		turn(t, c, prompt)
		last := model.LastRequest()
		for _, name := range names {
			text, failed, _ := last.ToolResult(name + "-" + prompt)
			denied := strings.Contains(text, "No "+needs[name].String()+" here.")
			if denied == permitted.Load() || denied && !failed || (ran.of(name) == 1) != permitted.Load() {
				t.Errorf("%s: %s ran %d times, the model saw %q", prompt, name, ran.of(name), text)
			}
		}
		content, _ := os.ReadFile(filepath.Join(cli.Work, prompt+".edited"))
		if want := map[bool]string{true: "two\n", false: "one\n"}[permitted.Load()]; string(content) != want {
			t.Errorf("%s: the edited file holds %q, want %q", prompt, content, want)
		}
		if exists(cli, prompt+".txt") != permitted.Load() || exists(cli, prompt+".bash") != permitted.Load() {
			t.Errorf("%s: written: %t, command ran: %t", prompt, exists(cli, prompt+".txt"), exists(cli, prompt+".bash"))
		}
	}
}

// nativeCalls are turns of the model that call the five tools one after the other.
func nativeCalls(cli *claudetest.RealCLI, name string) []script.Turn {
	w, edited := write(cli, name+".txt"), filepath.Join(cli.Work, name+".edited")
	w.ID = "Write-" + name
	return []script.Turn{
		script.Reply(w),
		script.Call("Read", script.Input{"file_path": edited}), // the CLI wants it, and asks the gate after that
		script.Reply(script.ToolCall{ID: "Edit-" + name, Name: "Edit", Input: script.Input{"file_path": edited, "old_string": "one", "new_string": "two"}}),
		script.Reply(bash("Bash-"+name, "touch "+name+".bash")),
		script.Reply(script.ToolCall{ID: "WebFetch-" + name, Name: "WebFetch", Input: script.Input{"url": "http://127.0.0.1:1/", "prompt": "What is there?"}}),
		script.Reply(script.ToolCall{ID: "WebSearch-" + name, Name: "WebSearch", Input: script.Input{"query": "nothing at all"}}),
	}
}

// A tally counts by name.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func newTally() *tally { return &tally{n: map[string]int{}} }

func (c *tally) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[name]++
}

func (c *tally) of(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n[name]
}

func (c *tally) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.n)
}

// A rule of the settings makes the CLI ask about Bash although the hook allowed it, so that the
// engine decides at the hook, at the callback and, for a tool of ours, where it runs. The approver
// is asked once for each call.
func TestAnAskIsAnsweredOnceWhateverTheAnswer(t *testing.T) {
	cli := claudetest.CLI(t)
	commands := []string{"yes", "no", "never", "late", "changed"}
	var turns []script.Turn
	for _, name := range commands {
		turns = append(turns, script.Reply(bash("toolu_"+name, "touch "+name+".txt")))
	}
	turns = append(turns, script.Reply(script.ToolCall{ID: "toolu_save", Name: "mcp__desk__save"}), script.Text("Done."),
		script.Reply(bash("toolu_p1", "touch p1.txt"), bash("toolu_p2", "touch p2-no.txt"), bash("toolu_p3", "touch p3.txt"), write(cli, "p4.txt")), script.Text("Done."))
	model := claudetest.NewModel(t, turns...)

	asked, called, decided := newTally(), newTally(), newTally()
	var e *gate.Engine
	server, known := desk(t, func(ctx context.Context, name string) error {
		d := e.Decide(ctx, event.ToolCall{ID: claude.ToolUseIDFromContext(ctx), Name: name, Input: json.RawMessage(`{}`)})
		if d.Verdict != event.Allow {
			t.Errorf("where the tool runs, the verdict is %+v", d)
		}
		return nil
	})
	lateAnswers := make(chan struct{})
	answer := func(ctx context.Context, q gate.Question) (gate.Answer, error) {
		asked.add(q.Call.ID)
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
	e = gate.NewEngine(askingGate(known), &gate.EngineOptions{
		Approver: gate.ApproverFunc(answer), ApprovalTimeout: 400 * time.Millisecond,
		Emit: func(ev event.Event) {
			if d, ok := ev.Payload.(event.Decision); ok {
				decided.add(d.CallID)
			}
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
	c := connect(t, opts)
	turn(t, c, "one by one")
	turn(t, c, "at once")
	<-lateAnswers

	for name, want := range map[string]string{
		"yes": "", "no": "I said no.", "never": "nobody answered within 400ms", "late": "nobody answered within 400ms", "changed": "other",
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
	for _, id := range []string{"toolu_yes", "toolu_changed", "toolu_save"} {
		if called.of(id) != 1 {
			t.Errorf("%s: the CLI asked %d times by itself, so that this test does not show what it says", id, called.of(id))
		}
	}
}

// A subagent has no more rights than the agent that started it.
func TestTheCallsOfASubagentAreJudged(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("Agent", script.Input{"subagent_type": "helper", "description": "help", "prompt": "dig"}).When(script.Not(script.IsSubagent())),
		script.Reply(bash("toolu_dig", "touch dug.txt")).When(script.IsSubagent()), script.Text("Could not.").When(script.IsSubagent()),
		script.Text("Done.").When(script.Not(script.IsSubagent())))
	opts := cli.Options(model)
	cli.SetEnv(opts, model, map[string]string{"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1"})
	opts.Agents = map[string]claude.AgentDefinition{"helper": {Description: "digs", Prompt: "You dig."}}
	opts.PermissionMode = claude.ModeBypassPermissions
	var agent atomic.Value
	e := gate.NewEngine(gate.Must(judgedBy(func(c gate.Call) (event.Decision, bool) {
		if c.Tool == "Bash" {
			agent.Store(c.AgentID)
			return event.Decision{Reason: "No digging."}, true
		}
		return event.Decision{Verdict: event.Allow}, true
	})), nil)
	bind(t, e, opts)
	turn(t, connect(t, opts), "dig")
	if text, failed, _ := model.ToolResult("toolu_dig"); !failed || !strings.Contains(text, "No digging.") || exists(cli, "dug.txt") {
		t.Errorf("the subagent's model saw %q", text)
	}
	if id, _ := agent.Load().(string); id == "" {
		t.Error("the gate was not told which agent calls")
	}
}

// A person's answers go to the model; the gate only says whether the model may ask.
func TestQuestionsOfTheModelReachThePerson(t *testing.T) {
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
	p := saying(gate.Answer{Verdict: event.Allow})
	bind(t, gate.NewEngine(askingGate(), &gate.EngineOptions{Approver: p}), opts)
	turn(t, connect(t, opts), "paint")
	if text, failed, _ := model.ToolResult(claude.AskUserQuestionTool); failed || !strings.Contains(text, "Blue") || p.asked.Load() != 1 {
		t.Errorf("the model saw %q; the approver was asked %d times", text, p.asked.Load())
	}
}
