// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

func ExampleAllowTools() {
	g := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.AllowTools("Read", "Bash(go test:*)", "mcp__tracker"), gate.DenyTools("mcp__tracker__delete"))
	for _, call := range []event.ToolCall{
		{Name: "Read"},
		{Name: "Write"},
		{Name: "Bash", Input: json.RawMessage(`{"command":"go test ./..."}`)},
		{Name: "Bash", Input: json.RawMessage(`{"command":"go test ./... && rm -rf build"}`)},
		{Name: "mcp__tracker__list"},
		{Name: "mcp__tracker__delete"},
	} {
		d := g.Decide(call, gate.Facts{})
		fmt.Println(cmp.Or(d.Reason, call.Name+" is allowed"))
	}
	// Output:
	// Read is allowed
	// Tool Write is not on the list of allowed tools. Use another tool.
	// Bash is allowed
	// Bash is allowed only as Bash(go test:*). Make such a call instead, or continue without it.
	// mcp__tracker__list is allowed
	// mcp__tracker__delete is denied. Make an allowed call instead, or continue without it.
}

func ExampleRules() {
	g := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.Rules(gate.RuleOptions{
		Root:  "/project",
		Allow: []string{"Read(**)", "Edit(/src/**)", "Bash(git:*)"},
		Ask:   []string{"Bash(git push:*)"},
		Deny:  []string{"Read(.env)"},
	}))
	for _, call := range []event.ToolCall{
		{Name: "Write", Input: json.RawMessage(`{"file_path":"/project/src/main.go"}`)},
		{Name: "Write", Input: json.RawMessage(`{"file_path":"/project/src/../Makefile"}`)},
		{Name: "Read", Input: json.RawMessage(`{"file_path":"/project/deploy/.env"}`)},
		{Name: "Bash", Input: json.RawMessage(`{"command":"git -C . push"}`)},
	} {
		d := g.Decide(call, gate.Facts{Dir: "/project"})
		fmt.Println(cmp.Or(d.Reason, call.Name+" is allowed"))
	}
	// Output:
	// Write is allowed
	// Write is allowed only as Edit(/src/**). Make such a call instead, or continue without it.
	// Read is denied by rule Read(.env): /project/deploy/.env. Make an allowed call instead, or continue without it.
	// Bash needs approval by rule Bash(git push:*): git -C . push
}

func ExampleLimits() {
	g := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.AllowTools("Read"), gate.Limits(gate.LimitOptions{MaxCalls: 10}))
	now := time.Now()
	fmt.Println(g.Decide(event.ToolCall{Name: "Read"}, gate.Facts{Calls: 10}).Reason)
	fmt.Println(g.Decide(event.ToolCall{Name: "Read"}, gate.Facts{Now: now, Deadline: now}).Reason)
	// Output:
	// Tool call limit reached: 10 of 10 calls made. Call no more tools; give your final answer.
	// Deadline exceeded
}

func ExampleReadBeforeWrite() {
	g := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.AllowTools("Edit"), gate.ReadBeforeWrite(gate.ReadBeforeWriteOptions{}))
	call := event.ToolCall{Name: "Edit", Input: json.RawMessage(`{"file_path":"main.go"}`)}
	fmt.Println(g.Decide(call, gate.Facts{Dir: "/project"}).Reason)
	fmt.Println(g.Decide(call, gate.Facts{Dir: "/project", ReadPaths: map[string]bool{"/project/main.go": true}}).Verdict)
	// Output:
	// /project/main.go has not been read; read it first, then write to it
	// allow
}

func ExampleCustom() {
	g := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.AllowTools("mcp__tracker"), gate.Custom("main agent only", func(c *gate.Call, _ *gate.Facts) (event.Decision, bool) {
		return event.Decision{Verdict: event.Ask, Reason: "A subagent wants to change the tracker."}, c.AgentID != ""
	}))
	d := g.Decide(event.ToolCall{Name: "mcp__tracker__close", AgentID: "agent-1"}, gate.Facts{})
	fmt.Println(d.Verdict, d.Reason)
	// Output: ask A subagent wants to change the tracker.
}
