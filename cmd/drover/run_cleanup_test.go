// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
)

// A stuckAgent cannot be ended in order.
type stuckAgent struct{ *scriptedAgent }

func (a stuckAgent) Open(_ context.Context, req agent.Request) (agent.Conversation, error) {
	return stuckTalk{a, req}, nil
}

type stuckTalk struct {
	a   stuckAgent
	req agent.Request
}

func (t stuckTalk) Send(ctx context.Context, text string) iter.Seq2[event.Event, error] {
	t.req.Prompt = text
	return t.a.Run(ctx, t.req)
}

func (stuckTalk) Close() error { return errors.New("claude: the folder is busy\n  next: remove it") }

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
		t.Run(name, func(t *testing.T) {
			a := stuckAgent{&scriptedAgent{events: x.events}}
			var stdout, stderr strings.Builder
			o := runOptions{quiet: true, agent: "scripted", state: t.TempDir(), file: fileFlags{path: writeAgent(t, aTask)}}
			o.agents = func(*claude.Options, *isolation.Isolation) (*agent.Registry, error) { return agent.NewRegistry(a) }
			err := runAgent(t.Context(), o, streams{nil, &stdout, &stderr})
			if code := exitCode(t.Context(), err, &stderr); code != x.code || stdout.String() != x.stdout {
				t.Errorf("exit code %d, stdout %q; want %d, %q", code, stdout.String(), x.code, x.stdout)
			}
			for _, want := range x.stderr {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("stderr lacks %q:\n%s", want, stderr.String())
				}
			}
		})
	}
}
