// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

type capabilityRow struct{ levels, files, shell, network, both string }

// capabilityTable has a row for each of the 27 policies: the levels of files, shell and network,
// then what becomes of tools that write files, run commands, use the network, and do the last two.
var capabilityTable = []capabilityRow{
	{"allow,allow,allow", "allow", "allow", "allow", "allow"},
	{"allow,allow,ask", "allow", "allow", "ask", "ask"},
	{"allow,allow,deny", "allow", "allow", "deny", "deny"},
	{"allow,ask,allow", "allow", "ask", "allow", "ask"},
	{"allow,ask,ask", "allow", "ask", "ask", "ask"},
	{"allow,ask,deny", "allow", "ask", "deny", "deny"},
	{"allow,deny,allow", "allow", "deny", "allow", "deny"},
	{"allow,deny,ask", "allow", "deny", "ask", "deny"},
	{"allow,deny,deny", "allow", "deny", "deny", "deny"},
	{"ask,allow,allow", "ask", "allow", "allow", "allow"},
	{"ask,allow,ask", "ask", "allow", "ask", "ask"},
	{"ask,allow,deny", "ask", "allow", "deny", "deny"},
	{"ask,ask,allow", "ask", "ask", "allow", "ask"},
	{"ask,ask,ask", "ask", "ask", "ask", "ask"},
	{"ask,ask,deny", "ask", "ask", "deny", "deny"},
	{"ask,deny,allow", "ask", "deny", "allow", "deny"},
	{"ask,deny,ask", "ask", "deny", "ask", "deny"},
	{"ask,deny,deny", "ask", "deny", "deny", "deny"},
	{"deny,allow,allow", "deny", "allow", "allow", "allow"},
	{"deny,allow,ask", "deny", "allow", "ask", "ask"},
	{"deny,allow,deny", "deny", "allow", "deny", "deny"},
	{"deny,ask,allow", "deny", "ask", "allow", "ask"},
	{"deny,ask,ask", "deny", "ask", "ask", "ask"},
	{"deny,ask,deny", "deny", "ask", "deny", "deny"},
	{"deny,deny,allow", "deny", "deny", "allow", "deny"},
	{"deny,deny,ask", "deny", "deny", "ask", "deny"},
	{"deny,deny,deny", "deny", "deny", "deny", "deny"},
}

// capabilityTools are the tools of each column.
var capabilityTools = map[string][]string{
	"files":   {"Write", "Edit", "MultiEdit", "NotebookEdit", "Write(/src/**)", "save", "mcp__ours__save"},
	"shell":   {"Bash", "Bash(ls)"},
	"network": {"WebFetch", "WebSearch"},
	"both":    {"Monitor", "mcp__ours__deploy"},
	"none":    {"Read", "Grep", "mcp__theirs__Write", "mcp__theirs__save", "mcp__ours__peek", "mcp__ours__wipe"},
	"unknown": {"Frob", "WriteConfig", "bash"},
}

func ourTools(t testing.TB) gate.Policy {
	t.Helper()
	return gate.Knows("ours", tool.Tools{
		declared(t, "save", tool.FileWrite), declared(t, "deploy", tool.ShellExecute, tool.NetworkAccess),
		declared(t, "peek", tool.ReadOnly), declared(t, "wipe", tool.Mutates, tool.Dangerous),
	})
}

func levelsOf(t testing.TB, text string) *gate.Permissions {
	t.Helper()
	var p gate.Permissions
	parts := strings.Split(text, ",")
	for i, l := range []*gate.Level{&p.FileWrite, &p.ShellExecute, &p.NetworkAccess} {
		if err := l.UnmarshalText([]byte(parts[i])); err != nil {
			t.Fatal(err)
		}
	}
	return &p
}

// levelTexts are the levels as a policy can contain them: "" is not set.
var levelTexts = []string{"", "ask", "allow", "deny"}

// eachTriple calls f for all 64 policies, with the row of the table that holds for it.
func eachTriple(t *testing.T, f func(t *testing.T, p *gate.Permissions, row string)) {
	t.Helper()
	for _, files := range levelTexts {
		for _, shell := range levelTexts {
			for _, network := range levelTexts {
				levels := files + "," + shell + "," + network
				p := levelsOf(t, levels)
				meaning := fmt.Sprintf("%s,%s,%s", p.FileWrite, p.ShellExecute, p.NetworkAccess)
				t.Run(levels, func(t *testing.T) { f(t, p, meaning) })
			}
		}
	}
}

func TestPermissions_EveryTripleOfLevels(t *testing.T) {
	if len(capabilityTable) != 27 {
		t.Fatalf("%d rows, want 27", len(capabilityTable))
	}
	eachTriple(t, func(t *testing.T, p *gate.Permissions, levels string) {
		row := capabilityTable[slices.IndexFunc(capabilityTable, func(r capabilityRow) bool { return r.levels == levels })]
		g := gate.ForClaude(ourTools(t), gate.FromCapabilities(p))
		for column, want := range map[string]string{"files": row.files, "shell": row.shell, "network": row.network, "both": row.both, "none": "allow", "unknown": "deny"} {
			for _, name := range capabilityTools[column] {
				if got := decide(g, name); got.Verdict.String() != want {
					t.Errorf("%s: %s (%s), want %s", name, got.Verdict, got.Reason, want)
				}
			}
		}
	})
}

// A level that is not set is not written, and a level that is set comes back as it was.
func TestLevel_JSON(t *testing.T) {
	eachTriple(t, func(t *testing.T, p *gate.Permissions, _ string) {
		var want []string
		for _, field := range []struct {
			name  string
			level gate.Level
		}{{"fileWrite", p.FileWrite}, {"shellExecute", p.ShellExecute}, {"networkAccess", p.NetworkAccess}} {
			if field.level != gate.LevelUnset {
				want = append(want, fmt.Sprintf("%q:%q", field.name, field.level))
			}
		}
		text, err := json.Marshal(p)
		if want := "{" + strings.Join(want, ",") + "}"; err != nil || string(text) != want {
			t.Errorf("written %s (%v), want %s", text, err, want)
		}
		var again gate.Permissions
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, &again); diff != "" {
			t.Errorf("read again (-want +got):\n%s", diff)
		}
	})
}

func TestLevel_Text(t *testing.T) {
	for level, want := range map[gate.Level]struct{ shown, text string }{
		gate.LevelUnset: {"ask", ""}, gate.LevelAsk: {"ask", "ask"}, gate.LevelAllow: {"allow", "allow"}, gate.LevelDeny: {"deny", "deny"},
	} {
		text, err := level.MarshalText()
		if err != nil || string(text) != want.text || level.String() != want.shown {
			t.Errorf("level %d is shown as %q and written as %q (%v), want %q and %q", level, level, text, err, want.shown, want.text)
		}
		again := gate.LevelDeny
		if err := again.UnmarshalText(text); err != nil || again != level {
			t.Errorf("%q is read as level %d (%v), want %d", text, again, err, level)
		}
	}
}

func TestFromCapabilities_ReasonNamesToolAndCapability(t *testing.T) {
	g := gate.ForClaude(ourTools(t), gate.FromCapabilities(&gate.Permissions{FileWrite: gate.LevelDeny, ShellExecute: gate.LevelAllow}))
	for name, want := range map[string]event.Decision{
		"Write":             {Reason: "Write needs the capability fileWrite, which the permission policy denies. Continue without this call.", Policy: "capabilities"},
		"mcp__ours__save":   {Reason: "mcp__ours__save needs the capability fileWrite, which the permission policy denies. Continue without this call.", Policy: "capabilities"},
		"Bash":              {Verdict: event.Allow, Policy: "capabilities"},
		"WebFetch":          {Verdict: event.Ask, Reason: "WebFetch needs the capability networkAccess, which has to be approved.", Policy: "capabilities"},
		"mcp__ours__deploy": {Verdict: event.Ask, Reason: "mcp__ours__deploy needs the capability networkAccess, which has to be approved.", Policy: "capabilities"},
		"Read":              {Verdict: event.Allow, Policy: "otherwise"},
	} {
		want.CallID, want.Tool = "toolu_1", name
		if diff := cmp.Diff(want, decide(g, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// An empty policy is a policy: what it leaves out is asked about.
func TestFromCapabilities_EmptyPermissionsAskAndNilDoesNotDecide(t *testing.T) {
	var empty gate.Permissions
	if err := json.Unmarshal([]byte(`{}`), &empty); err != nil {
		t.Fatal(err)
	}
	g := gate.ForClaude(gate.FromCapabilities(&empty))
	for name, want := range map[string]event.Verdict{"Write": event.Ask, "Bash": event.Ask, "WebSearch": event.Ask, "Read": event.Allow, "Frob": event.Deny} {
		if got := decide(g, name).Verdict; got != want {
			t.Errorf("{}: %s is %s, want %s", name, got, want)
		}
	}
	for _, rule := range []event.Verdict{event.Deny, event.Ask, event.Allow} {
		absent := gate.ForClaude(gate.FromCapabilities(nil), gate.Default(rule))
		for _, name := range []string{"Write", "Bash", "WebFetch", "Read", "Frob"} {
			if got := decide(absent, name); got.Verdict != rule || got.Policy != "otherwise" {
				t.Errorf("no policy: %s is %s by %s, want %s by the rule", name, got.Verdict, got.Policy, rule)
			}
		}
	}
	if got := decide(gate.ForClaude(gate.FromCapabilities(nil)), "Read").Verdict; got != event.Deny {
		t.Errorf("a gate of no policy decides %s, want deny: there is no rule", got)
	}
}

func TestPermissions_AutoAndBypassIgnoreTheLevels(t *testing.T) {
	for _, row := range capabilityTable {
		p := levelsOf(t, row.levels)
		for _, mode := range []gate.Mode{gate.ModeAuto, gate.ModeBypass} {
			p.Mode = mode
			g := gate.ForClaude(gate.FromCapabilities(p))
			for _, name := range []string{"Write", "Bash", "WebFetch", "Monitor", "Read", "Frob"} {
				if got := decide(g, name); got.Verdict != event.Allow {
					t.Errorf("%s with mode %s: %s is %s (%s)", row.levels, mode, name, got.Verdict, got.Reason)
				}
			}
		}
	}
}

// ModeAsk and ModeAllow are defaults: they set what a level is that is not set, and no other.
func TestPermissions_ModeIsTheDefaultOfLevels(t *testing.T) {
	for mode, byDefault := range map[gate.Mode]event.Verdict{"": event.Ask, gate.ModeAsk: event.Ask, gate.ModeAllow: event.Allow} {
		for level, want := range map[gate.Level]event.Verdict{
			gate.LevelUnset: byDefault, gate.LevelAsk: event.Ask, gate.LevelAllow: event.Allow, gate.LevelDeny: event.Deny,
		} {
			p := &gate.Permissions{Mode: mode, FileWrite: level, ShellExecute: level, NetworkAccess: level}
			g := gate.ForClaude(gate.FromCapabilities(p))
			for _, name := range []string{"Write", "Bash", "WebFetch"} {
				if got := decide(g, name).Verdict; got != want {
					t.Errorf("mode %q, level %q: %s is %s, want %s", mode, level, name, got, want)
				}
			}
			if got := decide(g, "Frob").Verdict; got != event.Deny {
				t.Errorf("mode %q: a tool that the catalogue does not have is %s, want deny", mode, got)
			}
		}
	}
}

// In auto mode the agent judges, not the gate; bypass gives the capabilities away.
func TestPermissions_AutoDoesNotDecideAndBypassAllows(t *testing.T) {
	for mode, want := range map[gate.Mode]event.Verdict{gate.ModeAuto: event.Deny, gate.ModeBypass: event.Allow} {
		g := gate.ForClaude(gate.FromCapabilities(&gate.Permissions{Mode: mode}), gate.Default(event.Deny))
		if got := decide(g, "Write").Verdict; got != want {
			t.Errorf("%s beside a rule that denies: %s, want %s", mode, got, want)
		}
	}
}

func TestPermissions_AreCopied(t *testing.T) {
	p := &gate.Permissions{FileWrite: gate.LevelDeny}
	g := gate.ForClaude(gate.FromCapabilities(p))
	*p = gate.Permissions{Mode: gate.ModeBypass}
	if got := gate.NewEngine(g, nil).AgentConfig().Permissions; got.Mode != "" {
		t.Errorf("a later change of the permissions gave %+v", got)
	}
	if got := decide(g, "Write").Verdict; got != event.Deny {
		t.Errorf("a later change of the permissions gave %s", got)
	}
}

func TestPermissions_JSON(t *testing.T) {
	const text = `{"fileWrite":"allow","shellExecute":"ask","networkAccess":"deny","mode":"auto","writablePaths":["src"]}`
	var got gate.Permissions
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := gate.Permissions{
		FileWrite: gate.LevelAllow, ShellExecute: gate.LevelAsk, NetworkAccess: gate.LevelDeny,
		Mode: gate.ModeAuto, WritablePaths: []string{"src"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	if again, err := json.Marshal(got); err != nil || string(again) != text {
		t.Errorf("written %s (%v), want %s", again, err, text)
	}
	if err := json.Unmarshal([]byte(`{"fileWrite":"always"}`), &got); err == nil || !strings.Contains(advice.Text(err), `"always"`) {
		t.Errorf("a level that does not exist: %v", err)
	}
	if err := json.Unmarshal([]byte(`{"fileWrite":""}`), &got); err != nil || got.FileWrite != gate.LevelUnset {
		t.Errorf("an empty level: %d, %v", got.FileWrite, err)
	}
	for text, paths := range map[string][]string{`{}`: nil, `{"writablePaths":[]}`: {}} {
		if again, err := json.Marshal(gate.Permissions{WritablePaths: paths}); err != nil || string(again) != text {
			t.Errorf("nowhere is not everywhere: %#v is written %s (%v), want %s", paths, again, err, text)
		}
	}
}

func TestPermissions_InvalidLevelDenies(t *testing.T) {
	g := gate.ForClaude(gate.FromCapabilities(&gate.Permissions{FileWrite: 7}))
	if got := decide(g, "Write").Verdict; got != event.Deny {
		t.Errorf("level 7 gives %s", got)
	}
	if got := fmt.Sprint(gate.Level(7)); got != "deny" {
		t.Errorf("level 7 is %q", got)
	}
	unknown := declared(t, "beam", tool.Capability(1<<5))
	all := gate.FromCapabilities(&gate.Permissions{Mode: gate.ModeBypass})
	if got := decide(gate.ForClaude(gate.Knows("ours", tool.Tools{unknown}), all), "beam").Verdict; got != event.Deny {
		t.Errorf("an unknown capability gives %s", got)
	}
}
