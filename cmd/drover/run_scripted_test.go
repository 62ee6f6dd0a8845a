// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/tool"
)

// A scriptedAgent yields the events of a test, and keeps what it was asked.
type scriptedAgent struct {
	events []event.Payload
	err    error // after the events
	stall  bool  // until the context ends, after the events

	base *claude.Options
	in   *isolation.Isolation
	asks []agent.Request
}

func (*scriptedAgent) Agent() string                         { return "scripted" }
func (*scriptedAgent) Catalogue() *tool.Catalogue            { return catalogue.Tools() }
func (*scriptedAgent) Ready(context.Context) agent.Readiness { return agent.Readiness{} }

func (a *scriptedAgent) Run(ctx context.Context, req agent.Request) iter.Seq2[event.Event, error] {
	a.asks = append(a.asks, req)
	return func(yield func(event.Event, error) bool) {
		for _, p := range a.events {
			if !yield(event.New(p), nil) {
				return
			}
		}
		if a.stall {
			<-ctx.Done()
		}
		if a.err != nil {
			yield(event.Event{}, a.err)
		}
	}
}

// tried is what became of a run.
type tried struct {
	code        int
	out, errors string
}

// try runs the scripted agent.
func (a *scriptedAgent) try(ctx context.Context, o runOptions) tried {
	var stdout, stderr bytes.Buffer
	o.agent = "scripted"
	state, err := os.MkdirTemp("", "drover-state-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(state) }()
	o.state = state
	o.keep.off = o.keep.off || !o.keep.traffic // a socket of a kept run would wait for the network in a bubble of synctest
	o.agents = func(base *claude.Options, in *isolation.Isolation) (*agent.Registry, error) {
		a.base, a.in = base, in
		return agent.NewRegistry(a)
	}
	err = runAgent(ctx, o, streams{in: strings.NewReader("from stdin\n"), out: &stdout, errs: &stderr})
	return tried{exitCode(ctx, err, &stderr), stdout.String(), stderr.String()}
}

var success = event.Done{Status: event.DoneSuccess, Result: "Fine.", ResumeToken: "token-1"}

func called(id, name string) event.ToolCall { return event.ToolCall{ID: event.CallID(id), Name: name} }

func denied(id, name, policy string) event.Decision {
	return event.Decision{CallID: event.CallID(id), Tool: name, Policy: policy, Reason: "no"}
}

func TestExitCodes_ReportHowARunEnded(t *testing.T) {
	cases := map[string]struct {
		agent   scriptedAgent
		options runOptions
		code    int
		stderr  []string // its texts, in this order; nil means nothing
	}{
		"success": {scriptedAgent{events: []event.Payload{success}}, runOptions{}, 0, nil},
		"an error": {
			scriptedAgent{events: []event.Payload{event.Init{}, event.Error{Message: "claude: the API said no"}, event.Done{Status: event.DoneError}}},
			runOptions{},
			exitError,
			[]string{"drover: the API said no\n", "  next: drover doctor"},
		},
		"an error that has advice": {
			scriptedAgent{events: []event.Payload{event.Init{}, event.Error{Message: "no\n  next: pay"}, event.Done{Status: event.DoneError}}},
			runOptions{},
			exitError,
			[]string{"drover: no\n  next: pay\n"},
		},
		"an error that only done reports": {
			scriptedAgent{events: []event.Payload{event.Init{}, event.Done{Status: event.DoneError, Result: "out of luck"}}},
			runOptions{},
			exitError,
			[]string{"drover: the run ended with error: out of luck\n  next: drover doctor "},
		},
		"an error without an explanation": {
			scriptedAgent{events: []event.Payload{event.Init{}, event.Done{Status: event.DoneError}}},
			runOptions{},
			exitError,
			[]string{"drover: the run ended with error: no reason was given\n"},
		},
		"a breakdown": {
			scriptedAgent{events: []event.Payload{event.Init{}}, err: errors.New("claude: the pipe broke")},
			runOptions{},
			exitError,
			[]string{"drover: the pipe broke\n"},
		},
		"an error that was got over": {
			scriptedAgent{events: []event.Payload{event.Error{Message: "overloaded", Recoverable: true}, success}}, runOptions{}, 0, nil,
		},
		"denied": {
			scriptedAgent{events: []event.Payload{called("1", "Bash"), denied("1", "Bash", "approver"), success}},
			runOptions{},
			exitDenied,
			[]string{"1 tool call was denied: Bash (1)\n", "  next: add --allow shellExecute\n"},
		},
		"denied by the agent itself": {
			scriptedAgent{events: []event.Payload{called("1", "Write"), event.ToolResult{ID: "1", Name: "Write", Status: event.ToolDenied}, success}},
			runOptions{},
			exitDenied,
			[]string{"1 tool call was denied: Write (1)\n", "  next: add --allow fileWrite\n"},
		},
		"denied, several": {
			scriptedAgent{events: []event.Payload{
				denied("1", "Bash", "capabilities"),
				event.ToolResult{ID: "1", Name: "Bash", Status: event.ToolDenied},
				denied("2", "Bash", "capabilities"), denied("3", "Monitor", "capabilities"), success,
			}},
			runOptions{},
			exitDenied,
			[]string{"3 tool calls were denied: Bash (2), Monitor (1)\n", "next: add --allow shellExecute,networkAccess\n"},
		},
		"denied, where flags name the capabilities": {
			scriptedAgent{events: []event.Payload{denied("1", "Bash", "capabilities"), denied("2", "Write", "approver"), denied("3", "WebFetch", "approver"), success}},
			runOptions{permissions: permissionFlags{given: map[tool.Capability]string{tool.ShellExecute: "deny", tool.FileWrite: "ask"}}},
			exitDenied,
			[]string{"next: add --allow networkAccess; use --allow fileWrite instead of --ask fileWrite; use --allow shellExecute instead of --deny shellExecute\n"},
		},
		"denied first, then allowed": {
			scriptedAgent{events: []event.Payload{denied("1", "Bash", ""), event.Decision{CallID: "1", Tool: "Bash", Verdict: event.Allow}, success}},
			runOptions{},
			0, nil,
		},
		"denied as not listed": {
			scriptedAgent{events: []event.Payload{denied("1", "Bash", "allow-list"), success}},
			runOptions{tools: toolList{"Read"}},
			exitDenied,
			[]string{"next: name Bash in --tools to have it\n"},
		},
		"denied as read-only": {
			scriptedAgent{events: []event.Payload{denied("1", "Bash", "risk"), success}},
			runOptions{readOnly: true},
			exitDenied,
			[]string{"next: leave out --read-only to have Bash\n"},
		},
		"denied by a person": {
			scriptedAgent{events: []event.Payload{event.Decision{CallID: "1", Tool: "Bash", Asked: true}, success}},
			runOptions{},
			exitDenied,
			[]string{"1 tool call was denied: Bash (1)\n"},
		},
		"an error counts more than a denial": {
			scriptedAgent{events: []event.Payload{denied("1", "Bash", ""), event.Done{Status: event.DoneError}}}, runOptions{}, exitError, []string{"drover: "},
		},
		"turns": {
			scriptedAgent{events: []event.Payload{event.Done{Status: event.DoneMaxTurns, ResumeToken: "token-1"}}},
			runOptions{maxTurns: 3},
			exitLimit,
			[]string{"(--max-turns 3)\n", "  next: raise it, or go on with drover run --resume token-1\n"},
		},
		"budget": {
			scriptedAgent{events: []event.Payload{event.Done{Status: event.DoneMaxBudget}}},
			runOptions{maxUSD: 0.5},
			exitLimit,
			[]string{"(--max-usd 0.5)\n", "  next: raise it\n"},
		},
		"tokens": {
			scriptedAgent{events: []event.Payload{gateway.Limit{Limit: "MaxTotalTokens"}, event.Done{Status: event.DoneMaxBudget}}},
			runOptions{maxTokens: 1000},
			exitLimit,
			[]string{"the budget is spent (--max-tokens 1000)\n", "  next: raise it\n"},
		},
		"a limit of the cell": {
			scriptedAgent{events: []event.Payload{
				event.Init{},
				isolation.Breach{What: "workspace bytes"},
				event.Error{Code: "CELL_LIMIT", Message: "isolation: the workspace is too large\n  next: write less"},
				event.Done{Status: event.DoneError},
			}},
			runOptions{},
			exitLimit,
			[]string{"drover: ", "the workspace is too large\n  next: write less\n"},
		},
		"interrupted": {
			scriptedAgent{events: []event.Payload{event.Done{Status: event.DoneInterrupted}}}, runOptions{}, exitInterrupted, []string{"drover: stopped"},
		},
		"interrupted, to be continued": {
			scriptedAgent{events: []event.Payload{event.Done{Status: event.DoneInterrupted, ResumeToken: "token-1"}}},
			runOptions{},
			exitInterrupted,
			[]string{"drover: stopped", "  next: go on with drover run --resume token-1\n"},
		},
		"interrupted where commands can outlive the run": {
			scriptedAgent{events: []event.Payload{event.Done{Status: event.DoneInterrupted}}},
			runOptions{isolation: isolationFlags{level: levelFlag(isolation.LevelSandbox)}},
			exitInterrupted,
			[]string{"drover: stopped; the CLI is gone, but commands that have detached themselves may go on\n"},
		},
		"a conversation that there is not": {
			scriptedAgent{events: []event.Payload{event.Error{Message: "no such conversation"}, event.Done{Status: event.DoneError}}},
			runOptions{resume: "token-0"},
			exitError,
			[]string{"drover: no such conversation\n  next: give --resume the resumeToken of a run in this folder"},
		},
		"an error that would act on the terminal": {
			scriptedAgent{events: []event.Payload{event.Init{}, event.Error{Message: "\x1b[2Jall is well"}, event.Done{Status: event.DoneError}}},
			runOptions{},
			exitError,
			[]string{`drover: \x1b[2Jall is well`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.options.prompt = "Do it."
			got := c.agent.try(t.Context(), c.options)
			if got.code != c.code {
				t.Errorf("exit code %d, want %d; stderr: %s", got.code, c.code, got.errors)
			}
			rest := got.errors
			for _, words := range c.stderr {
				_, after, there := strings.Cut(rest, words)
				if !there {
					t.Errorf("stderr %q lacks %q", got.errors, words)
				}
				rest = after
			}
			if c.stderr == nil && got.errors != "" {
				t.Errorf("stderr %q, want nothing", got.errors)
			}
		})
	}
}

// A run that could not begin is an error, in every form of output, and no output.
func TestRun_FailedStartPrintsNoOutput(t *testing.T) {
	cause := agent.Readiness{State: agent.StateMissing, Detail: "claude: CLI not found", Repair: "install it"}.Err()
	for name, o := range map[string]runOptions{"lines": {}, "json": {json: true}, "quiet": {quiet: true}} {
		t.Run(name, func(t *testing.T) {
			o.prompt = "Do it."
			got := (&scriptedAgent{err: cause}).try(t.Context(), o)
			want := "drover: the agent cannot be run: it is missing: CLI not found\n  next: install it\n"
			if got != (tried{exitError, "", want}) {
				t.Errorf("got %+v, want 1, nothing and %q", got, want)
			}
		})
	}
}

// An error that others follow is part of a run.
func TestRun_ErrorFollowedByOthersIsShown(t *testing.T) {
	a := &scriptedAgent{events: []event.Payload{event.Error{Message: "early"}, event.Init{}, success}}
	got := a.try(t.Context(), runOptions{prompt: "Do it.", json: true})
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	if got.code != 0 || len(lines) != 3 || !strings.Contains(lines[0], `"message":"early"`) {
		t.Errorf("got %+v, want the error, the init and the done", got)
	}
}

func TestRun_TimeIsALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &scriptedAgent{events: []event.Payload{event.Init{}}, stall: true}
		began := time.Now()
		got := a.try(t.Context(), runOptions{prompt: "Do it.", json: true, timeout: timeLimit(time.Minute)})
		if took := time.Since(began); got.code != exitLimit || took > time.Minute+time.Second {
			t.Errorf("exit code %d after %v, want 4 after a minute", got.code, took)
		}
		if !strings.Contains(got.errors, "the time is over (--timeout 1m0s)\n  next: raise it") {
			t.Errorf("stderr %q does not name the flag", got.errors)
		}
		if !strings.Contains(got.out, `"status":"interrupted"`) || !strings.Contains(got.out, `"reason":"the time is up"`) {
			t.Errorf("the done event does not report why: %s", got.out)
		}
	})
}

func TestRun_CancelledContextInterrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a := &scriptedAgent{events: []event.Payload{event.Init{}}, stall: true}
		got := a.try(ctx, runOptions{prompt: "Do it.", json: true})
		if got.code != exitInterrupted || got.errors != "drover: stopping the model ...\ndrover: stopped; the CLI and all it started are gone\n" {
			t.Errorf("got %+v, want 130 and two lines", got)
		}
		if !strings.Contains(got.out, `"status":"interrupted"`) {
			t.Errorf("no done event: %s", got.out)
		}
	})
}

// Ctrl-C also ends the reading of a prompt that does not end.
func TestRun_EndlessPromptCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, typing := io.Pipe()
	t.Cleanup(func() { _ = typing.Close() })
	go func() {
		_, _ = typing.Write([]byte("What is"))
		cancel()
	}()
	var stdout, stderr bytes.Buffer
	err := runAgent(ctx, runOptions{prompt: "-"}, streams{in: in, out: &stdout, errs: &stderr})
	if code := exitCode(ctx, err, &stderr); code != exitInterrupted || stdout.Len() > 0 {
		t.Errorf("exit code %d, stdout %q; want 130 and nothing", code, &stdout)
	}
}

// lostWriter breaks after some bytes, as a pipe does whose reader leaves.
type lostWriter struct{ left int }

func (w *lostWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, os.ErrClosed
	}
	return len(p), nil
}

func TestRun_EndsWhenTheOutputIsClosed(t *testing.T) {
	for name, o := range map[string]runOptions{"json": {json: true}, "lines": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &scriptedAgent{events: []event.Payload{event.Init{}, event.Text{Content: "one"}, event.Text{Content: "two"}}, stall: true}
				o.prompt, o.agent, o.state = "Do it.", "scripted", t.TempDir()
				o.agents = func(*claude.Options, *isolation.Isolation) (*agent.Registry, error) { return agent.NewRegistry(a) }
				var stderr bytes.Buffer
				err := runAgent(t.Context(), o, streams{out: &lostWriter{}, errs: &stderr})
				code := exitCode(t.Context(), err, &stderr)
				if code != exitError || !strings.Contains(stderr.String(), "no program reads the output any more") {
					t.Errorf("exit code %d, stderr %q; want 1 and the reason", code, &stderr)
				}
			})
		})
	}
}

// A device is no terminal for being one.
func TestRun_WriteFailureIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this system has no device that is always full")
	}
	defer func() { _ = full.Close() }()
	a := &scriptedAgent{events: []event.Payload{event.Init{Model: "a-model"}, success}}
	o := runOptions{prompt: "Do it.", agent: "scripted", state: t.TempDir(), agents: func(*claude.Options, *isolation.Isolation) (*agent.Registry, error) { return agent.NewRegistry(a) }}
	var stderr bytes.Buffer
	code := exitCode(t.Context(), runAgent(t.Context(), o, streams{out: full, errs: &stderr}), &stderr)
	if code != exitError || !strings.Contains(stderr.String(), "the output could not be written, so the run was stopped") || !strings.Contains(stderr.String(), "\n  next: ") {
		t.Errorf("exit code %d, stderr %q; want 1 and the reason", code, &stderr)
	}
}

// The time counts from the start, also for a prompt that never comes.
func TestRun_TimeLimitIncludesReadingThePrompt(t *testing.T) {
	never, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	var stderr bytes.Buffer
	o := runOptions{prompt: "-", timeout: timeLimit(20 * time.Millisecond)}
	code := exitCode(t.Context(), runAgent(t.Context(), o, streams{in: never, out: io.Discard, errs: &stderr}), &stderr)
	if code != exitLimit || !strings.Contains(stderr.String(), "reading the prompt from standard input: the time is up\n  next: ") {
		t.Errorf("exit code %d, stderr %q; want 4 and the reason", code, &stderr)
	}
}

func TestRun_RemovedWorkingDirIsAnError(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Skip("this system keeps folders that are in use:", err)
	}
	got := new(scriptedAgent).try(t.Context(), runOptions{prompt: "Do it."})
	if got.code != exitError || !strings.Contains(got.errors, "the current folder cannot be used: ") || !strings.Contains(got.errors, "\n  next: cd ") {
		t.Errorf("exit code %d, stderr %q; want 1 and the reason", got.code, got.errors)
	}
}

func TestRunOptions_FlagsBecomeARequest(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	schemaText := `{"type": "object", "properties": {"n": {"type": "integer"}}}`
	if err := os.WriteFile("answer.json", []byte(schemaText), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &scriptedAgent{events: []event.Payload{event.Done{Status: event.DoneSuccess, Output: json.RawMessage(`{"n": 1}`)}}}
	o := runOptions{prompt: "-", model: "m", maxTurns: 3, maxUSD: 0.25, maxTokens: 7, schemaFile: "answer.json", resume: "token-0", tools: toolList{"Read"}}
	if err := o.permissions.flag("allow").Set("fileWrite"); err != nil {
		t.Fatal(err)
	}
	if err := o.permissions.flag("deny").Set("networkAccess"); err != nil {
		t.Fatal(err)
	}
	if err := o.permissions.mode.Set("allow"); err != nil {
		t.Fatal(err)
	}
	if got := a.try(t.Context(), o); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	req := a.asks[0]
	if req.Prompt != "from stdin\n" || req.Model != "m" || req.MaxTurns != 3 || req.Budget.MaxCostUSD != 0.25 || req.Budget.MaxTotalTokens != 7 || req.Resume != "token-0" || !strings.Contains(string(req.OutputSchema), `"n":`) {
		t.Errorf("the request is %+v", req)
	}
	if got, _ := filepath.EvalSymlinks(req.Dir); got != mustResolve(t, dir) {
		t.Errorf("Dir is %q, want the current folder", req.Dir)
	}
	if !slices.Equal(req.Tools, []string{"Read", "mcp__drover"}) { // the tools of the prompt are always there
		t.Errorf("Tools are %v", req.Tools)
	}
	if p := (&job{options: o}).evaluation(t.Context(), nil).Permissions; p == nil || p.Mode != gate.ModeAllow || p.FileWrite != gate.LevelAllow || p.ShellExecute != gate.LevelUnset || p.NetworkAccess != gate.LevelDeny {
		t.Errorf("Permissions are %+v", p)
	}
	if b := a.base; !slices.Equal(b.SettingSources, claudecell.SettingSources()) || !b.StrictMCP || b.SystemPrompt != claude.SystemPrompt(claude.PresetPrompt{}) {
		t.Errorf("settings, servers or the prompt of the user are not left aside: %+v", b)
	}
}

func mustResolve(t *testing.T, path string) string {
	t.Helper()
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// The agent gets the isolation that the flags name. A level that is named is neither weaker nor stronger.
func TestRunOptions_FlagsBecomeAnIsolation(t *testing.T) {
	a := &scriptedAgent{events: []event.Payload{success}}
	for name, c := range map[string]struct {
		flags isolationFlags
		want  isolation.Isolation
	}{
		"default": {isolationFlags{}, isolation.Isolation{Sandbox: &isolation.Sandbox{}}},
		"everything": {
			isolationFlags{
				level: levelFlag(isolation.LevelLandlock), domains: pathList{"example.com"}, localhost: true,
				writable: pathList{"w"}, readable: pathList{"r"}, storedLogin: true,
			},
			isolation.Isolation{
				Network: &isolation.NetworkPolicy{AllowedDomains: []string{"example.com"}, AllowLocalhost: true},
				Sandbox: &isolation.Sandbox{WritablePaths: []string{"w"}, ReadablePaths: []string{"r"}},
				Auth:    isolation.Auth{UseStoredLogin: true}, Weakest: isolation.LevelLandlock, Strongest: isolation.LevelLandlock,
			},
		},
		"host": {
			isolationFlags{level: levelFlag(isolation.LevelHost)},
			isolation.Isolation{Sandbox: &isolation.Sandbox{Disabled: true}, Weakest: isolation.LevelHost, Strongest: isolation.LevelHost},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := a.try(t.Context(), runOptions{prompt: "Do it.", isolation: c.flags}); got.code != 0 {
				t.Fatalf("got %+v", got)
			}
			if a.in.Started == nil {
				t.Errorf("processes are not counted: %+v", a.in)
			}
			a.in.Started = nil
			if diff := cmp.Diff(&c.want, a.in, cmpopts.IgnoreFields(isolation.Isolation{}, "Host"), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("isolation (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRunOptions_ToolsAreNilWithoutTheFlag(t *testing.T) {
	a := &scriptedAgent{events: []event.Payload{success}}
	a.try(t.Context(), runOptions{prompt: "Do it."})
	if a.asks[0].Tools != nil {
		t.Errorf("Tools are %v, want nil", a.asks[0].Tools)
	}
	none := toolList{}
	a.try(t.Context(), runOptions{prompt: "Do it.", tools: none})
	if got := a.asks[1].Tools; got == nil || len(got) > 0 {
		t.Errorf("Tools are %v, want an empty list", got)
	}
}
