// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/launch"
)

// A plainStore can be read and written, and nothing else.
type plainStore struct{}

func (plainStore) Append(context.Context, transcript.Key, []json.RawMessage) error { return nil }
func (plainStore) Load(context.Context, transcript.Key) ([]json.RawMessage, error) { return nil, nil }

// A badOption is a value that must be refused, and the fields that the error must name.
type badOption struct {
	name  string
	set   func(o *options)
	names []string
}

func badOptions() []badOption {
	agent := func(set func(a *claude.AgentDefinition)) func(o *options) {
		return func(o *options) {
			a := claude.AgentDefinition{Description: "D", Prompt: "P"}
			set(&a)
			o.Agents = map[string]claude.AgentDefinition{"a": a}
		}
	}
	server := func(s claude.MCPServer) func(o *options) {
		return func(o *options) { o.MCPServers = map[string]claude.MCPServer{"s": s} }
	}
	budget := func(usd float64) func(o *options) { return func(o *options) { o.MaxBudgetUSD = &usd } }
	secret := func(c claude.SandboxCredentials) func(o *options) {
		return func(o *options) { o.Sandbox = &claude.Sandbox{Credentials: &c} }
	}
	return []badOption{
		// the process
		{"user with spawner", func(o *options) { o.User = "nobody" }, []string{"User"}},
		{"negative line", func(o *options) { o.MaxLineBytes = -1 }, []string{"MaxLineBytes"}},
		{"negative buffer", func(o *options) { o.MaxBufferedBytes = -1 }, []string{"MaxBufferedBytes"}},
		{"negative timeout", func(o *options) { o.InitializeTimeout = -1 }, []string{"InitializeTimeout"}},
		{"state without parent", func(o *options) { o.TraceState = "k=v" }, []string{"TraceState"}},
		{"line break in the trace", func(o *options) { o.TraceParent = "a\nb" }, []string{"TraceParent"}},
		{"line break in the app", func(o *options) { o.ClientApp = "a\r\nX: y" }, []string{"ClientApp"}},
		{"NUL in the directory", func(o *options) { o.Dir = "a\x00" }, []string{"Dir"}},
		{"nameless runtime", func(o *options) { o.Runtime = []string{""} }, []string{"Runtime"}},
		{"nameless variable", func(o *options) { o.Env = claude.InheritEnv(map[string]string{"": "x"}) }, []string{"Env"}},
		{"variable with =", func(o *options) { o.Env = claude.ExactEnv(map[string]string{"A=B": "x"}) }, []string{"Env"}},
		{"NUL in a variable", func(o *options) { o.Env = claude.ExactEnv(map[string]string{"A": "x\x00"}) }, []string{"Env"}},
		{"flag twice", func(o *options) { o.Model, o.ExtraArgs = "haiku", []string{"--bare", "--model=opus"} }, []string{"ExtraArgs[1]"}},
		{"flag twice, other spelling", func(o *options) {
			o.AllowedTools, o.Continue, o.ExtraArgs = []string{"Read"}, true, []string{"--allowed-tools=Bash", "-c"}
		}, []string{"ExtraArgs[0]", "ExtraArgs[1]"}},
		{"our own flag", func(o *options) { o.ExtraArgs = []string{"--output-format=text", "--verbose"} }, []string{"ExtraArgs[0]", "ExtraArgs[1]"}},
		{"prompt on the command line", func(o *options) { o.ExtraArgs = []string{"-p"} }, []string{"ExtraArgs[0]"}},
		{"NUL in a flag", func(o *options) { o.ExtraArgs = []string{"--x=\x00"} }, []string{"ExtraArgs[0]"}},
		{"NUL in an option", func(o *options) { o.Model = "a\x00" }, []string{"Model"}},
		// the model
		{"model is its fallback", func(o *options) { o.Model, o.FallbackModels = "a", []string{"b", "a"} }, []string{"FallbackModels"}},
		{"fallback of two", func(o *options) { o.FallbackModels = []string{"a,b", ""} }, []string{"FallbackModels[0]", "FallbackModels[1]"}},
		{"beta of two", func(o *options) { o.Betas = []string{"a", "b,c", "d e"} }, []string{"Betas[1]", "Betas[2]"}},
		{"turns", func(o *options) { o.MaxTurns = -1 }, []string{"MaxTurns"}},
		{"task budget", func(o *options) { o.TaskBudget = -1 }, []string{"TaskBudget"}},
		{"no money", budget(0), []string{"MaxBudgetUSD"}},
		{"debt", budget(-1), []string{"MaxBudgetUSD"}},
		{"all the money", budget(math.Inf(1)), []string{"MaxBudgetUSD"}},
		{"no number", budget(math.NaN()), []string{"MaxBudgetUSD"}},
		{"effort", func(o *options) { o.Effort = "huge" }, []string{"Effort"}},
		{"thinking budget", func(o *options) { o.Thinking = &claude.Thinking{BudgetTokens: -1} }, []string{"Thinking.BudgetTokens"}},
		{"thinking and not", func(o *options) { o.Thinking = &claude.Thinking{Disabled: true, BudgetTokens: 1} }, []string{"Thinking"}},
		{"thinking display", func(o *options) { o.Thinking = &claude.Thinking{Display: "full"} }, []string{"Thinking.Display"}},
		{"schema", func(o *options) { o.OutputSchema = json.RawMessage(`{"type":"strin"}`) }, []string{"OutputSchema"}},
		{"schema the CLI lacks", func(o *options) {
			o.OutputSchema = json.RawMessage(`{"type":"array","contains":true,"maxContains":2}`)
		}, []string{"OutputSchema"}},
		// prompts, agents, skills, plugins
		{"prompt file", func(o *options) { o.SystemPrompt = claude.PromptFile{} }, []string{"SystemPrompt"}},
		{"prompt file by pointer", func(o *options) { o.SystemPrompt = &claude.PromptFile{} }, []string{"SystemPrompt"}},
		{"system prompt that is not UTF-8", func(o *options) { o.SystemPrompt = &claude.TextPrompt{Blocks: []string{"a", "caf\xe9"}} }, []string{"SystemPrompt.Blocks[1]"}},
		{"NUL in what is added to the system prompt", func(o *options) { o.SystemPrompt = claude.PresetPrompt{Append: "a\x00"} }, []string{"SystemPrompt.Append"}},
		{"NUL in the instructions of plan mode", func(o *options) { o.PlanModeInstructions = "a\x00" }, []string{"PlanModeInstructions"}},
		{"agent's prompts that are not UTF-8", agent(func(a *claude.AgentDefinition) { a.Description, a.Prompt, a.InitialPrompt = "\xff", "\xff", "\xff" }), []string{`Agents["a"]`, `Agents["a"]`, `Agents["a"]`}},
		{"nameless agent", func(o *options) { o.Agents = map[string]claude.AgentDefinition{"": {Description: "D", Prompt: "P"}} }, []string{"Agents"}},
		{"empty agent", func(o *options) { o.Agents = map[string]claude.AgentDefinition{"a": {}} }, []string{`Agents["a"]`, `Agents["a"]`}},
		{"agent's turns", agent(func(a *claude.AgentDefinition) { a.MaxTurns = -1 }), []string{`Agents["a"]`}},
		{"agent's memory", agent(func(a *claude.AgentDefinition) { a.Memory = "disk" }), []string{`Agents["a"]`}},
		{"agent's skill", agent(func(a *claude.AgentDefinition) { a.Skills = []string{"x)"} }), []string{`Agents["a"]`}},
		{"agent's window", agent(func(a *claude.AgentDefinition) { a.AutoCompactWindow = 5 }), []string{`Agents["a"]`}},
		{"all and some skills", func(o *options) { o.Skills = &claude.Skills{All: true, Names: []string{"a"}} }, []string{"Skills"}},
		{"skill that smuggles", func(o *options) { o.Skills = &claude.Skills{Names: []string{"ok", "x),Bash(*", "*"}} }, []string{"Skills.Names[1]", "Skills.Names[2]"}},
		{"plugin without path", func(o *options) { o.Plugins = []claude.Plugin{{}} }, []string{"Plugins[0]"}},
		{"handing over nothing", func(o *options) { o.PluginsInInitialize = true }, []string{"PluginsInInitialize"}},
		// tools and permissions
		{"empty tools", func(o *options) {
			o.Tools, o.AllowedTools, o.DisallowedTools = []string{""}, []string{" "}, []string{"a", ""}
		}, []string{"Tools[0]", "AllowedTools[0]", "DisallowedTools[1]"}},
		{"two tools in one", func(o *options) { o.AllowedTools = []string{"Read", "Read,Bash"} }, []string{"AllowedTools[1]"}},
		{"mode", func(o *options) { o.PermissionMode = "yolo" }, []string{"PermissionMode"}},
		{"prompts", func(o *options) { o.PermissionPrompts = "maybe" }, []string{"PermissionPrompts"}},
		{"preview", func(o *options) { o.QuestionPreview = "pdf" }, []string{"QuestionPreview"}},
		{"two judges", func(o *options) { o.CanUseTool, o.PermissionPromptTool = allowAll, "mcp__a__b" }, []string{"PermissionPromptTool"}},
		{"dialogs without a handler", func(o *options) { o.DialogKinds = []string{"k"} }, []string{"DialogKinds"}},
		{"handler without dialogs", func(o *options) { o.OnUserDialog = answerNothing }, []string{"OnUserDialog"}},
		{"hook", func(o *options) { o.Hooks = []claude.Hook{{}} }, []string{"Hooks[0].Event"}},
		// servers
		{"nil server", server(nil), []string{`MCPServers["s"]`}},
		{"nil pointer", server((*claude.MCPStdio)(nil)), []string{`MCPServers["s"]`}},
		{"nil server in this process", server((*claude.MCPInProcess)(nil)), []string{`MCPServers["s"]`}},
		{"nil server beside extra flags", func(o *options) {
			o.MCPServers, o.ExtraArgs = map[string]claude.MCPServer{"s": nil}, []string{"--bare"}
		}, []string{`MCPServers["s"]`}},
		{"no command", server(claude.MCPStdio{}), []string{`MCPServers["s"]`}},
		{"no handler", server(&claude.MCPInProcess{}), []string{`MCPServers["s"]`}},
		{"relative address", server(claude.MCPHTTP{URL: "/mcp"}), []string{`MCPServers["s"]`}},
		{"short timeout", server(claude.MCPSSE{URL: "http://127.0.0.1/", Timeout: time.Millisecond}), []string{`MCPServers["s"]`}},
		{"policy", server(claude.MCPHTTP{URL: "http://127.0.0.1/", Tools: []claude.MCPToolPolicy{{Name: "t", Policy: "maybe"}}}), []string{`MCPServers["s"]`}},
		{"nameless server", func(o *options) { o.MCPServers = map[string]claude.MCPServer{"": claude.MCPStdio{Command: "c"}} }, []string{`MCPServers[""]`}},
		// sessions
		{"continue and resume", func(o *options) { o.Continue, o.Resume = true, someUUID }, []string{"Continue"}},
		{"fork of nothing", func(o *options) { o.Fork = true }, []string{"Fork"}},
		{"cut of nothing", func(o *options) { o.ResumeAt = someUUID }, []string{"ResumeAt"}},
		{"dropping without a cut", func(o *options) { o.Resume, o.ResumeDropsTurn = someUUID, new("") }, []string{"ResumeDropsTurn"}},
		{"session id", func(o *options) { o.SessionID = "seven" }, []string{"SessionID"}},
		{"session id of a resumed one", func(o *options) { o.Resume, o.SessionID = someUUID, otherUUID }, []string{"SessionID"}},
		{"title of a resumed one", func(o *options) { o.Resume, o.Title = someUUID, "T" }, []string{"Title"}},
		{"store of nothing", func(o *options) { o.Store, o.NoPersistence = transcript.NewMemoryStore(), true }, []string{"NoPersistence"}},
		{"store with checkpoints", func(o *options) { o.Store, o.Checkpointing = transcript.NewMemoryStore(), true }, []string{"Checkpointing"}},
		{"continue without a list", func(o *options) { o.Store, o.Continue = plainStore{}, true }, []string{"Continue"}},
		{"eager without a store", func(o *options) { o.StoreEager = true }, []string{"StoreEager"}},
		{"patience without a store", func(o *options) { o.StoreLoadTimeout = 1 }, []string{"StoreLoadTimeout"}},
		{"negative patience", func(o *options) { o.Store, o.StoreLoadTimeout = plainStore{}, -1 }, []string{"StoreLoadTimeout"}},
		// settings
		{"settings twice", func(o *options) { o.Settings, o.SettingsFile = json.RawMessage(`{}`), "/s" }, []string{"SettingsFile"}},
		{"sandbox beside a file", func(o *options) { o.Sandbox, o.SettingsFile = &claude.Sandbox{}, "/s" }, []string{"Sandbox"}},
		{"settings are no object", func(o *options) { o.Settings = json.RawMessage(`[]`) }, []string{"Settings"}},
		{"settings are a path", func(o *options) { o.Settings = json.RawMessage(`/etc/s.json`) }, []string{"Settings"}},
		{"settings are empty", func(o *options) { o.Settings = json.RawMessage{} }, []string{"Settings"}},
		{"managed settings", func(o *options) { o.ManagedSettings = json.RawMessage(`null`) }, []string{"ManagedSettings"}},
		{"source", func(o *options) { o.SettingSources = []string{"user", "moon"} }, []string{"SettingSources[1]"}},
		{"empty directory", func(o *options) { o.AddDirs = []string{"/", ""} }, []string{"AddDirs[1]"}},
		{"relative root", func(o *options) { o.ProjectConfigRoot = "a" }, []string{"ProjectConfigRoot"}},
		{"sandbox that is no JSON", func(o *options) { o.Sandbox = &claude.Sandbox{Extra: map[string]any{"f": func() {}}} }, []string{"Sandbox"}},
		{"secret without a mode", secret(claude.SandboxCredentials{EnvVars: []claude.SandboxSecret{{Name: "K"}}}), []string{"Sandbox.Credentials.EnvVars[0]"}},
		{"secret without a name", secret(claude.SandboxCredentials{EnvVars: []claude.SandboxSecret{{Path: "/k", Mode: "deny"}}}), []string{"Sandbox.Credentials.EnvVars[0]"}},
		{"secret without a path", secret(claude.SandboxCredentials{Files: []claude.SandboxSecret{{Name: "K", Mode: "deny"}}}), []string{"Sandbox.Credentials.Files[0]"}},
	}
}

// noStart is a spawner that must not be used.
func noStart(t *testing.T) claude.Spawner {
	return launch.SpawnerFunc(func(context.Context, claude.Command) (claude.Process, error) {
		t.Error("a process was started in spite of bad options")
		return nil, errors.New("not to be started")
	})
}

// optionNames are the fields that a joined error names, in its order.
func optionNames(err error) []string {
	var names []string
	switch e := err.(type) {
	case *claude.OptionError:
		names = append(names, e.Option)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			names = append(names, optionNames(inner)...)
		}
	case interface{ Unwrap() error }:
		names = optionNames(e.Unwrap())
	}
	return names
}

func TestValidate_NamesTheInvalidField(t *testing.T) {
	for _, bad := range badOptions() {
		t.Run(bad.name, func(t *testing.T) {
			o := &claude.Options{Spawner: noStart(t)}
			bad.set(o)
			err := o.Validate()
			if diff := cmp.Diff(bad.names, optionNames(err)); diff != "" {
				t.Errorf("the error is %v; fields (-want +got):\n%s", err, diff)
			}
			if again := connectError(t, o); advice.Text(again) != advice.Text(err) {
				t.Errorf("Connect says %v, Validate %v", again, err)
			}
		})
	}
}

// One error names all that is wrong.
func TestValidate_NamesAllFaultsAtOnce(t *testing.T) {
	o := &claude.Options{
		Spawner: noStart(t), MaxTurns: -1, Effort: "huge", PermissionMode: "yolo", Fork: true, SettingSources: []string{"moon"},
		Skills: &claude.Skills{Names: []string{"/a"}}, Plugins: []claude.Plugin{{}}, Hooks: []claude.Hook{{}}, MCPServers: map[string]claude.MCPServer{"s": nil},
		OutputSchema: json.RawMessage(`{`), Env: claude.ExactEnv(map[string]string{"": ""}),
	}
	err := connectError(t, o)
	want := []string{"Env", "MaxTurns", "Effort", "OutputSchema", "Skills.Names[0]", "Plugins[0]", "PermissionMode", `MCPServers["s"]`, "Fork", "SettingSources[0]", "Hooks[0].Event"}
	if diff := cmp.Diff(want, optionNames(err)); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	for _, name := range want {
		if !strings.Contains(advice.Text(err), "option "+name+": ") {
			t.Errorf("the text does not name %s:\n%v", name, err)
		}
	}
}

func TestValidate_AcceptsEveryRowOfTheTable(t *testing.T) {
	for _, row := range optionRows() {
		for _, f := range row.forms {
			o := &claude.Options{Spawner: noStart(t)}
			if f.set != nil {
				f.set(o)
			}
			if err := o.Validate(); err != nil {
				t.Errorf("%s, %s: %v", row.field, f.name, err)
			}
		}
	}
	if err := (&claude.Options{}).Validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}

// Where the CLI would not report that a path is missing, we do; a spawner may have other files.
func TestValidate_MissingPathsAreErrors(t *testing.T) {
	o := &claude.Options{Dir: t.TempDir(), Plugins: []claude.Plugin{{Path: "plugin"}}, AddDirs: []string{"/no/such/directory"}}
	if diff := cmp.Diff([]string{"Plugins[0]", "AddDirs[0]"}, optionNames(o.Validate())); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	o.Spawner = noStart(t)
	if err := o.Validate(); err != nil {
		t.Errorf("with a spawner: %v", err)
	}
}

func TestSend_InvalidPromptIsRefused(t *testing.T) {
	for name, p := range map[string]claude.Prompt{
		"Prompt.UUID":     {Text: "hi", UUID: "seven"},
		"Prompt.Priority": {Text: "hi", Priority: "soon"},
	} {
		c := claudetest.Connect(t, answering(t).Options())
		err := c.Send(t.Context(), p)
		if e, ok := errors.AsType[*claude.OptionError](err); !ok || e.Option != name {
			t.Errorf("got %v, want an OptionError for %s", err, name)
		}
	}
	for name, content := range map[string]claude.Content{
		"image without type": claude.ImageContent("", []byte{1}), "empty document": claude.DocumentContent("application/pdf", nil), "raw": claude.RawContent([]byte(`[]`)),
	} {
		c := claudetest.Connect(t, answering(t).Options())
		if err := c.Send(t.Context(), claude.Prompt{Content: []claude.Content{content}}); err == nil {
			t.Errorf("%s was sent", name)
		}
	}
}
