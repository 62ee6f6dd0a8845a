// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/drover-agents/drover/event"
)

// A Plan is what the agent means to do.
type Plan struct {
	Steps []PlanStep `json:"steps"`
}

// A PlanStep is one step of a [Plan].
type PlanStep struct {
	// ID tells steps apart where the agent names them. It is empty in a plan that is written as a whole.
	ID          string `json:"id,omitzero"`
	Description string `json:"content"`
	// Status is "pending", "in_progress" or "completed".
	Status string `json:"status"`
	// ActiveForm says what is being done while the step is worked on.
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
	stepPending    = "pending"
	stepInProgress = "in_progress"
	stepDeleted    = "deleted"
)

// PlanUpdated says that the agent has a new plan.
type PlanUpdated Plan

// PlanStepUpdated says that the agent has added a step with a new ID to its plan, or changed the one that
// has the ID. Fields that are empty stay as they were; a Status of "deleted" takes the step away.
type PlanStepUpdated PlanStep

// TodoPlan makes a plan of the input of a TodoWrite call: {"todos": [{content, status, activeForm}]}.
func TodoPlan(input json.RawMessage) (PlanUpdated, error) {
	var in struct {
		Todos *[]PlanStep `json:"todos"`
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return PlanUpdated{}, fmt.Errorf("session: the input of TodoWrite: %w", err)
	}
	if in.Todos == nil {
		return PlanUpdated{}, errors.New("session: the input of TodoWrite has no todos")
	}
	return PlanUpdated{Steps: *in.Todos}, nil
}

// createdStep makes a step of a TaskCreate call. Its number is in the result.
func createdStep(input, result json.RawMessage) (PlanStepUpdated, bool) {
	var in struct {
		Subject    string `json:"subject"`
		ActiveForm string `json:"activeForm"`
	}
	var out struct {
		Task struct {
			ID string `json:"id"`
		} `json:"task"`
	}
	if json.Unmarshal(input, &in) != nil || json.Unmarshal(result, &out) != nil || out.Task.ID == "" {
		return PlanStepUpdated{}, false
	}
	return PlanStepUpdated{ID: out.Task.ID, Description: in.Subject, Status: stepPending, ActiveForm: in.ActiveForm}, true
}

// changedStep makes a step of a TaskUpdate call.
func changedStep(input json.RawMessage) (PlanStepUpdated, bool) {
	var in struct {
		ID         string `json:"taskId"`
		Subject    string `json:"subject"`
		Status     string `json:"status"`
		ActiveForm string `json:"activeForm"`
	}
	if json.Unmarshal(input, &in) != nil || in.ID == "" {
		return PlanStepUpdated{}, false
	}
	return PlanStepUpdated{ID: in.ID, Description: in.Subject, Status: in.Status, ActiveForm: in.ActiveForm}, true
}

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
