// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"cmp"
	"fmt"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

type file struct {
	Path string `json:"path"`
}

var (
	readFile   = tool.Must[file, string]("read-file", "reads a file", nil, tool.ReadOnly)
	writeFile  = tool.Must[file, string]("write-file", "writes a file", nil, tool.Mutates, tool.FileWrite)
	deleteFile = tool.Must[file, string]("delete-file", "deletes a file", nil, tool.Mutates, tool.Dangerous, tool.FileWrite)
)

// A gate is made once and asked about every call. It knows the agent's own tools by the catalogue.
func ExampleFromRisk() {
	registry := tool.MustRegistry(nil, readFile, writeFile)
	g := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.FromRisk(gate.RiskOptions{
		Registry:   registry,
		Server:     "files",
		ReadOnly:   true,
		AgentTools: true,
	}))

	for _, name := range []string{"mcp__files__read-file", "mcp__files__write-file", "Grep", "Bash", "mcp__other__read-file"} {
		d := g.Decide(event.ToolCall{Name: name}, gate.Facts{})
		fmt.Printf("%-5s %s\n", d.Verdict, cmp.Or(d.Reason, name))
	}
	// Output:
	// allow mcp__files__read-file
	// deny  Read-only mode: mutating tools disabled.
	// allow Grep
	// deny  Read-only mode: mutating tools disabled.
	// deny  Tool not allowed: mcp__other__read-file
}

func ExampleFromCapabilities() {
	g := gate.Must(
		gate.KnowsAgent(catalogue.Tools()),
		gate.Knows("files", tool.Tools{writeFile}),
		gate.FromCapabilities(&gate.Permissions{FileWrite: gate.LevelDeny, NetworkAccess: gate.LevelAllow}),
	)

	for _, name := range []string{"Edit", "mcp__files__write-file", "Bash", "WebFetch", "Read"} {
		d := g.Decide(event.ToolCall{Name: name}, gate.Facts{})
		fmt.Printf("%-5s %s\n", d.Verdict, cmp.Or(d.Reason, name))
	}
	// Output:
	// deny  Edit needs the capability fileWrite, which the permission policy denies. Continue without this call.
	// deny  mcp__files__write-file needs the capability fileWrite, which the permission policy denies. Continue without this call.
	// ask   Bash needs the capability shellExecute, which has to be approved.
	// allow WebFetch
	// allow Read
}

// Files may be written below src alone. The agent has to ask before it runs a command, which could write
// anywhere.
func ExamplePermissions_writablePaths() {
	g := gate.Must(gate.KnowsAgent(catalogue.Tools()), gate.FromCapabilities(&gate.Permissions{
		FileWrite:     gate.LevelAllow,
		ShellExecute:  gate.LevelAsk,
		WritablePaths: []string{"src"},
	}))

	for _, path := range []string{"/project/src/main.go", "/project/go.mod"} {
		call := event.ToolCall{Name: "Write", Input: fmt.Appendf(nil, `{"file_path":%q}`, path)}
		d := g.Decide(call, gate.Facts{Workspace: "/project"})
		fmt.Println(d.Verdict, cmp.Or(d.Reason, path))
	}
	_, err := gate.New(gate.KnowsAgent(catalogue.Tools()), gate.FromCapabilities(&gate.Permissions{Mode: gate.ModeBypass, WritablePaths: []string{"../src"}}))
	fmt.Println(advice.Text(err))
	// Output:
	// allow /project/src/main.go
	// deny Write may not write /project/go.mod. Write only to src in /project.
	// gate: policy capabilities: WritablePaths[0] is "../src": it leaves the workspace with ".."
	// WritablePaths do not hold with Mode "bypass", which sets them aside
	//   next: use Mode "ask", or leave the paths out
}

func ExampleNewToolGate() {
	toolGate, err := gate.NewToolGate(gate.ToolGateOptions{
		Registry:       tool.Tools{readFile, writeFile, deleteFile},
		AllowDangerous: new(false),
	})
	if err != nil {
		panic(err)
	}

	for _, name := range []string{"read-file", "write-file", "delete-file"} {
		fmt.Printf("%s: %+v\n", name, toolGate(name))
	}
	// Output:
	// read-file: {Behavior:allow Message:}
	// write-file: {Behavior:allow Message:}
	// delete-file: {Behavior:deny Message:Use --dangerous to allow this tool.}
}

// Tools of the agent itself are not in a registry: lists say what they do.
func ExampleNewToolGate_builtin() {
	toolGate, err := gate.NewToolGate(gate.ToolGateOptions{
		Registry: tool.Tools{readFile, writeFile},
		ReadOnly: true,
		Builtin: gate.BuiltinLists{
			ReadOnly:  []string{"View", "GlobTool", "GrepTool", "LS"},
			Mutating:  []string{"Edit", "Replace", "Write", "Bash"},
			Dangerous: []string{"Bash"},
		},
	})
	if err != nil {
		panic(err)
	}

	for _, name := range []string{"View", "Edit"} {
		fmt.Printf("%s: %+v\n", name, toolGate(name))
	}
	// Output:
	// View: {Behavior:allow Message:}
	// Edit: {Behavior:deny Message:Read-only mode: mutating tools disabled.}
}
