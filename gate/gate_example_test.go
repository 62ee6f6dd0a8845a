// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// Policies are given in any order. Each call gets the strictest of their verdicts.
func ExampleNew() {
	registry := tool.MustRegistry(nil, readFile, writeFile)
	g, err := gate.New(
		gate.KnowsAgent(catalogue.Tools()),
		gate.FromRisk(gate.RiskOptions{Registry: registry, Server: "files", AgentTools: true}),
		gate.AskTools("write-file"),
		gate.DenyTools("Bash"),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"mcp__files__read-file", "mcp__files__write-file", "Read", "Bash", "mcp__other__tool"} {
		d := g.Decide(event.ToolCall{Name: name}, gate.Facts{})
		fmt.Printf("%-5s %s\n", d.Verdict, cmp.Or(d.Reason, name))
	}
	// Output:
	// allow mcp__files__read-file
	// ask   mcp__files__write-file needs approval
	// allow Read
	// deny  Bash is denied. Make an allowed call instead, or continue without it.
	// deny  Tool not allowed: mcp__other__tool
}

// A run has until a deadline and a budget. The gate judges by what the program knows of both.
func ExampleNewEngine() {
	var spent atomic.Int64 // of the tokens; the reader of the run's messages adds to it
	deadline := time.Now().Add(time.Hour)
	g := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.Limits(gate.LimitOptions{}), gate.Rules(gate.RuleOptions{Allow: []string{"Edit(/src/**)"}}))
	engine := gate.NewEngine(g, &gate.EngineOptions{
		Facts: func(context.Context, gate.Call) gate.Facts {
			return gate.Facts{
				Deadline:  deadline,
				Remaining: gate.Remaining{Tokens: new(1000 - spent.Load())},
				Dir:       "/project",
			}
		},
	})

	call := event.ToolCall{Name: "Write", Input: json.RawMessage(`{"file_path":"/project/src/main.go"}`)}
	for range 2 {
		d := engine.Decide(context.Background(), call)
		fmt.Println(cmp.Or(d.Reason, "allowed"))
		spent.Add(1200)
	}
	// Output:
	// allowed
	// Token budget exhausted
}

// An approver answers by rules what it can, and leaves the rest to a person: here, commands that are
// known to be harmless are not asked about.
func ExampleApproverFunc() {
	harmless := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.AllowTools("Bash(go test:*)", "Bash(git status)"))
	person := gate.ApproverFunc(func(_ context.Context, q gate.Question) (gate.Answer, error) {
		fmt.Println("a person is asked about", string(q.Call.Input))
		return gate.Answer{Verdict: event.Deny, Reason: "Not today."}, nil
	})
	engine := gate.NewEngine(
		gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.FromCapabilities(&gate.Permissions{ShellExecute: gate.LevelAsk})),
		&gate.EngineOptions{Approver: gate.ApproverFunc(func(ctx context.Context, q gate.Question) (gate.Answer, error) {
			if harmless.Decide(q.Call, gate.Facts{}).Verdict == event.Allow {
				return gate.Answer{Verdict: event.Allow}, nil
			}
			return person.Approve(ctx, q)
		})})

	for _, input := range []string{`{"command":"go test ./..."}`, `{"command":"go test ./... && make install"}`} {
		d := engine.Decide(context.Background(), event.ToolCall{Name: "Bash", Input: json.RawMessage(input)})
		fmt.Println(cmp.Or(d.Reason, "allowed"))
	}
	// Output:
	// allowed
	// a person is asked about {"command":"go test ./... && make install"}
	// Not today.
}
