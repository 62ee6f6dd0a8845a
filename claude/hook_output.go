// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A HookOutput is a hook's answer: a pointer to one of the Output types of this package, such as
// [*PreToolUseOutput]. A nil pointer, and the zero value, mean no decision.
type HookOutput interface {
	hookEvent() HookEvent
	control() *HookControl
}

// HookControl holds what every hook may answer. The zero value changes nothing.
type HookControl struct {
	// StopRun ends the run after the present step. It does not block a tool: a PreToolUse hook
	// that stops the run still sees the tool run. Deny it with [DenyTool].
	StopRun bool
	// StopReason is shown when StopRun is set.
	StopReason string
	// Decision is the older way to block or approve; Reason goes with it. On Stop, DecisionBlock keeps the
	// agent working and Reason is sent to the model.
	Decision HookDecision
	Reason   string
	// SystemMessage is shown to the user, not to the model.
	SystemMessage  string
	SuppressOutput bool
	// TerminalSequence is written to the terminal by an interactive CLI.
	TerminalSequence string
	// Async lets the action continue at once; the rest of the answer is ignored.
	Async bool
	// AsyncTimeout goes with Async. Zero means the CLI's default.
	AsyncTimeout time.Duration
}

func (c *HookControl) control() *HookControl { return c }

// A HookDecision is the event-independent decision of a hook.
type HookDecision string

// The decisions of [HookControl].
const (
	DecisionApprove HookDecision = "approve"
	DecisionBlock   HookDecision = "block"
)

// A ToolDecision is the decision of a PreToolUse or PreModelSwitch hook.
type ToolDecision string

// The decisions of a gate. Between hooks that run side by side, a denial wins.
const (
	DecideAllow ToolDecision = "allow" // run it; CanUseTool is not asked
	DecideDeny  ToolDecision = "deny"  // do not run it; the model reads the reason
	DecideAsk   ToolDecision = "ask"   // ask CanUseTool
	DecideDefer ToolDecision = "defer" // end the turn with the call undone (tools only)
)

// PreToolUseOutput answers a PreToolUse hook. See also [AllowTool], [DenyTool], [AskTool] and [RewriteTool].
type PreToolUseOutput struct {
	HookControl              `json:"-"`
	PermissionDecision       ToolDecision `json:"permissionDecision,omitzero"`
	PermissionDecisionReason string       `json:"permissionDecisionReason,omitzero"`
	// UpdatedInput replaces the tool's input: a json.RawMessage or a value that marshals to a JSON
	// object. The model's history keeps the original. Nil leaves the input alone.
	UpdatedInput any `json:"updatedInput,omitzero"`
	// AdditionalContext is read by the model after the tool's result.
	AdditionalContext string `json:"additionalContext,omitzero"`
}

// AllowTool lets the tool run without asking [CanUseTool].
func AllowTool() *PreToolUseOutput { return &PreToolUseOutput{PermissionDecision: DecideAllow} }

// DenyTool keeps the tool from running; the model reads the reason.
func DenyTool(reason string) *PreToolUseOutput {
	return &PreToolUseOutput{PermissionDecision: DecideDeny, PermissionDecisionReason: reason}
}

// AskTool puts the question to [CanUseTool], also where a rule would have allowed the tool.
func AskTool(reason string) *PreToolUseOutput {
	return &PreToolUseOutput{PermissionDecision: DecideAsk, PermissionDecisionReason: reason}
}

// RewriteTool replaces the tool's input and leaves the decision to the rules and [CanUseTool].
func RewriteTool(input any) *PreToolUseOutput { return &PreToolUseOutput{UpdatedInput: input} }

// Denies reports whether the answer of a PreToolUse hook keeps the tool from running.
func Denies(out HookOutput) bool {
	answer, ok := out.(*PreToolUseOutput)
	if !ok || answer == nil || answer.Async {
		return false
	}
	return answer.PermissionDecision == DecideDeny || answer.Decision == DecisionBlock
}

// PostToolUseOutput answers a PostToolUse hook.
type PostToolUseOutput struct {
	HookControl       `json:"-"`
	AdditionalContext string `json:"additionalContext,omitzero"`
	// UpdatedToolOutput replaces the tool's output, in its shape: the CLI silently ignores any other shape.
	UpdatedToolOutput    any    `json:"updatedToolOutput,omitzero"`
	UpdatedMCPToolOutput any    `json:"updatedMCPToolOutput,omitzero"`
	ClassifierContext    string `json:"classifierContext,omitzero"`
}

// PostToolUseFailureOutput answers a PostToolUseFailure hook.
type PostToolUseFailureOutput struct {
	HookControl       `json:"-"`
	AdditionalContext string `json:"additionalContext,omitzero"`
}

// PostToolBatchOutput answers a PostToolBatch hook.
type PostToolBatchOutput struct {
	HookControl       `json:"-"`
	AdditionalContext string `json:"additionalContext,omitzero"`
}

// PermissionRequestOutput answers a PermissionRequest hook. A nil Answer leaves the decision to [CanUseTool].
type PermissionRequestOutput struct {
	HookControl `json:"-"`
	Answer      PermissionResult `json:"decision,omitzero"`
}

// PermissionDeniedOutput answers a PermissionDenied hook.
type PermissionDeniedOutput struct {
	HookControl `json:"-"`
	// Retry informs the model that it may try the call again.
	Retry bool `json:"retry,omitzero"`
}

// UserPromptSubmitOutput answers a UserPromptSubmit hook.
type UserPromptSubmitOutput struct {
	HookControl            `json:"-"`
	AdditionalContext      string `json:"additionalContext,omitzero"`
	SessionTitle           string `json:"sessionTitle,omitzero"`
	SuppressOriginalPrompt bool   `json:"suppressOriginalPrompt,omitzero"`
}

// UserPromptExpansionOutput answers a UserPromptExpansion hook.
type UserPromptExpansionOutput struct {
	HookControl            `json:"-"`
	AdditionalContext      string `json:"additionalContext,omitzero"`
	SuppressOriginalPrompt bool   `json:"suppressOriginalPrompt,omitzero"`
}

// StopOutput answers a Stop hook. See also [BlockStop].
type StopOutput struct {
	HookControl `json:"-"`
	// AdditionalContext is read by the model, which gets another turn for it.
	AdditionalContext string `json:"additionalContext,omitzero"`
}

// BlockStop keeps the agent working; reason states for the model what is still to be done. The CLI ends
// the turn after nine blocks in a row.
func BlockStop(reason string) *StopOutput {
	return &StopOutput{HookControl: HookControl{Decision: DecisionBlock, Reason: reason}}
}

// encodeHookOutput returns the JSON of out for a hook of the given event.
func encodeHookOutput(out HookOutput) (json.RawMessage, error) {
	if isNil(out) {
		return noDecision, nil
	}
	c := *out.control()
	if c.Async {
		return plainjson.Marshal(asyncWire{Async: true, AsyncTimeout: c.AsyncTimeout.Milliseconds()})
	}
	answer, err := specificAnswer(out)
	if err != nil || c == (HookControl{}) {
		return answer, err
	}
	var specific json.RawMessage
	if len(answer) > len(noDecision) {
		specific = answer[len(specificKey) : len(answer)-1]
	}
	return plainjson.Marshal(c.wire(specific))
}

var noDecision = json.RawMessage("{}")

// isNil reports whether v is nil or holds a nil pointer.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

type asyncWire struct {
	Async        bool  `json:"async"`
	AsyncTimeout int64 `json:"asyncTimeout,omitzero"`
}

type hookWire struct {
	Continue           *bool           `json:"continue,omitzero"`
	SuppressOutput     bool            `json:"suppressOutput,omitzero"`
	StopReason         string          `json:"stopReason,omitzero"`
	Decision           HookDecision    `json:"decision,omitzero"`
	SystemMessage      string          `json:"systemMessage,omitzero"`
	TerminalSequence   string          `json:"terminalSequence,omitzero"`
	Reason             string          `json:"reason,omitzero"`
	HookSpecificOutput json.RawMessage `json:"hookSpecificOutput,omitzero"`
}

func (c HookControl) wire(specific json.RawMessage) hookWire {
	w := hookWire{
		SuppressOutput: c.SuppressOutput, StopReason: c.StopReason, Decision: c.Decision,
		SystemMessage: c.SystemMessage, TerminalSequence: c.TerminalSequence, Reason: c.Reason,
		HookSpecificOutput: specific,
	}
	if c.StopRun {
		w.Continue = new(false)
	}
	return w
}

const specificKey = `{"hookSpecificOutput":`

// specificAnswer returns an answer with only the hookSpecificOutput of out: the JSON fields of the output type with the
// event's name in front. It is built in place: nearly every answer takes this path.
func specificAnswer(out HookOutput) (json.RawMessage, error) {
	var b bytes.Buffer
	b.Grow(256)
	b.WriteString(specificKey + `{"hookEventName":"`)
	b.WriteString(string(out.hookEvent()))
	b.WriteByte('"')
	start := b.Len()
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, err
	}
	answer := b.Bytes()
	if string(answer[start:]) == "{}\n" {
		return noDecision, nil
	}
	answer[start] = ','         // was the brace that opens the fields
	answer[len(answer)-1] = '}' // was the encoder's newline
	return answer, nil
}
