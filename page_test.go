// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
)

// readPage is a page of the documentation.
func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThePageOfEventsNamesEveryFieldOfOurs(t *testing.T) {
	page := readPage(t, "events.md")
	for _, p := range []event.Payload{drover.SubagentStarted{}, drover.SubagentStopped{}, drover.Compacting{}} {
		_, text, _ := strings.Cut(page, "\n### `"+string(p.EventKind())+"`\n")
		text, _, _ = strings.Cut(text, "\n##")
		for field := range reflect.TypeOf(p).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(text, "| `"+name+"` |") {
				t.Errorf("the page does not name %s of %s", name, p.EventKind())
			}
		}
	}
}

func TestThePageOfEvaluateNamesEveryOption(t *testing.T) {
	page := readPage(t, "evaluate.md")
	for _, of := range []reflect.Type{
		reflect.TypeFor[drover.Options](), reflect.TypeFor[drover.Summary](), reflect.TypeFor[drover.RetryPolicy](),
		reflect.TypeFor[drover.EvaluationError](), reflect.TypeFor[drover.ThrottleError](), reflect.TypeFor[drover.Stats](),
	} {
		for field := range of.Fields() {
			if !strings.Contains(page, "`"+field.Name+"`") {
				t.Errorf("the page does not name %s of %s", field.Name, of.Name())
			}
		}
	}
}

func TestThePageOfEvaluateNamesEveryKindOfFailure(t *testing.T) {
	page := readPage(t, "evaluate.md")
	for _, kind := range []agent.FailureKind{
		agent.FailureUnavailable, agent.FailureRequest, agent.FailureStart, agent.FailureProcess, agent.FailureProtocol,
		agent.FailureNoResult, agent.FailureExecution, agent.FailureAuthentication, agent.FailureRateLimit,
		agent.FailureOverloaded, agent.FailureQuota, agent.FailureTimeout, agent.FailureServer, agent.FailureTooLarge,
		agent.FailureRefusal, agent.FailureNoOutput, agent.FailureOutputRetries, agent.FailureMaxTurns, agent.FailureMaxBudget,
		agent.FailureInterrupted,
	} {
		if !strings.Contains(page, "| `"+string(kind)+"` |") {
			t.Errorf("the table of the page has no row for %s", kind)
		}
	}
}
