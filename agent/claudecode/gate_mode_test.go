// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"fmt"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// The native modes of the tables.
var (
	modeBypass  = NativeMode{Mode: claude.ModeBypassPermissions}
	modeEdits   = NativeMode{Mode: claude.ModeAcceptEdits}
	modeAsking  = NativeMode{Mode: claude.ModeDefault, Callback: true}
	modeAuto    = NativeMode{Mode: claude.ModeAuto, LeaveAllowed: true}
	modeDefault = NativeMode{Mode: claude.ModeDefault, LeaveAllowed: true}
)

var modeTable = map[string]NativeMode{
	"allow,allow,allow": modeBypass,
	"allow,allow,ask":   modeAsking,
	"allow,allow,deny":  modeAsking,
	"allow,ask,allow":   modeAsking,
	"allow,ask,ask":     modeEdits,
	"allow,ask,deny":    modeAsking,
	"allow,deny,allow":  modeAsking,
	"allow,deny,ask":    modeAsking,
	"allow,deny,deny":   modeAsking,
	"ask,allow,allow":   modeAsking,
	"ask,allow,ask":     modeAsking,
	"ask,allow,deny":    modeAsking,
	"ask,ask,allow":     modeAsking,
	"ask,ask,ask":       modeAsking,
	"ask,ask,deny":      modeAsking,
	"ask,deny,allow":    modeAsking,
	"ask,deny,ask":      modeAsking,
	"ask,deny,deny":     modeAsking,
	"deny,allow,allow":  modeAsking,
	"deny,allow,ask":    modeAsking,
	"deny,allow,deny":   modeAsking,
	"deny,ask,allow":    modeAsking,
	"deny,ask,ask":      modeAsking,
	"deny,ask,deny":     modeAsking,
	"deny,deny,allow":   modeAsking,
	"deny,deny,ask":     modeAsking,
	"deny,deny,deny":    modeAsking,
}

func modeOf(policies ...gate.Policy) NativeMode {
	return projected(gate.NewEngine(gate.Must(append(policies, gate.KnowsAgent(catalogue.Tools()))...), nil).AgentConfig())
}

// knowsTools is a policy that decides nothing.
var knowsTools = gate.Knows("ours", tool.Tools{tool.Must[tool.None, string]("save", "Saves.", nil, tool.FileWrite)})

func TestMapPermissions_EveryTriple(t *testing.T) {
	if len(modeTable) != 27 {
		t.Fatalf("%d rows, want 27", len(modeTable))
	}
	levels := []gate.Level{gate.LevelUnset, gate.LevelAsk, gate.LevelAllow, gate.LevelDeny}
	for i := range 64 {
		p := &gate.Permissions{FileWrite: levels[i/16], ShellExecute: levels[i/4%4], NetworkAccess: levels[i%4]}
		t.Run(fmt.Sprintf("%d,%d,%d", p.FileWrite, p.ShellExecute, p.NetworkAccess), func(t *testing.T) {
			want, ok := modeTable[fmt.Sprintf("%s,%s,%s", p.FileWrite, p.ShellExecute, p.NetworkAccess)]
			if got := MapPermissions(p); got != want || !ok {
				t.Errorf("%+v, want %+v", got, want)
			}
			if got := modeOf(gate.FromCapabilities(p), knowsTools); got != want {
				t.Errorf("as a gate: %+v; want %+v", got, want)
			}
			p.Mode = gate.ModeAllow
			allowed := fmt.Sprintf("%s,%s,%s", p.Level(tool.FileWrite), p.Level(tool.ShellExecute), p.Level(tool.NetworkAccess))
			if got := MapPermissions(p); got != modeTable[allowed] {
				t.Errorf("with what is not set allowed: %+v, want %+v", got, modeTable[allowed])
			}
			for mode, want := range map[gate.Mode]NativeMode{gate.ModeAuto: modeAuto, gate.ModeBypass: modeBypass, "yolo": modeAsking} {
				p.Mode = mode
				if got := MapPermissions(p); got != want {
					t.Errorf("with mode %s: %+v, want %+v", mode, got, want)
				}
			}
			for _, mode := range []gate.Mode{"", gate.ModeAuto, gate.ModeBypass} {
				p.Mode, p.WritablePaths = mode, []string{}
				if got := MapPermissions(p); got != modeAsking {
					t.Errorf("with writable paths and mode %q: %+v, want %+v", mode, got, modeAsking)
				}
			}
		})
	}
	if got := MapPermissions(nil); got != modeDefault {
		t.Errorf("no permissions: %+v, want %+v", got, modeDefault)
	}
	if got := MapPermissions(&gate.Permissions{}); got != modeAsking {
		t.Errorf("{}: %+v, want %+v", got, modeAsking)
	}
	if got := MapPermissions(&gate.Permissions{FileWrite: gate.LevelAllow, ShellExecute: 7}); got != modeAsking {
		t.Errorf("a level that does not exist: %+v, want %+v", got, modeAsking)
	}
}

func TestModeOf_Gate(t *testing.T) {
	var (
		all    = gate.Permissions{FileWrite: gate.LevelAllow, ShellExecute: gate.LevelAllow, NetworkAccess: gate.LevelAllow}
		files  = gate.Permissions{FileWrite: gate.LevelAllow}
		mixed  = gate.Permissions{FileWrite: gate.LevelDeny}
		byAuto = gate.Permissions{Mode: gate.ModeAuto}
		byPass = gate.Permissions{Mode: gate.ModeBypass}
		caps   = func(p gate.Permissions, more ...gate.Policy) []gate.Policy {
			return append(more, gate.FromCapabilities(&p))
		}
		later = func(p gate.Permissions) []gate.Policy {
			policy := gate.FromCapabilities(&p)
			policy.When = func() bool { return false }
			return []gate.Policy{policy}
		}
		limits = gate.DenyTools("WebFetch")
		rule   = gate.Default(event.Deny)
	)
	for name, c := range map[string]struct {
		policies []gate.Policy
		want     NativeMode
	}{
		"permissions alone":             {caps(all), modeBypass},
		"with tools to know":            {caps(files, knowsTools), modeEdits},
		"with a policy that is absent":  {caps(all, gate.FromCapabilities(nil)), modeBypass},
		"bypass and limits":             {caps(byPass, limits), modeAsking},
		"all allowed and limits":        {caps(all, limits), modeAsking},
		"all allowed, unknown denied":   {caps(all, rule), modeAsking},
		"files allowed and limits":      {caps(files, limits), modeAsking},
		"two sets of permissions":       {caps(all, gate.FromCapabilities(&mixed)), modeAsking},
		"auto alone":                    {caps(byAuto), modeAuto},
		"auto stays auto":               {caps(byAuto, limits), modeAuto},
		"auto beside other permissions": {caps(mixed, gate.FromCapabilities(&byAuto)), modeAuto},
		"other permissions beside auto": {caps(byAuto, gate.FromCapabilities(&mixed)), modeAuto},
		"limits alone":                  {[]gate.Policy{limits}, modeAsking},
		"an empty gate":                 {nil, modeAsking},
		// A mode cannot change during the run, so that it does not follow a policy that comes later.
		"permissions for later": {later(byPass), modeAsking},
	} {
		t.Run(name, func(t *testing.T) {
			if got := modeOf(c.policies...); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
