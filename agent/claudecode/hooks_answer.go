// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/schema"
)

// structuredTool gives the structured answer. To deny it is the only way to refuse an answer: later hooks have no effect.
const structuredTool = "StructuredOutput"

// answering asks whether a structured answer counts. An error keeps it from counting, however often.
func (h *hooked) answering(ctx context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
	if in.AgentID != "" {
		return nil, nil
	}
	output := in.ToolInput
	if h.wrapped {
		output = schema.Unwrap(output)
	}
	why, err := safely(h, "Answering", func() (string, error) {
		return h.Answering(ctx, agent.Answer{Output: output, CallID: event.CallID(in.ToolUseID), SessionID: in.SessionID})
	})
	switch {
	case err != nil:
		return claude.DenyTool(answerCheckFailed(err)), nil
	case why != "" && h.refuses():
		return claude.DenyTool(why), nil
	}
	return nil, nil
}

func (h *hooked) accepted(_ context.Context, in *claude.PostToolUseInput) (*claude.PostToolUseOutput, error) {
	if in.AgentID == "" {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.answered = true
	}
	return nil, nil
}

func (h *hooked) hasAnswered() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.answered
}

// stopping asks whether the agent may stop. It may not where that cannot be found out.
func (h *hooked) stopping(ctx context.Context, in *claude.StopInput) (*claude.StopOutput, error) {
	if in.AgentID != "" {
		return nil, nil
	}
	answered := h.hasAnswered()
	why, err := safely(h, "Stopping", func() (string, error) {
		return h.Stopping(ctx, agent.Stop{SessionID: in.SessionID, Text: in.LastAssistantMessage, Again: in.StopHookActive, Answered: answered})
	})
	if err != nil {
		why = stopCheckFailed(err)
	}
	if why == "" || answered || !h.refuses() {
		return nil, nil
	}
	return claude.BlockStop(why), nil
}

// refuses counts a refusal, and reports whether it still has an effect.
func (h *hooked) refuses() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusals >= h.maxRefusals {
		return false
	}
	h.refusals++
	return true
}

// Limits of the CLI on how often it goes on after a refusal. To the first one, answers that do not fit the schema count too.
const (
	answersVariable, cliAnswers = "MAX_STRUCTURED_OUTPUT_RETRIES", 5
	stopsVariable               = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
	cliMost                     = 1e9 // practically no limit
)

// raiseLimits has the CLI go on as often as we may refuse, beside what it grants the model by itself.
func (h *hooked) raiseLimits(o *claude.Options) {
	if h.Answering != nil {
		answers := cliAnswers
		if n, err := strconv.Atoi(environ(o, answersVariable)); err == nil && n > 0 {
			answers = n
		}
		o.Env = o.Env.With(answersVariable, strconv.Itoa(min(answers, cliMost)+min(h.maxRefusals, cliMost)))
	}
	if h.Stopping != nil {
		o.Env = o.Env.With(stopsVariable, strconv.Itoa(min(h.maxRefusals, cliMost)+1))
	}
}

func environ(o *claude.Options, name string) string {
	for _, entry := range o.Environ() {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
