// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/safelog"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/telemetry"
	"github.com/drover-agents/drover/tool"
)

// Options configure an evaluation. Nil and the zero value are ready to use: one agent, no limits, a session of its own.
type Options struct {
	// Session records everything. Its state takes part: it has the blocked tools for the gate and the plan for the
	// context lines. Nil means a new one; see [Summary].
	Session *session.Session
	// Settings configure the agent. Without a Workspace it works in that of the prompt's sections, else in the one that
	// is open for the Session, else, unless Dir names a folder, in an empty folder that is removed afterwards. The tools of the
	// prompt are added to Tools unless the list names some of them. Every call is judged by Permissions and
	// Policies, beside the policies of the prompt and the limits; a call that none of them forbids is allowed. Without
	// Permissions, a permission mode of the adapter decides about the agent's own tools where no policy
	// does. AppendSystemPrompt is before the prompt where that goes into the system prompt too.
	agent.Settings

	// Deadline is when the evaluation has to be over. The zero value means that of the Budget, if any.
	Deadline guard.Deadline
	// Tracker counts the usage of the evaluation, or of the whole conversation. Its own budget replaces Budget;
	// evaluations that share a Tracker share its limits. Nil means a new one for Budget.
	Tracker *guard.Tracker
	// Heartbeat beats with every sign of life of the agent. Nil means none.
	Heartbeat *guard.Heartbeat
	// RunContext names the run in logs, events and traces. Empty fields are filled in. Its RunID is that of the first message of a
	// conversation; later ones and forks get names of their own.
	RunContext guard.RunContext

	// Placement is where the text of the prompt goes. The zero value means the user's message.
	Placement Placement
	// Input is the user's message where the prompt goes into the system prompt. Empty means "Begin."
	Input string
	// Resume continues the conversation of a token, from [Response.ResumeToken].
	Resume string

	// Visibility shows sections of the prompt otherwise than the session does, for this evaluation.
	Visibility map[string]prompt.Visibility
	// Overrides replace parts of the prompt.
	Overrides *prompt.Overrides
	// RestartToOpen begins again when the model asks for hidden sections, instead of opening them in the
	// run. An answer in the same message counts, and the run is not repeated. MaxExpansions bounds how often; zero means 10.
	RestartToOpen bool
	MaxExpansions int

	// ToolTimeout bounds each call of a tool of the prompt. Zero means none.
	ToolTimeout time.Duration
	// Before and After are those of [tool.Options].
	Before []tool.Before
	After  []tool.After

	// Policies judge every call beside Permissions.
	Policies []gate.Policy
	// Approver is asked where their verdict is ask. Nil denies such calls.
	Approver gate.Approver
	// Feedback is given to the model while it works.
	Feedback []guard.FeedbackRule
	// Completion checks whether the task is done when the agent wants to stop. Nil means no check. MaxRounds
	// bounds how often the agent is sent back; zero means 10.
	Completion guard.Checker
	MaxRounds  int
	// Exec runs the commands of Completion. Nil means a second cell over the same workspace, if the adapter can have one.
	Exec guard.Exec

	// Retry sets when a failed evaluation is retried. Nil means never.
	Retry *RetryPolicy
	// Transcript configures the transcript of the agent. Nil keeps it in the response.
	Transcript *TranscriptOptions
	// Recorder keeps the run. Nil keeps nothing.
	Recorder Recorder
	// Logger receives records of the evaluation's start, end, stages, turns, tool calls and failures. Nil discards them.
	Logger *slog.Logger
	// LogPrefix begins the names of the records of the evaluation, which are their messages and their key "event". Empty
	// means "drover". Other records have neither.
	LogPrefix string
	// Telemetry makes traces and metrics. Nil makes none.
	Telemetry *telemetry.Options
}

// A Placement is where the text of a prompt goes.
type Placement uint8

// The placements of a prompt.
const (
	// AsUser is the user's message.
	AsUser Placement = iota
	// AsSystem replaces the agent's system prompt.
	AsSystem
	// AppendedToSystem is added to the agent's system prompt.
	AppendedToSystem
)

const (
	defaultRounds     = 10
	defaultExpansions = 10
)

// forQuestion are the options with the defaults of [Ask].
func (o *Options) forQuestion(a agent.Adapter) (own *Options, err error) {
	own = &Options{}
	if o != nil {
		*own = *o
	}
	if at, ok := a.(dirAdapter); own.Dir == "" && own.Workspace == nil && (!ok || at.Dir() == "") {
		if own.Dir, err = os.Getwd(); err != nil {
			return nil, advice.Wrap(fmt.Errorf("the current folder cannot be used: %w", err), "set Options.Dir")
		}
	}
	if own.Permissions == nil {
		own.Policies = append(slices.Clone(own.Policies), gate.FromRisk(gate.RiskOptions{ReadOnly: true, AgentTools: true}))
	}
	return own, nil
}

// filled are the options with their defaults, and nothing that the caller may still change.
func (o *Options) filled() Options {
	var own Options
	if o != nil {
		own = *o
	}
	own.Visibility = maps.Clone(own.Visibility)
	own.Tools = slices.Clone(own.Tools)
	own.DisallowedTools = slices.Clone(own.DisallowedTools)
	own.UnknownTools = slices.Clone(own.UnknownTools)
	own.Policies = slices.Clone(own.Policies)
	own.Feedback = slices.Clone(own.Feedback)
	own.ToolServer = cmp.Or(own.ToolServer, tool.DefaultServerName)
	own.MaxRounds = cmp.Or(own.MaxRounds, defaultRounds)
	own.MaxExpansions = cmp.Or(own.MaxExpansions, defaultExpansions)
	own.Input = cmp.Or(own.Input, defaultInput)
	own.LogPrefix = cmp.Or(own.LogPrefix, "drover")
	if r, ok := own.Recorder.(interface {
		Logger(l *slog.Logger) *slog.Logger
	}); ok {
		own.Logger = r.Logger(own.Logger)
	}
	own.Logger = safelog.Logger(own.Logger)
	if own.Session == nil {
		own.Session = session.New(&session.Options{Logger: own.Logger})
	}
	return own
}
