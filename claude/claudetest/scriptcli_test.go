// SPDX-License-Identifier: Apache-2.0

package claudetest_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

func TestScriptCLI_ReportsAProcessThatIsNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := &fakeTest{TB: t}
		cli := claudetest.ScriptCLI(ft, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.UntilEOF()
		})
		c, err := claude.Connect(t.Context(), cli.Options())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ft.end()
		ft.wantOnly(t, "scripted CLI 0 is still running at the end of the test: close the client")
	})
}

func TestScriptCLI_PlaysATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ft := &fakeTest{TB: t}
		cli := claudetest.ScriptCLI(ft, func(s *claudetest.ScriptSession) {
			s.Initialize("")
			s.Turn("Scripted.")
			s.UntilEOF()
		})
		if got, err := ask(t, cli.Options()); got != "Scripted." || err != nil {
			t.Errorf("got %q (%v), want the script's words", got, err)
		}
		ft.end()
		if len(ft.errors) > 0 {
			t.Errorf("a closed client failed the test with %q", ft.errors)
		}
		if cmds := cli.Commands(); len(cmds) != 1 || !slices.Contains(cmds[0].Args, "--input-format=stream-json") {
			t.Errorf("commands %v, want the one that was started with its arguments", cmds)
		}
	})
}

// A script receives the host's lines unchanged.
func TestScriptCLI_ReceivesThePrompt(t *testing.T) {
	var received claudetest.Frame
	cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
		s.Initialize("")
		received = s.Turn("Heard.")
		s.UntilEOF()
	})
	if _, err := ask(t, cli.Options()); err != nil {
		t.Fatal(err)
	}
	want := `{"type":"user","message":{"role":"user","content":"go"},"parent_tool_use_id":null,"session_id":"","uuid":"` + received.UUID + `"}`
	if received.UUID == "" || received.Raw != want {
		t.Errorf("the CLI received\n%s\nwant\n%s", received.Raw, want)
	}
}

// ask puts one prompt and returns the text of the result.
func ask(t *testing.T, opts *claude.Options) (answer string, err error) {
	t.Helper()
	for m, err := range claude.Query(t.Context(), "go", opts) {
		if err != nil {
			return answer, err
		}
		if r, ok := m.(*claude.ResultMessage); ok {
			answer = r.Result
		}
	}
	return answer, nil
}

// processScripts are what this test binary plays when it is started as a CLI.
var processScripts = map[string]claudetest.CLIScript{
	"one turn": func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Turn("From a process.")
		s.UntilEOF()
	},
	"dies": func(s *claudetest.ScriptSession) {
		s.Initialize("")
		s.Await("user")
		s.Stderr("out of luck")
		s.Exit(7)
	},
	"deaf": func(s *claudetest.ScriptSession) {
		s.IgnoreSignals()
		s.Initialize("")
		s.Hang()
	},
}

// runAsProcess are options that start this test binary with one of processScripts.
func runAsProcess(t *testing.T, name string) *claude.Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &claude.Options{CLIPath: self, Env: claude.ExactEnv(map[string]string{scriptVariable: name})}
}

func TestRunScript_IsARealProcess(t *testing.T) {
	if got, err := ask(t, runAsProcess(t, "one turn")); got != "From a process." || err != nil {
		t.Errorf("got %q (%v), want the script's words", got, err)
	}
	_, err := ask(t, runAsProcess(t, "dies"))
	var ended *claude.ProcessError
	if !errors.As(err, &ended) || ended.Status.Code != 7 || !strings.Contains(advice.Text(err), "out of luck") {
		t.Errorf("a CLI that exits with 7 gave %v, want a ProcessError with the code and its last words", err)
	}
}

func TestRunScript_CanIgnoreSignals(t *testing.T) {
	c, err := claude.Connect(t.Context(), runAsProcess(t, "deaf"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil { // waits for its limits, then kills
		t.Errorf("closing a CLI that heeds nothing: %v", err)
	}
}
