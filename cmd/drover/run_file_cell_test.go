// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
)

// Changes of a run whose completion does not hold are written back by name alone.
func TestRunFile_IncompleteChangesAreWrittenBackByName(t *testing.T) {
	for flag, written := range map[string]bool{"--write-back": false, "--write-back-incomplete": true} {
		model := claudetest.NewModel(t, bashCall("echo x > src/new.txt"), script.Text("Done.").Always())
		p := newProgram(t, model.URL())
		p.leaves = !written // what was done by then
		path := p.cli.WriteFile(t, "agent.yaml", "version: 1\n"+aTask+"mounts: [{path: src}]\npolicy: {shellExecute: allow}\ncompletion: {files: [src/report.md], rounds: 1}\n")
		p.cli.WriteFile(t, "src/old.txt", "old")
		got := p.run("run", "-f", path, "--quiet", "--write-back", flag)
		if got.code != exitLimit || got.out != "" || !strings.Contains(got.errors, "the completion check does not hold") {
			t.Errorf("%s: exit code %d, it printed %q; %s", flag, got.code, got.out, got.errors)
		}
		if _, err := os.Stat(filepath.Join(p.cli.Work, "src/new.txt")); (err == nil) != written {
			t.Errorf("%s: the new file: %v, want it written: %v", flag, err, written)
		}
	}
}

// The agents of the examples do their work on the real CLI, in a cell.
func TestRunFile_AgentsOfTheExamplesWork(t *testing.T) {
	p := newProgram(t, unusedEndpoint(t))
	if err := os.CopyFS(p.cli.Work, os.DirFS("../../examples/agents")); err != nil {
		t.Fatal(err)
	}
	got := p.run("run", "-f", "review.yaml", "--arg", "focus=errors", "--model-script", "review.script.yaml", "--json")
	if got.code != 0 || got.errors != "" {
		t.Fatalf("review.yaml: exit code %d: %s\n%s", got.code, got.errors, got.out)
	}
	events := readEvents(t, []byte(got.out))
	done, _ := events[len(events)-1].Payload.(event.Done)
	var review struct {
		Issues []struct {
			File string
			Line int
		}
	}
	if err := json.Unmarshal(done.Output, &review); err != nil || len(review.Issues) != 1 || review.Issues[0].File != "project/greet.go" {
		t.Errorf("the review is %s (%v)", done.Output, err)
	}
	for i, e := range events {
		if want := int64(i + 1); e.Seq != want {
			t.Errorf("event %d has the number %d, want %d", i, e.Seq, want)
		}
	}
	if protection := emitted[isolation.Protection](t, got.out); len(protection) != 1 || protection[0].Level != isolation.LevelCell {
		t.Errorf("the protection is %+v, want that of a cell", protection)
	}

	got = p.run("run", "-f", "report.yaml", "--model-script", "report.script.yaml", "--write-back", "--quiet")
	if got.code != 0 || got.out != "The notes are in project/NOTES.md.\n" {
		t.Fatalf("report.yaml: exit code %d: %s\n%s", got.code, got.errors, got.out)
	}
	if notes, err := os.ReadFile(filepath.Join(p.cli.Work, "project/NOTES.md")); err != nil || !strings.Contains(string(notes), "It greets people.") {
		t.Errorf("NOTES.md is %q (%v)", notes, err)
	}
}

// Limits of a file on calls and tokens hold on the real CLI.
func TestRunFile_LimitsBindTheRealAgent(t *testing.T) {
	p := newProgram(t, unusedEndpoint(t))
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(p.cli.Work, name), []byte("version: 1\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("script.yaml", `
turns:
  - content: [{tool: Bash, input: {command: touch here, description: Try it}}]
  - text: Done.
`)
	write("denies.yaml", aTask+"policy: {shellExecute: deny}\n")
	got := p.run("run", "-f", "denies.yaml", "--model-script", "script.yaml")
	if got.code != exitDenied || !strings.Contains(got.errors, "Bash (1)") || strings.Contains(got.errors, "--allow") {
		t.Errorf("denied: exit code %d: %s\n%s", got.code, got.errors, got.out)
	}
	if _, err := os.Stat(filepath.Join(p.cli.Work, "here")); err == nil {
		t.Error("the command that the file denies was run")
	}
	write("short.yaml", aTask+"policy: {shellExecute: allow}\nlimits: {tokens: 15}\n")
	got = p.run("run", "-f", "short.yaml", "--model-script", "script.yaml")
	if got.code != exitLimit || !strings.Contains(got.errors, "limits.tokens of short.yaml 15") {
		t.Errorf("spent: exit code %d: %s\n%s", got.code, got.errors, got.out)
	}
}

// greeter is an MCP server that needs nothing but a shell.
const greeter = `while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"greeter","version":"1"}}}\n' "$id" ;;
  *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"greet","description":"Greets.","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
  *'"tools/call"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s from %s"}]}}\n' "$id" "$GREETING" "$(basename "$PWD" | cut -c1-17)" ;;
  esac
done
`

// Servers of a file are started within the isolation of the agent, or reached through its proxy.
func TestRunFile_ServersRunIsolated(t *testing.T) {
	web := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	mcp.AddTool(web, &mcp.Tool{Name: "find", Description: "Finds."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found on the host"}}}, nil, nil
	})
	host := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return web }, nil))
	defer host.Close()
	defer func() {
		for s := range web.Sessions() {
			_ = s.Close() // else it waits for its client
		}
	}()
	model := claudetest.NewModel(t, script.Call("mcp__local__greet", script.Input{}), script.Call("mcp__web__find", script.Input{}), script.Text("Done."))
	p := newProgram(t, model.URL())
	for name, text := range map[string]string{
		"tools/greeter.sh": greeter,
		"agent.yaml": "version: 1\n" + aTask + `
mounts: [{path: tools}]
servers:
  local: {command: [sh, tools/greeter.sh], env: {GREETING: hello}}
  web: {url: "` + host.URL + `"}
isolation: {network: {localhost: true}}
policy: {networkAccess: allow}
`,
	} {
		path := filepath.Join(p.cli.Work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	got := p.run("run", "-f", "agent.yaml", "--allow-localhost")
	for tool, want := range map[string]string{"mcp__local__greet": "hello from drover-workspace-", "mcp__web__find": "found on the host"} {
		if result, _, _ := model.ToolResult(tool); got.code != 0 || result != want {
			t.Errorf("%s: got %q, want %q (exit code %d)\n%s\n%s", tool, result, want, got.code, got.out, got.errors)
		}
	}
}
