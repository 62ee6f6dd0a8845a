// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

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
	if err := claudecode.BindGate(opts, e); err != nil {
		t.Fatalf("BindGate: %v", err)
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

// desk is a registry with two tools, served under the key "desk", that count their runs. The engine
// decides about their calls where they run, too.
func desk(t testing.TB, engine **gate.Engine, ran *tally) (*tool.Registry, claude.MCPServer) {
	t.Helper()
	counted := func(name string, risk tool.Risk) *tool.Tool {
		return tool.Must(name, "Does "+name+".", func(context.Context, struct{}) (string, error) {
			ran.add(name)
			return name + " ran", nil
		}, risk)
	}
	registry := tool.MustRegistry(&tool.Options{
		Decider: tool.DeciderFunc(func(ctx context.Context, call event.ToolCall) event.Decision {
			ran.add("decided " + call.Name)
			return (*engine).Decide(ctx, call)
		}),
	}, counted("look", tool.ReadOnly), counted("save", tool.Mutates))
	server, err := claudecode.NewSDKServer(registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return registry, server.Server()
}

// A tool of a registry that changes something, under a gate that lets nothing be changed, in the mode
// in which the CLI lets everything pass. And a hook that rewrites what the gate has seen.
func TestCLI_MutatingToolIsDeniedInBypassMode(t *testing.T) {
	cli := claudetest.CLI(t)
	open, secret := cli.WriteFile(t, "open.txt", "nothing special"), cli.WriteFile(t, "secret.txt", "the treasure is here")
	model := claudetest.NewModel(t,
		script.Call("mcp__desk__save", nil), script.Call("mcp__desk__look", nil),
		script.Call("Read", script.Input{"file_path": open}), script.Text("Done.")).RequireAllUsed()
	var e *gate.Engine
	ran := newTally()
	registry, server := desk(t, &e, ran)
	noSecrets := judgedBy(func(c *gate.Call) (event.Decision, bool) {
		return event.Decision{Reason: "That is secret."}, strings.Contains(string(c.Input), "secret")
	})
	var verdicts []string
	var once sync.Once
	judged := make(chan struct{}) // once the gate has decided about Read
	e = gate.NewEngine(gate.ForClaude(gate.FromRisk(gate.RiskOptions{Registry: registry, Server: "desk", ReadOnly: true, AgentTools: true}), noSecrets),
		&gate.EngineOptions{Emit: func(ev event.Event) error {
			d := ev.Payload.(event.Decision)
			verdicts = append(verdicts, d.Tool+" "+d.Verdict.String())
			if d.Tool == "Read" {
				once.Do(func() { close(judged) })
			}
			return nil
		}})
	opts := cli.Options(model)
	opts.MCPServers = map[string]claude.MCPServer{"desk": server}
	opts.PermissionMode = claude.ModeBypassPermissions
	opts.Hooks = []claude.Hook{claude.On("Read", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		<-judged // so that the gate has seen an input that is not the one to run
		return claude.RewriteTool(map[string]string{"file_path": secret}), nil
	})}
	bind(t, e, opts)
	turn(t, claudetest.Connect(t, opts), "save it")
	if text, failed, _ := model.Requests()[1].ToolResult("mcp__desk__save"); !failed || !strings.Contains(text, "Read-only mode: mutating tools disabled.") {
		t.Errorf("the model saw %q (failed: %t), want the reason", text, failed)
	}
	if ran.of("save") != 0 {
		t.Error("the tool ran although the gate denied it")
	}
	if text, failed, _ := model.ToolResult("mcp__desk__look"); failed || text != "look ran" || ran.of("look") != 1 || ran.of("decided look") != 1 {
		t.Errorf("the model saw %q of the tool that may run, which ran %d times", text, ran.of("look"))
	}
	if text, failed, _ := model.ToolResult("Read"); !failed || !strings.Contains(text, "That is secret.") || model.SawText("treasure") {
		t.Errorf("the model saw %q of a call that a hook rewrote to one that is denied", text)
	}
	slices.Sort(verdicts) // hooks are called side by side
	if want := []string{"Read allow", "Read deny", "mcp__desk__look allow", "mcp__desk__save deny"}; !slices.Equal(verdicts, want) {
		t.Errorf("decisions %q, want %q", verdicts, want)
	}
}

// The CLI itself would let the tool pass without a question.
func TestCLI_HookDeniesAToolThatTheCLIAllows(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Reply(write(cli, "denied.txt")), script.Text("Done."))
	opts := cli.Options(model)
	opts.AllowedTools = []string{"Write"}
	opts.Hooks = []claude.Hook{claudecode.Hook(gate.NewEngine(gate.ForClaude(judgedBy(func(*gate.Call) (event.Decision, bool) {
		return event.Decision{Reason: "Not this one."}, true
	})), nil))}
	turn(t, claudetest.Connect(t, opts), "write it")
	if text, failed, _ := model.ToolResult("Write"); !failed || !strings.Contains(text, "Not this one.") || exists(cli, "denied.txt") {
		t.Errorf("the model saw %q; the file exists: %t", text, exists(cli, "denied.txt"))
	}
}

// The tools of the CLI that need a capability, with it and without it, in three modes that each let
// something else pass. A tool has run if the CLI reports it afterwards.
func TestCLI_CapabilitiesDecideAboutItsTools(t *testing.T) {
	modes := []claude.PermissionMode{claude.ModeBypassPermissions, claude.ModeAcceptEdits, claude.ModeDefault}
	const allow, deny = gate.LevelAllow, gate.LevelDeny
	cases := []struct {
		name        string
		permissions gate.Permissions
		denied      []string
	}{
		{"fileWrite", gate.Permissions{FileWrite: deny, ShellExecute: allow, NetworkAccess: allow}, []string{"Write", "Edit"}},
		{"shellExecute", gate.Permissions{FileWrite: allow, ShellExecute: deny, NetworkAccess: allow}, []string{"Bash"}},
		{"networkAccess", gate.Permissions{FileWrite: allow, ShellExecute: allow, NetworkAccess: deny}, []string{"WebFetch", "WebSearch"}},
	}
	cli := claudetest.CLI(t)
	turns := []script.Turn{script.Text("Found nothing.").Always().WhenFunc(func(r *script.Request) bool {
		return slices.ContainsFunc(r.Tools, func(t script.Tool) bool { return strings.HasPrefix(t.Type, "web_search") })
	})}
	for _, mode := range modes {
		for _, tt := range cases {
			turns = append(turns, nativeCalls(t, cli, tt.name+"-"+string(mode))...)
			turns = append(turns, script.Text("Done."))
		}
	}
	model := claudetest.NewModel(t, turns...)
	var now atomic.Pointer[gate.Policy]
	changing := gate.Policy{Name: "changing", Judge: func(c *gate.Call, f *gate.Facts) (event.Decision, bool) { return now.Load().Judge(c, f) }, Otherwise: &gate.Otherwise{Verdict: event.Allow}}
	ran := newTally()
	opts := cli.Options(model)
	opts.Settings = json.RawMessage(`{"skipWebFetchPreflight":true}`)
	opts.PermissionMode = claude.ModeBypassPermissions // so that the others can be set later
	opts.Hooks = []claude.Hook{
		claude.On("", func(_ context.Context, in *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
			ran.add(in.ToolUseID)
			return nil, nil
		}),
		claude.On("", func(_ context.Context, in *claude.PostToolUseFailureInput) (*claude.PostToolUseFailureOutput, error) {
			ran.add(in.ToolUseID)
			return nil, nil
		}),
	}
	bind(t, gate.NewEngine(gate.ForClaude(changing), nil), opts)
	c := claudetest.Connect(t, opts)
	for _, mode := range modes {
		if err := c.SetPermissionMode(t.Context(), mode); err != nil {
			t.Fatal(err)
		}
		for _, tt := range cases {
			now.Store(new(gate.FromCapabilities(&tt.permissions)))
			suffix := tt.name + "-" + string(mode)
			turn(t, c, suffix)
			for _, name := range []string{"Write", "Edit", "Bash", "WebFetch", "WebSearch"} {
				denied, id := slices.Contains(tt.denied, name), name+"-"+suffix
				text, failed, _ := model.LastRequest().ToolResult(id)
				reported := failed && strings.Contains(text, name+" needs the capability "+tt.name+", which the permission policy denies.")
				if reported != denied || (ran.of(id) == 1) == denied {
					t.Errorf("%s: ran %d times, the model saw %q", id, ran.of(id), text)
				}
			}
			checkEffects(t, cli, suffix, tt.permissions)
		}
	}
}

// checkEffects looks at what the calls of nativeCalls have left.
func checkEffects(t *testing.T, cli *claudetest.RealCLI, suffix string, p gate.Permissions) {
	t.Helper()
	files, shell := p.FileWrite == gate.LevelAllow, p.ShellExecute == gate.LevelAllow
	if exists(cli, suffix+".txt") != files || exists(cli, suffix+".bash") != shell {
		t.Errorf("%s: written: %t, command ran: %t", suffix, exists(cli, suffix+".txt"), exists(cli, suffix+".bash"))
	}
	content, err := os.ReadFile(filepath.Join(cli.Work, suffix+".edited"))
	if want := map[bool]string{true: "two\n", false: "one\n"}[files]; err != nil || string(content) != want {
		t.Errorf("%s: the edited file holds %q (%v), want %q", suffix, content, err, want)
	}
}

// nativeCalls are turns of the model that call the five tools one after the other.
func nativeCalls(t testing.TB, cli *claudetest.RealCLI, name string) []script.Turn {
	w, edited := write(cli, name+".txt"), cli.WriteFile(t, name+".edited", "one\n")
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

// A subagent has no more rights than the agent that started it.
func TestCLI_CallsOfASubagentAreJudged(t *testing.T) {
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
	e := gate.NewEngine(gate.ForClaude(judgedBy(func(c *gate.Call) (event.Decision, bool) {
		if c.Tool == "Bash" {
			agent.Store(c.AgentID)
			return event.Decision{Reason: "No digging."}, true
		}
		return event.Decision{Verdict: event.Allow}, true
	})), nil)
	bind(t, e, opts)
	turn(t, claudetest.Connect(t, opts), "dig")
	if text, failed, _ := model.ToolResult("toolu_dig"); !failed || !strings.Contains(text, "No digging.") || exists(cli, "dug.txt") {
		t.Errorf("the subagent's model saw %q", text)
	}
	if id, _ := agent.Load().(string); id == "" {
		t.Error("the gate did not receive which agent calls")
	}
}
