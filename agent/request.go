// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/tool"
)

// A Request is a task for an agent with settings. Only Prompt is needed. An adapter refuses what its agent cannot honour.
//
// As the defaults of a [Runner], a request fills the fields that the request of a run leaves empty. Fields of the run win;
// the fields of Permissions win one by one, and a level that the run names is not set aside by a mode of the defaults; the
// limits of Budget win one by one; lists replace the list of the defaults whole, also if they are empty.
type Request struct {
	Settings

	// Prompt is the task.
	Prompt string

	// Resume continues the conversation of this token, from [event.Done]. If empty, a Runner continues its own last one.
	Resume string
	// Fork continues it as a new one, with a token of its own: later messages of one are not in the other.
	Fork bool
	// Fresh begins a new conversation, whatever the Runner remembers.
	Fresh bool

	// Registry has the tools of this program that the agent may call. The agent knows them as those of the
	// MCP server ToolServer: "mcp__drover" names all of them, if that is its name.
	//
	// They may change during the run, also by the handler of one of them: a tool that it adds before
	// it returns is there in the agent's next step, if Settings.Tools is nil or names it in full, as
	// "mcp__drover__name". See [tool.Registry.Add] for what the model sees of changes.
	Registry *tool.Registry
	// Skills are instructions that the agent finds by their names, for this run alone. With them the agent
	// has the tool to read them, also if Settings.Tools does not name it.
	Skills []Skill

	// Host decides about tool calls. A Runner makes one of Permissions, the lists of tools and its own policies, unless
	// there is one here. Without permissions and policies it makes one only for Settings.Tools with arguments.
	Host Host
	// Hooks are called at certain moments. Nil means none.
	Hooks *Hooks
	// Ledger has the calls of the run, for a host that reads their outcome there. Nil means that the adapter makes one.
	Ledger *Ledger
	// MaxRefusals is how often Hooks may refuse an answer or a stop, for each prompt. They are still asked
	// after that, but without effect. Zero means 10.
	MaxRefusals int
	// Trackers count what the run consumes, beside Budget: a budget that several runs share. The first limit that is
	// reached ends the run, in the middle of its turn.
	Trackers []*guard.Tracker

	// RunID names the run where the agent's traffic is counted, and LastSeq is the number of its last event so far: a
	// run may go on over several requests. A Runner fills RunID in where it is empty.
	RunID   string
	LastSeq int64
	// TraceParent and TraceState are the W3C trace context in which the agent works.
	TraceParent, TraceState string
	// Transcript is given every line that the agent writes down about the conversation, of each source in
	// order, until the run is over. It must not block. Nil means none.
	Transcript func(TranscriptLine)

	// OutputSchema is the JSON Schema of a structured answer; see [event.Done.Output].
	OutputSchema json.RawMessage
}

// Limits returns the trackers that count the run: Trackers, and a new one for the Budget.
func (r Request) Limits() []*guard.Tracker {
	all := slices.Clone(r.Trackers)
	if r.Budget != nil {
		all = append(all, guard.NewTracker(*r.Budget))
	}
	return all
}

// A Server is an external MCP server: a program that the agent starts, or an address.
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
