// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

// ErrUnenforceable is wrapped where an agent has no means to enforce a gate.
var ErrUnenforceable = errors.New("gate: the agent cannot enforce the policy")

// An Agent is what an agent offers to enforce a gate with.
type Agent struct {
	// Name is for messages.
	Name string
	// Hook says that the gate can refuse every call before it runs, whatever the mode.
	Hook bool
	// Callback says that the agent asks about the calls that its mode does not settle.
	Callback bool
	// Modes are the permission modes that the agent has.
	Modes []claude.PermissionMode
}

// ClaudeCode is the Claude Code CLI.
func ClaudeCode() Agent {
	return Agent{Name: "claude-code", Hook: true, Callback: true, Modes: []claude.PermissionMode{
		claude.ModeDefault, claude.ModeAcceptEdits, claude.ModeBypassPermissions, claude.ModePlan, claude.ModeDontAsk, claude.ModeAuto,
	}}
}

// A NativeMode is how an agent's own permissions have to be set for a gate.
type NativeMode struct {
	// Mode is empty where the agent has no modes.
	Mode claude.PermissionMode
	// Callback says that the agent must ask the gate.
	Callback bool
	// LeaveAllowed says that a hook may deny, but must not allow: a call that the gate lets pass is
	// left to the mode. Without it, auto would be no more than bypass.
	LeaveAllowed bool
	// leaveUnopposed says the same of calls of which no policy has an opinion.
	leaveUnopposed bool
}

var askTheGate = NativeMode{Mode: claude.ModeDefault, Callback: true}

// MapPermissions gives the permission mode for permissions alone. All capabilities allowed is
// bypassPermissions; files allowed and the rest asked about is acceptEdits; everything else asks the
// callback. Writable paths always ask the callback: no mode knows them. No permissions at all leave the
// agent to its default.
func MapPermissions(p *Permissions) NativeMode {
	switch {
	case p == nil:
		return NativeMode{Mode: claude.ModeDefault, LeaveAllowed: true}
	case p.WritablePaths != nil:
		return askTheGate
	case p.Mode == ModeAuto:
		return NativeMode{Mode: claude.ModeAuto, LeaveAllowed: true}
	case p.Mode == ModeBypass:
		return NativeMode{Mode: claude.ModeBypassPermissions}
	case p.Mode != "":
		return askTheGate
	}
	switch [3]event.Verdict{p.FileWrite.verdict(), p.ShellExecute.verdict(), p.NetworkAccess.verdict()} {
	case [3]event.Verdict{event.Allow, event.Allow, event.Allow}:
		return NativeMode{Mode: claude.ModeBypassPermissions}
	case [3]event.Verdict{event.Allow, event.Ask, event.Ask}:
		return NativeMode{Mode: claude.ModeAcceptEdits}
	}
	return askTheGate
}

// Project gives the agent's own permissions for the gate, or an error that wraps [ErrUnenforceable]
// where the agent would let pass what the gate denies. Call it before the agent starts.
//
// An agent with a hook enforces every gate. Its mode is then that of the permissions if the gate is
// made of [FromCapabilities] and nothing else, and otherwise trusts least: default, with a callback.
// Auto stays auto, since nothing but the agent can do that part; the hook does the rest. An agent
// without a hook can enforce permissions alone, by a mode of its own or by its callback.
func (g *Gate) Project(a Agent) (NativeMode, error) {
	permissions, alone := g.permissions()
	native := askTheGate
	if permissions != nil && (alone || permissions.Mode == ModeAuto) {
		native = MapPermissions(permissions)
	}
	switch {
	case (a.Hook || alone) && a.can(native):
		return native, nil
	case native.Mode == claude.ModeAuto: // nobody else can do it
	case a.Hook: // which decides in any mode
		return a.leastTrust(), nil
	case alone && a.can(askTheGate):
		return askTheGate, nil
	}
	return NativeMode{}, fmt.Errorf("%w: %s has no means for %s\n"+
		"  next: leave that out, or use an agent with a hook before tool calls and with the mode that it needs",
		ErrUnenforceable, a.Name, strings.Join(g.judges(), ", "))
}

// leastTrust is askTheGate, as far as the agent has it.
func (a Agent) leastTrust() NativeMode {
	n := NativeMode{Callback: a.Callback}
	if slices.Contains(a.Modes, claude.ModeDefault) {
		n.Mode = claude.ModeDefault
	}
	return n
}

func (a Agent) can(n NativeMode) bool {
	return slices.Contains(a.Modes, n.Mode) && (a.Callback || !n.Callback)
}

// permissions returns the permissions of the gate, and whether the gate is made of nothing else.
// Of several the one that leaves the decision to the agent counts, since no other can do its part. One
// that does not hold all the time is no part of the agent's own mode.
func (g *Gate) permissions() (p *Permissions, alone bool) {
	judges := 0
	for i := range g.policies {
		policy := &g.policies[i]
		if !policy.inert() {
			judges++
		}
		if policy.Permissions != nil && policy.When == nil && (p == nil || p.Mode != ModeAuto) {
			p = policy.Permissions
		}
	}
	return p, p != nil && judges == 1
}

// inert reports whether a policy can change no decision.
func (p *Policy) inert() bool { return p.Judge == nil && p.Otherwise == nil }

// judges names the policies that have a say.
func (g *Gate) judges() []string {
	var names []string
	for i := range g.policies {
		if !g.policies[i].inert() {
			names = append(names, g.policies[i].Name)
		}
	}
	if names == nil {
		return []string{"the denial of every call"}
	}
	return names
}
