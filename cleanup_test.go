// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

func TestCleanup_FailureDoesNotReplaceTheAnswer(t *testing.T) {
	unclosed := errors.New("the folder is busy")
	var log bytes.Buffer
	k := &keeper{Adapter: agenttest.New(answers()), unclosed: unclosed}
	resp, err := drover.Evaluate(t.Context(), k, reviewPrompt(t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil || resp == nil {
		t.Fatalf("the answer is %v, and the error %v; want an answer alone", resp, err)
	}
	if resp.Output.Summary == "" || resp.Status != event.DoneSuccess || !errors.Is(resp.Cleanup, unclosed) {
		t.Errorf("the answer is %+v with status %s, and the cleanup says %v", resp.Output, resp.Status, resp.Cleanup)
	}
	if line := log.String(); !strings.Contains(line, "level=ERROR msg=drover.evaluate.cleanup") || !strings.Contains(line, unclosed.Error()) {
		t.Errorf("the log has\n%s", line)
	}
}

func TestCleanup_FailureBeforeARestartDoesNotReplaceTheAnswer(t *testing.T) {
	unclosed := errors.New("the folder is busy")
	hidden := prompt.Markdown("more", "More", "All of it.").With(tool.Must("extra", "Does more.", func(context.Context, tool.None) (string, error) { return "", nil }))
	hidden.Summary, hidden.Visibility = "There is more.", prompt.Summary
	asks := []agenttest.Step{calls(call("1", "mcp__drover__"+prompt.OpenSections, `{"section_keys":["more"],"reason":"curious"}`)), agenttest.Block()}
	k := &keeper{Adapter: newMoody(asks, []agenttest.Step{answers()}), unclosed: unclosed}
	resp, err := drover.Evaluate(t.Context(), k, reviewPrompt(t, hidden), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, RestartToOpen: true})
	if err != nil {
		t.Fatal(err)
	}
	if resp.Output.Summary == "" || resp.Expansions != 1 || strings.Count(advice.Text(resp.Cleanup), unclosed.Error()) != 2 {
		t.Errorf("the answer is %+v after %d restarts, and the cleanup says %v", resp.Output, resp.Expansions, resp.Cleanup)
	}
}

// Three places end an agent after a failure: the end of the evaluation, a failure that breaks the agent, and
// another attempt.
func TestCleanup_FailureIsInTheErrorToo(t *testing.T) {
	unclosed := errors.New("the folder is busy")
	for name, x := range map[string]struct {
		runs  [][]agenttest.Step
		retry *drover.RetryPolicy
		cause error
	}{
		"at the end":               {[][]agenttest.Step{fails(errBadModel, "")}, nil, errBadModel},
		"of an agent that broke":   {[][]agenttest.Step{{}}, nil, nil},
		"before another attempt":   {[][]agenttest.Step{fails(errBusyModel, ""), fails(errBadModel, "")}, &drover.RetryPolicy{}, errBadModel},
		"that may go away, at end": {[][]agenttest.Step{fails(errBusyModel, "")}, nil, errBusyModel},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keeper{Adapter: newMoody(x.runs...), unclosed: unclosed}
				resp, err := drover.Evaluate(t.Context(), k, newPrompt[prompt.Text](t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Retry: x.retry})
				failure, ok := errors.AsType[*drover.EvaluationError](err)
				if !ok || resp != nil || x.cause != nil && !errors.Is(err, x.cause) || !errors.Is(err, unclosed) {
					t.Fatalf("the response is %v, and the error %v", resp, err)
				}
				if !errors.Is(failure.Summary.Cleanup, unclosed) || !strings.Contains(advice.Text(err), failure.Message+"; the cleanup failed too: the folder is busy") {
					t.Errorf("the cleanup says %v, and the text is %q", failure.Summary.Cleanup, err)
				}
			})
		})
	}
	t.Run("of an attempt before the answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := &keeper{Adapter: newMoody(fails(errBusyModel, ""), succeeds("Fine.")), unclosed: unclosed}
			resp, err := drover.Evaluate(t.Context(), k, newPrompt[prompt.Text](t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Retry: &drover.RetryPolicy{}})
			if err != nil || !errors.Is(resp.Cleanup, unclosed) {
				t.Errorf("the response is %+v, and the error %v", resp, err)
			}
		})
	})
	t.Run("of an agent that could not be prepared", func(t *testing.T) {
		k := &keeper{Adapter: newMoody(succeeds("Fine.")), unready: func() error { return errBadModel }, unclosed: unclosed}
		c := converse(t, k, &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}})
		if err := c.Prepare(t.Context()); !errors.Is(err, errBadModel) || !errors.Is(err, unclosed) {
			t.Errorf("the error is %v", err)
		}
	})
}
