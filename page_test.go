// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
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

func TestDocs_EventsNameEveryField(t *testing.T) {
	page := readPage(t, "events.md")
	for _, p := range []event.Payload{drover.SubagentStarted{}, drover.SubagentStopped{}, drover.Compacting{}, drover.CompletionFailed{}} {
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

func TestDocs_EvaluateNamesEveryOption(t *testing.T) {
	page := readPage(t, "evaluate.md")
	for _, of := range []reflect.Type{
		reflect.TypeFor[drover.Options](), reflect.TypeFor[drover.Summary](), reflect.TypeFor[drover.RetryPolicy](),
		reflect.TypeFor[drover.EvaluationError](), reflect.TypeFor[drover.ThrottleError](), reflect.TypeFor[drover.Stats](),
	} {
		for _, field := range reflect.VisibleFields(of) {
			if field.IsExported() && !strings.Contains(page, "`"+field.Name+"`") {
				t.Errorf("the page does not name %s of %s", field.Name, of.Name())
			}
		}
	}
}

// classified is an agent that fails in one way.
type classified struct {
	*agenttest.Adapter
	kind agent.FailureKind
}

func (c classified) Classify(error) agent.Failure { return agent.Failure{Kind: c.kind} }

// failsBy runs an agent that fails while it works.
func failsBy(t *testing.T, kind agent.FailureKind) *drover.EvaluationError {
	t.Helper()
	a := classified{agenttest.New(agenttest.Emit(event.Error{Message: "it is so", Cause: errors.New("it is so")}, event.Done{Status: event.DoneError})), kind}
	_, err := drover.Evaluate(t.Context(), a, findings(t), nil)
	failure, ok := errors.AsType[*drover.EvaluationError](err)
	if !ok {
		t.Fatalf("%s: got %v", kind, err)
	}
	return failure
}

func findings(t *testing.T) *prompt.Prompt[Findings] {
	t.Helper()
	p, err := findingsTemplate.Bind()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The table of the page is what an evaluation does, and no kind is without a next step.
func TestDocs_EvaluateHasEveryKindOfFailure(t *testing.T) {
	page := readPage(t, "evaluate.md")
	for _, kind := range []agent.FailureKind{
		agent.FailureUnavailable, agent.FailureRequest, agent.FailureStart, agent.FailureProcess, agent.FailureProtocol,
		agent.FailureNoResult, agent.FailureExecution, agent.FailureAuthentication, agent.FailureRateLimit,
		agent.FailureOverloaded, agent.FailureQuota, agent.FailureTimeout, agent.FailureServer, agent.FailureTooLarge,
		agent.FailureRefusal, agent.FailureNoOutput, agent.FailureOutputRetries, agent.FailureMaxTurns, agent.FailureMaxBudget,
		agent.FailureInterrupted, agent.FailureIncomplete,
	} {
		_, row, _ := strings.Cut(page, "\n| `"+string(kind)+"` | ")
		row, _, _ = strings.Cut(row, "\n")
		cells := strings.Split(row, " | ")
		if len(cells) != 4 {
			t.Errorf("the table of the page has no row for %s", kind)
			continue
		}
		got := failsBy(t, kind)
		if string(got.Phase) != cells[0] || got.Retry.Worthwhile != (cells[2] == "yes") {
			t.Errorf("%s is of the phase %s, worthwhile %v; the page says %s, %s", kind, got.Phase, got.Retry.Worthwhile, cells[0], cells[2])
		}
		if _, throttled := errors.AsType[*drover.ThrottleError](got); throttled != strings.Contains(row, "a `ThrottleError`") {
			t.Errorf("%s is throttling: %v; the page says otherwise", kind, throttled)
		}
		if got.Next == "" {
			t.Errorf("%s has no next step", kind)
		}
	}
}

func TestSend_SecondTurnAtOnceIsBusy(t *testing.T) {
	conv := drover.Converse(agenttest.New(agenttest.Emit(event.Text{Content: "x"}), agenttest.Block()), findings(t), nil)
	defer conv.Close()
	for range conv.Stream(t.Context(), "").Events() {
		_, busy := conv.Send(t.Context(), "more")
		if !errors.Is(busy, agent.ErrBusy) || !strings.Contains(advice.Text(busy), "next: wait until that is over, interrupt it") {
			t.Errorf("a second one: %v", busy)
		}
		break
	}
}
