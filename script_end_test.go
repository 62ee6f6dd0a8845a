// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// The script that answers in place of a model has ended: no account is short of money.
func TestEvaluationError_OfAScriptThatHasEnded(t *testing.T) {
	cli := claudetest.CLI(t)
	server, err := script.Start(script.New(script.Fail(402, "pay first")))
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	opts := cli.Options(&claudetest.Model{Server: server})
	c := drover.Converse(claudecode.New(opts), reviewPrompt(t), nil)
	defer c.Close()
	for _, want := range []struct {
		kind agent.FailureKind
		says string
		next string
	}{
		{agent.FailureQuota, "402 pay first", "check the account that pays for the model"},
		{agent.FailureRequest, "the model script has no answer: no turn for request 2: ", "add turns to the script, or give it a default"},
	} {
		_, err = c.Send(t.Context(), "Do it.")
		failed, ok := errors.AsType[*drover.EvaluationError](err)
		if !ok {
			t.Fatal(err)
		}
		if failed.Kind != want.kind || failed.Next != want.next || !strings.Contains(failed.Message, want.says) || strings.Contains(failed.Message, "Next: ") {
			t.Errorf("got %v of kind %s, want %s and %q", err, failed.Kind, want.kind, want.next)
		}
	}
}
