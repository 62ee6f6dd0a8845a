// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/internal/plainjson"
)

const permissionRequest = `{"subtype":"can_use_tool","tool_name":"Bash","display_name":"Bash","input":{"command":"touch b.txt && echo made","description":"make"},` +
	`"description":"make","title":"Run","permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"touch b.txt && echo made"}],"behavior":"allow","destination":"localSettings"},` +
	`{"type":"addDirectories","directories":["/srv"],"destination":"session"},{"type":"setMode","mode":"acceptEdits","destination":"session"},{"type":"paintHouse","colour":"<red>","destination":"session"}],` +
	`"blocked_path":"/srv/b.txt","decision_reason":"outside","decision_reason_type":"workingDir","classifier_approvable":false,"suppress_always_allow_rule":true,"default_to_no":true,` +
	`"matched_ask_rule":{"source":"userSettings","tool_name":"Bash","rule_content":"touch *"},"tool_use_id":"toolu_1","agent_id":"a1","mcp_server":{"name":"desk","source":"sdk"},"requires_user_interaction":true,"server_prompt":{"x":1}}`

func TestPermissionRequest_Fields(t *testing.T) {
	var got PermissionRequest
	servePermission(t.Context(), slog.New(slog.DiscardHandler), func(_ context.Context, req *PermissionRequest) (PermissionResult, error) {
		got = *req
		return Deny{}, nil
	}, []byte(permissionRequest))
	want := PermissionRequest{
		ToolName: "Bash", Input: json.RawMessage(`{"command":"touch b.txt && echo made","description":"make"}`), ToolUseID: "toolu_1",
		BlockedPath: "/srv/b.txt", DecisionReason: "outside", DecisionReasonType: "workingDir", ClassifierApprovable: new(false),
		SuppressAlwaysAllowRule: true, DefaultToNo: true, MatchedAskRule: &MatchedRule{"userSettings", "Bash", "touch *"},
		Title: "Run", DisplayName: "Bash", Description: "make", AgentID: "a1", MCPServer: &PermissionServer{"desk", "sdk"},
		RequiresUserInteraction: true, Raw: json.RawMessage(permissionRequest), Suggestions: got.Suggestions,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Suggestions) != 4 || got.Suggestions[0].Rules[0].Content != "touch b.txt && echo made" || got.Suggestions[2].Mode != ModeAcceptEdits {
		t.Errorf("suggestions %+v", got.Suggestions)
	}
}

func TestServePermission_Results(t *testing.T) {
	const input = `{"command":"touch b.txt && echo made","description":"make"}`
	tests := []struct {
		name   string
		result PermissionResult
		want   string
	}{
		{"allow echoes the input", Allow{}, `{"behavior":"allow","updatedInput":` + input + `,"toolUseID":"toolu_1"}`},
		{"allow by pointer", &Allow{}, `{"behavior":"allow","updatedInput":` + input + `,"toolUseID":"toolu_1"}`},
		{"allow with input", Allow{UpdatedInput: map[string]string{"command": "true"}}, `{"behavior":"allow","updatedInput":{"command":"true"},"toolUseID":"toolu_1"}`},
		{"allow with raw input", Allow{UpdatedInput: json.RawMessage(`{"z":1,"a":"<&>"}`)}, `{"behavior":"allow","updatedInput":{"z":1,"a":"<&>"},"toolUseID":"toolu_1"}`},
		{
			"allow for ever",
			Allow{UpdatedPermissions: []PermissionUpdate{{Type: AddRules, Rules: []PermissionRule{{ToolName: "Bash"}}, Behavior: RuleAllow, Destination: ToSession}}, Classification: UserPermanent},
			`{"behavior":"allow","updatedInput":` + input + `,"updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash"}],"behavior":"allow","destination":"session"}],"toolUseID":"toolu_1","decisionClassification":"user_permanent"}`,
		},
		{"deny", Deny{Message: "not here"}, `{"behavior":"deny","message":"not here","toolUseID":"toolu_1"}`},
		{"deny by pointer", &Deny{Message: "not here"}, `{"behavior":"deny","message":"not here","toolUseID":"toolu_1"}`},
		{"deny always has a message", Deny{Classification: UserReject}, `{"behavior":"deny","message":"` + generalRefusal + `","toolUseID":"toolu_1","decisionClassification":"user_reject"}`},
		{"deny and interrupt", Deny{Message: "stop", Interrupt: true}, `{"behavior":"deny","message":"stop","interrupt":true,"toolUseID":"toolu_1"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := servePermission(t.Context(), slog.New(slog.DiscardHandler), func(context.Context, *PermissionRequest) (PermissionResult, error) { return tt.result, nil }, []byte(permissionRequest))
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestServePermission_FailsClosed(t *testing.T) {
	returns := func(r PermissionResult, err error) CanUseTool {
		return func(context.Context, *PermissionRequest) (PermissionResult, error) { return r, err }
	}
	tests := map[string]struct {
		fn  CanUseTool
		req string
	}{
		"no callback":      {nil, permissionRequest},
		"error":            {returns(Allow{}, errors.New("secret")), permissionRequest},
		"nil result":       {returns(nil, nil), permissionRequest},
		"nil Allow":        {returns((*Allow)(nil), nil), permissionRequest},
		"nil Deny":         {returns((*Deny)(nil), nil), permissionRequest},
		"panic":            {func(context.Context, *PermissionRequest) (PermissionResult, error) { panic("secret") }, permissionRequest},
		"input is a list":  {returns(Allow{UpdatedInput: []int{1}}, nil), permissionRequest},
		"input is invalid": {returns(Allow{UpdatedInput: json.RawMessage(`{`)}, nil), permissionRequest},
		"input is null":    {returns(Allow{UpdatedInput: json.RawMessage(`null`)}, nil), permissionRequest},
		"input unsendable": {returns(Allow{UpdatedInput: func() {}}, nil), permissionRequest},
		"too many updates": {returns(Allow{UpdatedPermissions: make([]PermissionUpdate, maxPermissionItems+1)}, nil), permissionRequest},
		"too many rules":   {returns(Allow{UpdatedPermissions: []PermissionUpdate{{Type: AddRules, Rules: make([]PermissionRule, maxPermissionItems+1)}}}, nil), permissionRequest},
		"broken request":   {returns(Allow{}, nil), `{"tool_name":"Bash"`},
		"no tool":          {returns(Allow{}, nil), `{"input":{}}`},
		"no input":         {returns(Allow{}, nil), `{"tool_name":"Bash"}`},
		"odd tool":         {returns(Allow{}, nil), `{"tool_name":["Bash"],"input":{}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			log, written := bufferedLog()
			got := servePermission(t.Context(), log, tt.fn, []byte(tt.req))
			if !strings.HasPrefix(string(got), `{"behavior":"deny","message":"The permission check`) || strings.Contains(string(got), "secret") {
				t.Errorf("got %s, want a denial without details", got)
			}
			if !strings.Contains(written.String(), "level=ERROR") {
				t.Errorf("nothing was logged: %q", written)
			}
		})
	}
}

// Row 46: suggestions of the CLI go back byte for byte, the unknown in them included.
func TestPermissionRequest_SuggestionsRoundTrip(t *testing.T) {
	got := servePermission(t.Context(), slog.New(slog.DiscardHandler), func(_ context.Context, req *PermissionRequest) (PermissionResult, error) {
		return Allow{UpdatedPermissions: req.Suggestions}, nil
	}, []byte(permissionRequest))
	_, after, _ := strings.Cut(permissionRequest, `"permission_suggestions":`)
	sent, _, _ := strings.Cut(after, `,"blocked_path"`)
	if !strings.Contains(string(got), `"updatedPermissions":`+sent) {
		t.Errorf("got  %s\nwant in it %s", got, sent)
	}
}

func TestPermissionUpdate_Encoding(t *testing.T) {
	decoded := func(s string, change func(*PermissionUpdate)) PermissionUpdate {
		var u PermissionUpdate
		if err := json.Unmarshal([]byte(s), &u); err != nil {
			t.Fatal(err)
		}
		change(&u)
		return u
	}
	nothing := func(*PermissionUpdate) {}
	tests := []struct {
		name   string
		update PermissionUpdate
		want   string
	}{
		{
			"empty rule content left out",
			PermissionUpdate{Type: RemoveRules, Rules: []PermissionRule{{"Read", ""}, {"Bash", "ls"}}, Behavior: RuleDeny, Destination: ToUserSettings},
			`{"type":"removeRules","rules":[{"toolName":"Read"},{"toolName":"Bash","ruleContent":"ls"}],"behavior":"deny","destination":"userSettings"}`,
		},
		{"mode", PermissionUpdate{Type: SetMode, Mode: ModePlan, Destination: ToSession}, `{"type":"setMode","mode":"plan","destination":"session"}`},
		{"directories", PermissionUpdate{Type: RemoveDirectories, Directories: []string{}, Destination: ToCLIArg}, `{"type":"removeDirectories","directories":[],"destination":"cliArg"}`},
		{"unchanged keeps order and odd kinds", decoded(`{"zeta":1,"type":"addRules","rules":"all"}`, nothing), `{"zeta":1,"type":"addRules","rules":"all"}`},
		{
			"changed keeps the unknown", decoded(`{"type":"addRules","rules":[{"toolName":"A","why":"x"}],"behavior":"ask","destination":"localSettings","until":9}`,
				func(u *PermissionUpdate) { u.Destination = ToSession }),
			`{"behavior":"ask","destination":"session","rules":[{"toolName":"A","why":"x"}],"type":"addRules","until":9}`,
		},
		{"cleared field goes", decoded(`{"type":"setMode","mode":"plan","x":1}`, func(u *PermissionUpdate) { u.Mode = "" }), `{"type":"setMode","x":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := plainjson.Marshal(tt.update)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Row 47: a CanUseTool that will not be asked is worth a warning.
func TestShadowWarnings_NameTheReason(t *testing.T) {
	tests := []struct {
		name      string
		mode      PermissionMode
		allowed   []string
		skillsAll bool
		want      []string // a part of each warning
	}{
		{"nothing", ModeDefault, nil, false, nil},
		{"partial rules", "", []string{"Bash(git *)", "Read(/src/**)", "Skill(a)"}, false, nil},
		{"bypass", ModeBypassPermissions, nil, false, []string{"bypassPermissions"}},
		{"do not ask", ModeDontAsk, nil, false, []string{"dontAsk"}},
		{"whole tools", ModeDefault, []string{"Read", "Write()", "Edit(*)", "Read(*)", "mcp__x"}, false, []string{"about Edit", "about Read", "about Write", "about mcp__x"}},
		{"all skills", ModeDefault, nil, true, []string{"about Skill"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := shadowWarnings(tt.mode, tt.allowed, tt.skillsAll)
			if len(got) != len(tt.want) {
				t.Fatalf("got %q, want %d warnings", got, len(tt.want))
			}
			for i, w := range tt.want {
				if !strings.Contains(got[i], w) {
					t.Errorf("warning %q does not contain %q", got[i], w)
				}
			}
		})
	}
}

func FuzzServePermission(f *testing.F) {
	f.Add([]byte(permissionRequest))
	f.Add([]byte(`{"tool_name":"A","input":{"x":"\ud800"},"permission_suggestions":[{}]}`))
	f.Add([]byte(`{"tool_name":"A","input":[],"permission_suggestions":[{"type":1,"rules":{}}]}`))
	f.Add([]byte(`{"tool_name":"A","input":`))
	f.Fuzz(func(t *testing.T, req []byte) {
		log := slog.New(slog.DiscardHandler)
		answer := servePermission(t.Context(), log, func(_ context.Context, r *PermissionRequest) (PermissionResult, error) {
			return Allow{UpdatedPermissions: r.Suggestions}, nil
		}, bytes.Clone(req))
		var got struct {
			Behavior string `json:"behavior"`
		}
		if err := json.Unmarshal(answer, &got); err != nil || bytes.ContainsAny(answer, "\r\n") {
			t.Fatalf("answer %q is not one line of JSON: %v", answer, err)
		}
		if got.Behavior != "allow" && got.Behavior != "deny" {
			t.Fatalf("answer %s decides nothing", answer)
		}
		answer = servePermission(t.Context(), log, nil, bytes.Clone(req))
		if json.Unmarshal(answer, &got) != nil || got.Behavior != "deny" {
			t.Fatalf("answer %s without a callback", answer)
		}
	})
}

func BenchmarkServePermission(b *testing.B) {
	log := slog.New(slog.DiscardHandler)
	fn := func(context.Context, *PermissionRequest) (PermissionResult, error) { return Allow{}, nil }
	b.ReportAllocs()
	for b.Loop() {
		servePermission(b.Context(), log, fn, []byte(permissionRequest))
	}
}
