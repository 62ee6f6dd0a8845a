// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// The native modes of the tables.
var (
	bypass  = gate.NativeMode{Mode: claude.ModeBypassPermissions}
	edits   = gate.NativeMode{Mode: claude.ModeAcceptEdits}
	asking  = gate.NativeMode{Mode: claude.ModeDefault, Callback: true}
	auto    = gate.NativeMode{Mode: claude.ModeAuto, LeaveAllowed: true}
	vendors = gate.NativeMode{Mode: claude.ModeDefault, LeaveAllowed: true}
)

var modeTable = map[string]gate.NativeMode{
	"allow,allow,allow": bypass,
	"allow,allow,ask":   asking,
	"allow,allow,deny":  asking,
	"allow,ask,allow":   asking,
	"allow,ask,ask":     edits,
	"allow,ask,deny":    asking,
	"allow,deny,allow":  asking,
	"allow,deny,ask":    asking,
	"allow,deny,deny":   asking,
	"ask,allow,allow":   asking,
	"ask,allow,ask":     asking,
	"ask,allow,deny":    asking,
	"ask,ask,allow":     asking,
	"ask,ask,ask":       asking,
	"ask,ask,deny":      asking,
	"ask,deny,allow":    asking,
	"ask,deny,ask":      asking,
	"ask,deny,deny":     asking,
	"deny,allow,allow":  asking,
	"deny,allow,ask":    asking,
	"deny,allow,deny":   asking,
	"deny,ask,allow":    asking,
	"deny,ask,ask":      asking,
	"deny,ask,deny":     asking,
	"deny,deny,allow":   asking,
	"deny,deny,ask":     asking,
	"deny,deny,deny":    asking,
}

func TestEveryTripleHasItsMode(t *testing.T) {
	if len(modeTable) != 27 {
		t.Fatalf("%d rows, want 27", len(modeTable))
	}
	eachTriple(t, func(t *testing.T, p *gate.Permissions, levels string) {
		want, ok := modeTable[levels]
		if got := gate.MapPermissions(p); got != want || !ok {
			t.Errorf("%+v, want %+v", got, want)
		}
		if got, err := gate.Must(gate.FromCapabilities(p), ourTools(t)).Project(gate.ClaudeCode()); err != nil || got != want {
			t.Errorf("as a gate: %+v, %v; want %+v", got, err, want)
		}
		for mode, want := range map[gate.Mode]gate.NativeMode{gate.ModeAuto: auto, gate.ModeBypass: bypass, "yolo": asking} {
			p.Mode = mode
			if got := gate.MapPermissions(p); got != want {
				t.Errorf("with mode %s: %+v, want %+v", mode, got, want)
			}
		}
		for _, mode := range []gate.Mode{"", gate.ModeAuto, gate.ModeBypass} {
			p.Mode, p.WritablePaths = mode, []string{}
			if got := gate.MapPermissions(p); got != asking {
				t.Errorf("with writable paths and mode %q: %+v, want %+v", mode, got, asking)
			}
		}
	})
	if got := gate.MapPermissions(nil); got != vendors {
		t.Errorf("no permissions: %+v, want %+v", got, vendors)
	}
	if got := gate.MapPermissions(&gate.Permissions{}); got != asking {
		t.Errorf("{}: %+v, want %+v", got, asking)
	}
}

func TestAGateIsProjectedOnAnAgentOrRefused(t *testing.T) {
	var (
		all    = gate.Permissions{FileWrite: gate.LevelAllow, ShellExecute: gate.LevelAllow, NetworkAccess: gate.LevelAllow}
		files  = gate.Permissions{FileWrite: gate.LevelAllow}
		mixed  = gate.Permissions{FileWrite: gate.LevelDeny}
		byAuto = gate.Permissions{Mode: gate.ModeAuto}
		byPass = gate.Permissions{Mode: gate.ModeBypass}
		caps   = func(p gate.Permissions, more ...gate.Policy) []gate.Policy {
			return append(more, gate.FromCapabilities(&p))
		}
		limits  = denies("limits", gate.StageLimits)
		rule    = gate.Default(event.Deny)
		refused = gate.NativeMode{}

		claudeCode = gate.ClaudeCode()
		hookOnly   = gate.Agent{Name: "hooked", Hook: true}
		asker      = gate.Agent{Name: "asker", Callback: true, Modes: []claude.PermissionMode{claude.ModeDefault}}
		modal      = gate.Agent{Name: "modal", Modes: []claude.PermissionMode{claude.ModeDefault, claude.ModeAcceptEdits, claude.ModeBypassPermissions, claude.ModeAuto}}
		bare       = gate.Agent{Name: "bare"}
	)
	for name, c := range map[string]struct {
		policies []gate.Policy
		agent    gate.Agent
		want     gate.NativeMode
		missing  string // policies that the error must name
	}{
		"a hook: permissions alone":             {caps(all), claudeCode, bypass, ""},
		"a hook: with tools to know":            {caps(files, ourTools(t)), claudeCode, edits, ""},
		"a hook: with a policy that is absent":  {caps(all, gate.FromCapabilities(nil)), claudeCode, bypass, ""},
		"a hook: bypass and limits":             {caps(byPass, limits), claudeCode, asking, ""},
		"a hook: all allowed and limits":        {caps(all, limits), claudeCode, asking, ""},
		"a hook: all allowed, unknown denied":   {caps(all, rule), claudeCode, asking, ""},
		"a hook: files allowed and limits":      {caps(files, limits), claudeCode, asking, ""},
		"a hook: two sets of permissions":       {caps(all, gate.FromCapabilities(&mixed)), claudeCode, asking, ""},
		"a hook: auto alone":                    {caps(byAuto), claudeCode, auto, ""},
		"a hook: auto stays auto":               {caps(byAuto, limits), claudeCode, auto, ""},
		"a hook: auto beside other permissions": {caps(mixed, gate.FromCapabilities(&byAuto)), claudeCode, auto, ""},
		"a hook: other permissions beside auto": {caps(byAuto, gate.FromCapabilities(&mixed)), claudeCode, auto, ""},
		"a hook: limits alone":                  {[]gate.Policy{limits}, claudeCode, asking, ""},
		"a hook: an empty gate":                 {nil, claudeCode, asking, ""},
		"a hook alone: permissions":             {caps(all), hookOnly, gate.NativeMode{}, ""},
		"a hook alone: limits":                  {caps(mixed, limits), hookOnly, gate.NativeMode{}, ""},
		"a hook alone: auto needs the mode":     {caps(byAuto), hookOnly, refused, "capabilities"},
		"a callback: permissions":               {caps(mixed), asker, asking, ""},
		"a callback: in place of bypass":        {caps(all), asker, asking, ""},
		"a callback: in place of acceptEdits":   {caps(files), asker, asking, ""},
		"a callback: auto needs the mode":       {caps(byAuto), asker, refused, "capabilities"},
		"a callback: limits":                    {caps(mixed, limits), asker, refused, "limits, capabilities"},
		"a callback: a rule for unknown tools":  {caps(all, rule), asker, refused, "capabilities, default"},
		"modes: bypass":                         {caps(byPass), modal, bypass, ""},
		"modes: all allowed":                    {caps(all), modal, bypass, ""},
		"modes: files allowed":                  {caps(files), modal, edits, ""},
		"modes: auto":                           {caps(byAuto), modal, auto, ""},
		"modes: auto and limits":                {caps(byAuto, limits), modal, refused, "limits, capabilities"},
		"modes: a denial":                       {caps(mixed), modal, refused, "capabilities"},
		"modes: an empty policy":                {caps(gate.Permissions{}), modal, refused, "capabilities"},
		"modes: all allowed and limits":         {caps(all, limits), modal, refused, "limits, capabilities"},
		"nothing: bypass":                       {caps(all), bare, refused, "capabilities"},
		"nothing: an empty gate":                {nil, bare, refused, "the denial of every call"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := gate.Must(c.policies...).Project(c.agent)
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			if errors.Is(err, gate.ErrUnenforceable) != (c.missing != "") {
				t.Fatalf("error %v, refused should be %t", err, c.missing != "")
			}
			if want := c.agent.Name + " has no means for " + c.missing + "\n"; err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("error %q lacks %q", err, want)
			}
		})
	}
}
