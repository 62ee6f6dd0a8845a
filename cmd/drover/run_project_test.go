// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// inProject makes the current folder one with a project file.
func inProject(t *testing.T, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.WriteFile(agentfile.ProjectFile, []byte("version: 1\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestProjectFile_NarrowsARun(t *testing.T) {
	const file = "model: opus\neffort: low\nlimits: {time: 5m, turns: 7, usd: 0.5, tokens: 1000}\n" +
		"tools: {only: [Read, \"Bash(git *)\", WebFetch, mcp__lint], deny: [WebFetch]}\npolicy: {deny: [\"Read(**/.env)\", \"Bash(git push *)\"]}\n"
	agent := aTask + "model: haiku\neffort: high\nlimits: {turns: 3}\ntools: {allow: [Read, Grep, Bash]}\npolicy: {mode: allow}\n"
	allow := permissionFlags{mode: "allow"}
	for name, x := range map[string]struct {
		options       runOptions
		file          string // of the agent
		model, effort string
		turns         int
		usd           float64
		tools         []string
		allowed       string // the calls that may be made, of those below
	}{
		"alone":          {runOptions{permissions: allow}, "", "opus", "low", 7, 0.5, []string{"Read", "Bash(git *)", "WebFetch"}, "Read Bash"},
		"with flags":     {runOptions{permissions: allow, model: "sonnet", maxTurns: 9, maxUSD: 0.25, tools: toolList{"Read", "Grep"}}, "", "sonnet", "low", 7, 0.25, []string{"Read"}, "Read"},
		"with an agent":  {runOptions{}, agent, "haiku", "high", 3, 0.5, []string{"Read", "Bash"}, "Read Bash"},
		"without tools":  {runOptions{permissions: allow, tools: toolList{}}, "", "opus", "low", 7, 0.5, []string{}, ""},
		"left out":       {runOptions{permissions: allow, noProject: true}, "", "", "", 0, 0, nil, "Read Grep Bash WebFetch .env push"},
		"in --json":      {runOptions{permissions: allow, json: true}, "", "opus", "low", 7, 0.5, []string{"Read", "Bash(git *)", "WebFetch"}, "Read Bash"},
		"nothing else":   {runOptions{permissions: allow, tools: toolList{"mcp__drover__x"}}, "", "opus", "low", 7, 0.5, []string{}, ""},
		"one tool there": {runOptions{permissions: allow, tools: toolList{"Bash(git log)"}}, "", "opus", "low", 7, 0.5, []string{"Bash"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inProject(t, file)
			if x.options.prompt = "Look at it."; x.file != "" {
				x.options.prompt, x.options.file.path = "", writeAgent(t, x.file)
			}
			a := scriptedAgent{events: []event.Payload{success}}
			got := a.try(t.Context(), x.options)
			if got.code != 0 || strings.Contains(got.out, "sets:") {
				t.Fatalf("got %+v", got)
			}
			if want := "drover: .drover.yaml sets: model opus; effort low; at most 5m0s; at most 7 turns; "; strings.HasPrefix(got.errors, want) == x.options.noProject {
				t.Errorf("it prints %q, want %q", got.errors, want)
			}
			asked := a.asks[0]
			if asked.Model != x.model || asked.Effort != x.effort || asked.MaxTurns != x.turns {
				t.Errorf("model %q, effort %q, %d turns; want %q, %q, %d", asked.Model, asked.Effort, asked.MaxTurns, x.model, x.effort, x.turns)
			}
			if asked.Budget != nil && asked.Budget.MaxCostUSD != x.usd || asked.Budget == nil && x.usd != 0 {
				t.Errorf("the budget is %v, want $%v", asked.Budget, x.usd)
			}
			var allowed []string
			for _, c := range []struct{ name, tool, input string }{
				{"Read", "Read", `{"file_path":"/x/a.go"}`},
				{"Grep", "Grep", `{"pattern":"a"}`},
				{"Bash", "Bash", `{"command":"git status"}`},
				{"WebFetch", "WebFetch", `{"url":"https://example.com"}`},
				{".env", "Read", `{"file_path":"/x/.env"}`},
				{"push", "Bash", `{"command":"git push origin"}`},
			} {
				call := event.ToolCall{Name: c.tool, Input: json.RawMessage(c.input), Dir: "/x"}
				if asked.Host.Decide(t.Context(), call).Verdict == event.Allow {
					allowed = append(allowed, c.name)
				}
			}
			if got := strings.Join(allowed, " "); got != x.allowed {
				t.Errorf("allowed are the calls %q, want %q", got, x.allowed)
			}
			if diff := cmp.Diff(bareNames(x.tools), bareNames(asked.Tools)); diff != "" {
				t.Errorf("the tools (-want +got):\n%s", diff)
			}
		})
	}
}

// bareNames are the names without arguments, and without the server that an evaluation adds for its own tools.
func bareNames(tools []string) []string {
	if tools == nil {
		return nil
	}
	names := []string{}
	for _, name := range tools {
		if name, _, _ = strings.Cut(name, "("); name != "mcp__drover" {
			names = append(names, name)
		}
	}
	return names
}

func TestProjectFile_LimitIsNamedWhenItIsReached(t *testing.T) {
	inProject(t, "limits: {time: 20ms}\n")
	a := scriptedAgent{events: []event.Payload{event.Init{}}, stall: true}
	got := a.try(t.Context(), runOptions{prompt: "Look at it.", timeout: timeLimit(time.Minute)})
	if got.code != exitLimit || !strings.Contains(got.errors, "limits.time of .drover.yaml") {
		t.Errorf("got %+v, want the exit code %d and the limit by its name", got, exitLimit)
	}
}

func TestProjectFile_WrongFileIsAWrongUse(t *testing.T) {
	for name, x := range map[string]struct{ file, says string }{
		"what it may not set": {"isolation: {level: host}\n", "drover: .drover.yaml:2:1: isolation: a project file may not set isolation, which would change the isolation or the network of a run\n  next: leave it out: the file is not trusted"},
		"a misspelled tool":   {"policy: {deny: [Bsah]}\n", ".drover.yaml:2:17: policy.deny[0]: there is no tool Bsah"},
		"nothing to be read":  {strings.Repeat("# much\n", 10_000), "there are more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			inProject(t, x.file)
			var a scriptedAgent
			got := a.try(t.Context(), runOptions{prompt: "Look at it."})
			if got.code != exitUsage || got.out != "" || a.asks != nil || !strings.Contains(got.errors, x.says) || !strings.Contains(got.errors, "--no-project-file leaves the file out") {
				t.Errorf("got %+v, want the exit code %d and %q", got, exitUsage, x.says)
			}
			a.events = []event.Payload{success}
			if got := a.try(t.Context(), runOptions{prompt: "Look at it.", noProject: true}); got.code != 0 {
				t.Errorf("without it: %+v", got)
			}
		})
	}
}

// What the project file allows is no more than what the flags do: a question stays one.
func TestProjectFile_GivesNothing(t *testing.T) {
	inProject(t, "tools: {only: [Read, Bash, Write]}\n")
	a := scriptedAgent{events: []event.Payload{success}}
	if got := a.try(t.Context(), runOptions{prompt: "Look at it.", permissions: allows(t, "fileWrite"), tools: toolList{"Read", "Bash"}}); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	for tool, want := range map[string]event.Verdict{"Read": event.Allow, "Bash": event.Deny, "Write": event.Deny} {
		call := event.ToolCall{Name: tool, Input: json.RawMessage(`{"command":"ls","file_path":"/x"}`)}
		if got := a.asks[0].Host.Decide(t.Context(), call); got.Verdict != want {
			t.Errorf("%s: %v, want %v", tool, got, want)
		}
	}
	if p := a.asks[0].Permissions; p != nil && p.Mode == gate.ModeAllow {
		t.Errorf("permissions %+v", p)
	}
}

// The names of the project file are for its own lists: they do not hide a mistake in a flag.
func TestProjectFile_UnknownNamesAreForItsOwnLists(t *testing.T) {
	inProject(t, "tools: {only: [Read, Raed, mcp__none__x], deny: [NewTool], unknown: [Raed, NewTool, mcp__none]}\n")
	a := scriptedAgent{events: []event.Payload{success}}
	got := a.try(t.Context(), runOptions{prompt: "Look at it.", tools: toolList{"Raed"}})
	if got.code != exitUsage || !strings.Contains(got.errors, "--tools: there is no tool Raed\n  next: write Read; ") {
		t.Errorf("got %+v", got)
	}
	if got := a.try(t.Context(), runOptions{prompt: "Look at it."}); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	asked := a.asks[len(a.asks)-1]
	if diff := cmp.Diff([]string{"Read", "Raed"}, bareNames(asked.Tools)); diff != "" || !slices.Contains(asked.DisallowedTools, "NewTool") {
		t.Errorf("denied are %v; the tools (-want +got):\n%s", asked.DisallowedTools, diff)
	}
}
