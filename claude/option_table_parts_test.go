// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drover-agents/drover/claude"
)

func allowAll(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
	return &claude.Allow{}, nil
}

func declineAll(context.Context, *claude.ElicitationRequest) (claude.ElicitationAnswer, error) {
	return claude.ElicitationAnswer{}, nil
}

func answerNothing(context.Context, *claude.DialogRequest) (claude.DialogAnswer, error) {
	return claude.DialogAnswer{}, nil
}

// sandboxRow is a field of the sandbox: what it is in the settings, and with an empty value.
func sandboxRow(field string, sandbox claude.Sandbox, want string) optionRow {
	return optionRow{field: field, forms: []form{{name: "set", set: func(o *options) { o.Sandbox = &sandbox }, wire: args(`--settings={"sandbox":` + want + `}`)}}}
}

func sandboxNetworkRow(field string, network claude.SandboxNetwork, want string) optionRow {
	return sandboxRow("SandboxNetwork."+field, claude.Sandbox{Network: &network}, `{"network":`+want+`}`)
}

func sandboxFilesRow(field string, files claude.SandboxFilesystem, want string) optionRow {
	return sandboxRow("SandboxFilesystem."+field, claude.Sandbox{Filesystem: &files}, `{"filesystem":`+want+`}`)
}

func sandboxCredentialsRow(field string, c claude.SandboxCredentials, want string) optionRow {
	return sandboxRow(field, claude.Sandbox{Credentials: &c}, `{"credentials":`+want+`}`)
}

func sandboxRows() []optionRow {
	port := 8080
	secrets := []claude.SandboxSecret{{Name: "K", Mode: "deny"}}
	rows := []optionRow{
		sandboxRow("Sandbox.Enabled", claude.Sandbox{Enabled: new(true)}, `{"enabled":true,"failIfUnavailable":true}`),
		sandboxRow("Sandbox.FailIfUnavailable", claude.Sandbox{FailIfUnavailable: new(false)}, `{"failIfUnavailable":false}`),
		sandboxRow("Sandbox.AutoAllowBashIfSandboxed", claude.Sandbox{AutoAllowBashIfSandboxed: new(false)}, `{"autoAllowBashIfSandboxed":false}`),
		sandboxRow("Sandbox.AllowUnsandboxedCommands", claude.Sandbox{AllowUnsandboxedCommands: new(false)}, `{"allowUnsandboxedCommands":false}`),
		sandboxRow("Sandbox.ExcludedCommands", claude.Sandbox{ExcludedCommands: []string{"git"}}, `{"excludedCommands":["git"]}`),
		sandboxRow("Sandbox.Network", claude.Sandbox{Network: &claude.SandboxNetwork{}}, `{"network":{}}`),
		sandboxRow("Sandbox.Filesystem", claude.Sandbox{Filesystem: &claude.SandboxFilesystem{}}, `{"filesystem":{}}`),
		sandboxRow("Sandbox.Credentials", claude.Sandbox{Credentials: &claude.SandboxCredentials{}}, `{"credentials":{}}`),
		sandboxRow("Sandbox.IgnoreViolations", claude.Sandbox{IgnoreViolations: map[string][]string{"git": {"/a"}}}, `{"ignoreViolations":{"git":["/a"]}}`),
		sandboxRow("Sandbox.EnableWeakerNestedSandbox", claude.Sandbox{EnableWeakerNestedSandbox: new(true)}, `{"enableWeakerNestedSandbox":true}`),
		sandboxRow("Sandbox.AllowNestedUserNamespaces", claude.Sandbox{AllowNestedUserNamespaces: new(true)}, `{"allowNestedUserNamespaces":true}`).older(),
		sandboxRow("Sandbox.EnableWeakerNetworkIsolation", claude.Sandbox{EnableWeakerNetworkIsolation: new(true)}, `{"enableWeakerNetworkIsolation":true}`),
		sandboxRow("Sandbox.AllowAppleEvents", claude.Sandbox{AllowAppleEvents: new(true)}, `{"allowAppleEvents":true}`),
		sandboxRow("Sandbox.Ripgrep", claude.Sandbox{Ripgrep: &claude.SandboxRipgrep{Command: "rg"}}, `{"ripgrep":{"command":"rg"}}`),
		sandboxRow("SandboxRipgrep.Command", claude.Sandbox{Ripgrep: &claude.SandboxRipgrep{Command: "rg"}}, `{"ripgrep":{"command":"rg"}}`),
		sandboxRow("SandboxRipgrep.Args", claude.Sandbox{Ripgrep: &claude.SandboxRipgrep{Command: "rg", Args: []string{"-x"}}}, `{"ripgrep":{"args":["-x"],"command":"rg"}}`),
		sandboxRow("Sandbox.BwrapPath", claude.Sandbox{BwrapPath: "/b"}, `{"bwrapPath":"/b"}`),
		sandboxRow("Sandbox.SocatPath", claude.Sandbox{SocatPath: "/s"}, `{"socatPath":"/s"}`),
		sandboxRow("Sandbox.Extra", claude.Sandbox{Extra: map[string]any{"later": []int{1}}}, `{"later":[1]}`),
		sandboxNetworkRow("AllowedDomains", claude.SandboxNetwork{AllowedDomains: []string{}}, `{"allowedDomains":[]}`),
		sandboxNetworkRow("DeniedDomains", claude.SandboxNetwork{DeniedDomains: []string{"a"}}, `{"deniedDomains":["a"]}`),
		sandboxNetworkRow("StrictAllowlist", claude.SandboxNetwork{StrictAllowlist: new(true)}, `{"strictAllowlist":true}`).older(),
		sandboxNetworkRow("AllowManagedDomainsOnly", claude.SandboxNetwork{AllowManagedDomainsOnly: new(true)}, `{"allowManagedDomainsOnly":true}`),
		sandboxNetworkRow("AllowUnixSockets", claude.SandboxNetwork{AllowUnixSockets: []string{"/s"}}, `{"allowUnixSockets":["/s"]}`),
		sandboxNetworkRow("AllowAllUnixSockets", claude.SandboxNetwork{AllowAllUnixSockets: new(false)}, `{"allowAllUnixSockets":false}`),
		sandboxNetworkRow("AllowLocalBinding", claude.SandboxNetwork{AllowLocalBinding: new(true)}, `{"allowLocalBinding":true}`),
		sandboxNetworkRow("AllowMachLookup", claude.SandboxNetwork{AllowMachLookup: []string{"com.a.*"}}, `{"allowMachLookup":["com.a.*"]}`),
		sandboxNetworkRow("HTTPProxyPort", claude.SandboxNetwork{HTTPProxyPort: &port}, `{"httpProxyPort":8080}`),
		sandboxNetworkRow("SOCKSProxyPort", claude.SandboxNetwork{SOCKSProxyPort: &port}, `{"socksProxyPort":8080}`),
		sandboxNetworkRow("TLSTerminate", claude.SandboxNetwork{TLSTerminate: &claude.SandboxTLSTerminate{}}, `{"tlsTerminate":{}}`),
		sandboxRow("SandboxTLSTerminate.CACertPath", claude.Sandbox{Network: &claude.SandboxNetwork{TLSTerminate: &claude.SandboxTLSTerminate{CACertPath: "/c"}}}, `{"network":{"tlsTerminate":{"caCertPath":"/c"}}}`),
		sandboxRow("SandboxTLSTerminate.CAKeyPath", claude.Sandbox{Network: &claude.SandboxNetwork{TLSTerminate: &claude.SandboxTLSTerminate{CAKeyPath: "/k"}}}, `{"network":{"tlsTerminate":{"caKeyPath":"/k"}}}`),
		sandboxFilesRow("AllowWrite", claude.SandboxFilesystem{AllowWrite: []string{"/a"}}, `{"allowWrite":["/a"]}`),
		sandboxFilesRow("DenyWrite", claude.SandboxFilesystem{DenyWrite: []string{"/a"}}, `{"denyWrite":["/a"]}`),
		sandboxFilesRow("DenyRead", claude.SandboxFilesystem{DenyRead: []string{}}, `{"denyRead":[]}`),
		sandboxFilesRow("AllowRead", claude.SandboxFilesystem{AllowRead: []string{"/a"}}, `{"allowRead":["/a"]}`),
		sandboxFilesRow("AllowManagedReadPathsOnly", claude.SandboxFilesystem{AllowManagedReadPathsOnly: new(true)}, `{"allowManagedReadPathsOnly":true}`),
		sandboxFilesRow("Disabled", claude.SandboxFilesystem{Disabled: new(true)}, `{"disabled":true}`).older(),
		sandboxCredentialsRow("SandboxCredentials.Files", claude.SandboxCredentials{Files: []claude.SandboxSecret{{Path: "/k", Mode: "deny"}}}, `{"files":[{"mode":"deny","path":"/k"}]}`),
		sandboxCredentialsRow("SandboxCredentials.EnvVars", claude.SandboxCredentials{EnvVars: secrets}, `{"envVars":[{"mode":"deny","name":"K"}]}`),
		sandboxCredentialsRow("SandboxCredentials.AllowPlaintextInject", claude.SandboxCredentials{AllowPlaintextInject: new(true)}, `{"allowPlaintextInject":true}`).older(),
		sandboxCredentialsRow("SandboxCredentials.AWSPairs", claude.SandboxCredentials{AWSPairs: []any{map[string]string{"accessKeyIdVar": "A", "secretAccessKeyVar": "B"}}}, `{"awsPairs":[{"accessKeyIdVar":"A","secretAccessKeyVar":"B"}]}`).older(),
		sandboxCredentialsRow("SandboxCredentials.SigV4", claude.SandboxCredentials{SigV4: map[string]string{"streaming": "deny"}}, `{"sigv4":{"streaming":"deny"}}`).older(),
		sandboxCredentialsRow("SandboxSecret.Name", claude.SandboxCredentials{EnvVars: secrets}, `{"envVars":[{"mode":"deny","name":"K"}]}`),
		sandboxCredentialsRow("SandboxSecret.Path", claude.SandboxCredentials{Files: []claude.SandboxSecret{{Path: "/k", Mode: "deny"}}}, `{"files":[{"mode":"deny","path":"/k"}]}`),
		sandboxCredentialsRow("SandboxSecret.Mode", claude.SandboxCredentials{EnvVars: []claude.SandboxSecret{{Name: "M", Mode: "mask"}}}, `{"envVars":[{"mode":"mask","name":"M"}]}`).older(),
	}
	for i := range rows {
		rows[i].shownBy = "effect"
	}
	return rows
}

// older marks a row as unknown to the oldest CLI.
func (r optionRow) older() optionRow {
	r.tooOld = true
	return r
}

// agentRow is a field of an agent beside those that it needs.
func agentRow(field string, set func(a *claude.AgentDefinition), want string) optionRow {
	a := claude.AgentDefinition{Description: "D", Prompt: "P"}
	set(&a)
	return optionRow{field: field, forms: []form{{
		name: "set",
		set:  func(o *options) { o.Agents = map[string]claude.AgentDefinition{"reviewer": a} },
		wire: hello(`{"agents":{"reviewer":{"description":"D","prompt":"P"` + want + `}}}`),
	}}, shownBy: "effect"}
}

func (r optionRow) butUnseen(why string) optionRow {
	r.shownBy, r.unseen = "", why
	return r
}

func agentRows() []optionRow {
	type agent = claude.AgentDefinition
	agents := agentRow("Options.Agents", func(*agent) {}, ``)
	agents.forms = append(agents.forms, form{name: "empty", set: func(o *options) { o.Agents = map[string]agent{} }})
	tools := agentRow("AgentDefinition.Tools", func(a *agent) { a.Tools = []string{"Read"} }, `,"tools":["Read"]`)
	tools.forms = append(tools.forms, agentRow("", func(a *agent) { a.Tools = []string{} }, `,"tools":[]`).forms...)
	return []optionRow{
		agents, tools,
		agentRow("AgentDefinition.Description", func(*agent) {}, ``),
		agentRow("AgentDefinition.Prompt", func(*agent) {}, ``),
		agentRow("AgentDefinition.DisallowedTools", func(a *agent) { a.DisallowedTools = []string{"Bash"} }, `,"disallowedTools":["Bash"]`),
		agentRow("AgentDefinition.Model", func(a *agent) { a.Model = "haiku" }, `,"model":"haiku"`),
		agentRow("AgentDefinition.MCPServers", func(a *agent) { a.MCPServers = []claude.AgentMCPServer{{Name: "s"}} }, `,"mcpServers":["s"]`),
		agentRow("AgentMCPServer.Name", func(a *agent) { a.MCPServers = []claude.AgentMCPServer{{Name: "s"}} }, `,"mcpServers":["s"]`),
		agentRow("AgentMCPServer.Config", func(a *agent) {
			a.MCPServers = []claude.AgentMCPServer{{Name: "s", Config: map[string]string{"command": "c"}}}
		}, `,"mcpServers":[{"s":{"command":"c"}}]`),
		agentRow("AgentDefinition.Skills", func(a *agent) { a.Skills = []string{"k"} }, `,"skills":["k"]`),
		agentRow("AgentDefinition.InitialPrompt", func(a *agent) { a.InitialPrompt = "go" }, `,"initialPrompt":"go"`),
		agentRow("AgentDefinition.MaxTurns", func(a *agent) { a.MaxTurns = 3 }, `,"maxTurns":3`),
		agentRow("AgentDefinition.Background", func(a *agent) { a.Background = new(false) }, `,"background":false`),
		agentRow("AgentDefinition.Memory", func(a *agent) { a.Memory = "user" }, `,"memory":"user"`),
		agentRow("AgentDefinition.Effort", func(a *agent) { a.Effort = "30" }, `,"effort":30`).older(),
		agentRow("AgentDefinition.PermissionMode", func(a *agent) { a.PermissionMode = claude.ModePlan }, `,"permissionMode":"plan"`),
		agentRow("AgentDefinition.AutoCompactWindow", func(a *agent) { a.AutoCompactWindow = 200000 }, `,"autoCompactWindow":200000`).butUnseen("it takes a conversation of 100,000 tokens").older(),
		agentRow("AgentDefinition.OmitClaudeMD", func(a *agent) { a.OmitClaudeMD = new(true) }, `,"omitClaudeMd":true`).older(),
		agentRow("AgentDefinition.Observer", func(a *agent) { a.Observer = "o" }, `,"observer":"o"`).butUnseen("observers are switched on by the service").older(),
		agentRow("AgentDefinition.ObserverMessage", func(a *agent) { a.ObserverMessage = "m" }, `,"observerMessage":"m"`).butUnseen("observers are switched on by the service").older(),
	}
}

// outside is a server outside this process, and its entry on the command line.
func outside(field string, s claude.MCPServer, want string) optionRow {
	return optionRow{field: field, forms: []form{{
		name: "set", set: func(o *options) { o.MCPServers = map[string]claude.MCPServer{"s": s} },
		wire: args(`--mcp-config={"mcpServers":{"s":` + want + `}}`),
	}}, shownBy: "effect"}
}

// afterwards is a server that the handshake is followed by.
func afterwards(field string, s claude.MCPServer, want string) optionRow {
	r := outside(field, s, "")
	r.forms[0].wire = wire{request: `{"subtype":"mcp_set_servers","servers":{"s":` + want + `}}`}
	return r
}

// inside is a server in this process, and its entry in the handshake.
func inside(field string, s claude.MCPInProcess, want string) optionRow {
	if s.Handle == nil && s.Session == nil {
		s.Handle = silent
	}
	return optionRow{field: field, forms: []form{{
		name: "set", set: func(o *options) { o.MCPServers = map[string]claude.MCPServer{"s": &s} },
		wire: hello(`{"sdkMcpServers":["s"]` + want + `}`),
	}}, shownBy: "effect"}
}

func silent(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil }

func mcpRows() []optionRow {
	const url, typ = "http://127.0.0.1:9/m", `"url":"http://127.0.0.1:9/m"`
	policy := []claude.MCPToolPolicy{{Name: "t", Policy: claude.MCPAlwaysAsk, OrgMaxPermission: "ask"}}
	const tools = `"tools":[{"name":"t","permission_policy":"always_ask","org_max_permission":"ask"}]`
	servers := outside("Options.MCPServers", claude.MCPStdio{Command: "c"}, `{"type":"stdio","command":"c"}`)
	servers.forms = append(servers.forms,
		form{name: "empty", set: func(o *options) { o.MCPServers = map[string]claude.MCPServer{} }},
		form{name: "pointer", set: func(o *options) { o.MCPServers = map[string]claude.MCPServer{"s": &claude.MCPStdio{Command: "c"}} }, wire: servers.forms[0].wire})
	manifest := func() (*claude.MCPManifest, error) {
		return &claude.MCPManifest{InitializeResult: json.RawMessage(`{"a":1}`), ToolsListResult: json.RawMessage(`{"tools":[]}`)}, nil
	}
	const parked = `,"sdkMcpServerManifests":{"s":{"initializeResult":{"a":1},"toolsListResult":{"tools":[]}}}`
	session := func(func(context.Context, json.RawMessage) error) claude.MCPSession {
		return claude.MCPSession{Handle: silent}
	}
	attach := func(func(context.Context, json.RawMessage) error) func() { return nil }
	return []optionRow{
		servers,
		{field: "Options.MCPConfig", forms: []form{
			{name: "set", set: func(o *options) { o.MCPConfig = "/m.json" }, wire: args("--mcp-config=/m.json")},
			{
				name: "beside servers", set: func(o *options) {
					o.MCPConfig, o.MCPServers = "/m.json", map[string]claude.MCPServer{"s": claude.MCPStdio{Command: "c"}}
				},
				wire: args(`--mcp-config={"mcpServers":{"s":{"type":"stdio","command":"c"}}}`, "--mcp-config=/m.json"),
			},
		}, shownBy: "effect"},
		{field: "Options.StrictMCP", forms: []form{{name: "true", set: func(o *options) { o.StrictMCP = true }, wire: args("--strict-mcp-config")}}, shownBy: "effect"},
		outside("MCPStdio.Command", claude.MCPStdio{Command: "c"}, `{"type":"stdio","command":"c"}`),
		outside("MCPStdio.Args", claude.MCPStdio{Command: "c", Args: []string{"-a", "b c"}}, `{"type":"stdio","command":"c","args":["-a","b c"]}`),
		outside("MCPStdio.Env", claude.MCPStdio{Command: "c", Env: map[string]string{"A": "1"}}, `{"type":"stdio","command":"c","env":{"A":"1"}}`),
		outside("MCPStdio.Timeout", claude.MCPStdio{Command: "c", Timeout: 2 * time.Second}, `{"type":"stdio","command":"c","timeout":2000}`),
		outside("MCPStdio.AlwaysLoad", claude.MCPStdio{Command: "c", AlwaysLoad: true}, `{"type":"stdio","command":"c","alwaysLoad":true}`),
		outside("MCPSSE.URL", claude.MCPSSE{URL: url}, `{"type":"sse",`+typ+`}`),
		outside("MCPSSE.Headers", claude.MCPSSE{URL: url, Headers: map[string]string{"A": "1"}}, `{"type":"sse",`+typ+`,"headers":{"A":"1"}}`),
		afterwards("MCPSSE.Tools", claude.MCPSSE{URL: url, Tools: policy}, `{"type":"sse",`+typ+`,`+tools+`}`),
		outside("MCPSSE.Timeout", claude.MCPSSE{URL: url, Timeout: 2 * time.Second}, `{"type":"sse",`+typ+`,"timeout":2000}`),
		outside("MCPSSE.AlwaysLoad", claude.MCPSSE{URL: url, AlwaysLoad: true}, `{"type":"sse",`+typ+`,"alwaysLoad":true}`),
		outside("MCPHTTP.URL", claude.MCPHTTP{URL: url}, `{"type":"http",`+typ+`}`),
		outside("MCPHTTP.Headers", claude.MCPHTTP{URL: url, Headers: map[string]string{"A": "1"}}, `{"type":"http",`+typ+`,"headers":{"A":"1"}}`),
		afterwards("MCPHTTP.Tools", claude.MCPHTTP{URL: url, Tools: policy}, `{"type":"http",`+typ+`,`+tools+`}`),
		outside("MCPHTTP.Timeout", claude.MCPHTTP{URL: url, Timeout: 2 * time.Second}, `{"type":"http",`+typ+`,"timeout":2000}`),
		outside("MCPHTTP.AlwaysLoad", claude.MCPHTTP{URL: url, AlwaysLoad: true}, `{"type":"http",`+typ+`,"alwaysLoad":true}`),
		inside("MCPInProcess.Handle", claude.MCPInProcess{}, ``),
		inside("MCPInProcess.Session", claude.MCPInProcess{Session: session}, ``),
		inside("MCPInProcess.Attach", claude.MCPInProcess{Attach: attach}, ``).by("TestMCPMux_ListChangedReachesEveryClient"),
		inside("MCPInProcess.Manifest", claude.MCPInProcess{Manifest: manifest}, parked),
		inside("MCPManifest.InitializeResult", claude.MCPInProcess{Manifest: manifest}, parked),
		inside("MCPManifest.ToolsListResult", claude.MCPInProcess{Manifest: manifest}, parked),
		inside("MCPInProcess.Timeout", claude.MCPInProcess{Timeout: 2 * time.Second}, `,"sdkMcpServerConfigs":{"s":{"timeout":2000}}`).older(),
		inside("MCPInProcess.Tools", claude.MCPInProcess{Tools: policy}, `,"sdkMcpServerConfigs":{"s":{`+tools+`}}`).older(),
		afterwards("MCPToolPolicy.Name", claude.MCPHTTP{URL: url, Tools: policy}, `{"type":"http",`+typ+`,`+tools+`}`),
		afterwards("MCPToolPolicy.Policy", claude.MCPHTTP{URL: url, Tools: policy}, `{"type":"http",`+typ+`,`+tools+`}`),
		afterwards("MCPToolPolicy.OrgMaxPermission", claude.MCPHTTP{URL: url, Tools: policy}, `{"type":"http",`+typ+`,`+tools+`}`).butUnseen("the ceiling of an organisation counts in auto mode, which needs the service"),
	}
}

// by names the test that shows the effect.
func (r optionRow) by(test string) optionRow {
	r.shownBy = test
	return r
}

func hookRows() []optionRow {
	hook := func(set func(h *claude.Hook), want string) []form {
		h := claude.Hook{Event: claude.HookPreToolUse, Func: func(context.Context, claude.HookInput) (claude.HookOutput, error) { return nil, nil }}
		set(&h)
		return []form{{name: "set", set: func(o *options) { o.Hooks = []claude.Hook{h} }, wire: hello(`{"hooks":{"PreToolUse":[{"hookCallbackIds":["hook_1_0"]` + want + `}]}}`)}}
	}
	nothing := func(*claude.Hook) {}
	return []optionRow{
		{field: "Options.Hooks", forms: append(hook(nothing, ``), form{name: "empty", set: func(o *options) { o.Hooks = []claude.Hook{} }}), shownBy: "effect"},
		{field: "Hook.Event", forms: hook(nothing, ``), shownBy: "effect"},
		{field: "Hook.Func", forms: hook(nothing, ``), shownBy: "effect"},
		{field: "Hook.Matcher", forms: hook(func(h *claude.Hook) { h.Matcher = "Bash" }, `,"matcher":"Bash"`), shownBy: "effect"},
		{field: "Hook.Timeout", forms: hook(func(h *claude.Hook) { h.Timeout = 1500 * time.Millisecond }, `,"timeout":1.5`), shownBy: "effect"},
		{field: "Hook.OnFailure", forms: hook(func(h *claude.Hook) { h.OnFailure = claude.FailBlock }, `,"onFailure":"block"`), shownBy: "TestInitializeResult_UnsupportedHooksAreRefused", tooOld: true},
	}
}

func sendRows() []optionRow {
	message := func(content string) string { return `{"message":{"role":"user","content":` + content + `}}` }
	return []optionRow{
		{field: "Prompt.Text", forms: []form{{name: "set", send: claude.Text("hello"), wire: prompt(message(`"hello"`))}}, shownBy: "effect"},
		{field: "Prompt.Content", forms: []form{
			{name: "alone", send: claude.Prompt{Content: []claude.Content{claude.TextContent("a")}}, wire: prompt(message(`[{"type":"text","text":"a"}]`))},
			{
				name: "after text", send: claude.Prompt{Text: "t", Content: []claude.Content{claude.ImageContent("image/png", []byte{1})}},
				wire: prompt(message(`[{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AQ=="}}]`)),
			},
		}, shownBy: "TestTurn_ImagesAndPartialMessages"},
		{field: "Prompt.UUID", forms: []form{{name: "set", send: claude.Prompt{Text: "hi", UUID: someUUID}, wire: prompt(`{"uuid":"` + someUUID + `"}`)}}, shownBy: "effect"},
		{field: "Prompt.Priority", forms: []form{{name: "set", send: claude.Prompt{Text: "hi", Priority: "now"}, wire: prompt(`{"priority":"now"}`)}}, shownBy: "effect"},
		{field: "Prompt.NoTurn", forms: []form{{name: "true", send: claude.Prompt{Text: "hi", NoTurn: true}, wire: prompt(`{"shouldQuery":false}`)}}, shownBy: "effect"},
		{field: "Prompt.Verbatim", forms: []form{{name: "true", send: claude.Prompt{Text: "hi", Verbatim: true}, wire: prompt(`{"client_composed":true}`)}}, shownBy: "effect", tooOld: true},
	}
}
