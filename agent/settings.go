// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// Settings configure an agent: model, folder, limits, tools, permissions. They are the same
// for a [Request], for an evaluation and for an agent file. The zero value leaves all of it to the adapter's
// configuration and to the agent's defaults.
type Settings struct {
	// Dir is the working directory. Empty means that of the Workspace, or else the current one. With a
	// Workspace it is relative to that, or within it.
	Dir string
	// Workspace is the workspace of the agent. With checkpoints, each of its calls is a transaction: the changes of
	// a failed call are rolled back; see [Ledger].
	Workspace *workspace.Workspace

	// Model is the model's name. Empty means the agent's default.
	Model string
	// Effort is how hard the model works, in the agent's words: "low", "high". Empty means its default.
	Effort string
	// SystemPrompt replaces the agent's own. Empty leaves that.
	SystemPrompt string
	// AppendSystemPrompt is added to the system prompt.
	AppendSystemPrompt string

	// MaxTurns limits the model calls of the main conversation. Zero means no limit.
	MaxTurns int
	// SideCallsPerTurn limits all other model calls, of subagents for instance, to so many for each of
	// MaxTurns. Zero means the adapter's default, 10 for Claude Code.
	SideCallsPerTurn int
	// Budget limits what the run may consume: dollars, tokens, requests to the model, time. Nil means no limit.
	Budget *guard.Budget

	// Tools are the tools that there are, also of this program; nil means all of the agent's default and of this program,
	// empty means none. DisallowedTools are taken away from them. A name may have an argument, as "Bash(git status)"; see
	// [gate.AllowTools]. The arguments of allowed tools are the Host's to enforce.
	// A name that no tool has is an error before the agent starts, also in the lists and rules of policies; see [tool.KnownNames].
	Tools, DisallowedTools []string
	// UnknownTools are names that lists and rules may have although no tool has them when the run starts: of a tool that only a
	// newer agent has, which its catalogue does not know, or of one that is added during the run.
	UnknownTools []string
	// ToolServer is the name of the MCP server under which the agent finds the tools of this program. Empty means
	// [tool.DefaultServerName].
	ToolServer string
	// Servers are MCP servers that the agent itself connects to, by key, beside the adapter's. A key is taken once.
	Servers map[string]Server
	// Permissions limit what tools may do; their Mode is [gate.ModeAsk], a person is asked, or [gate.ModeAllow], the cell is
	// the boundary. Nil leaves that to the agent's own default. They are enforced by the Host; an adapter refuses
	// permissions without one. A Runner makes the host.
	Permissions *gate.Permissions

	// PartialText yields text also while it is written, as [event.TextDelta].
	PartialText bool
}

// over returns the settings, with those of defaults where they are empty.
func (s Settings) over(defaults Settings) Settings {
	s.Dir = cmp.Or(s.Dir, defaults.Dir)
	s.Workspace = cmp.Or(s.Workspace, defaults.Workspace)
	s.Model = cmp.Or(s.Model, defaults.Model)
	s.Effort = cmp.Or(s.Effort, defaults.Effort)
	s.SystemPrompt = cmp.Or(s.SystemPrompt, defaults.SystemPrompt)
	s.AppendSystemPrompt = cmp.Or(s.AppendSystemPrompt, defaults.AppendSystemPrompt)
	s.MaxTurns = cmp.Or(s.MaxTurns, defaults.MaxTurns)
	s.SideCallsPerTurn = cmp.Or(s.SideCallsPerTurn, defaults.SideCallsPerTurn)
	s.Budget = mergeBudgets(defaults.Budget, s.Budget)
	s.Tools = given(s.Tools, defaults.Tools)
	s.DisallowedTools = given(s.DisallowedTools, defaults.DisallowedTools)
	s.UnknownTools = given(s.UnknownTools, defaults.UnknownTools)
	s.ToolServer = cmp.Or(s.ToolServer, defaults.ToolServer)
	if s.Servers == nil {
		s.Servers = defaults.Servers
	}
	s.Permissions = mergePermissions(defaults.Permissions, s.Permissions)
	s.PartialText = s.PartialText || defaults.PartialText
	return s
}

// KnownNames are the names that lists and rules of a run may have. registry has the tools of this program.
func (s Settings) KnownNames(of *tool.Catalogue, registry *tool.Registry) tool.KnownNames {
	return tool.KnownNames{Catalogue: of, Registry: registry, Server: s.ToolServer, Also: s.UnknownTools, Option: "UnknownTools"}
}

// CheckNames reports the first name in Tools or DisallowedTools that no tool has.
func (s Settings) CheckNames(known tool.KnownNames) error {
	if err := known.Check(s.Tools...); err != nil {
		return fmt.Errorf("agent: Tools: %w", err)
	}
	if err := known.Check(s.DisallowedTools...); err != nil {
		return fmt.Errorf("agent: DisallowedTools: %w", err)
	}
	return nil
}

// given is the list unless it is nil: an empty list is one.
func given[L ~[]E, E any](list, otherwise L) L {
	if list != nil {
		return list
	}
	return otherwise
}

func mergeBudgets(defaults, own *guard.Budget) *guard.Budget {
	if defaults == nil || own == nil {
		return cmp.Or(own, defaults)
	}
	deadline := own.Deadline
	if deadline.IsZero() {
		deadline = defaults.Deadline
	}
	return &guard.Budget{
		MaxTotalTokens:  cmp.Or(own.MaxTotalTokens, defaults.MaxTotalTokens),
		MaxInputTokens:  cmp.Or(own.MaxInputTokens, defaults.MaxInputTokens),
		MaxOutputTokens: cmp.Or(own.MaxOutputTokens, defaults.MaxOutputTokens),
		MaxCostUSD:      cmp.Or(own.MaxCostUSD, defaults.MaxCostUSD),
		MaxRequests:     cmp.Or(own.MaxRequests, defaults.MaxRequests),
		Deadline:        deadline,
	}
}

// mergePermissions lays permissions over others, field by field. There is one exception: a mode of the
// defaults that sets aside the very levels that the run asks for does not count.
func mergePermissions(defaults, own *gate.Permissions) *gate.Permissions {
	if defaults == nil || own == nil {
		return cmp.Or(own, defaults)
	}
	mode := cmp.Or(own.Mode, defaults.Mode)
	if own.Mode == "" && mode.SetsLevelsAside() && cmp.Or(own.FileWrite, own.ShellExecute, own.NetworkAccess) != gate.LevelUnset {
		mode = ""
	}
	return &gate.Permissions{
		FileWrite:     cmp.Or(own.FileWrite, defaults.FileWrite),
		ShellExecute:  cmp.Or(own.ShellExecute, defaults.ShellExecute),
		NetworkAccess: cmp.Or(own.NetworkAccess, defaults.NetworkAccess),
		Mode:          mode,
		WritablePaths: given(own.WritablePaths, defaults.WritablePaths),
	}
}

// clone returns settings that share no list and no map with s.
func (s Settings) clone() Settings {
	s.Tools = slices.Clone(s.Tools)
	s.DisallowedTools = slices.Clone(s.DisallowedTools)
	s.UnknownTools = slices.Clone(s.UnknownTools)
	s.Servers = maps.Clone(s.Servers)
	if s.Budget != nil {
		s.Budget = new(*s.Budget)
	}
	if s.Permissions != nil {
		own := *s.Permissions
		own.WritablePaths = slices.Clone(own.WritablePaths)
		s.Permissions = &own
	}
	return s
}
