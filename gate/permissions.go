// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// A Level is how far a capability is given.
type Level uint8

// The levels. The zero value asks, like LevelAsk, but counts as not set where permissions are laid over others.
const (
	LevelUnset Level = iota
	LevelAsk
	LevelAllow
	LevelDeny
)

// String gives "ask", "allow" or "deny". Any other value denies.
func (l Level) String() string { return l.verdict().String() }

func (l Level) verdict() event.Verdict {
	switch l {
	case LevelUnset, LevelAsk:
		return event.Ask
	case LevelAllow:
		return event.Allow
	}
	return event.Deny
}

// MarshalText implements encoding.TextMarshaler. LevelUnset is an empty text.
func (l Level) MarshalText() ([]byte, error) {
	if l == LevelUnset {
		return nil, nil
	}
	return []byte(l.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. An empty text is LevelUnset.
func (l *Level) UnmarshalText(text []byte) error {
	switch string(text) {
	case "":
		*l = LevelUnset
	case "ask":
		*l = LevelAsk
	case "allow":
		*l = LevelAllow
	case "deny":
		*l = LevelDeny
	default:
		return fmt.Errorf("gate: invalid level %q: must be allow, ask or deny", text)
	}
	return nil
}

// A Mode is the default of [Permissions], for capabilities whose level is not set, or sets their levels aside.
type Mode string

// The modes. The zero value is ModeAsk.
const (
	// ModeAsk asks a person about capabilities whose level is not set. It is the default of the command and of agent files.
	ModeAsk Mode = "ask"
	// ModeAllow allows capabilities whose level is not set: the cell is the boundary.
	ModeAllow Mode = "allow"
	// ModeAuto leaves the decision to the agent's own judgement. It needs an agent that has one.
	ModeAuto Mode = "auto"
	// ModeBypass gives all capabilities and ignores their levels.
	ModeBypass Mode = "bypass"
)

// Valid reports an error for a mode that does not exist.
func (m Mode) Valid() error {
	switch m {
	case "", ModeAsk, ModeAllow, ModeAuto, ModeBypass:
		return nil
	}
	return fmt.Errorf("invalid Mode %q: must be %s, %s, %s or %s", m, ModeAsk, ModeAllow, ModeAuto, ModeBypass)
}

// SetsLevelsAside reports whether no level counts in the mode.
func (m Mode) SetsLevelsAside() bool { return m == ModeAuto || m == ModeBypass }

// Permissions are a permission policy over capabilities. The zero value asks about all of them.
type Permissions struct {
	FileWrite     Level `json:"fileWrite,omitzero"`
	ShellExecute  Level `json:"shellExecute,omitzero"`
	NetworkAccess Level `json:"networkAccess,omitzero"`
	// Mode is the default for levels that are not set, or sets all levels aside. Empty means ModeAsk.
	Mode Mode `json:"mode,omitzero"`
	// WritablePaths are the only paths that FileWrite covers: files, or directories with all that is below them, relative to
	// the workspace ([Facts.Workspace]), as "src" or "docs/notes.md". A call that writes elsewhere is denied, and so is one
	// whose paths cannot be determined. Links count as what they lead to. Nil means everywhere, empty means nowhere.
	//
	// They do not go with ModeAuto and ModeBypass, and not with ShellExecute allowed: a command writes anywhere.
	WritablePaths []string `json:"writablePaths,omitzero"`
}

// FromCapabilities makes a policy of the capabilities that tools need. A tool that needs several has the strictest of their
// levels. The policy abstains about tools that need none; if all others abstain too, they are allowed. A tool of the agent
// that is not in its catalogue may need anything: it is denied unless another policy allows it by name, as [AllowTools] and
// [Rules] can. ModeAuto and ModeBypass have no such tools: they leave everything to the agent, or give everything.
//
// Nil permissions override nothing: the policy abstains about every tool, and has no rule.
func FromCapabilities(p *Permissions) Policy {
	policy := Policy{Name: "capabilities", Stage: StageCapabilities}
	if p == nil {
		return policy
	}
	own := *p
	own.WritablePaths, policy.err = canonicalPaths(p.WritablePaths)
	policy.err = errors.Join(policy.err, own.enforceable())
	shown := own // changes by others do not affect the policy
	shown.WritablePaths = slices.Clone(own.WritablePaths)
	policy.Permissions = &shown
	policy.Otherwise = &Otherwise{Verdict: event.Allow}
	switch own.Mode {
	case "", ModeAsk, ModeAllow:
		policy.Judge, policy.knownOnly = own.judge, true
	case ModeBypass:
		policy.Judge = (&Permissions{FileWrite: LevelAllow, ShellExecute: LevelAllow, NetworkAccess: LevelAllow}).judge
	case ModeAuto: // the agent judges
	default:
		policy.err = errors.Join(policy.err, own.Mode.Valid())
	}
	return policy
}

func (p *Permissions) judge(c *Call, f *Facts) (event.Decision, bool) {
	if c.Needs == 0 {
		return event.Decision{}, false
	}
	if p.WritablePaths != nil && c.Needs.Has(tool.FileWrite) && !p.writable(c, f) {
		return event.Decision{Reason: p.unwritable(c, f)}, true
	}
	verdict, capability := p.strictest(c.Needs)
	switch verdict {
	case event.Allow:
		return event.Decision{Verdict: event.Allow}, true
	case event.Ask:
		return event.Decision{Verdict: event.Ask, Reason: fmt.Sprintf(capabilityNeedsApproval, c.Name, capability)}, true
	}
	return event.Decision{Reason: fmt.Sprintf(capabilityDenied, c.Name, capability)}, true
}

// strictest returns the strictest verdict about the capabilities, and the first that has it. Unknown ones are denied.
func (p *Permissions) strictest(needs tool.Capability) (event.Verdict, tool.Capability) {
	verdict, which := event.Allow, tool.Capability(0)
	for bit := tool.Capability(1); bit != 0 && bit <= needs; bit <<= 1 {
		if v := p.Level(bit).verdict(); needs.Has(bit) && (v < verdict || which == 0) {
			verdict, which = v, bit
		}
	}
	return verdict, which
}

// Level is the level of one capability: its own, or that of the Mode.
func (p *Permissions) Level(c tool.Capability) Level {
	level := LevelDeny
	switch c {
	case tool.FileWrite:
		level = p.FileWrite
	case tool.ShellExecute:
		level = p.ShellExecute
	case tool.NetworkAccess:
		level = p.NetworkAccess
	}
	switch {
	case level != LevelUnset:
		return level
	case p.Mode == ModeAllow:
		return LevelAllow
	}
	return LevelAsk
}
