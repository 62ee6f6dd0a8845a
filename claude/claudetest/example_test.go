// SPDX-License-Identifier: Apache-2.0

package claudetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// inTest is what the examples call with the test that they show. As examples they are compiled
// only; TestExamples_RunAsTests runs them.
var inTest = func(func(t *testing.T)) {}

func TestExamples_RunAsTests(t *testing.T) {
	defer func(was func(func(*testing.T))) { inTest = was }(inTest)
	for name, example := range map[string]func(){
		"CLI": ExampleCLI, "NewModel": ExampleNewModel, "ScriptCLI": ExampleScriptCLI, "Model_ToolResult": ExampleModel_toolResult,
	} {
		t.Run(name, func(t *testing.T) {
			ran := false
			inTest = func(test func(*testing.T)) { ran = true; test(t) }
			if example(); !ran {
				t.Error("the example showed no test")
			}
		})
	}
}

// agentVersion is the agent under test: it asks which version the project has.
func agentVersion(ctx context.Context, opts *claude.Options) (string, error) {
	answer := ""
	for m, err := range claude.Query(ctx, "Which version is this?", opts) {
		if err != nil {
			return "", fmt.Errorf("asking for the version: %w", err)
		}
		if r, ok := m.(*claude.ResultMessage); ok {
			answer = r.Result
		}
	}
	return answer, nil
}

// The real CLI runs the tool; the model is a script.
func ExampleCLI() {
	inTest(func(t *testing.T) {
		cli := claudetest.CLI(t)
		path := cli.WriteFile(t, "VERSION", "7\n")
		model := claudetest.NewModel(t,
			script.Call("Read", script.Input{"file_path": path}),
			script.Text("This is version 7."),
		)

		got, err := agentVersion(t.Context(), cli.Options(model))
		if err != nil || got != "This is version 7." {
			t.Errorf("the agent says %q (%v)", got, err)
		}
	})
}

// The script can look at the request before it answers, and must be used up.
func ExampleNewModel() {
	inTest(func(t *testing.T) {
		cli := claudetest.CLI(t)
		model := claudetest.NewModel(t,
			script.Text("I have no Bash.").WhenFunc(func(r *script.Request) bool {
				_, ok := r.Tool("Bash")
				return !ok
			}),
		).RequireAllUsed()
		opts := cli.Options(model)
		opts.Tools = []string{"Read"}

		if got, err := agentVersion(t.Context(), opts); err != nil || got != "I have no Bash." {
			t.Errorf("the agent says %q (%v)", got, err)
		}
	})
}

// What the model saw of a tool's result says whether the tool really ran.
func ExampleModel_toolResult() {
	inTest(func(t *testing.T) {
		cli := claudetest.CLI(t)
		model := claudetest.NewModel(t,
			script.Call("Bash", script.Input{"command": "rm -rf /"}),
			script.Text("I may not."),
		)
		opts := cli.Options(model)
		opts.Hooks = []claude.Hook{
			claude.On("Bash", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
				return claude.DenyTool("No shell is available. Continue without this call."), nil
			}),
		}

		if _, err := agentVersion(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
		if got, isError, _ := model.ToolResult("Bash"); !isError || !strings.Contains(got, "No shell is available. Continue without this call.") {
			t.Errorf("the model saw %q of Bash, want the refusal", got)
		}
	})
}

// The real CLI does not die on demand; a scripted one does, and needs no time to do it.
func ExampleScriptCLI() {
	inTest(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Initialize("")
				s.Await("user")
				s.Stderr("out of memory")
				s.Exit(137)
			})

			_, err := agentVersion(t.Context(), cli.Options())
			var ended *claude.ProcessError
			if !errors.As(err, &ended) || ended.Status.Code != 137 {
				t.Errorf("error %v, want a ProcessError with the exit code", err)
			}
		})
	})
}
