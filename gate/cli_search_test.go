// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// The CLI shows the model our tools after a search, which a gate can be in the way of.
func TestCLI_ModelSeesTheAllowedTools(t *testing.T) {
	const name = "mcp__files__read-file"
	for _, tt := range []struct {
		title         string
		options       []tool.Option
		denied        []string
		native        []string
		before, after bool // the search
	}{
		{title: "the gate does not know the search, and lets it pass", after: true},
		{title: "the search is denied", denied: []string{"ToolSearch"}},
		{title: "the tool is always loaded", options: []tool.Option{tool.WithAlwaysLoad()}, before: true, after: true},
		{title: "there is no search", native: []string{"Read"}, before: true, after: true},
	} {
		t.Run(tt.title, func(t *testing.T) {
			read := tool.Must("read-file", "Reads a file.", func(context.Context, file) (string, error) { return "", nil }, append(tt.options, tool.ReadOnly)...)
			registry := tool.MustRegistry(nil, read)
			server, err := claudecode.NewSDKServer(registry, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			model := claudetest.NewModel(t,
				script.Call("ToolSearch", script.Input{"query": "select:" + name, "max_results": 1}),
				script.Text("Done."))
			opts := claudetest.CLI(t).Options(model)
			opts.Tools = tt.native
			opts.MCPServers = map[string]claude.MCPServer{"files": server.Server()}
			bind(t, gate.NewEngine(gate.ForClaude(gate.FromRisk(gate.RiskOptions{Registry: registry, Server: "files"}), gate.DenyTools(tt.denied...)), nil), opts)
			turn(t, claudetest.Connect(t, opts), "Find the tool.")
			requests := model.Requests()
			_, before := requests[0].Tool(name)
			_, after := requests[len(requests)-1].Tool(name)
			if before != tt.before || after != tt.after {
				t.Errorf("the model was shown the tool: %v before and %v after the search; want %v and %v", before, after, tt.before, tt.after)
			}
		})
	}
}
