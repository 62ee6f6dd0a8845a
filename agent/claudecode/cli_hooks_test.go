// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// bothCLIs runs a test with the pinned CLI and with the oldest one.
func bothCLIs(t *testing.T, test func(t *testing.T, cli *claudetest.RealCLI)) {
	t.Run("pinned", func(t *testing.T) { test(t, claudetest.CLI(t)) })
	t.Run("oldest", func(t *testing.T) { test(t, claudetest.OldestCLI(t)) })
}

// A hookLog is what the hooks of a run received, one line for each.
type hookLog struct {
	mu    sync.Mutex
	lines []string
	agent string // the first subagent
}

func (h *hookLog) add(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprintf(format, args...))
}

func (h *hookLog) by(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch id {
	case "":
		return "main"
	case h.agent:
		return "sub"
	}
	return "unknown " + id
}

// hooks write down everything, and add a text for the model where they can. The first answer is
// refused.
func (h *hookLog) hooks() *agent.Hooks {
	answers := 0
	return &agent.Hooks{
		Submitted: func(_ context.Context, s agent.Submission) (string, error) {
			h.add("submitted %s", s.Prompt)
			return "MORE-TO-THE-PROMPT", nil
		},
		CallEnded: func(_ context.Context, e agent.CallEnd) (string, error) {
			measured := ""
			if e.Duration <= 0 || e.ID == "" {
				measured = " and was not measured"
			}
			h.add("%s of %s ended: %s %s%s", e.Name, h.by(e.AgentID), e.Status, e.Error, measured)
			return "MORE-TO-" + e.Name, nil
		},
		Answering: func(_ context.Context, a agent.Answer) (string, error) {
			h.add("answering %s", a.Output)
			if answers++; answers == 1 {
				return "Run the tests <first> & last.", nil
			}
			return "", nil
		},
		Stopping: func(_ context.Context, s agent.Stop) (string, error) {
			h.add("stopping: %q again %t answered %t", s.Text, s.Again, s.Answered)
			return "this has no effect after an answer", nil
		},
		SubagentStarted: func(_ context.Context, a agent.Subagent) {
			h.mu.Lock()
			h.agent = a.ID
			h.mu.Unlock()
			h.add("started %s", a.Type)
		},
		SubagentStopped: func(_ context.Context, a agent.Subagent) {
			h.add("%s stopped: %s, %s", h.by(a.ID), a.Text, a.Transcript[strings.LastIndex(a.Transcript, "."):])
		},
		Compacting: func(_ context.Context, c agent.Compaction) { h.add("compacting: %s %s", c.Trigger, c.Instructions) },
	}
}

// One run with every hook, seen from the host and from the model: calls of the CLI's own tools and of ours, in
// the main agent and in a subagent, an answer that is refused and one that is not.
func TestHooks_EachIsCalled(t *testing.T) {
	bothCLIs(t, func(t *testing.T, cli *claudetest.RealCLI) {
		model := claudetest.NewModel(t,
			script.Reply(bash("echo one")).When(mainAgent),
			script.Reply(bash("exit 3")).When(mainAgent),
			script.Call("mcp__desk__look", nil).When(mainAgent),
			script.Call("mcp__desk__fail", nil).When(mainAgent),
			script.Reply(delegate(false)).When(mainAgent),
			script.Reply(bash("echo dug")).When(script.IsSubagent()),
			script.Text("Dug.").When(script.IsSubagent()),
			script.Structured(script.Input{"value": []string{"no"}}).When(mainAgent),
			script.Structured(script.Input{"value": []string{"yes"}}).When(mainAgent),
			script.Text("Done.").When(mainAgent).Always())
		base := cli.Options(model)
		base.PermissionMode = claude.ModeBypassPermissions
		h := &hookLog{}
		var id string
		tools := tool.MustRegistry(nil,
			tool.Must("look", "Looks.", func(ctx context.Context, _ struct{}) (string, error) {
				id = claude.ToolUseIDFromContext(ctx)
				return "seen", nil
			}, tool.ReadOnly),
			tool.Must("fail", "Fails.", func(context.Context, struct{}) (string, error) { return "", errors.New("broken") }, tool.ReadOnly))
		got := run(t, base, agent.Request{
			Prompt: "go", Registry: tools, Settings: agent.Settings{ToolServer: "desk"}, OutputSchema: json.RawMessage(`{"type":"array","items":{"type":"string"}}`), Hooks: h.hooks(),
		})
		got.check(t)
		want := []string{
			"submitted go",
			"Bash of main ended: success ",
			"Bash of main ended: error Exit code 3",
			"mcp__desk__look of main ended: success ",
			"mcp__desk__fail of main ended: error Error: broken",
			"started general-purpose",
			"Bash of sub ended: success ",
			"sub stopped: Dug., .jsonl",
			"Agent of main ended: success ",
			`answering ["no"]`, // unwrapped, as the schema has it
			`answering ["yes"]`,
			`stopping: "" again false answered true`,
		}
		if diff := cmp.Diff(want, h.lines); diff != "" {
			t.Errorf("the hooks received (-want +got):\n%s", diff)
		}
		for _, text := range []string{"MORE-TO-THE-PROMPT", "MORE-TO-Bash", "MORE-TO-mcp__desk__look", "MORE-TO-mcp__desk__fail", "MORE-TO-Agent", "Run the tests <first> & last."} {
			if !model.SawText(text) {
				t.Errorf("the model did not read %q", text)
			}
		}
		if done := got.done(t); string(done.Output) != `["yes"]` {
			t.Errorf("the run ended with %+v, want the second answer", done)
		}
		if call := of[event.ToolResult](got)[2]; event.CallID(id) != call.ID {
			t.Errorf("the tool was called as %q, and its call is %q", id, call.ID)
		}
		if !strings.Contains(strings.Join(model.Requests()[0].ToolNames(), " "), "mcp__desk__look") {
			t.Errorf("the model sees %q first, and not our tools", model.Requests()[0].ToolNames())
		}
	})
}

// The agent goes on as often as a hook asks for it, also beyond the limits that the CLI has by itself, and no more
// often than the request allows.
func TestStopping_RefusalsAreBounded(t *testing.T) {
	bothCLIs(t, func(t *testing.T, cli *claudetest.RealCLI) {
		t.Run("of stops", func(t *testing.T) {
			model := claudetest.NewModel(t, script.Text("Done.").Always())
			asked, again := 0, 0
			got := run(t, cli.Options(model), agent.Request{Prompt: "go", MaxRefusals: 12, Hooks: &agent.Hooks{
				Stopping: func(_ context.Context, s agent.Stop) (string, error) {
					if asked++; s.Again {
						again++
					}
					return fmt.Sprintf("NOT-YET-%d", asked), nil
				},
			}})
			got.check(t)
			if done := got.done(t); done.Status != event.DoneSuccess || done.Result != "Done." || asked != 13 || again != 12 || len(model.Requests()) != 13 {
				t.Errorf("asked %d times, again %d, %d requests, done %+v; want 12 refusals and then the end", asked, again, len(model.Requests()), done)
			}
			if !model.LastRequest().SawText("NOT-YET-12") || model.LastRequest().SawText("NOT-YET-13") {
				t.Error("the model did not read exactly the refusals that count")
			}
		})
		t.Run("of answers", func(t *testing.T) {
			model := claudetest.NewModel(t, script.Structured(script.Input{"n": "none"}).Times(2), script.Structured(script.Input{"n": 1}).Always())
			asked := 0
			got := run(t, cli.Options(model), agent.Request{
				Prompt: "go", MaxRefusals: 7, OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`),
				Hooks: &agent.Hooks{Answering: func(context.Context, agent.Answer) (string, error) {
					asked++
					return "not yet", nil
				}},
			})
			got.check(t)
			if done := got.done(t); done.Status != event.DoneSuccess || string(done.Output) != `{"n":1}` || asked != 8 {
				t.Errorf("asked %d times, done %+v; want 7 refusals and then the answer", asked, done)
			}
		})
	})
}

// An agent that sends only texts after a refusal is kept at it until it has answered.
func TestStopping_AgentContinuesUntilItAnswers(t *testing.T) {
	bothCLIs(t, func(t *testing.T, cli *claudetest.RealCLI) {
		answer := script.Structured(script.Input{"n": 1})
		model := claudetest.NewModel(t, answer, script.Text("I am done."), script.Text("Really."), answer, script.Text("Bye.").Always())
		var lines hookLog
		got := run(t, cli.Options(model), agent.Request{
			Prompt: "go", OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`),
			Hooks: &agent.Hooks{
				Answering: func(context.Context, agent.Answer) (string, error) {
					lines.add("answering")
					if len(lines.lines) == 1 {
						return "not yet", nil
					}
					return "", nil
				},
				Stopping: func(_ context.Context, s agent.Stop) (string, error) {
					lines.add("stopping %s %t", s.Text, s.Answered)
					return "GIVE-AN-ANSWER", nil
				},
			},
		})
		got.check(t)
		want := []string{"answering", "stopping I am done. false", "stopping Really. false", "answering", "stopping  true"}
		if diff := cmp.Diff(want, lines.lines); diff != "" {
			t.Errorf("the hooks were asked (-want +got):\n%s", diff)
		}
		if done := got.done(t); string(done.Output) != `{"n":1}` || !model.SawText("GIVE-AN-ANSWER") {
			t.Errorf("the run ended with %+v, want an answer", done)
		}
	})
}

// Hooks that fail or panic never end the run. A failed Rewrite denies its call, and a failed Answering refuses its
// answer; all else goes on as if there were no hook. Each failure is an event.
func TestHooks_FailureNeverEndsTheRun(t *testing.T) {
	broken := errors.New("BROKEN-HOOK")
	for name, fail := range map[string]func() error{
		"with an error": func() error { return broken },
		"with a panic":  func() error { panic(broken) },
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t,
				script.Reply(bash("touch ran")).When(mainAgent), script.Reply(delegate(false)).When(mainAgent), script.Text("Dug.").When(script.IsSubagent()),
				script.Structured(script.Input{"n": 1}).When(mainAgent), script.Structured(script.Input{"n": 2}).When(mainAgent), script.Text("Bye.").Always())
			base := cli.Options(model)
			base.PermissionMode = claude.ModeBypassPermissions
			answers := 0
			got := run(t, base, agent.Request{
				Prompt: "go", OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`),
				Hooks: &agent.Hooks{
					Rewrite: func(_ context.Context, call event.ToolCall) (json.RawMessage, error) {
						if call.Name == "Bash" {
							return nil, fail()
						}
						return nil, nil
					},
					Submitted: func(context.Context, agent.Submission) (string, error) { return "", fail() },
					CallEnded: func(context.Context, agent.CallEnd) (string, error) { return "", fail() },
					Answering: func(context.Context, agent.Answer) (string, error) {
						if answers++; answers == 1 {
							return "", fail()
						}
						return "", nil
					},
					Stopping:        func(context.Context, agent.Stop) (string, error) { return "", fail() },
					SubagentStarted: func(context.Context, agent.Subagent) { _ = fail() },
					SubagentStopped: func(context.Context, agent.Subagent) { _ = fail() },
				},
			})
			got.check(t)
			if got.result("Bash") != event.ToolDenied {
				t.Errorf("the call whose input could not be rewritten ended with %q, want denied", got.result("Bash"))
			}
			if done := got.done(t); done.Status != event.DoneSuccess || string(done.Output) != `{"n":2}` {
				t.Errorf("the run ended with %+v, want the second answer", done)
			}
			if read := model.SawText("BROKEN-HOOK"); read != (name == "with an error") {
				t.Errorf("the model read the error: %t", read)
			}
			if want := "Give the answer again."; !model.SawText(want) {
				t.Errorf("the model has not read %q", want)
			}
			reported := map[string]bool{}
			for _, e := range of[event.Error](got) {
				reported[strings.Fields(e.Message)[2]] = e.Recoverable && e.Code == "HOOK_FAILED"
			}
			want := map[string]bool{"Rewrite": true, "Submitted": true, "CallEnded": true, "Answering": true, "Stopping": true}
			if name == "with a panic" {
				want["SubagentStarted"], want["SubagentStopped"] = true, true
			}
			if diff := cmp.Diff(want, reported); diff != "" {
				t.Errorf("the events report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompaction_IsReported(t *testing.T) {
	bothCLIs(t, func(t *testing.T, cli *claudetest.RealCLI) {
		model := claudetest.NewModel(t, script.Text("A summary.").Always())
		h := &hookLog{}
		runner := newRunner(t, cli.Options(model), nil)
		for _, prompt := range []string{"hello", "/compact keep the names"} {
			record(t, runner.Run(inTime(t), agent.Request{Prompt: prompt, Hooks: h.hooks(), MaxRefusals: 1})).check(t)
		}
		if last := h.lines[len(h.lines)-1]; last != "compacting: manual keep the names" {
			t.Errorf("the hooks received %q last", h.lines)
		}
	})
}
