// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"

	"github.com/drover-agents/drover/event"
)

// A Plan is what the agent means to do.
type Plan struct {
	Steps []PlanStep `json:"steps"`
}

// A PlanStep is one step of a [Plan].
type PlanStep struct {
	// ID identifies a step that the agent has named. It is empty in a plan that is written as a whole.
	ID          string `json:"id,omitzero"`
	Description string `json:"content"`
	// Status is "pending", "in_progress" or "completed".
	Status string `json:"status"`
	// ActiveForm describes the work while the step is in progress.
	ActiveForm string `json:"activeForm,omitzero"`
}

// Current is the first step that is being worked on, and whether there is one.
func (p Plan) Current() (PlanStep, bool) {
	i := slices.IndexFunc(p.Steps, func(s PlanStep) bool { return s.Status == stepInProgress })
	if i < 0 {
		return PlanStep{}, false
	}
	return p.Steps[i], true
}

const (
	stepInProgress = "in_progress"
	stepDeleted    = "deleted"
)

// PlanUpdated records that the agent has a new plan.
type PlanUpdated Plan

// PlanStepUpdated records that the agent has added a step with a new ID to its plan, or changed the step with that
// ID. Empty fields leave the step unchanged; the Status "deleted" removes it.
type PlanStepUpdated PlanStep

// withStep never changes the steps in place: other states have them too.
func (p Plan) withStep(e PlanStepUpdated) Plan {
	i := slices.IndexFunc(p.Steps, func(s PlanStep) bool { return e.ID != "" && s.ID == e.ID })
	switch {
	case i < 0 && e.Status == stepDeleted:
		return p
	case i < 0:
		return Plan{append(slices.Clip(p.Steps), PlanStep(e))}
	case e.Status == stepDeleted:
		return Plan{slices.Delete(slices.Clone(p.Steps), i, i+1)}
	}
	steps := slices.Clone(p.Steps)
	steps[i] = steps[i].changed(e)
	return Plan{steps}
}

func (s PlanStep) changed(e PlanStepUpdated) PlanStep {
	if e.Description != "" {
		s.Description = e.Description
	}
	if e.Status != "" {
		s.Status = e.Status
	}
	if e.ActiveForm != "" {
		s.ActiveForm = e.ActiveForm
	}
	return s
}

// EventKind implements [event.Payload].
func (Plan) EventKind() event.Kind { return "plan:set" }

// EventKind implements [event.Payload].
func (PlanUpdated) EventKind() event.Kind { return "plan:updated" }

// EventKind implements [event.Payload].
func (PlanStepUpdated) EventKind() event.Kind { return "plan:step_updated" }
