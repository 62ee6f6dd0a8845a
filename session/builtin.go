// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"reflect"
	"slices"

	"github.com/drover-agents/drover/event"
)

// registerBuiltin gives a session the slices that Drover itself uses. Slices of plain facts are of policy Log: what
// happened stays known after a rollback. The others have one value each.
func registerBuiltin(s *Session) {
	Define(s, SliceOptions[PromptRendered]{Policy: Log})
	Define(s, SliceOptions[RenderedTools]{Policy: Log})
	Define(s, SliceOptions[PromptExecuted]{Policy: Log})
	Define(s, SliceOptions[Feedback]{Policy: Log})
	Define(s, SliceOptions[ToolInvoked]{Policy: Log})
	register(s, firstReport)
	onlyLatest[Workspace](s)
	onlyLatest[ToolPermissions](s)
	onlyLatest[Plan](s)
	ReplaceLatest(s, func(e PlanUpdated) Plan { return Plan(e) })
	Reduce(s, Plan.withStep)
	onlyLatest[ModifiedFiles](s)
	Reduce(s, ModifiedFiles.with)
	onlyLatest[VisibilityOverrides](s)
	Reduce(s, VisibilityOverrides.set)
	Reduce(s, VisibilityOverrides.clear)
	Reduce(s, VisibilityOverrides.clearAll)
	onlyLatest[PolicyState](s)
	Reduce(s, PolicyState.with)
}

func onlyLatest[S any](s *Session) { ReplaceLatest(s, func(e S) S { return e }) }

// builtinTypes are the payloads of the built-in slices and of their events, by kind.
var builtinTypes = typesByKind(slices.Values([]reflect.Type{
	reflect.TypeFor[PromptRendered](),
	reflect.TypeFor[RenderedTools](),
	reflect.TypeFor[PromptExecuted](),
	reflect.TypeFor[Feedback](),
	reflect.TypeFor[ToolInvoked](),
	reflect.TypeFor[Workspace](),
	reflect.TypeFor[ToolPermissions](),
	reflect.TypeFor[Plan](),
	reflect.TypeFor[PlanUpdated](),
	reflect.TypeFor[PlanStepUpdated](),
	reflect.TypeFor[ModifiedFiles](),
	reflect.TypeFor[FileModified](),
	reflect.TypeFor[VisibilityOverrides](),
	reflect.TypeFor[SetVisibility](),
	reflect.TypeFor[ClearVisibility](),
	reflect.TypeFor[ClearAllVisibility](),
	reflect.TypeFor[PolicyState](),
}))

func typesByKind(types iter.Seq[reflect.Type]) map[event.Kind]reflect.Type {
	byKind := map[event.Kind]reflect.Type{}
	for t := range types {
		byKind[kindOf(t)] = t
	}
	return byKind
}

// decodeBuiltin decodes a payload of a built-in kind. One of another version that does not fit stays raw.
func decodeBuiltin(raw event.Extension) event.Payload {
	t := builtinTypes[raw.Kind]
	if t == nil {
		return raw
	}
	v, err := decodeValue(raw.Data, t)
	if err != nil {
		return raw
	}
	return v.(event.Payload)
}

// ContextLines returns lines for an agent: the current step of the [Plan], and the [Workspace], as far as they are known.
func ContextLines(s *Session) []string {
	var lines []string
	if plan, ok := Query[Plan](s).Latest(); ok {
		if step, working := plan.Current(); working {
			lines = append(lines, contextTask+step.Description)
		}
	}
	if workspace, ok := Query[Workspace](s).Latest(); ok && workspace.Root != "" {
		lines = append(lines, contextDirectory+workspace.Root)
	}
	return lines
}
