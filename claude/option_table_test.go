// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/transcript"
)

const (
	someUUID  = "0b7c1d1e-5f8e-4c33-9a55-0d7a3c1f0001"
	otherUUID = "0b7c1d1e-5f8e-4c33-9a55-0d7a3c1f0002"
)

type options = claude.Options // keeps the table readable

func args(a ...string) wire     { return wire{args: a} }
func env(a ...string) wire      { return wire{env: a} }
func hello(object string) wire  { return wire{init: object} }
func prompt(object string) wire { return wire{prompt: object} }

func processRows() []optionRow {
	self, _ := os.Executable()
	return []optionRow{
		{field: "Options.CLIPath", forms: []form{{name: "path", set: func(o *options) { o.CLIPath = self }, wire: nothing}}, shownBy: "effect"},
		{field: "Options.Runtime", forms: []form{{name: "nil", set: func(o *options) { o.Runtime = nil }}, {name: "empty", set: func(o *options) { o.Runtime = []string{} }}}, shownBy: "TestOptionRuntime_StartsTheScript"},
		{field: "Options.Dir", forms: []form{
			{name: "absolute", set: func(o *options) { o.Dir = "/" }, wire: env("PWD=/")},
			{name: "empty", set: func(o *options) { o.Dir = "" }},
		}, shownBy: "effect"},
		{field: "Options.Env", forms: []form{
			{name: "exact", set: func(o *options) { o.Env = claude.ExactEnv(map[string]string{"A": "1"}) }, wire: env("A=1")},
			{name: "exact nil", set: func(o *options) { o.Env = claude.ExactEnv(nil) }},
			{name: "exact empty value", set: func(o *options) { o.Env = claude.ExactEnv(map[string]string{"A": ""}) }, wire: env("A=")},
		}, shownBy: "TestEnvironment_OfTheProcess"},
		{field: "Options.TraceParent", forms: []form{
			{name: "set", set: func(o *options) { o.TraceParent = "00-a-b-01" }, wire: env("TRACEPARENT=00-a-b-01")},
			{name: "empty", set: func(o *options) { o.TraceParent = "" }},
		}, shownBy: "TestEnvironment_OfTheProcess"},
		{field: "Options.TraceState", forms: []form{
			{name: "set", set: func(o *options) { o.TraceParent, o.TraceState = "00-a-b-01", "k=v" }, wire: env("TRACEPARENT=00-a-b-01", "TRACESTATE=k=v")},
			{name: "empty", set: func(o *options) { o.TraceState = "" }},
		}, shownBy: "TestEnvironment_OfTheProcess"},
		{field: "Options.ClientApp", forms: []form{
			{name: "set", set: func(o *options) { o.ClientApp = "app/1.2" }, wire: env("CLAUDE_AGENT_SDK_CLIENT_APP=app/1.2")},
			{name: "empty", set: func(o *options) { o.ClientApp = "" }},
		}, shownBy: "effect"},
		{field: "Options.Spawner", forms: []form{{name: "kept", set: func(*options) {}, wire: nothing}}, shownBy: "TestOptions_Wire"},
		{field: "Options.User", forms: []form{{name: "empty", set: func(o *options) { o.User = "" }}}, shownBy: "TestOptionUser_StartsTheCLIAsAnotherUser"},
		{field: "Options.ExtraArgs", forms: []form{
			{name: "set", set: func(o *options) { o.ExtraArgs = []string{"--bare", "--name", "-x"} }, wire: args("--bare", "--name", "-x")},
			{name: "empty", set: func(o *options) { o.ExtraArgs = []string{} }},
		}, shownBy: "effect"},
		{field: "Options.MaxLineBytes", forms: []form{{name: "set", set: func(o *options) { o.MaxLineBytes = 1 << 20 }, wire: nothing}}, shownBy: "TestOptionMaxLineBytes_LongerLineIsAnError"},
		{field: "Options.MaxBufferedBytes", forms: []form{{name: "set", set: func(o *options) { o.MaxBufferedBytes = 1 }, wire: nothing}}, shownBy: "TestOptionMaxBufferedBytes_RestIsKeptOnDisk"},
		{field: "Options.Stderr", forms: []form{{name: "set", set: func(o *options) { o.Stderr = func(string) {} }, wire: nothing}}, shownBy: "TestOptionStderr_ReceivesEachLine"},
		{field: "Options.Logger", forms: []form{{name: "set", set: func(o *options) { o.Logger = slog.New(slog.DiscardHandler) }, wire: nothing}}, shownBy: "TestOptionLogger_ReceivesWarnings"},
		{field: "Options.Debug", forms: []form{{name: "true", set: func(o *options) { o.Debug = true }, wire: args("--debug")}, {name: "false", set: func(o *options) { o.Debug = false }}}, shownBy: "effect"},
		{field: "Options.DebugFile", forms: []form{{name: "set", set: func(o *options) { o.DebugFile = "/tmp/d" }, wire: args("--debug-file=/tmp/d")}, {name: "empty", set: func(o *options) { o.DebugFile = "" }}}, shownBy: "effect"},
		{field: "Options.InitializeTimeout", forms: []form{{name: "set", set: func(o *options) { o.InitializeTimeout = time.Minute }, wire: nothing}}, shownBy: "TestOptionInitializeTimeout_EndsConnect"},
		{field: "Options.BackgroundCeiling", forms: []form{{name: "set", set: func(o *options) { o.BackgroundCeiling = -1 }, wire: nothing}}, shownBy: "TestOptionBackgroundCeiling_EndsTheTurn"},
	}
}

func modelRows() []optionRow {
	budget := 0.25
	return []optionRow{
		{field: "Options.Model", forms: []form{{name: "set", set: func(o *options) { o.Model = "haiku" }, wire: args("--model=haiku")}, {name: "empty", set: func(o *options) { o.Model = "" }}}, shownBy: "effect"},
		{field: "Options.FallbackModels", forms: []form{
			{name: "two", set: func(o *options) { o.FallbackModels = []string{"a", "b"} }, wire: args("--fallback-model=a,b")},
			{name: "empty", set: func(o *options) { o.FallbackModels = []string{} }},
		}, shownBy: "effect"},
		{field: "Options.Betas", forms: []form{
			{name: "two", set: func(o *options) { o.Betas = []string{"x-1", "x-2"} }, wire: env("ANTHROPIC_BETAS=x-1,x-2")},
			{name: "with those of the environment", set: func(o *options) {
				o.Betas, o.Env = []string{"x-1", "x-2"}, claude.ExactEnv(map[string]string{"ANTHROPIC_BETAS": "x-0, x-1"})
			}, wire: env("ANTHROPIC_BETAS=x-0,x-1,x-2")},
			{name: "empty", set: func(o *options) { o.Betas = []string{} }},
		}, shownBy: "effect"},
		{field: "Options.Thinking", forms: []form{
			{name: "zero value", set: func(o *options) { o.Thinking = &claude.Thinking{} }, wire: args("--thinking=adaptive")},
			{name: "nil", set: func(o *options) { o.Thinking = nil }},
		}, shownBy: "effect"},
		{field: "Thinking.Disabled", forms: []form{{name: "true", set: func(o *options) { o.Thinking = &claude.Thinking{Disabled: true} }, wire: args("--thinking=disabled")}}, shownBy: "effect"},
		{field: "Thinking.BudgetTokens", forms: []form{{name: "set", set: func(o *options) { o.Thinking = &claude.Thinking{BudgetTokens: 2048} }, wire: args("--max-thinking-tokens=2048")}}, shownBy: "effect"},
		{field: "Thinking.Display", forms: []form{
			{name: "adaptive", set: func(o *options) { o.Thinking = &claude.Thinking{Display: "omitted"} }, wire: args("--thinking=adaptive", "--thinking-display=omitted")},
			{name: "budget", set: func(o *options) { o.Thinking = &claude.Thinking{BudgetTokens: 1, Display: "summarized"} }, wire: args("--max-thinking-tokens=1", "--thinking-display=summarized")},
		}, shownBy: "effect"},
		{field: "Options.Effort", forms: []form{
			{name: "set", set: func(o *options) { o.Effort = claude.EffortXHigh }, wire: args("--effort=xhigh")},
			{name: "low", set: func(o *options) { o.Effort = claude.EffortLow }, wire: args("--effort=low")},
			{name: "medium", set: func(o *options) { o.Effort = claude.EffortMedium }, wire: args("--effort=medium")},
			{name: "high", set: func(o *options) { o.Effort = claude.EffortHigh }, wire: args("--effort=high")},
			{name: "max", set: func(o *options) { o.Effort = claude.EffortMax }, wire: args("--effort=max")},
			{name: "empty", set: func(o *options) { o.Effort = "" }},
		}, shownBy: "effect"},
		{field: "Options.MaxTurns", forms: []form{{name: "set", set: func(o *options) { o.MaxTurns = 3 }, wire: args("--max-turns=3")}, {name: "zero", set: func(o *options) { o.MaxTurns = 0 }}}, shownBy: "effect"},
		{field: "Options.MaxBudgetUSD", forms: []form{{name: "set", set: func(o *options) { o.MaxBudgetUSD = &budget }, wire: args("--max-budget-usd=0.25")}, {name: "nil", set: func(o *options) { o.MaxBudgetUSD = nil }}}, shownBy: "effect"},
		{field: "Options.TaskBudget", forms: []form{{name: "set", set: func(o *options) { o.TaskBudget = 50000 }, wire: args("--task-budget=50000")}, {name: "zero", set: func(o *options) { o.TaskBudget = 0 }}}, shownBy: "effect"},
		{field: "Options.OutputSchema", forms: []form{
			{name: "normalised", set: func(o *options) {
				o.OutputSchema = json.RawMessage(`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","x-a":1}`)
			}, wire: args(`--json-schema={"type":"object"}`)},
			{
				name: "wrapped", set: func(o *options) { o.OutputSchema = json.RawMessage(`{"type":"string"}`) },
				wire: args(`--json-schema={"type":"object","properties":{"value":{"type":"string"}},"required":["value"],"additionalProperties":false}`),
			},
			{name: "nil", set: func(o *options) { o.OutputSchema = nil }},
		}, shownBy: "effect"},
	}
}

func promptRows() []optionRow {
	return []optionRow{
		{field: "Options.SystemPrompt", forms: []form{
			{name: "nil is an empty prompt", set: func(o *options) { o.SystemPrompt = nil }, wire: hello(`{"systemPrompt":[""]}`)},
			{name: "text", set: func(o *options) { o.SystemPrompt = claude.SystemText("S") }, wire: hello(`{"systemPrompt":["S"]}`)},
			{name: "pointer", set: func(o *options) { o.SystemPrompt = &claude.TextPrompt{Blocks: []string{"S"}} }, wire: hello(`{"systemPrompt":["S"]}`)},
			{name: "nil pointer", set: func(o *options) { o.SystemPrompt = (*claude.PresetPrompt)(nil) }, wire: nothing},
		}, shownBy: "effect"},
		{field: "TextPrompt.Blocks", forms: []form{
			{name: "three", set: func(o *options) {
				o.SystemPrompt = claude.TextPrompt{Blocks: []string{"A", claude.DynamicBoundary, "B"}}
			}, wire: hello(`{"systemPrompt":["A","__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__","B"]}`)},
			{name: "none", set: func(o *options) { o.SystemPrompt = claude.TextPrompt{} }, wire: nothing},
		}, shownBy: "effect"},
		{field: "TextPrompt.Snapshot", forms: []form{
			{name: "false", set: func(o *options) { o.SystemPrompt = claude.TextPrompt{Blocks: []string{"S"}, Snapshot: new(false)} }, wire: hello(`{"systemPrompt":["S"],"systemPromptSnapshot":false}`)},
			{name: "true", set: func(o *options) { o.SystemPrompt = claude.TextPrompt{Snapshot: new(true)} }, wire: hello(`{"systemPromptSnapshot":true}`)},
		}, shownBy: "effect", tooOld: true},
		{field: "PresetPrompt.Append", forms: []form{
			{name: "set", set: func(o *options) { o.SystemPrompt = claude.PresetPrompt{Append: "A"} }, wire: hello(`{"systemPrompt":null,"appendSystemPrompt":"A"}`)},
			{name: "empty", set: func(o *options) { o.SystemPrompt = claude.PresetPrompt{} }, wire: hello(`{"systemPrompt":null}`)},
		}, shownBy: "effect"},
		{field: "PresetPrompt.ExcludeDynamicSections", forms: []form{{name: "true", set: func(o *options) { o.SystemPrompt = claude.PresetPrompt{ExcludeDynamicSections: true} }, wire: hello(`{"systemPrompt":null,"excludeDynamicSections":true}`)}}, shownBy: "effect"},
		{field: "PresetPrompt.Snapshot", forms: []form{{name: "false", set: func(o *options) { o.SystemPrompt = &claude.PresetPrompt{Snapshot: new(false)} }, wire: hello(`{"systemPrompt":null,"systemPromptSnapshot":false}`)}}, shownBy: "effect", tooOld: true},
		{field: "PromptFile.Path", forms: []form{
			{name: "value", set: func(o *options) { o.SystemPrompt = claude.PromptFile{Path: "/p"} }, wire: wire{args: []string{"--system-prompt-file=/p"}, init: `{"systemPrompt":null}`}},
			{name: "pointer", set: func(o *options) { o.SystemPrompt = &claude.PromptFile{Path: "/p"} }, wire: wire{args: []string{"--system-prompt-file=/p"}, init: `{"systemPrompt":null}`}},
		}, shownBy: "effect"},
		{field: "Options.PlanModeInstructions", forms: []form{{name: "set", set: func(o *options) { o.PlanModeInstructions = "P" }, wire: hello(`{"planModeInstructions":"P"}`)}, {name: "empty", set: func(o *options) { o.PlanModeInstructions = "" }}}, shownBy: "effect"},
		{field: "Options.Title", forms: []form{{name: "set", set: func(o *options) { o.Title = "T" }, wire: hello(`{"title":"T"}`)}, {name: "empty", set: func(o *options) { o.Title = "" }}}, shownBy: "effect"},
		{field: "Options.Agent", forms: []form{{name: "set", set: func(o *options) { o.Agent = "reviewer" }, wire: args("--agent=reviewer")}, {name: "empty", set: func(o *options) { o.Agent = "" }}}, shownBy: "effect"},
		{field: "Options.Skills", forms: []form{
			{name: "zero value means no skills", set: func(o *options) { o.Skills = &claude.Skills{} }, wire: hello(`{"skills":[]}`)},
			{name: "nil", set: func(o *options) { o.Skills = nil }},
		}, shownBy: "effect"},
		{field: "Skills.All", forms: []form{{name: "true", set: func(o *options) { o.Skills = &claude.Skills{All: true} }, wire: args("--allowedTools=Skill")}}, shownBy: "effect"},
		{field: "Skills.Names", forms: []form{
			{name: "two", set: func(o *options) { o.Skills = &claude.Skills{Names: []string{"a", "p:b"}} }, wire: wire{args: []string{"--allowedTools=Skill(a),Skill(p:b)"}, init: `{"skills":["a","p:b"]}`}},
			{name: "beside allowed tools", set: func(o *options) { o.Skills, o.AllowedTools = &claude.Skills{Names: []string{"a"}}, []string{"Read"} }, wire: wire{args: []string{"--allowedTools=Read,Skill(a)"}, init: `{"skills":["a"]}`}},
			{name: "empty", set: func(o *options) { o.Skills = &claude.Skills{Names: []string{}} }, wire: hello(`{"skills":[]}`)},
		}, shownBy: "effect"},
		{field: "Options.Plugins", forms: []form{
			{name: "two", set: func(o *options) { o.Plugins = []claude.Plugin{{Path: "/a"}, {Path: "/b"}} }, wire: args("--plugin-dir=/a", "--plugin-dir=/b")},
			{name: "empty", set: func(o *options) { o.Plugins = []claude.Plugin{} }},
		}, shownBy: "effect"},
		{field: "Plugin.Path", forms: []form{{name: "set", set: func(o *options) { o.Plugins = []claude.Plugin{{Path: "/a"}} }, wire: args("--plugin-dir=/a")}}, shownBy: "effect"},
		{field: "Plugin.SkipMCP", forms: []form{{name: "true", set: func(o *options) { o.Plugins = []claude.Plugin{{Path: "/a", SkipMCP: true}} }, wire: args("--plugin-dir-no-mcp=/a")}}, shownBy: "effect"},
		{field: "Options.PluginsInInitialize", forms: []form{{name: "true", set: func(o *options) {
			o.PluginsInInitialize, o.Plugins = true, []claude.Plugin{{Path: "/a"}, {Path: "/b", SkipMCP: true}}
		}, wire: wire{args: []string{"--await-initialize"}, init: `{"plugins":[{"type":"local","path":"/a"},{"type":"local","path":"/b","skipMcpDiscovery":true}]}`}}}, shownBy: "effect", tooOld: true},
	}
}

func toolRows() []optionRow {
	return []optionRow{
		{field: "Options.Tools", forms: []form{
			{name: "two", set: func(o *options) { o.Tools = []string{"Bash", "Read"} }, wire: args("--tools=Bash,Read")},
			{name: "nil is the default", set: func(o *options) { o.Tools = nil }},
			{name: "empty means no tools", set: func(o *options) { o.Tools = []string{} }, wire: args("--tools=")},
		}, shownBy: "effect"},
		{field: "Options.ToolAliases", forms: []form{{name: "set", set: func(o *options) { o.ToolAliases = map[string]string{"Sh": "Bash"} }, wire: hello(`{"toolAliases":{"Sh":"Bash"}}`)}, {name: "empty", set: func(o *options) { o.ToolAliases = map[string]string{} }}}, shownBy: "effect"},
		{field: "Options.AllowedTools", forms: []form{
			{name: "two", set: func(o *options) { o.AllowedTools = []string{"Bash(git log, *)", "Read"} }, wire: args("--allowedTools=Bash(git log, *),Read")},
			{name: "empty", set: func(o *options) { o.AllowedTools = []string{} }},
		}, shownBy: "effect"},
		{field: "Options.DisallowedTools", forms: []form{
			{name: "two", set: func(o *options) { o.DisallowedTools = []string{"Bash", "Read"} }, wire: args("--disallowedTools=Bash,Read")},
			{name: "empty", set: func(o *options) { o.DisallowedTools = []string{} }},
		}, shownBy: "effect"},
		{field: "Options.QuestionPreview", forms: []form{{name: "set", set: func(o *options) { o.QuestionPreview = "html" }, wire: env("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT=html")}, {name: "empty", set: func(o *options) { o.QuestionPreview = "" }}}, shownBy: "effect"},
		{field: "Options.PermissionMode", forms: []form{{name: "set", set: func(o *options) { o.PermissionMode = claude.ModePlan }, wire: args("--permission-mode=plan")}, {name: "empty", set: func(o *options) { o.PermissionMode = "" }}}, shownBy: "effect"},
		{field: "Options.AllowBypass", forms: []form{{name: "true", set: func(o *options) { o.AllowBypass = true }, wire: args("--allow-dangerously-skip-permissions")}}, shownBy: "effect"},
		{field: "Options.CanUseTool", forms: []form{{name: "set", set: func(o *options) { o.CanUseTool = allowAll }, wire: args("--permission-prompt-tool=stdio")}, {name: "nil", set: func(o *options) { o.CanUseTool = nil }}}, shownBy: "effect"},
		{field: "Options.PermissionPromptTool", forms: []form{{name: "set", set: func(o *options) { o.PermissionPromptTool = "mcp__s__ask" }, wire: args("--permission-prompt-tool=mcp__s__ask")}}, shownBy: "effect"},
		{field: "Options.PermissionPrompts", forms: []form{{name: "none", set: func(o *options) { o.PermissionPrompts = "none" }, wire: args("--permission-prompts=none")}, {name: "empty", set: func(o *options) { o.PermissionPrompts = "" }}}, shownBy: "effect", tooOld: true},
		{field: "Options.OnElicitation", forms: []form{{name: "set", set: func(o *options) { o.OnElicitation = declineAll }, wire: nothing}}, shownBy: "TestElicitation_Serve"},
		{field: "Options.OnUserDialog", forms: []form{{name: "set", set: func(o *options) { o.OnUserDialog, o.DialogKinds = answerNothing, []string{"k"} }, wire: hello(`{"supportedDialogKinds":["k"]}`)}}, shownBy: "TestDialog_Serve"},
		{field: "Options.DialogKinds", forms: []form{
			{name: "two", set: func(o *options) { o.OnUserDialog, o.DialogKinds = answerNothing, []string{"k", "l"} }, wire: hello(`{"supportedDialogKinds":["k","l"]}`)},
			{name: "empty", set: func(o *options) { o.DialogKinds = []string{} }},
		}, unseen: "dialogs are opened by features that need an account"},
		{
			field: "Options.PerTaskStop", forms: []form{{name: "true", set: func(o *options) { o.PerTaskStop = true }, wire: hello(`{"perTaskStopAffordance":true}`)}},
			unseen: "this CLI spares background shells without it too", tooOld: true,
		},
	}
}

func sessionRows() []optionRow {
	resumed := func(then func(*options)) func(*options) {
		return func(o *options) {
			o.Resume = someUUID
			then(o)
		}
	}
	resume := "--resume=" + someUUID
	const await = "--await-initialize" // the spawner may have other files
	return []optionRow{
		{field: "Options.Continue", forms: []form{{name: "true", set: func(o *options) { o.Continue = true }, wire: args("--continue", await)}}, shownBy: "effect"},
		{field: "Options.Resume", forms: []form{{name: "id", set: resumed(func(*options) {}), wire: args(resume, await)}, {name: "empty", set: func(o *options) { o.Resume = "" }}}, shownBy: "effect"},
		{field: "Options.Fork", forms: []form{{name: "true", set: resumed(func(o *options) { o.Fork = true }), wire: args(resume, "--fork-session", await)}}, shownBy: "effect"},
		{field: "Options.SessionID", forms: []form{
			{name: "new", set: func(o *options) { o.SessionID = someUUID }, wire: args("--session-id=" + someUUID)},
			{name: "of a fork", set: resumed(func(o *options) { o.Fork, o.SessionID = true, otherUUID }), wire: args(resume, "--fork-session", "--session-id="+otherUUID, await)},
		}, shownBy: "effect"},
		{field: "Options.ResumeAt", forms: []form{{name: "set", set: resumed(func(o *options) { o.ResumeAt = otherUUID }), wire: args(resume, "--resume-session-at="+otherUUID, await)}}, shownBy: "effect"},
		{field: "Options.ResumeDropsTurn", forms: []form{
			{name: "set", set: resumed(func(o *options) { o.ResumeAt, o.ResumeDropsTurn = otherUUID, new(someUUID) }), wire: args(resume, "--resume-session-at="+otherUUID, "--resume-drops-turn="+someUUID, await)},
			{name: "empty is sent", set: resumed(func(o *options) { o.ResumeAt, o.ResumeDropsTurn = otherUUID, new("") }), wire: args(resume, "--resume-session-at="+otherUUID, "--resume-drops-turn=", await)},
		}, shownBy: "effect", tooOld: true},
		{field: "Options.NoPersistence", forms: []form{{name: "true", set: func(o *options) { o.NoPersistence = true }, wire: args("--no-session-persistence")}}, shownBy: "effect"},
		{field: "Options.Store", forms: []form{{name: "set", set: func(o *options) { o.Store = transcript.NewMemoryStore() }, wire: args("--session-mirror")}, {name: "nil", set: func(o *options) { o.Store = nil }}}, shownBy: "effect"},
		{field: "Options.StoreEager", forms: []form{{name: "true", set: func(o *options) { o.Store, o.StoreEager = transcript.NewMemoryStore(), true }, wire: args("--session-mirror")}}, shownBy: "TestOptionStoreEager_AppendsDuringTheTurn"},
		{field: "Options.StoreLoadTimeout", forms: []form{{name: "set", set: func(o *options) { o.Store, o.StoreLoadTimeout = transcript.NewMemoryStore(), time.Second }, wire: args("--session-mirror")}}, shownBy: "TestOptionStoreLoadTimeout_EndsConnect"},
		{field: "Options.StoreDir", forms: []form{{name: "set", set: func(o *options) { o.StoreDir = "/somewhere" }}}, shownBy: "TestOptionStoreDir_HoldsTheResumedFiles"},
		{field: "Options.NoBackgroundTasks", forms: []form{{name: "true", set: func(o *options) { o.NoBackgroundTasks = true }, wire: env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1")}, {name: "false", set: func(o *options) { o.NoBackgroundTasks = false }}}, shownBy: "effect"},
		{field: "Options.Recorder", forms: []form{{name: "set", set: func(o *options) { o.Recorder = &notedRecorder{} }, wire: args("--session-mirror")}, {name: "nil", set: func(o *options) { o.Recorder = nil }}}, shownBy: "TestOptionRecorder_ReceivesEachLineOnce"},
		{field: "Options.Checkpointing", forms: []form{{name: "true", set: func(o *options) { o.Checkpointing = true }, wire: env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true")}, {name: "false", set: func(o *options) { o.Checkpointing = false }}}, shownBy: "effect"},
	}
}

func outputRows() []optionRow {
	return []optionRow{
		{field: "Options.PartialMessages", forms: []form{{name: "true", set: func(o *options) { o.PartialMessages = true }, wire: args("--include-partial-messages")}}, shownBy: "effect"},
		{field: "Options.HookEvents", forms: []form{{name: "true", set: func(o *options) { o.HookEvents = true }, wire: args("--include-hook-events")}}, shownBy: "effect"},
		{field: "Options.ReplayUserMessages", forms: []form{{name: "true", set: func(o *options) { o.ReplayUserMessages = true }, wire: args("--replay-user-messages")}}, shownBy: "effect"},
		{field: "Options.ForwardSubagentText", forms: []form{{name: "true", set: func(o *options) { o.ForwardSubagentText = true }, wire: hello(`{"forwardSubagentText":true}`)}}, shownBy: "effect"},
		{field: "Options.PromptSuggestions", forms: []form{{name: "true", set: func(o *options) { o.PromptSuggestions = true }, wire: hello(`{"promptSuggestions":true}`)}}, shownBy: "effect"},
		{
			field: "Options.ProgressSummaries", forms: []form{{name: "true", set: func(o *options) { o.ProgressSummaries = true }, wire: hello(`{"agentProgressSummaries":true}`)}},
			unseen: "a summary is made of a background agent that has worked for half a minute",
		},
		{field: "Options.VerbatimPrompts", forms: []form{{name: "true", set: func(o *options) { o.VerbatimPrompts = true }, wire: prompt(`{"client_composed":true}`)}}, shownBy: "effect", tooOld: true},
	}
}

func settingsRows() []optionRow {
	return []optionRow{
		{field: "Options.Settings", forms: []form{
			{name: "object", set: func(o *options) { o.Settings = json.RawMessage(`{"model":"haiku"}`) }, wire: args(`--settings={"model":"haiku"}`)},
			{name: "empty object", set: func(o *options) { o.Settings = json.RawMessage(`{}`) }, wire: args(`--settings={}`)},
			{name: "nil", set: func(o *options) { o.Settings = nil }},
		}, shownBy: "effect"},
		{field: "Options.SettingsFile", forms: []form{{name: "set", set: func(o *options) { o.SettingsFile = "/s.json" }, wire: args("--settings=/s.json")}}, shownBy: "effect"},
		{field: "Options.ManagedSettings", forms: []form{
			{name: "object", set: func(o *options) { o.ManagedSettings = json.RawMessage(`{"a":1}`) }, wire: args(`--managed-settings={"a":1}`)},
			{name: "nil", set: func(o *options) { o.ManagedSettings = nil }},
		}, shownBy: "effect"},
		{field: "Options.SettingSources", forms: []form{
			{name: "two", set: func(o *options) { o.SettingSources = []string{"user", "local"} }, wire: args("--setting-sources=user,local")},
			{name: "nil is all", set: func(o *options) { o.SettingSources = nil }},
			{name: "empty means no sources", set: func(o *options) { o.SettingSources = []string{} }, wire: args("--setting-sources=")},
		}, shownBy: "effect"},
		{field: "Options.AddDirs", forms: []form{{name: "two", set: func(o *options) { o.AddDirs = []string{"/a", "/b,c"} }, wire: args("--add-dir=/a", "--add-dir=/b,c")}, {name: "empty", set: func(o *options) { o.AddDirs = []string{} }}}, shownBy: "effect"},
		{field: "Options.ProjectConfigRoot", forms: []form{{name: "set", set: func(o *options) { o.ProjectConfigRoot = "/p" }, wire: args("--project-config-root=/p")}}, shownBy: "effect", tooOld: true},
		{field: "Options.Sandbox", forms: []form{
			{name: "zero value", set: func(o *options) { o.Sandbox = &claude.Sandbox{} }, wire: args(`--settings={"sandbox":{}}`)},
			{name: "with settings", set: func(o *options) {
				o.Sandbox, o.Settings = &claude.Sandbox{Enabled: new(false)}, json.RawMessage(`{"model":"haiku"}`)
			}, wire: args(`--settings={"model":"haiku","sandbox":{"enabled":false}}`)},
			{name: "nil", set: func(o *options) { o.Sandbox = nil }},
		}, shownBy: "effect"},
	}
}
