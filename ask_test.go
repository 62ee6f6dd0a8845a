// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/workspace"
)

// The agent works in the current folder, reads there, and changes nothing unless the options allow it.
func TestAsk_ReadsTheCurrentFolder(t *testing.T) {
	cli := claudetest.CLI(t)
	t.Chdir(cli.Work)
	here := func(name string) string { return filepath.Join(cli.Work, name) }
	if err := os.WriteFile(here("sign.txt"), []byte("We sell shoes."), 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func(turns ...script.Turn) (agent.Adapter, *claudetest.Model) {
		model := claudetest.NewModel(t, turns...).RequireAllUsed()
		opts := cli.Options(model)
		opts.Dir = ""
		return claudecode.New(opts), model
	}
	write := script.Call("Write", script.Input{"file_path": here("new.txt"), "content": "x"})

	a, model := ask(write, script.Call("Bash", script.Input{"command": "touch new.txt"}),
		script.Call("Read", script.Input{"file_path": here("sign.txt")}), script.Text("Shoes."))
	answer, err := drover.Ask[string](t.Context(), a, "What is sold here?", nil)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Output != "Shoes." || answer.PromptName != "drover:text" || answer.Usage.InputTokens() == 0 {
		t.Errorf("the answer is %q, the summary %+v", answer.Output, answer.Summary)
	}
	if !model.SawText("What is sold here?") {
		t.Error("the model has not read the question")
	}
	for name, want := range map[string]string{"Write": "Read-only mode", "Bash": "Read-only mode", "Read": "We sell shoes."} {
		if got, _, _ := model.ToolResult(name); !strings.Contains(got, want) {
			t.Errorf("the result of %s is %q, want %q", name, got, want)
		}
	}
	if _, err := os.Stat(here("new.txt")); err == nil {
		t.Error("a question has made a file")
	}

	a, _ = ask(write, script.Structured(script.Input{"summary": "Done.", "issues": []string{}}))
	typed, err := drover.Ask[review](t.Context(), a, "Write a file.", &drover.Options{Settings: agent.Settings{Permissions: &gate.Permissions{FileWrite: gate.LevelAllow}}})
	if err != nil || typed.Output.Summary != "Done." {
		t.Fatalf("%+v, %v", typed, err)
	}
	if _, err := os.Stat(here("new.txt")); err != nil {
		t.Error("permissions did not replace the rule that only reading is allowed")
	}
}

// inDir is an adapter with a folder of its own.
type inDir struct {
	*agenttest.Adapter
	dir string
}

func (a inDir) Dir() string { return a.dir }

func TestAsk_CurrentFolderIsTheDefault(t *testing.T) {
	w, err := workspace.Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	current, _ := os.Getwd()
	dir := t.TempDir()
	for name, x := range map[string]struct {
		opts      *drover.Options
		own, want string // own is the folder of the adapter
	}{
		"nothing is set":           {nil, "", current},
		"options":                  {&drover.Options{Settings: agent.Settings{Dir: dir}}, "", dir},
		"workspace":                {&drover.Options{Settings: agent.Settings{Workspace: w}}, "", w.Root()},
		"adapter":                  {nil, dir, ""}, // the adapter knows its own
		"adapter without a folder": {&drover.Options{}, "", current},
	} {
		got := "no run"
		look := func(r *agenttest.Run) {
			if got = r.Request.Dir; r.Request.Workspace != nil {
				got += r.Request.Workspace.Root() // where both are set, this is neither
			}
		}
		a := inDir{agenttest.New(look, agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: "ok"})), x.own}
		if resp, err := drover.Ask[string](t.Context(), a, "Where?", x.opts); err != nil || resp.Output != "ok" || got != x.want {
			t.Errorf("%s: the agent worked in %q, want %q: %v", name, got, x.want, err)
		}
	}
}

func TestAsk_ErrorIsAnEvaluationError(t *testing.T) {
	_, empty := drover.Ask[string](t.Context(), agenttest.New(), " ", nil)
	_, untyped := drover.Ask[chan int](t.Context(), agenttest.New(), "Why?", nil)
	for name, err := range map[string]error{"the text is empty": empty, "the output type has no schema": untyped} {
		failure, ok := errors.AsType[*drover.EvaluationError](err)
		if !ok || failure.Kind != agent.FailureRequest || !strings.Contains(failure.Error(), name) || failure.Prompt != "ask" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
