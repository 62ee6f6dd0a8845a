// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

const unknownSession = "0b7c1d1e-5f8e-4c33-9a55-0d7a3c1f0001"

// A session that does not exist, or exists already, is an error of Connect that says so. It must
// come at once and not when the handshake runs out of time.
func TestConnect_MissingOrExistingSessionFailsAtOnce(t *testing.T) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(version, func(t *testing.T) {
			cli := get(t)
			model := claudetest.NewModel(t, script.Text("Hello."))
			opts := cli.Options(model)
			opts.Resume = unknownSession
			began := time.Now()
			_, _, err := collect(claude.Query(t.Context(), "hi", opts))
			if err == nil || !strings.Contains(advice.Text(err), unknownSession) {
				t.Errorf("resuming an unknown session: %v, want an error with its id", err)
			}
			if failed, ok := errors.AsType[*claude.ResultError](err); !ok || failed.Subtype != claude.ResultErrorDuringExecution {
				t.Errorf("resuming an unknown session: %T, want a ResultError", err)
			}

			opts = cli.Options(model)
			opts.SessionID = unknownSession
			if _, _, err := collect(claude.Query(t.Context(), "hi", opts)); err != nil {
				t.Fatal(err)
			}
			_, _, err = collect(claude.Query(t.Context(), "hi", opts))
			ended, ok := errors.AsType[*claude.ProcessError](err)
			if !ok || ended.Status.Code != 1 || !strings.Contains(advice.Text(err), "already in use") {
				t.Errorf("a session id twice: %v, want a ProcessError with the output of the CLI", err)
			}
			if took := time.Since(began); took > 50*time.Second {
				t.Errorf("three starts took %s: an error waited for the handshake to run out of time", took)
			}
		})
	}
}

// Limits end a turn with an error that names the limit, and the conversation goes on.
func TestTurn_LimitsEndItWithANamedError(t *testing.T) {
	cli := claudetest.CLI(t)
	t.Run("turns", func(t *testing.T) {
		model := claudetest.NewModel(t, bash("echo 1"), bash("echo 2"), script.Text("Next."))
		opts := cli.Options(model)
		opts.Tools, opts.MaxTurns = []string{"Bash"}, 2
		c := claudetest.Connect(t, opts)
		_, _, err := collect(c.Turn(t.Context(), claude.Text("go")))
		if !errors.Is(err, claude.ErrMaxTurns) || !strings.Contains(advice.Text(err), "Options.MaxTurns") {
			t.Errorf("turn ended with %v, want ErrMaxTurns and advice", err)
		}
		if end, _ := turn(t, c, "again"); end.Answer.Result != "Next." {
			t.Errorf("after the limit: %q", end.Answer.Result)
		}
	})
	t.Run("budget", func(t *testing.T) {
		model := claudetest.NewModel(t, bash("echo 1").Metered(script.Usage{Input: 1_000_000, Output: 100_000}))
		opts := cli.Options(model)
		budget := 0.01
		opts.Tools, opts.MaxBudgetUSD = []string{"Bash"}, &budget
		end, _, err := collect(claude.Query(t.Context(), "go", opts))
		if !errors.Is(err, claude.ErrMaxBudget) || !strings.Contains(advice.Text(err), "Options.MaxBudgetUSD") {
			t.Errorf("turn ended with %v, want ErrMaxBudget and advice", err)
		}
		if end == nil || end.Answer == nil || end.Answer.TotalCostUSD <= budget {
			t.Errorf("the result does not report the cost: %+v", end)
		}
	})
}

// An overloaded API is an error that may be retried. The CLI's own retries are visible, with the
// time that the API asked for.
func TestResultError_OverloadedKeepsTheRetryAdvice(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Fail(529, "come back later").RetryAfter(time.Second).Always())
	end, messages, err := collect(claude.Query(t.Context(), "hi", cli.Options(model)))
	failed, ok := errors.AsType[*claude.ResultError](err)
	if !ok || !errors.Is(err, claude.ErrOverloaded) || !failed.Retryable() || failed.APIErrorStatus != 529 {
		t.Fatalf("error %v, want a retryable ResultError with status 529", err)
	}
	if failed.Advice() == "" || !strings.Contains(advice.Text(err), failed.Advice()) {
		t.Errorf("error %q does not advise", err)
	}
	if end.Answer.Subtype() != claude.ResultSuccess || !end.Answer.Failed() {
		t.Errorf("the result is %s, failed %t: the trap of this test is gone", end.Answer.Subtype(), end.Answer.Failed())
	}
	retries := of[*claude.APIRetry](messages)
	if len(retries) == 0 || retries[0].ErrorStatus != 529 || retries[0].Error != "overloaded" || retries[0].RetryDelay < time.Second {
		t.Errorf("retries %+v, want the status and at least the second that the API asked for", retries)
	}
}

const numberSchema = `{"type":"object","properties":{"n":{"type":"integer","minimum":0}},"required":["n"]}`

// Structured output that never fits is an error, and so is output that was never given, which the
// CLI calls a success. An invalid schema fails before the CLI is started.
func TestStructuredOutput_InvalidOrMissingOutputFails(t *testing.T) {
	cli := claudetest.CLI(t)
	t.Run("never fits", func(t *testing.T) {
		model := claudetest.NewModel(t, script.Structured(map[string]any{"n": -1}).Always())
		opts := cli.Options(model)
		opts.OutputSchema = json.RawMessage(numberSchema)
		_, _, err := collect(claude.Query(t.Context(), "a number", opts))
		if !errors.Is(err, claude.ErrStructuredOutput) || !strings.Contains(advice.Text(err), "/n") {
			t.Errorf("error %v, want ErrStructuredOutput with the fault", err)
		}
	})
	t.Run("never given", func(t *testing.T) {
		model := claudetest.NewModel(t, script.Text("No.").Always())
		opts := cli.Options(model)
		opts.OutputSchema = json.RawMessage(numberSchema)
		end, _, err := collect(claude.Query(t.Context(), "a number", opts))
		if !errors.Is(err, claude.ErrStructuredOutput) || !strings.Contains(advice.Text(err), "No.") {
			t.Errorf("error %v, want ErrStructuredOutput with the text of the model", err)
		}
		if end == nil || end.Answer == nil || end.Answer.Failed() {
			t.Errorf("turn end %+v, want the CLI's own success in it", end)
		}
	})
	t.Run("no schema", func(t *testing.T) {
		for _, bad := range []string{`{"type":"objekt"}`, `{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`, `{"type":`, `[]`} {
			opts := &claude.Options{OutputSchema: json.RawMessage(bad), Spawner: refusingSpawner{t}}
			_, err := claude.Connect(t.Context(), opts)
			if o, ok := errors.AsType[*claude.OptionError](err); !ok || o.Option != "OutputSchema" {
				t.Errorf("schema %s: %v, want an OptionError for OutputSchema", bad, err)
			}
		}
	})
}
