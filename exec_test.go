// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
)

// An executor is an adapter that reports which command it was asked to run, and where.
type executor struct{ agent.Adapter }

func (executor) Exec(_ context.Context, req agent.Request, argv []string) (guard.Executed, error) {
	return guard.Executed{Output: []byte(req.Dir + ": " + strings.Join(argv, " "))}, nil
}

func TestCompletionCommand_Executor(t *testing.T) {
	own := func(context.Context, []string) (guard.Executed, error) {
		return guard.Executed{Output: []byte("the caller's own")}, nil
	}
	cases := []struct {
		name    string
		adapter agent.Adapter
		exec    guard.Exec
		want    string
	}{
		{"the caller's function", executor{}, own, "the caller's own"},
		{"the adapter, where the agent works", executor{}, nil, "/work: make check"},
		{"no executor", struct{ agent.Adapter }{}, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p, err := prompt.NewPrompt[string]("demo", "p", prompt.Markdown("task", "Task", "Do it."))
			if err != nil {
				t.Fatal(err)
			}
			run := (&host{evaluation: newEvaluation(c.adapter, p, parser(p), &Options{Exec: c.exec, Settings: agent.Settings{Dir: "/work"}})}).exec()
			if run == nil {
				if c.want != "" {
					t.Error("no executor runs it")
				}
				return
			}
			if got, err := run(t.Context(), []string{"make", "check"}); err != nil || string(got.Output) != c.want {
				t.Errorf("got %q, %v, want %q", got.Output, err, c.want)
			}
		})
	}
}
