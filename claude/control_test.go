// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
)

// A controlCase is one typed control request: what it sends and how it reads the CLI's payload.
type controlCase struct {
	name    string // the method, and after a slash the case
	call    func(ctx context.Context, c *Client) (any, error)
	subtype string
	fields  string // JSON of the fields sent, "" for none
	payload string // the CLI's answer, "" for none
	want    any    // what the method returns; nil for methods that return an error only
}

func ack(err error) (any, error) { return nil, err }

func controlCases() []controlCase {
	moment := time.UnixMilli(1700000000123)
	return []controlCase{
		{
			"requestInterrupt", func(ctx context.Context, c *Client) (any, error) { return c.requestInterrupt(ctx, false) }, "interrupt", `{}`,
			`{"still_queued":[]}`,
			InterruptReceipt{StillQueued: []string{}},
		},
		{
			"requestInterrupt/cancel queued", func(ctx context.Context, c *Client) (any, error) { return c.requestInterrupt(ctx, true) }, "interrupt", `{"cancel_queued":true}`,
			`{"still_queued":["u1"],"cancelled":["u2"]}`,
			InterruptReceipt{[]string{"u1"}, []string{"u2"}},
		},
		{"requestInterrupt/old CLI", func(ctx context.Context, c *Client) (any, error) { return c.requestInterrupt(ctx, false) }, "interrupt", `{}`, ``, InterruptReceipt{}},
		{"requestEndSession", func(ctx context.Context, c *Client) (any, error) { return ack(c.command(ctx, "end_session", nil)) }, "end_session", ``, ``, nil},
		{"SetPermissionMode", func(ctx context.Context, c *Client) (any, error) { return ack(c.SetPermissionMode(ctx, ModePlan)) }, "set_permission_mode", `{"mode":"plan"}`, `{"mode":"plan"}`, nil},
		{"SetModel", func(ctx context.Context, c *Client) (any, error) { return c.SetModel(ctx, "haiku") }, "set_model", `{"model":"haiku"}`, `{"model":"claude-haiku-5-5"}`, "claude-haiku-5-5"},
		{"SetModel/default on an old CLI", func(ctx context.Context, c *Client) (any, error) { return c.SetModel(ctx, "") }, "set_model", `{}`, ``, ""},
		{"SetMaxThinkingTokens", func(ctx context.Context, c *Client) (any, error) {
			return ack(c.SetMaxThinkingTokens(ctx, new(0), "summarized"))
		}, "set_max_thinking_tokens", `{"max_thinking_tokens":0,"thinking_display":"summarized"}`, ``, nil},
		{"SetMaxThinkingTokens/no limit", func(ctx context.Context, c *Client) (any, error) { return ack(c.SetMaxThinkingTokens(ctx, nil, "")) }, "set_max_thinking_tokens", `{"max_thinking_tokens":null}`, ``, nil},
		{"RenameSession", func(ctx context.Context, c *Client) (any, error) { return ack(c.RenameSession(ctx, "T")) }, "rename_session", `{"title":"T"}`, ``, nil},
		{"CancelMessage", func(ctx context.Context, c *Client) (any, error) { return c.CancelMessage(ctx, "u1") }, "cancel_async_message", `{"message_uuid":"u1"}`, `{"cancelled":true}`, true},
		{"CancelMessage/too late", func(ctx context.Context, c *Client) (any, error) { return c.CancelMessage(ctx, "u1") }, "cancel_async_message", `{"message_uuid":"u1"}`, `{"cancelled":false}`, false},
		{"SetHasSubscribers", func(ctx context.Context, c *Client) (any, error) { return ack(c.SetHasSubscribers(ctx, false)) }, "set_has_subscribers", `{"has_subscribers":false}`, ``, nil},
		{"StopTask", func(ctx context.Context, c *Client) (any, error) { return ack(c.StopTask(ctx, "b1")) }, "stop_task", `{"task_id":"b1"}`, `{}`, nil},
		{"BackgroundTasks", func(ctx context.Context, c *Client) (any, error) { return c.BackgroundTasks(ctx, "") }, "background_tasks", `{}`, `{}`, true},
		{"BackgroundTasks/nothing", func(ctx context.Context, c *Client) (any, error) { return c.BackgroundTasks(ctx, "toolu_1") }, "background_tasks", `{"tool_use_id":"toolu_1"}`, `{"backgrounded":false}`, false},
		{"TaskOutput", func(ctx context.Context, c *Client) (any, error) { return c.TaskOutput(ctx, "b1") }, "get_task_output", `{"task_id":"b1"}`, `{"output":"o","total_bytes":7,"truncated":true}`, TaskOutput{"o", 7, true}},
		{"BinaryVersion", func(ctx context.Context, c *Client) (any, error) { return c.BinaryVersion(ctx) }, "get_binary_version", ``, `{"version":"2.1.325","buildTime":"2026-11-13T18:52:23Z"}`, BinaryVersion{"2.1.325", "2026-11-13T18:52:23Z"}},
		{
			"Models", func(ctx context.Context, c *Client) (any, error) { return c.Models(ctx) }, "list_models", ``, `{"models":[{"value":"default","displayName":"D","supportsEffort":true,"supportedEffortLevels":["low"]}]}`,
			[]ModelInfo{{Value: "default", DisplayName: "D", SupportsEffort: true, SupportedEffortLevels: []string{"low"}}},
		},
		{"RewindFiles", func(ctx context.Context, c *Client) (any, error) { return c.RewindFiles(ctx, "u1", false) }, "rewind_files", `{"user_message_id":"u1"}`, `{"canRewind":true,"skippedLinks":2}`, RewindResult{CanRewind: true, SkippedLinks: 2}},
		{
			"RewindFiles/dry run", func(ctx context.Context, c *Client) (any, error) { return c.RewindFiles(ctx, "u1", true) }, "rewind_files", `{"user_message_id":"u1","dry_run":true}`,
			`{"canRewind":true,"filesChanged":["/a"],"insertions":1,"deletions":2}`,
			RewindResult{CanRewind: true, FilesChanged: []string{"/a"}, Insertions: 1, Deletions: 2},
		},
		{"RewindFiles/not enabled", func(ctx context.Context, c *Client) (any, error) { return c.RewindFiles(ctx, "u1", false) }, "rewind_files", `{"user_message_id":"u1"}`, `{"canRewind":false,"error":"not enabled"}`, RewindResult{Error: "not enabled"}},
		{"ReadFile", func(ctx context.Context, c *Client) (any, error) { return c.ReadFile(ctx, "a.txt", ReadFileOptions{}) }, "read_file", `{"path":"a.txt"}`, `{"contents":"hi","absPath":"/a.txt","lossy":true}`, FileContents{Contents: "hi", AbsPath: "/a.txt", Lossy: true}},
		{"ReadFile/options", func(ctx context.Context, c *Client) (any, error) {
			return c.ReadFile(ctx, "a.txt", ReadFileOptions{MaxBytes: 1, Encoding: "base64"})
		}, "read_file", `{"path":"a.txt","max_bytes":1,"encoding":"base64"}`, `{"contents":"aA==","absPath":"/a.txt","truncated":true,"encoding":"base64"}`, FileContents{Contents: "aA==", AbsPath: "/a.txt", Truncated: true, Encoding: "base64"}},
		{"SeedReadState", func(ctx context.Context, c *Client) (any, error) { return ack(c.SeedReadState(ctx, "/a", moment)) }, "seed_read_state", `{"path":"/a","mtime":1700000000123}`, ``, nil},
		{"RegisterRepoRoot", func(ctx context.Context, c *Client) (any, error) {
			return c.RegisterRepoRoot(ctx, RepoRoot{Directory: "/a", ReloadClaudeMD: true, ReloadPlugins: true, ReloadSkills: true})
		}, "register_repo_root", `{"directory":"/a","reload_claude_md":true,"reload_plugins":true,"reload_skills":true}`, `{"directory":"/real/a"}`, "/real/a"},
		{"FileSuggestions", func(ctx context.Context, c *Client) (any, error) { return c.FileSuggestions(ctx, "wa") }, "file_suggestions", `{"query":"wa"}`, `{"suggestions":[{"p":1}],"cwd":"/a"}`, FileSuggestions{[]json.RawMessage{json.RawMessage(`{"p":1}`)}, "/a"}},
		{
			"MCPStatus", func(ctx context.Context, c *Client) (any, error) { return c.MCPStatus(ctx) }, "mcp_status", ``,
			`{"mcpServers":[{"name":"el","status":"connected","serverInfo":{"name":"el","version":"1"},"transport":"sdk","scope":"dynamic","source":"sdk","tools":[{"name":"ask","annotations":{"readOnly":true}}]}]}`,
			[]MCPServerStatus{{Name: "el", Status: "connected", ServerInfo: &MCPServerInfo{"el", "1"}, Transport: "sdk", Scope: "dynamic", Source: "sdk", Tools: []MCPToolStatus{{Name: "ask", Annotations: MCPToolHints{ReadOnly: new(true)}}}}},
		},
		{"MCPStatus/none", func(ctx context.Context, c *Client) (any, error) { return c.MCPStatus(ctx) }, "mcp_status", ``, `{"mcpServers":[]}`, []MCPServerStatus{}},
		{"ReconnectMCP", func(ctx context.Context, c *Client) (any, error) { return ack(c.ReconnectMCP(ctx, "el")) }, "mcp_reconnect", `{"serverName":"el"}`, ``, nil},
		{"ToggleMCP", func(ctx context.Context, c *Client) (any, error) { return ack(c.ToggleMCP(ctx, "el", false)) }, "mcp_toggle", `{"serverName":"el","enabled":false}`, ``, nil},
		{"requestSetMCPServers", func(ctx context.Context, c *Client) (any, error) {
			return c.requestSetMCPServers(ctx, map[string]any{"el": map[string]string{"type": "sdk"}})
		}, "mcp_set_servers", `{"servers":{"el":{"type":"sdk"}}}`, `{"added":["el"],"removed":[],"errors":{"x":"e"}}`, MCPServersChange{[]string{"el"}, []string{}, map[string]string{"x": "e"}}},
		{"requestMCPMessage", func(ctx context.Context, c *Client) (any, error) {
			return ack(c.requestMCPMessage(ctx, "el", json.RawMessage(`{"jsonrpc":"2.0"}`)))
		}, "mcp_message", `{"server_name":"el","message":{"jsonrpc":"2.0"}}`, ``, nil},
		{"CallMCPTool", func(ctx context.Context, c *Client) (any, error) {
			return c.CallMCPTool(ctx, MCPToolCall{Tool: "mcp__a__b"})
		}, "mcp_call", `{"tool":"mcp__a__b"}`, `{"content":[]}`, json.RawMessage(`{"content":[]}`)},
		{"CallMCPTool/everything", func(ctx context.Context, c *Client) (any, error) {
			return c.CallMCPTool(ctx, MCPToolCall{"mcp__a__b", map[string]int{"n": 1}, moment, 2 * time.Second, true, true, []string{"i"}, []string{"o"}})
		}, "mcp_call", `{"tool":"mcp__a__b","arguments":{"n":1},"expires_at":1700000000123,"timeout_ms":2000,"result_not_for_model":true,"check_permissions":true,"input_files":["i"],"output_files":["o"]}`, `{}`, json.RawMessage(`{}`)},
		{
			"ReadMCPResource", func(ctx context.Context, c *Client) (any, error) { return c.ReadMCPResource(ctx, "el", "ui://x") }, "mcp_read_resource", `{"serverName":"el","uri":"ui://x"}`,
			`{"contents":[{"uri":"ui://x","mimeType":"text/html","text":""}]}`,
			[]MCPResource{{URI: "ui://x", MimeType: "text/html", Text: new("")}},
		},
		{"SetMCPPermissionMode", func(ctx context.Context, c *Client) (any, error) { return c.SetMCPPermissionMode(ctx, "el", ModeAuto) }, "set_mcp_permission_mode_override", `{"serverName":"el","mode":"auto"}`, `{"warning":"w"}`, "w"},
		{"SetMCPPermissionMode/take back", func(ctx context.Context, c *Client) (any, error) { return c.SetMCPPermissionMode(ctx, "el", "") }, "set_mcp_permission_mode_override", `{"serverName":"el","mode":null}`, `{}`, ""},
		{
			"ContextUsage", func(ctx context.Context, c *Client) (any, error) { return c.ContextUsage(ctx, "full") }, "get_context_usage", `{"detail":"full"}`,
			`{"categories":[{"id":"skills","name":"Skills","tokens":3,"kind":"used"}],"totalTokens":3,"maxTokens":9,"rawMaxTokens":10,"percentage":33.3,"model":"m","memoryFiles":[{"path":"/m","type":"Project","tokens":1}],"mcpTools":[{"name":"t","serverName":"s","tokens":2,"isLoaded":true}],"autoCompactThreshold":8,"isAutoCompactEnabled":true,"apiUsage":{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":3,"cache_read_input_tokens":4},"gridRows":[]}`,
			ContextUsage{
				Categories: []ContextCategory{{"skills", "Skills", 3, "used"}}, TotalTokens: 3, MaxTokens: 9, RawMaxTokens: 10, Percentage: 33.3, Model: "m", AutoCompactThreshold: 8, IsAutoCompactEnabled: true,
				MemoryFiles: []ContextFile{{"/m", "Project", 1}}, MCPTools: []ContextMCPTool{{"t", "s", 2, true}}, APIUsage: &ContextAPIUsage{1, 2, 3, 4},
			},
		},
		{"ContextUsage/default", func(ctx context.Context, c *Client) (any, error) { return c.ContextUsage(ctx, "") }, "get_context_usage", `{}`, `{"apiUsage":null}`, ContextUsage{}},
		{
			"Usage", func(ctx context.Context, c *Client) (any, error) { return c.Usage(ctx, true) }, "get_usage", `{"skip_behaviors":true}`,
			`{"session":{"total_cost_usd":0.5,"total_api_duration_ms":1,"total_duration_ms":2,"total_lines_added":3,"total_lines_removed":4},"subscription_type":null,"rate_limits_available":false,"behaviors":null}`, usageWanted(),
		},
		{"SessionCost", func(ctx context.Context, c *Client) (any, error) { return c.SessionCost(ctx) }, "get_session_cost", ``, `{"text":"Total cost: $0"}`, "Total cost: $0"},
		{
			"Settings", func(ctx context.Context, c *Client) (any, error) { return c.Settings(ctx) }, "get_settings", ``,
			`{"effective":{"a":1},"sources":[{"source":"projectSettings","settings":{"a":1}}],"applied":{"model":"m","effort":null,"ultracode":false}}`,
			SettingsReport{Effective: json.RawMessage(`{"a":1}`), Sources: []SettingsSource{{"projectSettings", json.RawMessage(`{"a":1}`)}}, Applied: AppliedSettings{Model: "m"}},
		},
		{"ApplyFlagSettings", func(ctx context.Context, c *Client) (any, error) {
			return ack(c.ApplyFlagSettings(ctx, map[string]any{"model": nil}))
		}, "apply_flag_settings", `{"settings":{"model":null}}`, ``, nil},
		{"UpdateSettings", func(ctx context.Context, c *Client) (any, error) {
			return ack(c.UpdateSettings(ctx, "localSettings", map[string]any{"outputStyle": "default"}))
		}, "update_settings", `{"source":"localSettings","settings":{"outputStyle":"default"}}`, `{}`, nil},
		{
			"PermissionRules", func(ctx context.Context, c *Client) (any, error) { return c.PermissionRules(ctx) }, "list_permission_rules", ``,
			`{"state":{"rules":[{"behavior":"allow","source":"cliArg","rule":"Bash(git *)","description":{"prefix":"x"},"editability":"session"}],"workspaceDirectories":[{"path":"/l","source":"session"}],"originalCwd":"/c","managedOnly":true}}`,
			PermissionRules{Rules: []ActiveRule{{RuleAllow, "cliArg", "Bash(git *)", "session"}}, WorkspaceDirectories: []WorkspaceDirectory{{"/l", "session"}}, OriginalCwd: "/c", ManagedOnly: true},
		},
		{
			"HooksListing", func(ctx context.Context, c *Client) (any, error) { return c.HooksListing(ctx) }, "get_hooks_listing", ``,
			`{"events":[],"hooks":[{"event":"PreToolUse","matcher":"Bash","source":"projectSettings","type":"command","commandText":"true"}],"eventCatalog":[{"name":"Stop","summary":"s","supportsMatcher":false}],"policy":{"managedOnly":false}}`,
			HooksListing{Hooks: []ListedHook{{HookPreToolUse, "Bash", "projectSettings", "command", "true"}}, Catalog: []ListedEvent{{HookStop, "s", false}}, Policy: json.RawMessage(`{"managedOnly":false}`)},
		},
		{
			"ReloadPlugins", func(ctx context.Context, c *Client) (any, error) {
				return c.ReloadPlugins(ctx, ReloadPluginsOptions{true, []string{"p"}, true})
			}, "reload_plugins", `{"hold_on_cache_impact":true,"add_plugins":["p"],"refuse_if_busy":true}`,
			`{"commands":[{"name":"c"}],"agents":[{"name":"a"}],"plugins":[{"name":"p","path":"/p","source":"s"}],"mcpServers":[],"error_count":1,"held":true,"cache_impact":{"x":1}}`,
			PluginReload{Commands: []SlashCommand{{Name: "c"}}, Agents: []AgentInfo{{Name: "a"}}, Plugins: []LoadedPlugin{{Name: "p", Path: "/p", Source: "s"}}, MCPServers: []MCPServerStatus{}, ErrorCount: 1, Held: true, CacheImpact: json.RawMessage(`{"x":1}`)},
		},
		{"ReloadSkills", func(ctx context.Context, c *Client) (any, error) { return c.ReloadSkills(ctx) }, "reload_skills", ``, `{"skills":[{"name":"s","description":"d","builtin":true}]}`, []SlashCommand{{Name: "s", Description: "d", Builtin: true}}},
		{"ReloadOutputStyles", func(ctx context.Context, c *Client) (any, error) { return c.ReloadOutputStyles(ctx) }, "reload_output_styles", ``, `{"available_output_styles":["default"]}`, []string{"default"}},
	}
}

func usageWanted() SessionUsage {
	var u SessionUsage
	u.Session.TotalCostUSD, u.Session.TotalAPIDurationMS, u.Session.TotalDurationMS = 0.5, 1, 2
	u.Session.TotalLinesAdded, u.Session.TotalLinesRemoved = 3, 4
	return u
}

func TestControlRequest_SendsItsFields(t *testing.T) {
	for _, tt := range controlCases() {
		t.Run(tt.name, func(t *testing.T) {
			c := newFakeClient(func(_ context.Context, subtype string, fields any) (json.RawMessage, error) {
				if subtype != tt.subtype {
					t.Errorf("subtype %q, want %q", subtype, tt.subtype)
				}
				checkFields(t, fields, tt.fields)
				return json.RawMessage(tt.payload), nil
			})
			got, err := tt.call(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			ignoreRaw := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Raw" }, cmp.Ignore())
			if diff := cmp.Diff(tt.want, got, ignoreRaw); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func checkFields(t *testing.T, fields any, want string) {
	t.Helper()
	if want == "{}" {
		want = "" // on the wire there is no difference
	}
	if fields == nil || want == "" {
		if fields != nil || want != "" {
			t.Errorf("fields %v, want %q", fields, want)
		}
		return
	}
	got, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asJSON(t, want), asJSON(t, string(got))); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
}

// A refusal of the CLI reaches the caller of every method, and no method takes a payload of an
// unknown form for an empty one.
func TestControlRequest_ErrorsReachTheCaller(t *testing.T) {
	refusal := &ControlError{Code: "unsupported_request", Message: "no"}
	for _, tt := range controlCases() {
		t.Run(tt.name, func(t *testing.T) {
			c := newFakeClient(func(context.Context, string, any) (json.RawMessage, error) { return nil, refusal })
			_, err := tt.call(t.Context(), c)
			var got *ControlError
			if !errors.As(err, &got) || got.Code != refusal.Code || got.Subtype != tt.subtype {
				t.Errorf("got %v, want the refusal", err)
			}
			if tt.want == nil || strings.HasPrefix(tt.name, "CallMCPTool") {
				return
			}
			c = newFakeClient(func(context.Context, string, any) (json.RawMessage, error) { return json.RawMessage(`[1]`), nil })
			if _, err := tt.call(t.Context(), c); err == nil || !strings.Contains(advice.Text(err), tt.subtype) {
				t.Errorf("got %v, want an error that names %s", err, tt.subtype)
			}
		})
	}
}

func TestControlResult_KeepsRaw(t *testing.T) {
	const payload = `{"categories":[],"news":{"x":1}}`
	c := newFakeClient(func(context.Context, string, any) (json.RawMessage, error) { return json.RawMessage(payload), nil })
	usage, err := c.ContextUsage(t.Context(), "")
	if err != nil || string(usage.Raw) != payload || usage.Categories == nil {
		t.Errorf("got %+v, %v, want the payload in Raw and an empty list", usage, err)
	}
}

// Every method in the control files has a case above.
func TestControlRequest_EveryMethodHasACase(t *testing.T) {
	tested := make(map[string]bool)
	for _, tt := range controlCases() {
		name, _, _ := strings.Cut(tt.name, "/")
		tested[name] = true
	}
	files, err := filepath.Glob("control*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv != nil && isClientMethod(f) && f.Name.Name != "command" && !tested[f.Name.Name] {
				t.Errorf("%s: method %s has no case", file, f.Name.Name)
			}
		}
	}
}

func isClientMethod(f *ast.FuncDecl) bool {
	star, ok := f.Recv.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	name, ok := star.X.(*ast.Ident)
	return ok && name.Name == "Client"
}
