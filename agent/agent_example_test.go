// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// A run is a loop over its events. The second run continues the conversation of the first.
func ExampleRunner() {
	ctx := context.Background()
	// A real program has claudecode.New(nil) here.
	adapter := &agenttest.Adapter{Tools: catalogue.Tools(), Steps: []agenttest.Step{
		agenttest.Emit(event.Text{Content: "I look around."}),
		agenttest.UseTool(event.ToolCall{ID: "toolu_1", Name: "Bash"}, "price.go"),
		agenttest.Done("conversation-1"),
	}}

	runner, err := agent.NewRunner(adapter, &agent.RunnerOptions{
		Role: "reviewer",
		Defaults: agent.Request{
			Settings: agent.Settings{
				MaxTurns:    20,
				Permissions: &gate.Permissions{FileWrite: gate.LevelDeny, ShellExecute: gate.LevelAsk},
			},
		},
		Approver: gate.ApproverFunc(func(_ context.Context, q gate.Question) (gate.Answer, error) {
			return gate.Answer{Verdict: event.Allow}, nil // or ask a person
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range runner.Run(ctx, agent.Request{Prompt: "Review the shop."}) {
		if err != nil { // the run was refused; there are no events
			fmt.Println(err)
			return
		}
		switch p := e.Payload.(type) {
		case event.Text:
			fmt.Println(e.Seq, p.Content)
		case event.ToolCall:
			fmt.Println(e.Seq, "calls", p.Name)
		case event.PermissionRequest:
			fmt.Println(e.Seq, "asks for", p.Name)
		case event.Decision:
			fmt.Println(e.Seq, "decided:", p.Verdict)
		case event.ToolResult:
			fmt.Println(e.Seq, "result:", string(p.Output))
		case event.Done:
			fmt.Println(e.Seq, "done:", p.Status)
		}
	}

	done, err := agent.Wait(runner.Run(ctx, agent.Request{Prompt: "And the tests?"}))
	fmt.Println(done.Status, err, "after", adapter.Requests()[1].Resume)
	// Output:
	// 1 I look around.
	// 2 calls Bash
	// 3 asks for Bash
	// 4 decided: allow
	// 5 result: "price.go"
	// 6 done: success
	// success <nil> after conversation-1
}

// Tasks run side by side. One that fails does not stop the others, and each has its done.
func ExampleParallel() {
	ctx := context.Background()
	author, _ := agent.NewRunner(agenttest.New(agenttest.Done("")), &agent.RunnerOptions{Role: "author"})
	critic, _ := agent.NewRunner(agenttest.New(agenttest.Panic("no")), &agent.RunnerOptions{Role: "critic"})

	ended := map[string]event.DoneStatus{}
	for e := range agent.Parallel(ctx,
		agent.Task{Runner: author, Request: agent.Request{Prompt: "Write the page."}},
		agent.Task{Runner: critic, Request: agent.Request{Prompt: "Criticise the last one."}},
	) {
		if done, ok := e.Payload.(event.Done); ok {
			ended[e.Role] = done.Status
		}
	}
	fmt.Println("author:", ended["author"])
	fmt.Println("critic:", ended["critic"])
	// Output:
	// author: success
	// critic: error
}

// A registry finds adapters by name, whether or not their agents are installed.
func ExampleRegistry() {
	registry, err := agent.NewRegistry(
		agenttest.New(),
		&agenttest.Adapter{Name: "codex", Readiness: agent.Readiness{
			State: agent.StateMissing, Detail: "there is no codex in PATH", Repair: "npm install -g codex",
		}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range registry.Names() {
		adapter, _ := registry.Lookup(name)
		ready := adapter.Ready(context.Background())
		fmt.Println(name, ready.State)
		if err := ready.Err(); err != nil {
			fmt.Println(advice.Text(err))
		}
	}
	_, err = registry.Lookup("gemini")
	fmt.Println(advice.Text(err))
	// Output:
	// codex missing
	// agent: the agent cannot be run: it is missing: there is no codex in PATH
	//   next: npm install -g codex
	// scripted ready
	// agent: no such agent: "gemini"
	//   next: choose one of those there are: codex, scripted
}

// An adapter has passed when the suite has.
func TestScriptedAdapter_PassesTheSuite(t *testing.T) {
	agenttest.TestAdapter(t, agenttest.Subject{
		New: func(*testing.T) agent.Adapter {
			return agenttest.New(agenttest.UseTool(event.ToolCall{ID: "1", Name: "Bash"}, "hello"), agenttest.Done("token"))
		},
		Missing: func(*testing.T) agent.Adapter {
			return &agenttest.Adapter{Readiness: agent.Readiness{State: agent.StateMissing, Detail: "it is not there", Repair: "install it"}}
		},
		Request: agent.Request{Prompt: "Say hello."},
	})
}
