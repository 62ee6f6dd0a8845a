// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"time"

	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// A Request is what an agent shall do, and within which bounds. Only Prompt is needed. An adapter
// refuses what its agent cannot honour.
//
// As the defaults of a [Runner], a request says what holds where the request of a run says nothing.
// Fields of the run win; the fields of Permissions win one by one, and a level that the run names is not
// set aside by a mode of the defaults; lists replace the list of the defaults whole, also if they are
// empty.
type Request struct {
	// Prompt is the task.
	Prompt string
	// Dir is the working directory. Empty means that of the Workspace, or else the current one. With a
	// Workspace it is relative to that, or within it.
	Dir string
	// Workspace is the place that the agent works in. With checkpoints, each of its calls is a transaction
	// there: what one that fails has changed is put back; see [Ledger].
	Workspace *workspace.Workspace
	// Model is the model's name. Empty means the agent's default.
	Model string
	// SystemPrompt replaces the agent's own. Empty leaves that.
	SystemPrompt string
	// AppendSystemPrompt is added to the system prompt.
	AppendSystemPrompt string
	// Effort is how hard the model works, in the agent's words: "low", "high". Empty means its default.
	Effort string
	// MaxTurns limits the model calls of the main conversation. Zero means no limit.
	MaxTurns int
	// SideCallsPerTurn limits all other model calls, of subagents for instance, to so many for each of
	// MaxTurns. Zero means the adapter's default, 10 for Claude Code.
	SideCallsPerTurn int
	// MaxBudgetUSD limits the cost. Zero means no limit.
	MaxBudgetUSD float64

	// Resume continues the conversation of this token, from [event.Done]. A Runner continues its own
	// last conversation if it is empty.
	Resume string
	// Fork continues it as a new one, with a token of its own: what is said later in one of them is not heard
	// in the other.
	Fork bool
	// Fresh begins a new conversation, whatever the Runner remembers.
	Fresh bool

	// AllowedTools are the tools that there are, also of Tools; nil means all of the agent's default
	// and of Tools, empty means none. DisallowedTools are taken away from them. A name may have an
	// argument, as "Bash(git status)"; see [gate.AllowTools]. The arguments of allowed tools are the Host's
	// to enforce.
	AllowedTools, DisallowedTools []string
	// Tools are tools of this program that the agent may call. The agent knows them as those of the
	// MCP server ToolServer: "mcp__drover" names all of them, if that is its name.
	//
	// They may change during the run, also by the handler of one of them: a tool that it adds before
	// it returns is there in the agent's next step, if AllowedTools is nil or names it in full, as
	// "mcp__drover__name". See [tool.Registry.Add] for what the model sees of changes.
	Tools *tool.Registry
	// ToolServer is the name of the MCP server under which the agent finds Tools. Empty means
	// [tool.DefaultServerName].
	ToolServer string
	// Servers are MCP servers that the agent itself connects to, by their keys, beside those of the adapter. A key is
	// taken once.
	Servers map[string]Server
	// Skills are instructions that the agent finds by their names, for this run alone. With them the agent
	// has the tool to read them, also if AllowedTools does not name it.
	Skills []Skill

	// Permissions say what tools may do. Nil leaves that to the agent's own default. They are
	// enforced by the Host; an adapter refuses permissions without one. A Runner makes the host.
	Permissions *gate.Permissions
	// Host decides about tool calls. A Runner makes one of Permissions, the lists of tools and its
	// own policies, unless there is one here. Without permissions and policies it makes one only for
	// AllowedTools with arguments.
	Host Host
	// Hooks are asked and told at certain moments. Nil means nobody is.
	Hooks *Hooks
	// Ledger has the calls of the run, for a host that reads there what became of them. Nil means that the adapter
	// makes one.
	Ledger *Ledger
	// MaxRefusals is how often Hooks may refuse an answer or a stop, for each prompt. They are still asked
	// after that, but what they say has no effect. Zero means 10.
	MaxRefusals int
	// Trackers count what the run consumes while it does. The first limit that is reached ends the run, in
	// the middle of its turn.
	Trackers []*guard.Tracker

	// RunID names the run where the agent's traffic is counted. A Runner fills it in.
	RunID string
	// TraceParent and TraceState are the W3C trace context in which the agent works.
	TraceParent, TraceState string
	// Transcript is given every line that the agent writes down about the conversation, of each source in
	// order, until the run is over. It must not block. Nil means that nobody reads it.
	Transcript func(TranscriptLine)

	// OutputSchema is the JSON Schema of a structured answer; see [event.Done.Output].
	OutputSchema json.RawMessage
	// PartialText yields text also while it is written, as [event.TextDelta].
	PartialText bool
}

// A Server is an MCP server of somebody else: a program that the agent starts, or an address.
type Server struct {
	// Command is the program and its arguments. Env is added to the environment that the agent gives it.
	Command []string
	Env     map[string]string
	// URL is where a server is reached over HTTP, if there is no Command.
	URL     string
	Headers map[string]string
	// Timeout bounds each call. Zero means the agent's default.
	Timeout time.Duration
}
