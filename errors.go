// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"fmt"

	"github.com/drover-agents/drover/prompt"
)

// An EvaluationError says why a prompt has no answer.
type EvaluationError struct {
	Prompt string
	Stage  Stage
	Err    error
}

func (e *EvaluationError) Error() string { return fmt.Sprintf("drover: %s: %s: %v", e.Prompt, e.Stage, e.Err) }

func (e *EvaluationError) Unwrap() error { return e.Err }

// failed makes any error one of the evaluation.
func (e *evaluation) failed(err error) error {
	return &EvaluationError{Prompt: e.prompt.Name(), Stage: e.stage, Err: err}
}

// turnError is why a turn did not succeed.
func (e *evaluation) turnError(t *turn) error {
	if t.Failure != nil {
		return t.Failure.Cause
	}
	return fmt.Errorf("the run ended with %s: %s%s", t.Status, t.Result, t.Reason)
}

// tooManyExpansions is the error of a model that opens sections without end.
type tooManyExpansions struct {
	max  int
	last *prompt.ExpansionRequired
}

func (e *tooManyExpansions) Error() string {
	return fmt.Sprintf("the prompt was begun anew %d times to show hidden sections, and the model asks for %v\n  next: raise MaxExpansions, or show them from the start", e.max, e.last.SectionKeys)
}
