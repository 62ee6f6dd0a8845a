// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// A NativeMode is how the CLI's own permissions have to be set for a gate.
type NativeMode struct {
	Mode claude.PermissionMode
	// Callback is true if the CLI must ask the gate.
	Callback bool
	// LeaveAllowed is true if a hook may deny, but must not allow: a call that the gate lets pass is
	// left to the mode. Without it, auto would be no more than bypass.
	LeaveAllowed bool
}

var askTheGate = NativeMode{Mode: claude.ModeDefault, Callback: true}

// MapPermissions gives the permission mode for permissions alone. All capabilities allowed is bypassPermissions; files
// allowed and the rest asked about is acceptEdits; everything else asks the callback. Writable paths always ask the
// callback: no mode knows them. No permissions at all leave the agent to its default.
func MapPermissions(p *gate.Permissions) NativeMode {
	switch {
	case p == nil:
		return NativeMode{Mode: claude.ModeDefault, LeaveAllowed: true}
	case p.WritablePaths != nil:
		return askTheGate
	case p.Mode == gate.ModeAuto:
		return NativeMode{Mode: claude.ModeAuto, LeaveAllowed: true}
	case p.Mode == gate.ModeBypass:
		return NativeMode{Mode: claude.ModeBypassPermissions}
	case p.Mode.Valid() != nil || p.Level(tool.FileWrite) != gate.LevelAllow:
		return askTheGate
	case p.Level(tool.ShellExecute) == gate.LevelAllow && p.Level(tool.NetworkAccess) == gate.LevelAllow:
		return NativeMode{Mode: claude.ModeBypassPermissions}
	case p.Level(tool.ShellExecute) == gate.LevelAsk && p.Level(tool.NetworkAccess) == gate.LevelAsk:
		return NativeMode{Mode: claude.ModeAcceptEdits}
	}
	return askTheGate
}

// projected is the mode for a gate: that of its permissions if it is made of nothing else, and otherwise the one that trusts
// least. Auto stays auto, since only the CLI can do that part; the hook, which decides in any mode, does the rest.
func projected(config gate.AgentConfig) NativeMode {
	if p := config.Permissions; p != nil && (config.PermissionsOnly || p.Mode == gate.ModeAuto) {
		return MapPermissions(p)
	}
	return askTheGate
}
