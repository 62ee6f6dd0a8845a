// SPDX-License-Identifier: Apache-2.0

package drovertest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/drovertest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) != "" {
		if err := runAgent(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// needCell skips a test where the agent cannot have a cell.
func needCell(t *testing.T) {
	t.Helper()
	if err := cells(); err != nil {
		t.Skip(err)
	}
}

// cells says why there are no cells on this machine.
var cells = sync.OnceValue(func() error {
	dir, err := os.MkdirTemp("", "drovertest-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var i isolation.Isolation
	cell, err := i.Open(context.Background(), isolation.Program{Dir: dir}, isolation.OpenOptions{})
	if err == nil {
		return cell.Close()
	}
	if weak, ok := errors.AsType[*isolation.WeakError](err); ok {
		return weak
	}
	return nil
})

// newOracle is the invented agent with a model that does the steps in order.
func newOracle(t *testing.T, steps ...drovertest.Step) (*oracleAdapter, *oracleModel) {
	t.Helper()
	return oracleWith(t, inOrder(steps))
}

func oracleWith(t *testing.T, next func(n int, question string) (drovertest.Step, bool)) (*oracleAdapter, *oracleModel) {
	t.Helper()
	needCell(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(t, next)
	return &oracleAdapter{program: program, isolation: isolation.Isolation{Upstream: m.upstream}, conversations: map[string]string{}}, m
}

func inscribe(path, text string) drovertest.Call {
	return drovertest.Call{Tool: "inscribe", Input: map[string]any{"at": path, "text": text}}
}

func peruse(path string) drovertest.Call {
	return drovertest.Call{Tool: "peruse", Input: map[string]any{"at": path}}
}

func shell(line string) drovertest.Call {
	return drovertest.Call{Tool: "perform", Input: map[string]any{"line": line}}
}

func calling(calls ...drovertest.Call) drovertest.Step { return drovertest.Step{Calls: calls} }
func writing(text string) drovertest.Step              { return drovertest.Step{Text: text} }

// An agent of which the core knows nothing, with a catalogue, a wire and tools of its own, has all capabilities.
func TestOracle_PassesTheSuiteOfEvaluations(t *testing.T) {
	needCell(t)
	drovertest.TestAdapter(t, drovertest.Subject{
		New: func(t *testing.T, steps ...drovertest.Step) (agent.Adapter, drovertest.Model) {
			return newOracle(t, steps...)
		},
		Tool:         func(name string) string { return "mcp__drover__" + name },
		Native:       drovertest.Native{Write: inscribe, Shell: shell},
		Capabilities: drovertest.All(),
	})
}

func TestOracle_PassesTheSuiteOfAdapters(t *testing.T) {
	needCell(t)
	agenttest.TestAdapter(t, agenttest.Subject{
		New: func(t *testing.T) agent.Adapter {
			a, _ := oracleWith(t, func(_ int, question string) (drovertest.Step, bool) {
				if strings.Contains(question, "brought: ") || strings.Contains(question, "was not permitted") {
					return writing("It says hello."), true
				}
				return calling(shell("echo hello")), true
			})
			return a
		},
		Missing: func(*testing.T) agent.Adapter { return &oracleAdapter{program: "/nowhere/oracle"} },
		Request: agent.Request{Prompt: "Say hello.", Settings: agent.Settings{Dir: t.TempDir()}},
		Calls: func(t *testing.T, calls []event.ToolCall) agent.Adapter {
			var step drovertest.Step
			for _, c := range calls {
				step.Calls = append(step.Calls, drovertest.Call{Tool: c.Name, Input: c.Input})
			}
			a, _ := newOracle(t, step, writing("Done."))
			return a
		},
		Changes: func(file string) []event.ToolCall {
			var all []event.ToolCall
			for _, c := range []drovertest.Call{
				inscribe(file, "x"), shell("touch " + file), {Tool: "amend", Input: map[string]any{"changes": []any{map[string]any{"at": file, "text": "x"}}}},
			} {
				input, err := json.Marshal(c.Input)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, event.ToolCall{Name: c.Tool, Input: input})
			}
			return all
		},
	})
}

func aTask(t *testing.T) *prompt.Prompt[prompt.Text] {
	t.Helper()
	p, err := prompt.NewPrompt[prompt.Text]("oracle", "task", prompt.Markdown("task", "Task", "Do it."))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// place is a workspace with a file.
func place(t *testing.T) (w *workspace.Workspace, file string) {
	t.Helper()
	w, err := workspace.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	file = filepath.Join(w.Root(), "kept.txt")
	if err := os.WriteFile(file, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	return w, file
}

func wantContent(t *testing.T, file, want string) {
	t.Helper()
	if got, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(got)) != want {
		t.Errorf("%s is %q (%v), want %q", filepath.Base(file), got, err, want)
	}
}

func TestOracle_PermissionsThatDenyHold(t *testing.T) {
	w, file := place(t)
	a, m := newOracle(t, calling(inscribe(file, "after"), shell("echo after > "+file), peruse(file)), writing("Done."))
	own := session.New(nil)
	_, err := drover.Evaluate(t.Context(), a, aTask(t), &drover.Options{
		Session: own, Settings: agent.Settings{Workspace: w, Permissions: &gate.Permissions{FileWrite: gate.LevelDeny, ShellExecute: gate.LevelDeny}},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantContent(t, file, "before")
	var got []event.ToolStatus
	for c := range session.Query[session.ToolInvoked](own).All() {
		got = append(got, c.Status)
	}
	if want := []event.ToolStatus{event.ToolDenied, event.ToolDenied, event.ToolSuccess}; !slices.Equal(got, want) {
		t.Errorf("the calls ended with %q, want %q", got, want)
	}
	if !m.Read("was not permitted: ") || !m.Read("gave: before") {
		t.Error("the model has not read what became of its calls")
	}
}

// A call that fails is taken back, and those before and after it are not.
func TestOracle_FailedCallIsRolledBack(t *testing.T) {
	w, file := place(t)
	other := filepath.Join(w.Root(), "other.txt")
	a, m := newOracle(t, calling(
		inscribe(other, "first"),
		shell("echo spoilt | tee kept.txt other.txt new.txt; exit 3"),
		drovertest.Call{Tool: "amend", Input: map[string]any{"changes": []any{ // the second change fails
			map[string]any{"at": file, "text": "half"}, map[string]any{"at": filepath.Join(w.Root(), "no", "folder"), "text": "x"},
		}}},
		inscribe(filepath.Join(w.Root(), "last.txt"), "last"),
	), writing("Done."))
	run := drover.Stream(t.Context(), a, aTask(t), &drover.Options{Settings: agent.Settings{Workspace: w}})
	restored := 0
	for e := range run.Events() {
		if _, ok := e.Payload.(workspace.Restored); ok {
			restored++
		}
	}
	if _, err := run.Response(); err != nil {
		t.Fatal(err)
	}
	wantContent(t, file, "before")
	wantContent(t, other, "first")
	wantContent(t, filepath.Join(w.Root(), "last.txt"), "last")
	if _, err := os.Lstat(filepath.Join(w.Root(), "new.txt")); err == nil {
		t.Error("a file of the call that failed is left")
	}
	if restored != 2 || !m.Read("exit status 3") {
		t.Errorf("%d rollbacks were reported, want 2; the model has read of the failure: %t", restored, m.Read("exit status 3"))
	}
}

// The gateway of the cell counts, and ends the run.
func TestOracle_BudgetOfTheGatewayEndsTheRun(t *testing.T) {
	costly := calling(shell("true"))
	costly.Tokens = 4000
	a, m := newOracle(t, costly, costly, costly, costly)
	tracker := guard.NewTracker(guard.Budget{MaxTotalTokens: 5000})
	r, err := agent.NewRunner(a, nil)
	if err != nil {
		t.Fatal(err)
	}
	var done event.Done
	for e, err := range r.Run(t.Context(), agent.Request{Prompt: "Go on.", Settings: agent.Settings{Dir: t.TempDir()}, Trackers: []*guard.Tracker{tracker}}) {
		if err != nil {
			t.Fatal(err)
		}
		done, _ = e.Payload.(event.Done)
	}
	if done.Status != event.DoneMaxBudget || !errors.Is(done.Cause, guard.ErrBudgetExhausted) {
		t.Errorf("the run ended with %q, because of %v", done.Status, done.Cause)
	}
	// The second answer is cut as soon as its input is counted. What of its output has passed by then is estimated.
	if got := tracker.Consumed().TotalTokens(); m.Calls() != 2 || got < 8001 || got > 8100 {
		t.Errorf("%d calls of the model, %d tokens; want 2, and the input of both with little more", m.Calls(), got)
	}
}

func TestOracle_CellHidesTheHost(t *testing.T) {
	outside := t.TempDir()
	secret, target := filepath.Join(outside, "secret.txt"), filepath.Join(outside, "made.txt")
	if err := os.WriteFile(secret, []byte("the-words-of-the-host"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ORACLE_TEST_PASSWORD", "the-variable-of-the-host")
	a, m := newOracle(t, calling(
		peruse(secret), inscribe(target, "x"), shell("cat "+secret+"; echo x > "+target+"; env; echo looked $((40 + 2))"),
	), writing("Done."))
	if _, err := drover.Evaluate(t.Context(), a, aTask(t), nil); err != nil {
		t.Fatal(err)
	}
	if !m.Read("looked 42") || !m.Read("no such file or directory") {
		t.Error("the calls were not made")
	}
	for _, hidden := range []string{"the-words-of-the-host", "the-variable-of-the-host", "the real key"} {
		if m.Read(hidden) {
			t.Errorf("the agent has read %q", hidden)
		}
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the agent has written a file of the host")
	}
}
