// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/plainjson"
)

// settings are those of an agent, as they are kept: what a run was allowed to do. The environment of servers is left out.
type settings struct {
	Dir                string            `json:"dir,omitzero"`
	Workspace          string            `json:"workspace,omitzero"`
	Model              string            `json:"model,omitzero"`
	Effort             string            `json:"effort,omitzero"`
	SystemPrompt       string            `json:"systemPrompt,omitzero"`
	AppendSystemPrompt string            `json:"appendSystemPrompt,omitzero"`
	MaxTurns           int               `json:"maxTurns,omitzero"`
	SideCallsPerTurn   int               `json:"sideCallsPerTurn,omitzero"`
	Budget             *guard.Budget     `json:"budget,omitempty"`
	Tools              []string          `json:"tools,omitzero"` // empty means none
	DisallowedTools    []string          `json:"disallowedTools,omitempty"`
	UnknownTools       []string          `json:"unknownTools,omitempty"`
	ToolServer         string            `json:"toolServer,omitzero"`
	Servers            []string          `json:"servers,omitempty"`
	Permissions        *gate.Permissions `json:"permissions,omitempty"`
}

// settingsOf is the JSON of settings, or nil for those that have none.
func settingsOf(s agent.Settings) json.RawMessage {
	own := settings{
		Dir: s.Dir, Model: s.Model, Effort: s.Effort, SystemPrompt: s.SystemPrompt, AppendSystemPrompt: s.AppendSystemPrompt,
		MaxTurns: s.MaxTurns, SideCallsPerTurn: s.SideCallsPerTurn, Budget: s.Budget, Tools: s.Tools, DisallowedTools: s.DisallowedTools,
		UnknownTools: s.UnknownTools, ToolServer: s.ToolServer, Servers: slices.Sorted(maps.Keys(s.Servers)), Permissions: s.Permissions,
	}
	if s.Workspace != nil {
		own.Workspace = s.Workspace.Root()
	}
	text, err := plainjson.Marshal(own)
	if err != nil {
		return nil
	}
	return text
}

func endOf(end drover.RunEnd) End {
	s := &end.Summary
	e := End{
		Ended: time.Now(), Status: s.Status, Text: s.Text, Output: s.Structured, Usage: s.Usage, Duration: s.Duration, APIDuration: s.APIDuration,
		Turns: s.Turns, ResumeToken: s.ResumeToken, Stats: s.Stats, Error: errorText(end.Err), Advice: advice.Of(end.Err),
	}
	if e.Status == "" {
		e.Status = event.DoneSuccess
	}
	if failure, ok := errors.AsType[*drover.EvaluationError](end.Err); ok {
		e.Kind = string(failure.Kind)
		e.Status = failure.Summary.Status
		if e.Status == event.DoneSuccess { // the agent has answered, and the evaluation failed
			e.Status = event.DoneError
		}
	}
	return e
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
