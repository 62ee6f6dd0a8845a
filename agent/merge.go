// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"maps"
	"slices"

	"github.com/drover-agents/drover/gate"
)

// merge lays a request over defaults.
func merge(defaults, req Request) Request {
	req.Prompt = cmp.Or(req.Prompt, defaults.Prompt)
	req.Dir = cmp.Or(req.Dir, defaults.Dir)
	req.Workspace = cmp.Or(req.Workspace, defaults.Workspace)
	req.Model = cmp.Or(req.Model, defaults.Model)
	req.SystemPrompt = cmp.Or(req.SystemPrompt, defaults.SystemPrompt)
	req.AppendSystemPrompt = cmp.Or(req.AppendSystemPrompt, defaults.AppendSystemPrompt)
	req.Effort = cmp.Or(req.Effort, defaults.Effort)
	req.MaxTurns = cmp.Or(req.MaxTurns, defaults.MaxTurns)
	req.SideCallsPerTurn = cmp.Or(req.SideCallsPerTurn, defaults.SideCallsPerTurn)
	req.MaxBudgetUSD = cmp.Or(req.MaxBudgetUSD, defaults.MaxBudgetUSD)
	req.AllowedTools = given(req.AllowedTools, defaults.AllowedTools)
	req.DisallowedTools = given(req.DisallowedTools, defaults.DisallowedTools)
	req.Tools = cmp.Or(req.Tools, defaults.Tools)
	req.ToolServer = cmp.Or(req.ToolServer, defaults.ToolServer)
	if req.Servers == nil {
		req.Servers = defaults.Servers
	}
	req.Skills = given(req.Skills, defaults.Skills)
	req.Hooks = cmp.Or(req.Hooks, defaults.Hooks)
	req.MaxRefusals = cmp.Or(req.MaxRefusals, defaults.MaxRefusals)
	req.Trackers = given(req.Trackers, defaults.Trackers)
	req.RunID = cmp.Or(req.RunID, defaults.RunID)
	req.TraceParent = cmp.Or(req.TraceParent, defaults.TraceParent)
	req.TraceState = cmp.Or(req.TraceState, defaults.TraceState)
	if req.Transcript == nil {
		req.Transcript = defaults.Transcript
	}
	req.OutputSchema = given(req.OutputSchema, defaults.OutputSchema)
	req.PartialText = req.PartialText || defaults.PartialText
	req.Permissions = mergePermissions(defaults.Permissions, req.Permissions)
	return req
}

// given is the list unless it is nil: an empty list is one.
func given[L ~[]E, E any](list, otherwise L) L {
	if list != nil {
		return list
	}
	return otherwise
}

// mergePermissions lays permissions over others, field by field. There is one exception: a mode of the
// defaults would set aside the very levels that the run asks for, so that they take the mode away.
func mergePermissions(defaults, own *gate.Permissions) *gate.Permissions {
	if defaults == nil || own == nil {
		return cmp.Or(own, defaults)
	}
	mode := own.Mode
	if own.FileWrite == gate.LevelUnset && own.ShellExecute == gate.LevelUnset && own.NetworkAccess == gate.LevelUnset {
		mode = cmp.Or(own.Mode, defaults.Mode)
	}
	return &gate.Permissions{
		FileWrite:     cmp.Or(own.FileWrite, defaults.FileWrite),
		ShellExecute:  cmp.Or(own.ShellExecute, defaults.ShellExecute),
		NetworkAccess: cmp.Or(own.NetworkAccess, defaults.NetworkAccess),
		Mode:          mode,
		WritablePaths: given(own.WritablePaths, defaults.WritablePaths),
	}
}

// clone is a request that shares no list with the first. Whoever changes one does not change both.
func (r Request) clone() Request {
	r.AllowedTools = slices.Clone(r.AllowedTools)
	r.DisallowedTools = slices.Clone(r.DisallowedTools)
	r.OutputSchema = slices.Clone(r.OutputSchema)
	r.Servers = maps.Clone(r.Servers)
	r.Skills = slices.Clone(r.Skills)
	r.Trackers = slices.Clone(r.Trackers)
	if r.Permissions != nil {
		own := *r.Permissions
		own.WritablePaths = slices.Clone(own.WritablePaths)
		r.Permissions = &own
	}
	return r
}
