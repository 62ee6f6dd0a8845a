// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// gated is a host that is a gate: a [gate.Engine], also inside of another type.
type gated interface {
	tool.Decider
	AgentConfig() gate.AgentConfig
	Deny(ctx context.Context, call event.ToolCall, reason string) event.Decision
}

var _ gated = (*gate.Engine)(nil)

// BindGate puts an engine into the options of a run of Claude Code: as the first hook, before every tool call, and as the
// permission callback, behind which the one of the options stays for what only a person can answer; see [Hook] and
// [Permission]. Other hooks of the options that rewrite an input have the new input judged: see [Judged]. An adapter does
// all this with the host of a request.
//
// PermissionMode is set to what the gate projects, unless the options name a mode: the hook decides whatever the mode is.
// Dir is the workspace; set it before, if at all. An option with which the gate could not be enforced, or which means that
// the CLI decides instead, is refused with a [claude.OptionError]; then the options are not changed. See also
// [claude.Options.RequireHooks], which BindGate calls.
//
// A tool of an MCP server that only has the name of one that the gate knows is denied: the CLI makes
// one name of "my.desk" and "my_desk", and settings may add servers. Servers of
// this process are refused if the gate knows tools, but of none of the servers that are there.
//
// The gate must know the tools of Claude Code, by [gate.KnowsAgent].
//
// Hooks that settings files name are commands of their own, and not judged. A later
// [claude.Client.SetHooks] must name the engine's hook again, as Hook(e).
func BindGate(opts *claude.Options, e *gate.Engine) error {
	if opts == nil {
		return errors.New("claudecode: BindGate needs options to put the gate into; give it new(claude.Options)")
	}
	return bindGate(opts, e)
}

func bindGate(opts *claude.Options, g gated) error {
	bound, config := *opts, g.AgentConfig()
	if config.Catalogue == nil || config.Catalogue.Agent != Agent {
		return errStrangeGate
	}
	servers, ambiguous := knownServers(opts, config.Servers)
	if err := errors.Join(undecided(opts), ambiguous, misnamed(opts, config.Servers), bound.RequireHooks()); err != nil {
		return err
	}
	native := projected(config)
	if opts.PermissionMode == "" {
		bound.PermissionMode = native.Mode
	}
	// Calls that no policy decides are left to a mode of the CLI. Where everything is allowed there is nothing to leave.
	leaves := config.LeavesToAgent && opts.PermissionMode != "" && opts.PermissionMode != claude.ModeBypassPermissions
	own := Hook(g)
	switch {
	case leaves:
		own = denyingHook(policyDecider{g})
	case native.LeaveAllowed:
		own = denyingHook(g)
	}
	workspace := workspaceOf(opts)
	bound.Hooks = []claude.Hook{inCallContext(gate.CallContext{Workspace: workspace, Begins: true}, servers.genuine(g, own))}
	for _, h := range opts.Hooks {
		bound.Hooks = append(bound.Hooks, inCallContext(gate.CallContext{Workspace: workspace}, Judged(g, h)))
	}
	// The CLI asks about calls that the hook has allowed: about files such as those in .git, about some commands, and where
	// a setting is ask. Without a callback it would deny calls that the gate, or a person, has allowed.
	asksAnyway := !native.LeaveAllowed && bound.PermissionMode != claude.ModeBypassPermissions
	if opts.CanUseTool != nil || !leaves && (native.Callback || asksAnyway) {
		ask := Permission(g, opts.CanUseTool)
		bound.CanUseTool = func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
			about := gate.CallContext{Workspace: workspace}
			if req.MCPServer != nil {
				about.Server = req.MCPServer.Name
			}
			return ask(gate.WithCallContext(ctx, about), req)
		}
	}
	*opts = bound
	return nil
}

var errStrangeGate = advice.Wrap(errors.New("claudecode: the gate does not know the tools of Claude Code, so that it cannot judge them"), "give gate.New gate.KnowsAgent(catalogue.Tools()), of agent/claudecode/catalogue")

// inCallContext lets the gate know what a hook knows of a call. The server is named by the call.
func inCallContext(about gate.CallContext, h claude.Hook) claude.Hook {
	inner := h.Func
	if inner == nil || h.Event != claude.HookPreToolUse && h.Event != claude.HookPermissionRequest {
		return h
	}
	h.Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		about := about
		if call, ok := in.(*claude.PreToolUseInput); ok {
			about.Server = call.MCPServer.Name
		}
		return inner(gate.WithCallContext(ctx, about), in)
	}
	return h
}

// workspaceOf is where the CLI will be started, with links resolved: the CLI reports this path
// to the model. It is empty if it is unknown; then the CLI cannot start there either.
func workspaceOf(o *claude.Options) string {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// policyDecider is the gate for a hook that leaves calls without a policy to the CLI: a call that a policy allows
// counts as approved.
type policyDecider struct{ gated }

func (o policyDecider) Decide(ctx context.Context, call event.ToolCall) event.Decision {
	d := o.gated.Decide(ctx, call)
	d.Asked = d.Asked || d.Policy != gate.NoPolicy
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
		"another tool would answer the questions of the CLI; remove it, and set EngineOptions.Approver instead")
	for i, arg := range o.ExtraArgs {
		name, _, _ := strings.Cut(arg, "=")
		refuse(slices.Contains(decidingFlags, name), fmt.Sprintf("ExtraArgs[%d]", i),
			"%s makes the CLI decide by itself; use the gate's policies instead", name)
	}
	return errors.Join(errs...)
}

// decidingFlags are the flags of the options that are refused.
var decidingFlags = []string{"--allowedTools", "--allowed-tools", "--permission-prompt-tool"}

func quoted(names []string) string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = fmt.Sprintf("%q", name)
	}
	return strings.Join(out, ", ")
}
