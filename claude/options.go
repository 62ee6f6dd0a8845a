// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"log/slog"
	"maps"
	"time"

	"github.com/drover-agents/drover/claude/transcript"
)

// Options configures a run of the CLI. The zero value is ready to use: it finds the CLI, inherits the environment and starts
// a conversation with an empty system prompt and the CLI's own default model, tools and permissions.
//
// Options are copied by [Connect] and [Query]; what they point to must not change until the client
// is closed. In every slice nil means "not set" and an empty slice means "none".
type Options struct {
	// CLIPath is the executable. Empty means what [Find] finds.
	CLIPath string
	// Runtime runs a CLI that is a script (.js, .mjs, .ts): the program and its own arguments, such
	// as {"node", "--no-warnings"}. Empty means node for scripts, and nothing for a native CLI.
	Runtime []string
	// Dir is the working directory. Empty means the current one.
	Dir string
	// Env is the environment of the CLI. The zero value inherits the caller's.
	Env Env
	// TraceParent and TraceState are the W3C trace context handed to the CLI. When TraceParent is
	// set an inherited pair is dropped whole, so that the two never come from different spans.
	TraceParent, TraceState string
	// ClientApp names the program that uses this library, such as "my-app/1.2"; the CLI puts it into
	// the User-Agent of model calls. Empty means not set.
	ClientApp string
	// Spawner starts the process. Nil means a [HostSpawner].
	Spawner Spawner
	// User is the operating system user of the CLI; it needs root. Empty means the caller's. It excludes a Spawner.
	User string
	// ExtraArgs are appended to the command line as they are, for flags without a field. One that a field writes is refused.
	ExtraArgs []string
	// MaxLineBytes is the longest line accepted from the CLI. Zero means 64 MiB.
	MaxLineBytes int
	// MaxBufferedBytes of unread messages are kept in memory, the rest in an unnamed temporary file. Zero means 16 MiB.
	MaxBufferedBytes int
	// Stderr receives each line that the CLI writes to standard error, a long one in pieces of 64
	// KiB. It should return soon: the CLI waits for it once the pipe is full. Nil discards the
	// lines; the redacted end is part of the errors either way.
	Stderr func(line string)
	// Logger receives diagnostics. Nil discards them.
	Logger *slog.Logger
	// Debug switches on the CLI's debug output; DebugFile sends it to a file.
	Debug     bool
	DebugFile string
	// InitializeTimeout is how long the CLI may take to answer the handshake. Zero means 60 seconds.
	InitializeTimeout time.Duration
	// BackgroundCeiling is how long a turn may stay open after its last result because background
	// work has not come to rest. Zero means 10 minutes; a negative value means no ceiling.
	BackgroundCeiling time.Duration

	// Model is a model id or alias. Empty means the CLI's default.
	Model string
	// FallbackModels are tried in order when Model is overloaded.
	FallbackModels []string
	// Betas are sent as beta headers with each model call, beside those of the variable
	// ANTHROPIC_BETAS. The CLI's own flag for them refuses all but one.
	Betas []string
	// Thinking chooses extended thinking. Nil means the model's default.
	Thinking *Thinking
	// Effort is how hard the model works. Empty means the CLI's default.
	Effort Effort
	// MaxTurns limits the model calls of one prompt. Zero means no limit.
	MaxTurns int
	// MaxBudgetUSD ends a run that has cost more, checked after each model call. It must be above zero. Nil means no limit.
	MaxBudgetUSD *float64
	// TaskBudget is the token budget that the CLI announces to the model. Zero means none.
	TaskBudget int
	// OutputSchema is the JSON Schema of the structured answer. schema.ForCLI normalises what the CLI
	// does not accept: a $schema key, unknown keywords, a root that is not an object.
	OutputSchema json.RawMessage

	// SystemPrompt is a [TextPrompt], a [PresetPrompt] or a [PromptFile]. Nil means an empty prompt.
	SystemPrompt SystemPrompt
	// PlanModeInstructions replace the CLI's own text for plan mode.
	PlanModeInstructions string
	// Title names a new session.
	Title string
	// Agent is the agent that runs the main conversation. Empty means the CLI's own.
	Agent string
	// Agents are the subagents that the model may start.
	Agents map[string]AgentDefinition
	// Skills chooses the skills that are listed to the model. Nil means the CLI's default.
	Skills *Skills
	// Plugins are loaded from local directories. Without a Spawner they must exist: the CLI silently ignores missing ones.
	Plugins []Plugin
	// PluginsInInitialize hands plugins over in the handshake instead of on the command line. It needs CLI 2.1.261.
	PluginsInInitialize bool

	// Tools are the built-in tools of the run; {"default"} means the CLI's default set. Nil means the CLI's default, empty
	// means none. A tool that the CLI does not have is logged when the first turn begins.
	Tools []string
	// ToolAliases maps a tool name that the model may use to the tool that runs.
	ToolAliases map[string]string
	// AllowedTools run without a question; DisallowedTools are removed.
	AllowedTools, DisallowedTools []string
	// QuestionPreview is the format of previews in AskUserQuestion: "markdown" or "html".
	QuestionPreview string

	// PermissionMode is the mode that the run starts in. Empty means the CLI's default.
	PermissionMode PermissionMode
	// AllowBypass permits a later switch to [ModeBypassPermissions].
	AllowBypass bool
	// CanUseTool answers the CLI's permission questions. It is not asked about calls that a rule, a
	// mode or a hook has decided; Connect logs a warning where an option makes that likely.
	CanUseTool CanUseTool
	// PermissionPromptTool is an MCP tool that answers permission questions instead of CanUseTool.
	PermissionPromptTool string
	// PermissionPrompts is "host" or "none"; none denies instead of asking. Empty means host.
	PermissionPrompts string
	// Hooks are called by the CLI as the run proceeds.
	Hooks []Hook
	// MCPServers are the MCP servers by name, in this process or outside.
	MCPServers map[string]MCPServer
	// MCPConfig is a file, or JSON, with more server definitions.
	MCPConfig string
	// StrictMCP ignores every MCP server that these options do not name.
	StrictMCP bool
	// OnElicitation answers questions of MCP servers. Nil declines them.
	OnElicitation ElicitationHandler
	// OnUserDialog answers dialogs of the kinds in DialogKinds.
	OnUserDialog DialogHandler
	// DialogKinds are the dialogs that OnUserDialog can answer. They need OnUserDialog.
	DialogKinds []string
	// PerTaskStop makes Interrupt spare background tasks, which are then stopped one by one.
	PerTaskStop bool

	// Continue continues the newest conversation of the working directory.
	Continue bool
	// Resume continues the conversation of this id (or title).
	Resume string
	// Fork gives the resumed conversation a new id.
	Fork bool
	// SessionID is the id of the new conversation, a UUID. With Resume or Continue it needs Fork.
	SessionID string
	// ResumeAt cuts a resumed conversation after the message with this UUID.
	ResumeAt string
	// ResumeDropsTurn refuses to resume unless the cut of ResumeAt drops just the turn of this
	// message; an empty string is sent too. Nil means not set.
	ResumeDropsTurn *string
	// NoPersistence keeps the transcript off the disk.
	NoPersistence bool
	// Store receives a copy of the transcript while it is written; Resume and Continue read from it. A resumed CLI runs in a
	// temporary config directory with copies of its settings and of the login without the refresh token; Close removes it. A
	// store that is a [transcript.Locker] lets one client at a time continue a conversation: Connect of another client
	// returns [transcript.ErrInUse], unless it forks.
	Store transcript.Store
	// StoreEager writes to Store at every frame instead of at each result.
	StoreEager bool
	// StoreLoadTimeout limits each read from Store on resume. Zero means 60 seconds.
	StoreLoadTimeout time.Duration
	// StoreDir is where the temporary config directory of a resumed CLI is made. Empty means [os.TempDir].
	StoreDir string
	// Recorder receives the conversation as it happens, and the lines of the CLI's transcript files. Nil means none.
	Recorder Recorder
	// Checkpointing keeps copies of edited files for [Client.RewindFiles].
	Checkpointing bool
	// NoBackgroundTasks has every command and subagent end before the turn goes on: the model cannot
	// send them to the background.
	NoBackgroundTasks bool

	// PartialMessages delivers [StreamEvent] messages while the model writes.
	PartialMessages bool
	// HookEvents delivers messages about command hooks of the settings.
	HookEvents bool
	// ReplayUserMessages delivers each prompt again, as a [UserMessage] with IsReplay, when the CLI has taken it.
	ReplayUserMessages bool
	// ForwardSubagentText delivers the text and thinking of subagents too.
	ForwardSubagentText bool
	// PromptSuggestions delivers a suggested next prompt after each result.
	PromptSuggestions bool
	// ProgressSummaries delivers summaries of what background agents do.
	ProgressSummaries bool
	// VerbatimPrompts sends prompts without expanding @-mentions and slash commands. Needs CLI 2.1.248.
	VerbatimPrompts bool

	// Settings is settings JSON that overrides the CLI's own; SettingsFile is a file of it. Only one can be given.
	Settings     json.RawMessage
	SettingsFile string
	// ManagedSettings are settings that no other source can override.
	ManagedSettings json.RawMessage
	// Sandbox configures the CLI's own sandbox for Bash. It cannot be combined with SettingsFile.
	// Connect asks the CLI whether it has taken all of it. As root, an enabled sandbox and the PID
	// namespace of [HostSpawner] exclude each other; without a Spawner the sandbox is preferred.
	Sandbox *Sandbox
	// SettingSources are the settings files that the CLI reads: user, project, local. Nil means all, empty means none.
	SettingSources []string
	// AddDirs are further directories that the tools may use.
	AddDirs []string
	// ProjectConfigRoot is the directory whose .claude folder counts as the project's.
	ProjectConfigRoot string
}

// Env is the environment of the CLI: [InheritEnv] or [ExactEnv]. Either way CLAUDECODE is removed,
// and the variables that make the CLI speak to this package are added.
type Env struct {
	exact bool
	vars  map[string]string
}

// InheritEnv is the caller's environment, overridden by vars.
func InheritEnv(vars map[string]string) Env { return Env{vars: vars} }

// ExactEnv is vars only, without the caller's environment.
func ExactEnv(vars map[string]string) Env { return Env{exact: true, vars: vars} }

// With is the environment with one more variable; it replaces a variable of the same name.
func (e Env) With(name, value string) Env {
	vars := maps.Clone(e.vars)
	if vars == nil {
		vars = map[string]string{}
	}
	vars[name] = value
	return Env{exact: e.exact, vars: vars}
}

// Vars are the variables that were given, without those that are inherited.
func (e Env) Vars() map[string]string { return maps.Clone(e.vars) }

// An Effort is how hard the model works on an answer.
type Effort string

// The efforts that the CLI knows.
const (
	EffortLow    Effort = "low"
	EffortMedium Effort = "medium"
	EffortHigh   Effort = "high"
	EffortXHigh  Effort = "xhigh"
	EffortMax    Effort = "max"
)

// Thinking chooses extended thinking. With the zero value the model decides for itself.
type Thinking struct {
	// Disabled switches thinking off, where the model permits that.
	Disabled bool
	// BudgetTokens is a fixed budget. Zero means adaptive thinking.
	BudgetTokens int
	// Display of thinking is "summarized", "omitted" or, with newer CLIs, "highlights". Empty means the CLI's default.
	Display string
}

// Skills chooses skills: all of them, or those that are named.
type Skills struct {
	All   bool
	Names []string
}

// A Plugin is loaded from a local directory.
type Plugin struct {
	Path string
	// SkipMCP leaves the plugin's MCP servers alone.
	SkipMCP bool
}

// A SystemPrompt is a [TextPrompt], a [PresetPrompt] or a [PromptFile].
type SystemPrompt interface{ isSystemPrompt() }

// TextPrompt is a system prompt of our own, in one or more blocks. The block
// [DynamicBoundary] separates the part worth caching from what follows.
type TextPrompt struct {
	Blocks []string
	// Snapshot, if set, is whether the prompt is recorded with the session, so that a resume sends the recorded one.
	Snapshot *bool
}

// DynamicBoundary as a block of a [TextPrompt] ends its cacheable prefix.
const DynamicBoundary = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__"

// SystemText is a system prompt of one block.
func SystemText(text string) TextPrompt { return TextPrompt{Blocks: []string{text}} }

// PresetPrompt is the CLI's own system prompt.
type PresetPrompt struct {
	// Append is added at its end.
	Append string
	// ExcludeDynamicSections leaves out what changes from machine to machine.
	ExcludeDynamicSections bool
	// Snapshot is as in [TextPrompt].
	Snapshot *bool
}

// PromptFile is a file with the system prompt.
type PromptFile struct{ Path string }

// plainPrompt is the prompt that a pointer points to: a pointer means the same as its value.
func plainPrompt(prompt SystemPrompt) SystemPrompt {
	switch p := prompt.(type) {
	case *TextPrompt:
		return pointedTo(p)
	case *PresetPrompt:
		return pointedTo(p)
	case *PromptFile:
		return pointedTo(p)
	}
	return prompt
}

func pointedTo[P SystemPrompt](p *P) SystemPrompt {
	if p == nil {
		return nil
	}
	return *p
}

func (TextPrompt) isSystemPrompt()   {}
func (PresetPrompt) isSystemPrompt() {}
func (PromptFile) isSystemPrompt()   {}
