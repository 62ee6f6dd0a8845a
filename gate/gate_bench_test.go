// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/drover-agents/drover/event"
)

// realistic is a chain of ten policies, as a program might have it.
func realistic() *Gate {
	return ForClaude(
		Limits(LimitOptions{MaxCalls: 1000}),
		DenyTools("WebFetch", "mcp__untrusted", "Read(.env)", "Edit(/.git/**)"),
		AllowTools("Read", "Grep", "Glob", "Write", "Edit", "Bash(git status:*)", "Bash(go test:*)", "mcp__files"),
		FromRisk(RiskOptions{Registry: known("files", "find", "save").Tools["files"], Server: "files", AgentTools: true}),
		FromCapabilities(&Permissions{FileWrite: LevelAllow, ShellExecute: LevelAllow, NetworkAccess: LevelDeny}),
		Blocked(),
		RequireBefore(map[string][]string{"save": {"find"}, "Bash": {"Read"}}),
		ReadBeforeWrite(ReadBeforeWriteOptions{}),
		Rules(RuleOptions{Root: "/home/me/Project", Allow: []string{"Write(/src/**)", "Write(/docs/**/*.md)"}, Deny: []string{"Write(/src/vendor/**)"}}),
		Custom("own", func(*Call, *Facts) (event.Decision, bool) { return event.Decision{}, false }),
	)
}

// allowedCalls are calls that the chain allows.
var allowedCalls = []struct {
	name string
	call event.ToolCall
	// allocates is set if reading the call cannot do without memory.
	allocates bool
}{
	{"registry tool", event.ToolCall{ID: "toolu_1", Name: "mcp__files__find", Input: json.RawMessage(`{"query":"gate","limit":10}`)}, false},
	{"registry tool, bare", event.ToolCall{ID: "toolu_1", Name: "save", Input: json.RawMessage(`{"query":"gate"}`)}, false},
	{"Read", event.ToolCall{ID: "toolu_1", Name: "Read", Input: json.RawMessage(`{"file_path":"/home/me/Project/src/Main.go","offset":1,"limit":200}`)}, false},
	{"Write with a path rule", event.ToolCall{ID: "toolu_1", Name: "Write", Input: json.RawMessage(`{"file_path":"/home/me/Project/src/Main.go","content":"package main\n\nfunc main() {}\n"}`)}, false},
	{"Bash with a command rule", event.ToolCall{ID: "toolu_1", Name: "Bash", Input: json.RawMessage(`{"command":"git status --short && go test ./...","description":"Look and test"}`)}, true},
}

func realisticFacts() Facts {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return Facts{
		Now: now, Deadline: now.Add(time.Hour), Calls: 17, Dir: "/home/me/Project",
		Remaining: Remaining{Tokens: new(int64(100_000)), CostUSD: new(1.5)},
		Invoked:   set("find", "Read"), Blocked: set("KillShell"),
		ReadPaths: set("/home/me/Project/src/Main.go"),
		Target:    Target{Path: "/home/me/Project/src/Main.go"},
	}
}

func BenchmarkDecide(b *testing.B) {
	g, facts := realistic(), realisticFacts()
	for _, c := range allowedCalls {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := g.Decide(c.call, facts); d.Verdict != event.Allow {
					b.Fatalf("got %s (%s), want allow", d.Verdict, d.Reason)
				}
			}
		})
	}
}

func writableSource() Policy {
	return FromCapabilities(&Permissions{FileWrite: LevelAllow, WritablePaths: []string{"docs", "testdata", "src"}})
}

// BenchmarkRule is what single rules cost, with nothing else around them.
func BenchmarkRule(b *testing.B) {
	facts := realisticFacts()
	for _, c := range []struct {
		name   string
		policy Policy
		call   event.ToolCall
	}{
		{"name", AllowTools("Read"), allowedCalls[2].call},
		{"path", Rules(RuleOptions{Allow: []string{"Write(/src/**)"}}), allowedCalls[3].call},
		{"path denied", Rules(RuleOptions{Allow: []string{"Write"}, Deny: []string{"Write(/vendor/**)"}}), allowedCalls[3].call},
		{"writable path", writableSource(), allowedCalls[3].call},
		{"command", AllowTools("Bash(git status:*)", "Bash(go test:*)"), allowedCalls[4].call},
		{"command denied", Rules(RuleOptions{Allow: []string{"Bash"}, Deny: []string{"Bash(rm:*)"}}), allowedCalls[4].call},
	} {
		g := ForClaude(c.policy)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := g.Decide(c.call, facts); d.Verdict != event.Allow {
					b.Fatalf("got %s (%s), want allow", d.Verdict, d.Reason)
				}
			}
		})
	}
}

func TestGate_WriteToAWritablePathDoesNotAllocate(t *testing.T) {
	g, facts := ForClaude(writableSource()), realisticFacts()
	for name, workspace := range map[string]string{"the working directory": "", "a workspace": facts.Dir} {
		facts.Workspace = workspace
		var d event.Decision
		got := testing.AllocsPerRun(100, func() { d = g.Decide(allowedCalls[3].call, facts) })
		if d.Verdict != event.Allow || got > 0 {
			t.Errorf("in %s: got %s (%s) with %v allocations, want allow with none", name, d.Verdict, d.Reason, got)
		}
	}
}

func TestGate_AllowedCallDoesNotAllocate(t *testing.T) {
	g, facts := realistic(), realisticFacts()
	for _, c := range allowedCalls {
		var d event.Decision
		got := testing.AllocsPerRun(100, func() { d = g.Decide(c.call, facts) })
		if d.Verdict != event.Allow {
			t.Errorf("%s: got %s (%s), want allow", c.name, d.Verdict, d.Reason)
		}
		if got > 0 && !c.allocates {
			t.Errorf("%s: got %v allocations, want none", c.name, got)
		}
	}
}

// Each policy returns a decision by value. At another size the loads of a copy overlap its stores, and the processor waits.
func TestDecision_IsCopiedWithoutStalls(t *testing.T) {
	if size := reflect.TypeFor[event.Decision]().Size(); size%16 != 0 {
		t.Errorf("a decision has %d bytes, want a multiple of 16", size)
	}
}
