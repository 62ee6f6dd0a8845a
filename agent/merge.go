// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"

	"github.com/drover-agents/drover/gate"
)

// merge lays a request over defaults.
func merge(defaults, req Request) Request {
	req.Prompt = cmp.Or(req.Prompt, defaults.Prompt)
	req.Dir = cmp.Or(req.Dir, defaults.Dir)
	req.Model = cmp.Or(req.Model, defaults.Model)
	req.SystemPrompt = cmp.Or(req.SystemPrompt, defaults.SystemPrompt)
	req.Effort = cmp.Or(req.Effort, defaults.Effort)
	req.MaxTurns = cmp.Or(req.MaxTurns, defaults.MaxTurns)
	req.MaxBudgetUSD = cmp.Or(req.MaxBudgetUSD, defaults.MaxBudgetUSD)
	req.AllowedTools = given(req.AllowedTools, defaults.AllowedTools)
	req.DisallowedTools = given(req.DisallowedTools, defaults.DisallowedTools)
	req.Tools = cmp.Or(req.Tools, defaults.Tools)
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

func mergePermissions(defaults, own *gate.Permissions) *gate.Permissions {
	if defaults == nil || own == nil {
		return cmp.Or(own, defaults)
	}
	return &gate.Permissions{
		FileWrite:     cmp.Or(own.FileWrite, defaults.FileWrite),
		ShellExecute:  cmp.Or(own.ShellExecute, defaults.ShellExecute),
		NetworkAccess: cmp.Or(own.NetworkAccess, defaults.NetworkAccess),
		Mode:          cmp.Or(own.Mode, defaults.Mode),
		WritablePaths: given(own.WritablePaths, defaults.WritablePaths),
	}
}
