// SPDX-License-Identifier: Apache-2.0

package session

// registerBuiltin gives a session the slices that Drover itself uses. Slices of the plain facts (what was
// rendered, invoked, executed, fed back) are of policy Log: what happened stays known after a rollback.
func registerBuiltin(s *Session) {
	Define(s, SliceOptions[PromptRendered]{Policy: Log})
	Define(s, SliceOptions[RenderedTools]{Policy: Log})
	Define(s, SliceOptions[ToolInvoked]{Policy: Log})
	Define(s, SliceOptions[PromptExecuted]{Policy: Log})
	Define(s, SliceOptions[Feedback]{Policy: Log})
	ReplaceLatest(s, func(e PlanUpdated) Plan { return Plan(e) })
	Reduce(s, ModifiedFiles.with)
	Reduce(s, VisibilityOverrides.set)
	Reduce(s, VisibilityOverrides.clear)
	Reduce(s, VisibilityOverrides.clearAll)
	Reduce(s, PolicyState.with)
}
