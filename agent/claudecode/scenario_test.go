// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

// A scenario is a conversation with the real CLI whose lines are worth keeping.
type scenario struct {
	why    string // first line of the file
	oldest bool   // with the oldest CLI that is supported
	turns  []script.Turn
	setup  func(t *testing.T, cli *claudetest.RealCLI, opts *claude.Options)
	env    map[string]string
	// before is a prompt to another process, whose session is then resumed. Empty means a new session.
	before string
	prompt string // empty means any
	// interruptAt says at which message the turn is interrupted. Nil means never.
	interruptAt func(claude.Message) bool
}

func bash(command string) script.Turn {
	return script.Call("Bash", script.Input{"command": command, "description": "Run it"})
}

func bypass(_ *testing.T, _ *claudetest.RealCLI, opts *claude.Options) {
	opts.PermissionMode, opts.AllowBypass = claude.ModeBypassPermissions, true
}

var metered = script.Usage{Input: 1000, Output: 200, CacheRead: 300, CacheCreation: 40}

const colourSchema = `{"type":"object","properties":{"colour":{"type":"string"}},"required":["colour"]}`

func wantColour(_ *testing.T, _ *claudetest.RealCLI, opts *claude.Options) {
	opts.OutputSchema = []byte(colourSchema)
}

var scenarios = map[string]scenario{
	"tool": {
		why:   "Thinking, words and two calls in one answer: the CLI writes a line for each block, and the results in user messages.",
		setup: bypass,
		turns: []script.Turn{
			script.Reply(script.ThinkingBlock{Thinking: "The files first."}, script.TextBlock{Text: "I look."},
				script.ToolCall{Name: "Bash", Input: script.Input{"command": "echo one", "description": "Say one"}},
				script.ToolCall{Name: "Bash", Input: script.Input{"command": "echo two >&2; exit 3"}}).Metered(metered),
			script.Text("One and an error.").Metered(metered),
		},
	},
	"tool_oldest": {
		why:    "The same, as the oldest supported CLI says it.",
		oldest: true,
		setup:  bypass,
		turns: []script.Turn{
			script.Reply(script.ThinkingBlock{Thinking: "The files first."}, script.TextBlock{Text: "I look."},
				script.ToolCall{Name: "Bash", Input: script.Input{"command": "echo one", "description": "Say one"}},
				script.ToolCall{Name: "Bash", Input: script.Input{"command": "echo two >&2; exit 3"}}).Metered(metered),
			script.Text("One and an error.").Metered(metered),
		},
	},
	"denied": {
		why: "Three ways to be denied: by a hook of ours, by a rule, and because nobody can be asked.",
		setup: func(_ *testing.T, _ *claudetest.RealCLI, opts *claude.Options) {
			opts.DisallowedTools = []string{"Bash(rm:*)"}
			opts.Hooks = []claude.Hook{claude.On("Read", func(context.Context, *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
				return claude.DenyTool("not this file"), nil
			})}
		},
		turns: []script.Turn{
			script.Call("Read", script.Input{"file_path": "/etc/hosts"}),
			bash("rm -f x"),
			bash("touch x"),
			script.Text("I may do nothing."),
		},
	},
	"denied_callback": {
		why: "A permission callback denies: no line of the CLI says so but the result of the turn.",
		setup: func(_ *testing.T, _ *claudetest.RealCLI, opts *claude.Options) {
			opts.CanUseTool = func(context.Context, *claude.PermissionRequest) (claude.PermissionResult, error) {
				return claude.Deny{Message: "not today"}, nil
			}
		},
		turns: []script.Turn{bash("touch x"), script.Text("I may not.")},
	},
	"subagent": {
		why: "A subagent calls a tool: its lines carry the call that runs it.",
		setup: func(t *testing.T, cli *claudetest.RealCLI, opts *claude.Options) {
			bypass(t, cli, opts)
			opts.ForwardSubagentText = true
		},
		turns: []script.Turn{
			script.Call("Agent", script.Input{"subagent_type": "general-purpose", "description": "dig", "prompt": "dig deep", "run_in_background": false}).When(script.Not(script.IsSubagent())).Metered(metered),
			bash("echo dug").When(script.IsSubagent()).Metered(metered),
			script.Text("Dug.").When(script.IsSubagent()).Metered(metered),
			script.Text("All done.").When(script.Not(script.IsSubagent())).Metered(metered),
		},
	},
	"background": {
		why:   "A background agent reports after the answer: its turn and its result are not the answer to the prompt.",
		setup: bypass,
		turns: []script.Turn{
			script.Call("Agent", script.Input{"subagent_type": "general-purpose", "description": "dig", "prompt": "dig deep", "run_in_background": true}).When(script.Not(script.IsSubagent())),
			script.Text("Dug.").When(script.IsSubagent()),
			script.Text("The answer.").When(script.Not(script.IsSubagent())),
			script.Text("The report.").When(script.Not(script.IsSubagent())),
		},
	},
	"shell": {
		why:   "A shell in the background is a task without an agent.",
		setup: bypass,
		turns: []script.Turn{
			script.Call("Bash", script.Input{"command": "echo started; while true; do read -t 1 < /dev/zero; done", "description": "Wait", "run_in_background": true}),
			script.Text("It runs."),
		},
	},
	"partial": {
		why: "Partial messages: the deltas of a text come before the whole of it; those of thinking and input are not shown.",
		setup: func(t *testing.T, cli *claudetest.RealCLI, opts *claude.Options) {
			bypass(t, cli, opts)
			opts.PartialMessages = true
		},
		turns: []script.Turn{
			script.Reply(script.ThinkingBlock{Thinking: "Hm, well."}, script.TextBlock{Text: "Hello, world."}, script.ToolCall{Name: "Bash", Input: script.Input{"command": "echo hi"}}).Chunked(6, 0),
			script.Text("Bye."),
		},
	},
	"retry": {
		why:   "The API is overloaded once: the CLI says that it tries again.",
		turns: []script.Turn{script.Fail(529, "Overloaded"), script.Text("At last.")},
		env:   map[string]string{"CLAUDE_CODE_MAX_RETRIES": "3"},
	},
	"overloaded": {
		why:   "The API is overloaded for ever: a result of subtype success that is an error.",
		turns: []script.Turn{script.Fail(529, "Overloaded").Always()},
	},
	"bad_request": {
		why:   "The API refuses the request.",
		turns: []script.Turn{script.Fail(400, "max_tokens: too many").Always()},
	},
	"refusal": {
		why:   "The model refuses.",
		turns: []script.Turn{script.Refusal("I will not.").Always()},
	},
	"max_turns": {
		why: "The limit of turns is reached.",
		setup: func(t *testing.T, cli *claudetest.RealCLI, opts *claude.Options) {
			bypass(t, cli, opts)
			opts.MaxTurns = 1
		},
		turns: []script.Turn{bash("echo 1"), bash("echo 2")},
	},
	"max_budget": {
		why: "The budget is spent.",
		setup: func(t *testing.T, cli *claudetest.RealCLI, opts *claude.Options) {
			bypass(t, cli, opts)
			opts.MaxBudgetUSD = new(0.0001)
		},
		turns: []script.Turn{bash("echo 1").Metered(metered), script.Text("done").Metered(metered).Always()},
	},
	"structured": {
		why:   "A structured answer.",
		setup: wantColour,
		turns: []script.Turn{script.Structured(script.Input{"colour": "red"}), script.Text("Done.").Always()},
	},
	"structured_retries": {
		why:   "No structured answer that fits, again and again.",
		setup: wantColour,
		env:   map[string]string{"MAX_STRUCTURED_OUTPUT_RETRIES": "2"},
		turns: []script.Turn{script.Structured(script.Input{"color": "red"}).Always()},
	},
	"interrupted_tool": {
		why:   "An interrupt while a tool runs.",
		setup: bypass,
		turns: []script.Turn{bash("while true; do read -t 1 < /dev/zero; done"), script.Text("Never.").Always()},
		interruptAt: func(m claude.Message) bool {
			a, ok := m.(*claude.AssistantMessage)
			return ok && len(a.ToolUses()) > 0
		},
	},
	"interrupted_text": {
		why: "An interrupt while the model speaks.",
		setup: func(_ *testing.T, _ *claudetest.RealCLI, opts *claude.Options) {
			opts.PartialMessages = true
		},
		turns: []script.Turn{script.Text(strings.Repeat("word ", 40)).Chunked(20, 200*time.Millisecond)},
		interruptAt: func(m claude.Message) bool {
			s, ok := m.(*claude.StreamEvent)
			return ok && s.EventType() == "content_block_delta"
		},
	},
	"denied_oldest": {
		why:    "The oldest supported CLI says only in words that a call was denied; those about a guarded path are taken for an error.",
		oldest: true,
		setup: func(_ *testing.T, _ *claudetest.RealCLI, opts *claude.Options) {
			opts.DisallowedTools = []string{"Bash(rm:*)"}
		},
		turns: []script.Turn{bash("rm -f x"), bash("touch x"), script.Text("I may do nothing.")},
	},
	"interrupted_oldest": {
		why:    "An interrupt while a tool runs, of the oldest supported CLI.",
		oldest: true,
		setup:  bypass,
		turns:  []script.Turn{bash("while true; do read -t 1 < /dev/zero; done"), script.Text("Never.").Always()},
		interruptAt: func(m claude.Message) bool {
			a, ok := m.(*claude.AssistantMessage)
			return ok && len(a.ToolUses()) > 0
		},
	},
	"overloaded_oldest": {
		why:    "The API is overloaded for ever, with the oldest supported CLI.",
		oldest: true,
		turns:  []script.Turn{script.Fail(529, "Overloaded").Always()},
	},
	"subagent_oldest": {
		why:    "A subagent of the oldest supported CLI: its lines do not name the agent, but its task does.",
		oldest: true,
		setup:  bypass,
		turns: []script.Turn{
			script.Call("Agent", script.Input{"subagent_type": "general-purpose", "description": "dig", "prompt": "dig deep", "run_in_background": false}).When(script.Not(script.IsSubagent())),
			bash("echo dug").When(script.IsSubagent()),
			script.Text("Dug.").When(script.IsSubagent()),
			script.Text("All done.").When(script.Not(script.IsSubagent())),
		},
	},
	"subagent_error": {
		why:   "The API fails for a subagent: its task and the result of the call say so, and the run goes on.",
		setup: bypass,
		turns: []script.Turn{
			script.Call("Agent", script.Input{"subagent_type": "general-purpose", "description": "dig", "prompt": "dig deep", "run_in_background": false}).When(script.Not(script.IsSubagent())),
			script.Fail(400, "too deep").When(script.IsSubagent()).Always(),
			script.Text("It failed.").When(script.Not(script.IsSubagent())),
		},
	},
	"compaction": {
		why:    "The conversation is compacted, and then asked on.",
		before: "hello",
		prompt: "/compact",
		turns:  []script.Turn{script.Text("Hello to you.").Metered(metered).Always()},
	},
	"resumed": {
		why:    "A resumed session: the totals are of the conversation, the run is only the last turn.",
		before: "hello",
		prompt: "again",
		turns:  []script.Turn{script.Text("Hello to you.").Metered(metered).Always()},
	},
	"resumed_oldest": {
		why:    "A resumed session of the oldest supported CLI, which begins its totals anew.",
		oldest: true,
		before: "hello",
		prompt: "again",
		turns:  []script.Turn{script.Text("Hello to you.").Metered(metered).Always()},
	},
}

