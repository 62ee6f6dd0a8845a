// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
)

// A stuckAgent cannot be ended in order.
type stuckAgent struct{ *scriptedAgent }

func (a stuckAgent) Open(_ context.Context, req agent.Request) (agent.Conversation, error) {
	return stuckConversation{a, req}, nil
}

type stuckConversation struct {
	a   stuckAgent
	req agent.Request
}

func (t stuckConversation) Send(ctx context.Context, text string) iter.Seq2[event.Event, error] {
	t.req.Prompt = text
	return t.a.Run(ctx, t.req)
}

var errBusyFolder = advice.Wrap(errors.New("claude: the folder is busy"), "remove it")

func (stuckConversation) Close() error { return errBusyFolder }

// A messyAgent cannot remove what a run has left.
type messyAgent struct{ *scriptedAgent }

func (messyAgent) Close() error { return errBusyFolder }

func TestCleanup_FailureEndsWithOneAfterTheAnswer(t *testing.T) {
	broken := event.Done{Status: event.DoneError, Result: "no answer"}
	for name, x := range map[string]struct {
		events []event.Payload
		code   int
		stdout string
		stderr []string
	}{
		"success": {[]event.Payload{success}, exitError, "Fine.\n", []string{"drover: the cleanup after the run failed: the folder is busy\n  next: remove it\n"}},
		"denied calls": {
			[]event.Payload{called("1", "Bash"), denied("1", "Bash", "capabilities"), success},
			exitError, "Fine.\n",
			[]string{"the cleanup after the run failed: the folder is busy", "1 tool call was denied"},
		},
		"failure": {[]event.Payload{event.Init{}, broken}, exitError, "", []string{"no answer", "the folder is busy"}},
		"a limit": {[]event.Payload{event.Init{}, event.Done{Status: event.DoneMaxTurns}}, exitLimit, "", []string{"the limit of model calls was reached", "the folder is busy"}},
	} {
		check := func(t *testing.T, a agent.Adapter, o runOptions) {
			t.Helper()
			o.quiet, o.agent, o.state = true, "scripted", t.TempDir()
			o.agents = func(*claude.Options, *isolation.Isolation) (*agent.Registry, error) { return agent.NewRegistry(a) }
			var stdout, stderr strings.Builder
			err := runAgent(t.Context(), o, streams{out: &stdout, errs: &stderr})
			if code := exitCode(t.Context(), err, &stderr); code != x.code || stdout.String() != x.stdout {
				t.Errorf("exit code %d, stdout %q; want %d, %q", code, stdout.String(), x.code, x.stdout)
			}
			for _, want := range x.stderr {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("stderr lacks %q:\n%s", want, stderr.String())
				}
			}
		}
		scripted := &scriptedAgent{events: x.events}
		t.Run(name+" of a file", func(t *testing.T) {
			check(t, stuckAgent{scripted}, runOptions{file: fileFlags{path: writeAgent(t, aTask)}})
		})
		t.Run(name+" of a prompt", func(t *testing.T) {
			check(t, messyAgent{scripted}, runOptions{prompt: "Do it."})
		})
	}
}
