// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// Bind puts the engine into the options of a run of Claude Code: as the first hook, before every
// tool call, and as the permission callback, behind which the one of the options stays for what
// only a person can answer; see [tool.Hook] and [tool.Permission]. Other hooks of the options that
// rewrite an input have the new input judged: see [tool.Judged].
//
// PermissionMode is set to what the gate projects, unless the options name a mode: the hook decides
// whatever the mode is. Dir is the workspace; set it before, if at all. An option with which the gate
// could not be enforced, or which means that the CLI decides instead, is refused with a
// [claude.OptionError]; then the options are not changed. See also [claude.Options.RequireHooks], which
// Bind calls.
//
// A tool of an MCP server that only has the name of one that the gate knows is denied: the CLI makes
// one name of "my.desk" and "my_desk", and settings may add servers. Servers of
// this process are refused if the gate knows tools, but of none of the servers that are there.
//
// Hooks that settings files name are commands of their own, and not judged. A later
// [claude.Client.SetHooks] must name the engine's hook again, as tool.Hook(e).
func (e *Engine) Bind(opts *claude.Options) error {
	if opts == nil {
		return errors.New("gate: Bind needs options to put the gate into; give it new(claude.Options)")
	}
	bound := *opts
	known, ambiguous := e.knownServers(opts)
	if err := errors.Join(undecided(opts), ambiguous, e.misnamed(opts), bound.RequireHooks()); err != nil {
		return err
	}
	native, err := e.gate.Project(ClaudeCode())
	if err != nil {
		return err
	}
	if opts.PermissionMode == "" {
		bound.PermissionMode = native.Mode
	}
	workspace := workspaceOf(opts)
	native.leaveUnopposed = e.gate.leavesTo(opts.PermissionMode)
	if opts.CanUseTool != nil || !native.leaveUnopposed && (native.Callback || asksAnyway(native, bound.PermissionMode)) {
		bound.CanUseTool = asksIn(workspace, asksWithServer(tool.Permission(e, opts.CanUseTool)))
	}
	bound.Hooks = e.hooks(native, known, opts.Hooks)
	for i, h := range bound.Hooks {
		bound.Hooks[i] = hooksIn(workspace, h)
	}
	*opts = bound
	return nil
}

// asksAnyway reports whether the CLI asks about calls that the hook has allowed: it does so about files
// such as those in .git, about some commands, and where settings say ask. Without a callback nobody
// would answer, and it would deny what the gate, or a person, has allowed.
func asksAnyway(native NativeMode, mode claude.PermissionMode) bool {
	return !native.LeaveAllowed && mode != claude.ModeBypassPermissions
}

// hooks are the engine's hook and then the others.
func (e *Engine) hooks(native NativeMode, known map[string]knownServer, others []claude.Hook) []claude.Hook {
	own := tool.Hook(e)
	switch {
	case native.leaveUnopposed:
		own = tool.DenyingHook(opinions{e})
	case native.LeaveAllowed:
		own = tool.DenyingHook(e)
	}
	hooks := []claude.Hook{e.genuine(known, namesServer(beginsCall(own)))}
	for _, h := range others {
		hooks = append(hooks, namesServer(tool.Judged(e, h)))
	}
	return hooks
}

// leavesTo reports whether calls of which no policy has an opinion are left to a mode of the CLI. Where
// everything is allowed there is nothing to leave.
func (g *Gate) leavesTo(mode claude.PermissionMode) bool {
	return mode != "" && mode != claude.ModeBypassPermissions && slices.ContainsFunc(g.policies, func(p Policy) bool { return p.leaves })
}

// opinions is the engine for a hook that leaves to the CLI what nobody has an opinion of: what a policy has
// allowed counts there as what somebody has answered.
type opinions struct{ e *Engine }

func (o opinions) Decide(ctx context.Context, call event.ToolCall) event.Decision {
	d := o.e.Decide(ctx, call)
	d.Asked = d.Asked || d.Policy != noPolicy
	return d
}

// undecided reports every option with which the CLI would decide instead of the gate.
func undecided(o *claude.Options) error {
	var errs []error
	refuse := func(bad bool, option, reason string, args ...any) {
		if bad {
			errs = append(errs, &claude.OptionError{Option: option, Reason: fmt.Sprintf(reason, args...)})
		}
	}
	refuse(len(o.AllowedTools) > 0, "AllowedTools",
		"the CLI would approve these by itself; give the gate gate.AllowTools(%s) instead", quoted(o.AllowedTools))
	refuse(o.PermissionPromptTool != "", "PermissionPromptTool",
		"another tool would answer the questions of the CLI; remove it, and set EngineOptions.Approver to whom the gate should ask")
	for i, arg := range o.ExtraArgs {
		name, _, _ := strings.Cut(arg, "=")
		refuse(slices.Contains(decidingFlags, name), fmt.Sprintf("ExtraArgs[%d]", i),
			"%s makes the CLI decide by itself; say it with the gate's policies", name)
	}
	return errors.Join(errs...)
}

// decidingFlags are the flags that stand for the options that are refused.
var decidingFlags = []string{"--allowedTools", "--allowed-tools", "--permission-prompt-tool"}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(out, ", ")
}
