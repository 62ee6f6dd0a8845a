// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/schema"
)

// maxRepairs is how often a model is told that its answer cannot be used. One that has not understood then
// will not: the agent itself has told it several times before.
const maxRepairs = 1

// judge says whether a turn was the last. If not, next is what the user says now.
func (e *evaluation) judge(ctx context.Context, t *turn) (o *outcome, next string, err error) {
	value, err := e.answer(ctx, t)
	if err == nil {
		return &outcome{Summary: e.summary, value: value}, "", nil
	}
	if next := e.repair(ctx, err); next != "" {
		e.summary.Repairs++
		e.opts.Logger.InfoContext(ctx, "drover: the answer cannot be used; the model is told so", "prompt", e.prompt.Name(), "run", e.run.RunID)
		return nil, next, nil
	}
	return nil, "", err
}

// answer is the answer of a turn, as the prompt's type has it.
func (e *evaluation) answer(ctx context.Context, t *turn) (any, error) {
	if t.Status != event.DoneSuccess {
		return nil, &turnError{turn: t, cause: e.turnCause(ctx, t)}
	}
	e.reach(ctx, StageParse)
	raw := e.rawAnswer(t)
	if len(raw) == 0 {
		return nil, &turnError{turn: t, cause: errNoOutput}
	}
	value, err := e.parse(raw)
	if err != nil {
		return nil, &turnError{turn: t, cause: err}
	}
	return value, nil
}

// errNoOutput is why a turn that succeeded has no answer.
var errNoOutput = errors.New("the agent has succeeded without a structured answer\n  next: say in the prompt that the answer must be given as structured output")

// rawAnswer is the answer as JSON. That of a prompt for plain text is its text.
func (e *evaluation) rawAnswer(t *turn) json.RawMessage {
	if e.live.Rendered().Output == nil {
		text, _ := json.Marshal(t.Result) // a string
		return text
	}
	e.summary.Structured = e.unwrapped(t.Output)
	return t.Output
}

// unwrapped is an answer as the prompt's type has it: agents can give only objects, so that others come inside
// of one.
func (e *evaluation) unwrapped(output json.RawMessage) json.RawMessage {
	wanted := e.live.Rendered().Output
	if wanted == nil || output == nil {
		return output
	}
	if _, wrapped, _ := schema.ForCLI(wanted); !wrapped {
		return output
	}
	return schema.Unwrap(output)
}

// repair is what to say to a model whose answer cannot be used, or nothing if saying so would not help.
func (e *evaluation) repair(ctx context.Context, err error) string {
	wrong := e.repairable(err)
	if wrong == "" || e.summary.Repairs >= maxRepairs || ctx.Err() != nil || e.deadline.Check() != nil || e.tracker.Check() != nil {
		return ""
	}
	return fmt.Sprintf("Your last answer cannot be used: %s\n\nGive the whole answer again, as structured output that fits the schema.", wrong)
}

// repairable is what is wrong with an answer that the model could have given better, in words for the model.
func (e *evaluation) repairable(err error) string {
	if bad, ok := errors.AsType[*prompt.OutputError](err); ok {
		what, _ := splitAdvice(bad.Err)
		return what
	}
	if errors.Is(err, errNoOutput) || e.classify(err).Kind == agent.FailureNoOutput {
		return "you replied with text; give the structured answer instead."
	}
	return ""
}
