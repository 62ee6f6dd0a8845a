// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/prompt/overrides"
	"github.com/drover-agents/drover/tool"
)

type lookParams struct {
	Query string `json:"query" doc:"plain query"`
	In    struct {
		Folder string `json:"folder,omitempty" doc:"plain folder"`
	} `json:"in,omitzero" doc:"plain place"`
}

// Every part that can be overridden, from the file on disk to the request that the model gets.
func TestFile_OverridesOfAllPartsReachTheModel(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t, script.Call("mcp__desk__look", script.Input{"query": "it"}), script.Text("Done.")).RequireAllUsed()
	rendered := renderWithOverrides(t)

	server, err := claudecode.NewSDKServer(tool.MustRegistry(nil, rendered.Tools...), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	opts := cli.Options(model)
	opts.MCPServers = map[string]claude.MCPServer{"desk": server.Server()}
	opts.PermissionMode = claude.ModeBypassPermissions
	for _, err := range claudetest.Connect(t, opts).Turn(t.Context(), claude.Text(rendered.Text)) {
		if err != nil {
			t.Fatal(err)
		}
	}

	request := model.Requests()[0]
	user := request.LastUserText()
	for _, want := range []string{
		"Overridden text for a.go.", "Example: overridden one", "Example: appended", "Overridden summary of a.go.",
		"Call `read_section` with section key \"manual\"", // by the overridden visibility
	} {
		if !strings.Contains(user, want) {
			t.Errorf("the prompt has no %q:\n%s", want, user)
		}
	}
	look, _ := request.Tool("mcp__desk__look")
	received := user + look.Description + string(look.InputSchema)
	for _, want := range []string{"Overridden look.", `{"query":"overridden"}`, `{"query":"appended"}`} {
		if !strings.Contains(look.Description, want) {
			t.Errorf("the description of the tool has no %q:\n%s", want, look.Description)
		}
	}
	for _, want := range []string{`"overridden query"`, `"overridden place"`, `"overridden folder"`} {
		if !strings.Contains(string(look.InputSchema), want) {
			t.Errorf("the parameters of the tool have no %s:\n%s", want, look.InputSchema)
		}
	}
	if strings.Contains(strings.ToLower(received), "plain") {
		t.Errorf("the model receives something that was overridden:\n%s", received)
	}
	if text, failed, _ := model.Requests()[1].ToolResult("mcp__desk__look"); text != "looked for it" || failed {
		t.Errorf("the tool answered %q (failed: %t), want it to work as before", text, failed)
	}
}

// renderWithOverrides makes a prompt in which everything is plain, and overrides all of it by a store.
func renderWithOverrides(t *testing.T) *prompt.Rendered {
	t.Helper()
	type args struct {
		Path string `json:"path"`
	}
	look := tool.Must("look", "Plain look.", func(_ context.Context, p lookParams) (string, error) { return "looked for " + p.Query, nil },
		tool.WithAlwaysLoad(), tool.WithExamples(tool.Example{Input: json.RawMessage(`{"query":"plain one"}`)}, tool.Example{Input: json.RawMessage(`{"query":"plain two"}`)}))
	task := prompt.Markdown("task", "Task", "Plain text for $path.").With(look)
	task.Examples = []prompt.TaskExample{{Objective: "plain one"}, {Objective: "plain two"}}
	p, err := prompt.NewPrompt[prompt.Text]("demo", "look", task, &prompt.Section{Key: "manual", Title: "Manual", Text: "Plain manual.", Summary: "Plain summary."})
	if err != nil {
		t.Fatal(err)
	}
	if p, err = p.Bind(args{"a.go"}); err != nil {
		t.Fatal(err)
	}
	f, err := (&overrides.Store{Dir: t.TempDir()}).File(p, "")
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for i, err := range []error{
		f.SetText(ctx, "task", "Overridden text for $path."),
		f.SetExample(ctx, "task", 0, &prompt.TaskExample{Objective: "overridden one"}),
		f.SetExample(ctx, "task", 1, nil),
		f.AppendExample(ctx, "task", prompt.TaskExample{Objective: "appended"}),
		f.SetSummary(ctx, "manual", "Overridden summary of $path."),
		f.SetVisibility(ctx, "manual", prompt.Summary),
		f.SetDescription(ctx, "look", "Overridden look."),
		f.SetParam(ctx, "look", "query", "overridden query"),
		f.SetParam(ctx, "look", "in", "overridden place"),
		f.SetParam(ctx, "look", "in.folder", "overridden folder"),
		f.SetToolExample(ctx, "look", 0, &tool.Example{Input: json.RawMessage(`{"query":"overridden"}`)}),
		f.SetToolExample(ctx, "look", 1, nil),
		f.AppendToolExample(ctx, "look", tool.Example{Input: json.RawMessage(`{"query":"appended"}`)}),
	} {
		if err != nil {
			t.Fatalf("setter %d: %v", i, err)
		}
	}
	o, stale, err := f.Resolve()
	if err != nil || len(stale) > 0 {
		t.Fatalf("Resolve: %v, stale %v", err, stale)
	}
	rendered, err := p.Render(&prompt.RenderOptions{Overrides: o})
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}
