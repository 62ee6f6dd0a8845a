// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/record"
)

// A Summary is what a list shows of a run. Fields that are not known are absent.
type Summary struct {
	ID string `json:"id"`
	// Title is what a person calls the run: the first words of its prompt, or the name of that.
	Title string `json:"title"`
	// Name is the name of the agent, as in its file, and Agent that of the adapter.
	Name         string           `json:"name,omitzero"`
	Agent        string           `json:"agent"`
	PromptName   string           `json:"promptName,omitzero"`
	Folder       string           `json:"folder"`
	Model        string           `json:"model,omitzero"`
	State        record.State     `json:"state"`
	Status       event.DoneStatus `json:"status,omitzero"`
	Kind         string           `json:"kind,omitzero"`
	Error        string           `json:"error,omitzero"`
	Problem      string           `json:"problem,omitzero"`
	Began        time.Time        `json:"began"`
	Ended        time.Time        `json:"ended,omitzero"`
	DurationMS   int64            `json:"durationMs,omitzero"`
	Turns        int              `json:"turns,omitzero"`
	CostUSD      *float64         `json:"costUsd,omitempty"`
	BudgetUSD    float64          `json:"budgetUsd,omitzero"`
	InputTokens  *int64           `json:"inputTokens,omitempty"`
	OutputTokens *int64           `json:"outputTokens,omitempty"`
	// Denied is how many of its tool calls were denied.
	Denied        int    `json:"denied,omitzero"`
	Isolation     string `json:"isolation,omitzero"`
	AgentVersion  string `json:"agentVersion,omitzero"`
	DroverVersion string `json:"droverVersion,omitzero"`
	// Resumes is the token of the conversation that the run continues.
	Resumes string `json:"resumes,omitzero"`
	// Resumable means that a message continues its conversation, and Controllable that it is under way and can be answered and
	// stopped from here.
	Resumable    bool       `json:"resumable"`
	Controllable bool       `json:"controllable"`
	Questions    []Question `json:"questions"`
}

// Limits bound a run. Zero fields are no limit.
type Limits struct {
	USD     float64 `json:"usd,omitzero"`
	Tokens  int64   `json:"tokens,omitzero"`
	Turns   int     `json:"turns,omitzero"`
	Seconds float64 `json:"seconds,omitzero"`
}

// A Run is all that is known of a run beside its events.
type Run struct {
	Summary
	Info   RunInfo `json:"info"`
	End    *RunEnd `json:"end,omitempty"`
	Limits Limits  `json:"limits"`
	// Deadline is when the run has to be over.
	Deadline time.Time `json:"deadline,omitzero"`
	// Damage is what is missing of a bundle.
	Damage []string `json:"damage,omitempty"`
	// Again starts such a run again. It is absent where that is not possible from here.
	Again *Start `json:"again,omitempty"`
}

// RunInfo is what was known when the run began.
type RunInfo struct {
	Settings json.RawMessage   `json:"settings,omitempty"`
	Command  []string          `json:"command,omitempty"`
	Versions map[string]string `json:"versions,omitempty"`
}

// RunEnd is how the run ended.
type RunEnd struct {
	Text   string          `json:"text,omitzero"`
	Output json.RawMessage `json:"output,omitempty"`
	Error  string          `json:"error,omitzero"`
	Advice string          `json:"advice,omitzero"`
	Usage  event.Usage     `json:"usage"`
	Stats  drover.Stats    `json:"stats"`
}

// A Start asks for a run: of an agent with its arguments, or of a prompt. All else can only narrow what the server allows.
type Start struct {
	Agent  string            `json:"agent,omitzero"`
	Args   map[string]string `json:"args,omitempty"`
	Prompt string            `json:"prompt,omitzero"`
	// Key makes the start idempotent, where the server has a queue: the same start under the same key is one run.
	Key string `json:"key,omitzero"`
	// Folder is one of those that the server offers.
	Folder string `json:"folder,omitzero"`
	Model  string `json:"model,omitzero"`
	Limits Limits `json:"limits,omitzero"`
	// ReadOnly refuses every tool that changes something, and Deny capabilities by name.
	ReadOnly bool     `json:"readOnly,omitzero"`
	Deny     []string `json:"deny,omitempty"`
	// Tools are the only tools there are. Nil means those of the server.
	Tools []string `json:"tools,omitempty"`
}

// An Offer is what can be started.
type Offer struct {
	Agents []OfferedAgent `json:"agents"`
	// Prompts means that a run may have any prompt.
	Prompts     bool              `json:"prompts"`
	Folders     []string          `json:"folders"`
	Limits      Limits            `json:"limits"`
	Permissions map[string]string `json:"permissions"`
	Tools       []string          `json:"tools,omitempty"`
}

// An OfferedAgent is an agent that can be started by name.
type OfferedAgent struct {
	Name        string       `json:"name"`
	Description string       `json:"description,omitzero"`
	Args        []OfferedArg `json:"args,omitempty"`
}

// An OfferedArg is an argument of an agent.
type OfferedArg struct {
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	Required    bool   `json:"required"`
}

// A Starter starts runs. Its errors may be a [*Problem], which names the status.
type Starter interface {
	Offer(ctx context.Context) (Offer, error)
	// Start returns the id of the run when it is kept under it. ErrBusy refuses it for now.
	Start(ctx context.Context, s Start) (id string, err error)
	// Continue sends a message to the conversation of a run that is over. An empty text asks it to continue where it stopped.
	Continue(ctx context.Context, run *record.Run, text string) (id string, err error)
	// Again is what starts such a run again, or nil.
	Again(run *record.Run) *Start
}
