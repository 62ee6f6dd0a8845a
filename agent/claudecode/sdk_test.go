// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

type numbers struct {
	A int `json:"a"`
	B int `json:"b"`
}

func sum(opts ...tool.Option) *tool.Tool {
	return tool.Must("sum", "adds two numbers", func(_ context.Context, n numbers) (int, error) { return n.A + n.B, nil }, opts...)
}

func named(name string, opts ...tool.Option) *tool.Tool {
	return tool.Must(name, "a tool", func(context.Context, tool.None) (string, error) { return name + " ran", nil }, opts...)
}

func sdkNames(tools []claude.Tool) []string {
	out := []string{}
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func TestToSDKTools_AcceptsOrRefusesInputs(t *testing.T) {
	declared := tool.Must[tool.None, int]("declared", "has no handler", nil)
	for _, c := range []struct {
		name string
		from tool.Set
		want []string
		err  string
	}{
		{"a registry", tool.MustRegistry(nil, sum(), named("b"), declared), []string{"sum", "b"}, ""},
		{"one tool", sum(), []string{"sum"}, ""},
		{"a list", tool.Tools{named("b"), sum()}, []string{"b", "sum"}, ""},
		{"an empty list", tool.Tools{}, []string{}, ""},
		{"a nil in a list", tool.Tools{sum(), nil}, []string{}, "Invalid tool input"},
		{"a nil tool", (*tool.Tool)(nil), []string{}, "Invalid tool input"},
		{"a nil registry", (*tool.Registry)(nil), []string{}, "Invalid input: expected tool, tool list, or Registry"},
		{"nothing", nil, []string{}, "Invalid input: expected tool, tool list, or Registry"},
		{"a wrong tool", &tool.Tool{Name: "a b"}, []string{}, "Name must be"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := claudecode.ToSDKTools(c.from, nil)
			if diff := cmp.Diff(c.want, sdkNames(got)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(advice.Text(err), c.err)) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}

func TestToSDKTools_DescriptionIsTheManual(t *testing.T) {
	old := sum(tool.WithDeprecation("use add instead."))
	if served, err := claudecode.ToSDKTools(old, nil); err != nil || served[0].Description != old.Manual() {
		t.Errorf("served with %q (%v), want %q", served[0].Description, err, old.Manual())
	}
}

func call(t *testing.T, s claude.Tool, args string) claude.ToolResult {
	t.Helper()
	got, err := s.Handler(t.Context(), json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func text(r claude.ToolResult) string {
	var parts []string
	for _, c := range r.Content {
		parts = append(parts, fmt.Sprint(c))
	}
	return strings.Join(parts, "|")
}

func TestToSDKTools_WithOverrides(t *testing.T) {
	shown := schema.MustParse(`{"type":"object","properties":{"a":{"type":"number"}}}`)
	tools, err := claudecode.ToSDKTools(sum(), &claudecode.SDKToolOptions{
		ToolConfig: func(t *tool.Tool) tool.Presentation {
			return tool.Presentation{Name: "custom_" + t.Name, Description: "Enhanced: " + t.Description, Input: shown}
		},
		FormatResult: func(r tool.Result) claude.ToolResult {
			raw, _ := json.Marshal(r.Value)
			return claude.TextResult(string(raw))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := tools[0]
	if s.Name != "custom_sum" || s.Description != "Enhanced: adds two numbers" || s.InputSchema != shown {
		t.Errorf("got %q, %q, %s", s.Name, s.Description, s.InputSchema)
	}
	if got := call(t, s, `{"a":1,"b":2}`); text(got) != "3" {
		t.Errorf("the formatted result is %q, want the JSON of the value", text(got))
	}
	// The formatter gets failures too, and the tool's own schema holds whatever was shown.
	if got := call(t, s, `{"a":1}`); text(got) != "null" || got.IsError {
		t.Errorf("a failed call is formatted as %q, error %v; want what the formatter makes of it", text(got), got.IsError)
	}
}

type picture struct{}

func (picture) Render() string { return "a picture of a cat" }

type point struct {
	X int `json:"x"`
}

func TestFormatResult_Content(t *testing.T) {
	image := tool.Image{Data: []byte{1}, MIMEType: "image/png"}
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	for _, c := range []struct {
		name       string
		result     tool.Result
		text       string
		structured string
		isError    bool
	}{
		{"no value", tool.OK(nil), "", "", false},
		{"no value but a message", tool.Text("done"), "done", "", false},
		{"a string, as it is", tool.OK(`say "hi"`), `say "hi"`, "", false},
		{"a number", tool.OK(1.5), "1.5", "", false},
		{"a boolean", tool.OK(false), "false", "", false},
		{"a list", tool.OK([]int{1, 2}), "[1,2]", "", false},
		{"an object", tool.OK(point{3}), `{"x":3}`, `{"x":3}`, false},
		{"a value that renders itself", tool.OK(picture{}), "a picture of a cat", "", false},
		{"a cycle", tool.OK(cyclic), tool.Unserializable, "", false},
		{"a hidden value", tool.Result{Value: point{3}, Message: "saved", HideValue: true}, "saved", "", false},
		{"an image beside an object", tool.Result{Value: point{3}, Images: []tool.Image{image}}, `{"x":3}|{[1] image/png}`, "", false},
		{"a failure", tool.Fail("no such file"), "no such file", "", true},
		{"a denial", tool.Result{Outcome: tool.Denied, Err: &tool.Error{Message: "not today"}}, "not today", "", true},
		{"a call that needs approval", tool.Result{Outcome: tool.NeedsApproval, Action: &tool.Action{Type: "approval", Message: "ask first"}}, "ask first", "", true},
		{"a failure without a reason", tool.Result{Outcome: tool.Failed}, `The call ended with "error", without a reason. Continue without its result.`, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Through a tool, so that the result is finished as it is in a run.
			tools, err := claudecode.ToSDKTools(tool.Must("t", "a tool", func(context.Context, tool.None) (tool.Result, error) { return c.result, nil }), nil)
			if err != nil {
				t.Fatal(err)
			}
			got := call(t, tools[0], `{}`)
			if text(got) != c.text || string(got.Structured) != c.structured || got.IsError != c.isError {
				t.Errorf("got %q, structured %q, error %v; want %q, %q, %v", text(got), got.Structured, got.IsError, c.text, c.structured, c.isError)
			}
		})
	}
}

func TestSDKServer_ListsNames(t *testing.T) {
	r := tool.MustRegistry(nil,
		named("read", tool.WithMetadata(map[string]any{"readOnly": true})),
		named("write", tool.WithMetadata(map[string]any{"mutates": true})),
		named("move", tool.WithTags("mutating")),
		named("delete", tool.WithMetadata(map[string]any{"mutates": true, "dangerous": true})),
		named("launch", tool.WithTags("dangerous")),
	)
	s, err := claudecode.NewSDKServer(r, &claudecode.SDKServerOptions{SDKToolOptions: claudecode.SDKToolOptions{
		ToolConfig: func(t *tool.Tool) tool.Presentation { return tool.Presentation{Name: "my_" + t.Name} },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	check := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("tools", sdkNames(s.Tools()), "my_read", "my_write", "my_move", "my_delete", "my_launch")
	check("names", s.ToolNames(), "my_read", "my_write", "my_move", "my_delete", "my_launch")
	check("mutating", s.MutatingToolNames(), "my_write", "my_move", "my_delete")
	check("dangerous", s.DangerousToolNames(), "my_delete", "my_launch")

	manifest, err := s.Server().Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if want := `"serverInfo":{"name":"drover","version":"0.0.0"}`; !strings.Contains(string(manifest.InitializeResult), want) {
		t.Errorf("the server introduces itself as %s, want %s", manifest.InitializeResult, want)
	}
}

func TestSDKServer_FollowsItsRegistry(t *testing.T) {
	r := tool.MustRegistry(nil, named("a"))
	s, err := claudecode.NewSDKServer(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Add(named("b", tool.Mutates)); err != nil {
		t.Fatal(err)
	}
	r.Remove("a")
	if diff := cmp.Diff([]string{"b"}, s.ToolNames()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	// Two tools of one name cannot be served by one server: the last good set stays.
	if err := r.Add(named("b", tool.WithID("other", ""))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b"}, s.ToolNames()); diff != "" {
		t.Errorf("names after a clash (-want +got):\n%s", diff)
	}
	s.Close()
	r.Remove("b")
	if len(s.ToolNames()) != 1 {
		t.Error("the server followed the registry after Close")
	}
	if _, err := claudecode.NewSDKServer(tool.Tools{named("x"), named("x")}, nil); err == nil {
		t.Error("two tools of one name were served")
	}
}

// What is added later is chosen from like the rest.
func TestSDKServer_ServesOnlySelectedTools(t *testing.T) {
	r := tool.MustRegistry(nil, named("a"), named("hidden"))
	s, err := claudecode.NewSDKServer(r, &claudecode.SDKServerOptions{SDKToolOptions: claudecode.SDKToolOptions{
		Only: func(t *tool.Tool) bool { return !strings.HasPrefix(t.Name, "hidden") },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := r.Add(named("b"), named("hidden-too")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, s.ToolNames()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// Tools that the program speaks of must be there from the start.
func TestSDKServer_LoadsAllToolsOnRequest(t *testing.T) {
	for _, always := range []bool{false, true} {
		tools, err := claudecode.ToSDKTools(tool.Tools{named("a")}, &claudecode.SDKToolOptions{AlwaysLoad: always})
		if err != nil {
			t.Fatal(err)
		}
		if tools[0].AlwaysLoad != always {
			t.Errorf("AlwaysLoad is %t, want %t", tools[0].AlwaysLoad, always)
		}
	}
}

// The CLI calls tools of a registry: arguments are checked, calls are decided and reported by the id that
// the model gave them, and the model reads results, errors and denials.
func TestSDKServer_CLICallsARegistry(t *testing.T) {
	for version, get := range map[string]func(testing.TB) *claudetest.RealCLI{"pinned": claudetest.CLI, "oldest": claudetest.OldestCLI} {
		t.Run(version, func(t *testing.T) { testTheCLICallsARegistry(t, get(t)) })
	}
}

func testTheCLICallsARegistry(t *testing.T, cli *claudetest.RealCLI) {
	var mu sync.Mutex
	reported := map[string]string{} // results by call id
	r := tool.MustRegistry(&tool.Options{
		Decider: tool.DeciderFunc(func(_ context.Context, call event.ToolCall) event.Decision {
			if call.Name == "write" {
				return event.Decision{Reason: "this registry is read-only"}
			}
			return event.Decision{Verdict: event.Allow}
		}),
		Emit: func(e event.Event) {
			if got, ok := e.Payload.(event.ToolResult); ok {
				mu.Lock()
				defer mu.Unlock()
				reported[string(got.ID)] = got.Name + " " + string(got.Status)
			}
		},
	}, sum(), named("write", tool.Mutates),
		tool.Must("where", "a point", func(context.Context, tool.None) (point, error) { return point{7}, nil }, tool.ReadOnly))
	server, err := claudecode.NewSDKServer(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	model := claudetest.NewModel(t,
		script.Call("mcp__calc__sum", script.Input{"a": 1, "b": 2}),
		script.Call("mcp__calc__sum", script.Input{"a": "one", "b": 2, "c": 3}),
		script.Call("mcp__calc__write", script.Input{}),
		script.Call("mcp__calc__where", script.Input{}),
		script.Text("Done."),
	)
	opts := cli.Options(model)
	opts.MCPServers = map[string]claude.MCPServer{"calc": server.Server()}
	opts.PermissionMode = claude.ModeBypassPermissions
	for _, err := range claude.Query(t.Context(), "go", opts) {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := []struct {
		tool, text string
		failed     bool
	}{
		{"mcp__calc__sum", "3", false},
		{"mcp__calc__sum", `must be an integer`, true},
		{"mcp__calc__write", "this registry is read-only", true},
		{"mcp__calc__where", `{"x":7}`, false},
	}
	requests := model.Requests()
	for i, w := range want {
		if got, failed, _ := requests[i+1].ToolResult(w.tool); !strings.Contains(got, w.text) || failed != w.failed {
			t.Errorf("call %d: the model saw %q (failed %v), want %q (%v)", i+1, got, failed, w.text, w.failed)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	var got []string
	for id, line := range reported {
		if !strings.HasPrefix(id, "toolu_") {
			t.Errorf("call %q does not have the model's id", id)
		}
		got = append(got, line)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"sum error", "sum success", "where success", "write denied"}, got); diff != "" {
		t.Errorf("reported results (-want +got):\n%s", diff)
	}
}
