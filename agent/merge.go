// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"slices"
)

func merge(defaults, req Request) Request {
	req.Settings = req.Settings.over(defaults.Settings)
	req.Prompt = cmp.Or(req.Prompt, defaults.Prompt)
	req.Registry = cmp.Or(req.Registry, defaults.Registry)
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
	return req
}

// clone is a request that shares no list with the first. A change of one does not change the other.
func (r Request) clone() Request {
	r.Settings = r.Settings.clone()
	r.OutputSchema = slices.Clone(r.OutputSchema)
	r.Skills = slices.Clone(r.Skills)
	r.Trackers = slices.Clone(r.Trackers)
	return r
}
