// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude/script"
)

const afterTool = `{"model":"claude-test","max_tokens":9,"system":[{"type":"text","text":"SYS"}],
	"tools":[{"name":"Bash","input_schema":{"type":"object"}},{"name":"Read","input_schema":{}}],
	"thinking":{"type":"enabled","budget_tokens":5},"output_config":{"effort":"high"},"messages":[
	{"role":"user","content":"first"},
	{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"INPUT"}},{"type":"tool_use","id":"t2","name":"Read","input":{}}]},
	{"role":"user","content":[
		{"type":"tool_result","tool_use_id":"t1","content":"out","is_error":false},
		{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"base64"}},{"type":"text","text":"two"}]},
		{"type":"text","text":"more"}]},
	{"role":"system","content":"MIDSYS"}]}`

func turnsTaken(s *script.Server) []string {
	var names []string
	for _, r := range s.Requests() {
		names = append(names, r.Turn)
	}
	return names
}

func TestModel_ChoosesTheTurn(t *testing.T) {
	text := func(name string) script.Turn {
		turn := script.Text(name)
		turn.Name = name
		return turn
	}
	tests := []struct {
		name   string
		script script.Script
		asked  []string
		want   []string
	}{
		{"in order", script.New(text("a"), text("b")), []string{"x", "y"}, []string{"a", "b"}},
		{"repeated", script.New(text("a").Times(2), text("b")), []string{"x", "y", "z"}, []string{"a", "a", "b"}},
		{"forever", script.New(text("a").Always()), []string{"x", "y", "z"}, []string{"a", "a", "a"}},
		{
			"condition goes first", script.New(text("a"), text("b").When(script.LastUserText("special"))),
			[]string{"special", "special"},
			[]string{"b", "a"},
		},
		{
			"condition not met", script.New(text("a").When(script.LastUserText("special")), text("b")),
			[]string{"plain", "special"},
			[]string{"b", "a"},
		},
		{
			"first condition wins", script.New(text("a").When(script.ModelIs("claude-*")), text("b").When(script.ModelIs("claude-test"))),
			[]string{"x", "x"},
			[]string{"a", "b"},
		},
		{
			"default",
			script.Script{Turns: []script.Turn{text("a")}, Default: new(script.Text("d"))},
			[]string{"x", "y", "z"},
			[]string{"a", "default", "default"},
		},
		{"unnamed", script.New(script.Text("a"), script.Text("b")), []string{"x", "y"}, []string{"turn 1", "turn 2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := start(t, tt.script)
			for _, text := range tt.asked {
				mustPost(t, server, ask(text, false))
			}
			if diff := cmp.Diff(tt.want, turnsTaken(server)); diff != "" {
				t.Errorf("turns (-want +got):\n%s", diff)
			}
		})
	}
}

func TestModel_UnmatchedRequestIsAnError(t *testing.T) {
	greeting := script.Text("a")
	greeting.Name = "greeting"
	server := start(t, script.New(greeting.When(script.Match{ToolOffered: "Bash"}, script.Not(script.SawText("q")))))
	resp, body, err := post(t, server, ask("tell me a joke", true))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := resp.StatusCode, http.StatusPaymentRequired; got != want {
		t.Errorf("status: got %d, want %d, which the CLI does not retry", got, want)
	}
	failures := server.Failures()
	if len(failures) != 1 {
		t.Fatalf("got %d failures, want 1", len(failures))
	}
	for _, want := range []string{"tell me a joke", "claude-test", "greeting", "tool Bash is offered", `not (request contains "q")`, "add a turn"} {
		if !strings.Contains(failures[0].Reason, want) {
			t.Errorf("reason %q does not contain %q", failures[0].Reason, want)
		}
	}
	var wire struct {
		Error struct{ Type, Message string }
	}
	if err := json.Unmarshal([]byte(body), &wire); err != nil || wire.Error.Message != failures[0].Error() || wire.Error.Type != "script_error" {
		t.Errorf("body: got %s (%v), want script_error with the reason", body, err)
	}
	if failures[0].Request != server.LastRequest() {
		t.Error("the failure does not name the request")
	}
}

func TestModel_Unused(t *testing.T) {
	server := start(t, script.New(script.Text("a"), script.Text("b").Times(2), script.Text("c").When(script.SawText("never")), script.Text("d").Always()))
	want := []string{"turn 1", "turn 2", `turn 3 (when request contains "never")`, "turn 4"}
	if diff := cmp.Diff(want, server.Unused()); diff != "" {
		t.Errorf("unused at first (-want +got):\n%s", diff)
	}
	for range 4 {
		mustPost(t, server, ask("x", false))
	}
	if diff := cmp.Diff(want[2:3], server.Unused()); diff != "" {
		t.Errorf("unused at last (-want +got):\n%s", diff)
	}
}

func TestFunc_MakesTheTurn(t *testing.T) {
	nested := script.Func(func(r *script.Request) script.Turn {
		return script.Func(func(r *script.Request) script.Turn { return script.Text("you said " + r.LastUserText()) })
	})
	var endless script.Turn
	endless = script.Func(func(*script.Request) script.Turn { return endless })
	server := start(t, script.New(nested,
		endless,
		script.Func(func(*script.Request) script.Turn { panic("oh no") }),
		script.Func(func(*script.Request) script.Turn { return script.Call("", nil) }),
		script.Text("x").WhenFunc(func(r *script.Request) bool { return r.LastUserText() == "boom" && r.Messages[99].Role == "" })))
	if got := mustPost(t, server, ask("hi", false)); !strings.Contains(got, "you said hi") {
		t.Errorf("got %s, want the computed text", got)
	}
	for i, want := range []string{"again and again", "panicked on request 3: oh no", "needs the name", "a condition of the script panicked"} {
		resp, body, err := post(t, server, ask([]string{"1", "2", "3", "boom"}[i], false))
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusPaymentRequired || !strings.Contains(body, want) {
			t.Errorf("got %d %s, want 402 with %q", resp.StatusCode, body, want)
		}
	}
	if got, want := len(server.Failures()), 4; got != want {
		t.Errorf("got %d failures, want %d", got, want)
	}
}

func TestRequest_Accessors(t *testing.T) {
	server := start(t, script.New(script.Text("ok")))
	req := newPost(t, server.URL()+"/v1/messages?beta=true", afterTool)
	req.Header.Set("Anthropic-Beta", "one, two")
	req.Header.Set("X-Claude-Code-Agent-Id", "a1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	r := server.LastRequest()
	text, isError, ok := r.ToolResult("Read")
	got := map[string]any{
		"model": r.Model, "system": r.SystemText(), "last": r.LastUserText(), "tools": r.ToolNames(), "betas": r.Betas(),
		"effort": r.Effort(), "thinking": r.Thinking, "max": r.MaxTokens, "query": r.Query, "stream": r.Stream,
		"read": fmt.Sprintf("%s %t %t", text, isError, ok), "agent": r.AgentID(), "subagent": r.IsSubagent(), "raw": string(r.Body) == afterTool,
		"brings": r.BringsToolResult("t1"), "brings nothing": r.BringsToolResult("Write"), "results": len(r.ToolResults("")),
		"saw": []bool{r.SawText("first"), r.SawText("SYS"), r.SawText("INPUT"), r.SawText("two"), r.SawText("input_schema")},
	}
	want := map[string]any{
		"model": "claude-test", "system": "SYS\nMIDSYS", "last": "more", "tools": []string{"Bash", "Read"}, "betas": []string{"one", "two"},
		"effort": "high", "thinking": script.Thinking{Type: "enabled", BudgetTokens: 5}, "max": 9, "query": "beta=true", "stream": false,
		"read": "one\ntwo true true", "agent": "a1", "subagent": true, "raw": true,
		"brings": true, "brings nothing": false, "results": 2,
		"saw": []bool{true, true, true, true, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if text, isError, ok := server.ToolResult("t1"); text != "out" || isError || !ok {
		t.Errorf("tool result: got %q %t %t, want out", text, isError, ok)
	}
	if _, _, ok := server.ToolResult("Write"); ok {
		t.Error("a tool that was never called has a result")
	}
	if tool, ok := r.Tool("Bash"); !ok || string(tool.InputSchema) != `{"type":"object"}` {
		t.Errorf("tool: got %+v %t", tool, ok)
	}
}

func TestMatch_Conditions(t *testing.T) {
	server := start(t, script.New(script.Text("ok")))
	mustPost(t, server, afterTool)
	r := server.LastRequest()
	tests := []struct {
		match script.Match
		want  bool
	}{
		{script.Match{}, true},
		{script.LastUserText("mor"), true},
		{script.LastUserText("first"), false},
		{script.Match{SystemText: "MIDSYS"}, true},
		{script.SawText("one"), true},
		{script.ModelIs("claude"), false},
		{script.ModelIs("claude*"), true},
		{script.Match{ToolOffered: "Read"}, true},
		{script.Match{ToolOffered: "Write"}, false},
		{script.AfterTool("Bash"), true},
		{script.AfterTool("t2"), true},
		{script.HasToolResult("Bash"), true},
		{script.HasToolResult("Write"), false},
		{script.IsSubagent(), false},
		{script.Match{Subagent: new(false)}, true},
		{script.Match{Stream: new(true)}, false},
		{script.Match{Headers: map[string]string{"anthropic-version": "2023"}}, true},
		{script.Match{Headers: map[string]string{"x-missing": ""}}, false},
		{script.Match{Any: []script.Match{script.ModelIs("x"), script.SawText("first")}}, true},
		{script.Not(script.SawText("first")), false},
		{script.Match{All: []script.Match{script.SawText("first"), script.ModelIs("x")}}, false},
		{script.Match{Func: func(r *script.Request) bool { return r.MaxTokens == 9 }}, true},
	}
	for _, tt := range tests {
		if got := tt.match.Holds(r); got != tt.want {
			t.Errorf("%s: got %t, want %t", tt.match, got, tt.want)
		}
	}
}

// Scripts of earlier versions name tools of a program under another server.
func TestModel_FormerNamesOfTools(t *testing.T) {
	const body = `{"model":"m","max_tokens":9,"tools":[{"name":"mcp__drover__look"},{"name":"mcp__drover__own"},{"name":"mcp__wink__own"}],"messages":[
		{"role":"user","content":"Load these when you need them:\nmcp__drover__later"},
		{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"mcp__drover__look","input":{}},{"type":"tool_use","id":"t2","name":"mcp__drover__own","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"out"},{"type":"tool_result","tool_use_id":"t2","content":"out"}]}]}`
	for name, want := range map[string]string{
		"mcp__wink__look":   "mcp__drover__look",
		"mcp__drover__look": "mcp__drover__look",
		"mcp__wink__own":    "mcp__wink__own",
		"mcp__wink__later":  "mcp__drover__later",
		"mcp__wink__none":   "mcp__wink__none",
		"mcp__other__look":  "mcp__other__look",
	} {
		server := start(t, script.New(script.Call(name, nil)))
		if answer := mustPost(t, server, body); !strings.Contains(answer, `"name":"`+want+`"`) {
			t.Errorf("a call of %s is answered as %s, want %s", name, answer, want)
		}
		looks := want == "mcp__drover__look"
		offered := looks || want == "mcp__wink__own"
		r := server.LastRequest()
		for _, m := range []script.Match{script.AfterTool(name), script.HasToolResult(name)} {
			if m.Holds(r) != looks {
				t.Errorf("%s: got %t, want %t", m, !looks, looks)
			}
		}
		if m := (script.Match{ToolOffered: name}); m.Holds(r) != offered {
			t.Errorf("%s: got %t, want %t", m, !offered, offered)
		}
	}
}

func TestModel_OtherPaths(t *testing.T) {
	s := script.New()
	s.CountTokens = 321
	server := start(t, s)
	tests := []struct {
		method, path string
		status       int
		body         string
	}{
		{"HEAD", "/", 200, ""},
		{"GET", "/", 200, "hello"},
		{"GET", "/api/hello", 200, "hello"},
		{"POST", "/v1/messages/count_tokens", 200, `{"input_tokens":321}`},
		{"GET", "/v1/messages", 404, "not_found_error"},
		{"POST", "/v1/complete", 404, "/v1/complete is not part of"},
		{"POST", "/v1/messages", 402, "script_error"},
	}
	for _, tt := range tests {
		req := newPost(t, server.URL()+tt.path, ask("x", false))
		req.Method = tt.method
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var buf strings.Builder
		_ = resp.Write(&buf)
		if resp.StatusCode != tt.status || !strings.Contains(buf.String(), tt.body) {
			t.Errorf("%s %s: got %d %s, want %d %s", tt.method, tt.path, resp.StatusCode, buf.String(), tt.status, tt.body)
		}
		resp.Body.Close()
	}
	var got []string
	for _, r := range server.Traffic() {
		got = append(got, r.Method+" "+r.Path)
	}
	if len(got) != len(tests) || got[5] != "POST /v1/complete" {
		t.Errorf("traffic: got %v, want all %d requests", got, len(tests))
	}
	if got := len(server.Requests()); got != 1 {
		t.Errorf("got %d requests for a message, want 1", got)
	}
}

func TestModel_MalformedRequestIsAnError(t *testing.T) {
	server := start(t, script.New(script.Text("x")))
	resp, body, err := post(t, server, `{"model":`)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 400 || !strings.Contains(body, "not a request of the Messages API") {
		t.Errorf("got %d %s, want 400", resp.StatusCode, body)
	}
	if len(server.Failures()) == 0 || len(server.Traffic()) != 1 {
		t.Error("the bad request is not recorded as a failure")
	}
}

func TestModel_ConcurrentRequests(t *testing.T) {
	const n = 40
	s := script.New(script.Text("a").Times(n))
	s.KeepRequests = 10
	server := start(t, s)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { mustPost(t, server, ask(fmt.Sprint("number ", i), i%2 == 0)) })
		wg.Go(func() { _, _, _ = server.ToolResult("x"); _ = server.Unused() })
	}
	if err := server.WaitRequests(t.Context(), n); err != nil {
		t.Error(err)
	}
	wg.Wait()
	requests := server.Requests()
	if len(requests) != 10 || requests[9].Number != n {
		t.Errorf("got %d requests, the last with number %d; want the newest 10 of %d", len(requests), requests[len(requests)-1].Number, n)
	}
	if unused := server.Unused(); unused != nil {
		t.Errorf("unused: %v", unused)
	}
}

func TestWaitRequests_EndsWithItsContext(t *testing.T) {
	model, err := script.NewModel(script.New())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := model.WaitRequests(ctx, 0); err != nil {
		t.Errorf("waiting for nothing: %v", err)
	}
	err = model.WaitRequests(ctx, 2)
	if err == nil || !strings.Contains(advice.Text(err), "waiting for 2 requests, 0 came") {
		t.Errorf("got %v, want how many came", err)
	}
}

func TestScript_Validate(t *testing.T) {
	bad := script.Script{
		Turns: []script.Turn{
			script.Call("", nil),
			script.Call("x", 5),
			script.Call("x", make(chan int)),
			script.Reply(script.ToolCall{ID: "a b", Name: "x"}),
			script.Reply(script.ToolCall{ID: "a", Name: "x"}, script.ToolCall{ID: "a", Name: "y"}),
			script.Reply(&script.TextBlock{}, nil),
			{Error: &script.APIError{Status: 200}},
			{Fault: &script.Fault{Kind: "boo"}},
			{Repeat: -2, ChunkSize: -1, Delay: -1, DeltaDelay: -1, Usage: script.Usage{Input: -1}},
			{Headers: map[string]string{"bad name": "x"}},
			{Func: func(*script.Request) script.Turn { return script.Turn{} }, StopReason: "x"},
			{Error: &script.APIError{Status: 500}, Fault: &script.Fault{Kind: script.FaultHang}, StopReason: "x"},
		},
		Default:  new(script.Text("x").When(script.SawText("x")).Times(3)),
		IDPrefix: "ä", CountTokens: -1, KeepRequests: -1,
	}
	_, err := script.NewModel(bad)
	if err == nil {
		t.Fatal("a bad script was taken")
	}
	for _, want := range []string{
		"turns[0].content[0]: a tool call needs", "turns[1].content[0]: input of tool call x is not an object",
		"turns[2].content[0]: input of tool call x cannot be encoded", `turns[3].content[0]: tool call id "a b"`, "turns[4].content[1]: tool call id",
		"turns[5].content[0]: *script.TextBlock", "turns[5].content[1]: <nil>", "turns[6].error.status: status 200", "turns[7].fault: unknown kind",
		"turns[8].repeat", "turns[8].chunk", "turns[8].delay", "turns[8].delta_delay", "turns[8].usage", "turns[9].headers", "turns[10]: a turn with a Func",
		"turns[11].error: a turn that is", "turns[11].error: a turn is either", "default.when", "default.repeat", "id_prefix", "count_tokens", "keep_requests",
	} {
		if !strings.Contains(advice.Text(err), want) {
			t.Errorf("the error does not contain %q", want)
		}
	}
}
