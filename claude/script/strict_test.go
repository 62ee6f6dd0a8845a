// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/script"
)

func TestStrict_RefusesInvalidRequests(t *testing.T) {
	messages := func(list string) string { return `{"model":"m","max_tokens":1,"messages":[` + list + `]}` }
	const (
		user  = `{"role":"user","content":"hi"}`
		asst  = `{"role":"assistant","content":[{"type":"text","text":"yo"}]}`
		sys   = `{"role":"system","content":"note"}`
		calls = `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}},{"type":"tool_use","id":"b","name":"x","input":{}}]}`
		resA  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}`
		resB  = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"}]}`
		resAB = `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"b"}]}`
	)
	tests := []struct {
		name, body string
		want       string // part of the reason; empty means accepted
	}{
		{"good", messages(user), ""},
		{"good conversation", messages(strings.Join([]string{user, calls, resAB, sys, asst, user}, ",")), ""},
		{"results in two messages", messages(strings.Join([]string{user, calls, resA, resB}, ",")), ""},
		{"system between", messages(strings.Join([]string{user, sys, calls, sys, resAB}, ",")), ""},
		{"no model", `{"max_tokens":1,"messages":[` + user + `]}`, "model: field required"},
		{"no max_tokens", `{"model":"m","messages":[` + user + `]}`, "max_tokens: field required"},
		{"no messages", messages(""), "at least one message"},
		{"assistant first", messages(asst + "," + user), "first message must use the user role"},
		{"bad role", messages(user + `,{"role":"tool","content":"x"}`), `messages.1: role: "tool"`},
		{"empty content", messages(`{"role":"user","content":[]}`), "content: must not be empty"},
		{"empty text", messages(`{"role":"user","content":""}`), "text blocks must not be empty"},
		{"unknown block", messages(`{"role":"user","content":[{"type":"hologram"}]}`), `type "hologram"`},
		{"tool_use by user", messages(`{"role":"user","content":[{"type":"tool_use","id":"a"}]}`), `role user cannot have a block of type "tool_use"`},
		{"result without call", messages(user + "," + asst + "," + resA), `messages.2.content.0: unexpected tool_use_id "a"`},
		{"result twice", messages(strings.Join([]string{user, calls, resAB, resA}, ",")), `messages.3.content.0: unexpected tool_use_id "a"`},
		{"call without result", messages(strings.Join([]string{user, calls, resA, asst}, ",")), "without tool_result blocks immediately after: [b]"},
		{"call at the end", messages(user + "," + calls), "messages.1: tool_use ids were found without tool_result"},
		{"tool without schema", `{"model":"m","max_tokens":1,"tools":[{"name":"x"}],"messages":[` + user + `]}`, "tools.0.input_schema"},
		{"tool without name", `{"model":"m","max_tokens":1,"tools":[{}],"messages":[` + user + `]}`, "tools.0.name"},
		{"tool twice", `{"model":"m","max_tokens":1,"tools":[{"name":"x","input_schema":{}},{"name":"x","input_schema":{}}],"messages":[` + user + `]}`, "must be unique"},
		{"server tool", `{"model":"m","max_tokens":1,"tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[` + user + `]}`, ""},
	}
	s := script.New(script.Text("ok").Always())
	s.Strict = true
	server := start(t, s)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, body, err := post(t, server, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == "" && resp.StatusCode != 200 {
				t.Errorf("refused: %s", body)
			}
			if tt.want != "" && (resp.StatusCode != 400 || !strings.Contains(strings.ReplaceAll(body, `\"`, `"`), tt.want)) {
				t.Errorf("got %d %s, want 400 with %q", resp.StatusCode, body, tt.want)
			}
		})
	}
}

func TestStrict_NeedsVersionHeader(t *testing.T) {
	s := script.New(script.Text("ok"))
	s.Strict = true
	model, err := script.NewModel(s)
	if err != nil {
		t.Fatal(err)
	}
	status, body := serve(model, ask("x", false))
	if status != 400 || !strings.Contains(body, "anthropic-version") {
		t.Errorf("got %d %s, want 400 that names the header", status, body)
	}
	if got := model.Unused(); len(got) != 1 {
		t.Errorf("the refused request used a turn; unused: %v", got)
	}
}

func TestStrict_RolesMustAlternate(t *testing.T) {
	s := script.New(script.Text("ok").Always())
	s.StrictRoles = true
	model, err := script.NewModel(s)
	if err != nil {
		t.Fatal(err)
	}
	twice := `{"messages":[{"role":"user","content":"a"},{"role":"system","content":"s"},{"role":"user","content":"b"}]}`
	if status, body := serve(model, twice); status != 400 || !strings.Contains(body, "messages.2: roles must alternate") {
		t.Errorf("got %d %s, want 400", status, body)
	}
	if status, body := serve(model, ask("x", true)); status != 200 {
		t.Errorf("got %d %s, want 200", status, body)
	}
}
