// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safetext"
)

// The kinds of events that only Claude Code has. Decoded from JSON, they are an [event.Extension].
const (
	KindTask       event.Kind = "claude-code:task"
	KindCompaction event.Kind = "claude-code:compaction"
	KindRateLimit  event.Kind = "claude-code:rate_limit"
)

// A TaskState is what happened to a [Task].
type TaskState string

// The states. A task has one start, any number of the next two, and at most one end: none if it outlasts the run.
const (
	TaskStarted  TaskState = "started"
	TaskProgress TaskState = "progress"
	TaskUpdated  TaskState = "updated"
	TaskEnded    TaskState = "ended"
)

// A Task is something that Claude Code runs beside the conversation, or inside it on behalf of a tool call: a subagent, a
// shell in the background, a workflow. Fields that a message lacks are empty.
type Task struct {
	// ID is the same in all events about the task, and State what happened to it.
	ID    string    `json:"taskId"`
	State TaskState `json:"state"`
	// ToolUseID is the tool call that started it.
	ToolUseID event.CallID `json:"toolUseId,omitzero"`
	// Type is what it is: "local_agent", "local_bash".
	Type         string `json:"taskType,omitzero"`
	SubagentType string `json:"subagentType,omitzero"`
	Description  string `json:"description,omitzero"`
	// Background is true if the conversation does not wait for it.
	Background bool `json:"background,omitzero"`
	// Status is "running", "completed", "failed", "stopped" or "killed".
	Status string `json:"status,omitzero"`
	// Summary is what it reports, and Error why it failed.
	Summary string `json:"summary,omitzero"`
	Error   string `json:"error,omitzero"`
	// LastTool is the tool that it used last.
	LastTool string `json:"lastTool,omitzero"`
	// Tokens, ToolUses and DurationMS are what it has used so far.
	Tokens     int   `json:"tokens,omitzero"`
	ToolUses   int   `json:"toolUses,omitzero"`
	DurationMS int64 `json:"durationMs,omitzero"`
}

// EventKind implements [event.Payload].
func (Task) EventKind() event.Kind { return KindTask }

// String is the state and what is known of the task: "ended (failed): find the tests: the disk is full".
func (t Task) String() string {
	text := string(t.State)
	if t.Status != "" {
		text += " (" + t.Status + ")"
	}
	for _, more := range []string{cmp.Or(t.Description, t.ID), cmp.Or(t.Error, t.Summary)} {
		if more != "" {
			text += ": " + event.Text{Content: more}.String()
		}
	}
	return text
}

// A Compaction reports that the conversation became too long and was replaced by its summary.
type Compaction struct {
	// Trigger is "auto" or "manual".
	Trigger string `json:"trigger,omitzero"`
	// TokensBefore and TokensAfter are the lengths of the conversation. TokensAfter is nil if not reported.
	TokensBefore int   `json:"tokensBefore"`
	TokensAfter  *int  `json:"tokensAfter,omitempty"`
	DurationMS   int64 `json:"durationMs,omitzero"`
}

// EventKind implements [event.Payload].
func (Compaction) EventKind() event.Kind { return KindCompaction }

// String is how long the conversation was and is: "180,000 tokens became 20,000".
func (c Compaction) String() string {
	text := safetext.Plural(c.TokensBefore, "token") + " became "
	if c.TokensAfter == nil {
		return text + "fewer"
	}
	return text + safetext.Thousands(int64(*c.TokensAfter))
}

// A RateLimit reports that the account is near one of its limits, or has reached it.
type RateLimit struct {
	// Status is "allowed_warning" or "rejected".
	Status string `json:"status"`
	// Type is the limit: "five_hour".
	Type string `json:"rateLimitType,omitzero"`
	// ResetsAt is when the limit resets, in milliseconds since 1970; zero if not reported.
	ResetsAt int64 `json:"resetsAt,omitzero"`
	// Utilization is the share that is used; nil if not reported.
	Utilization *float64 `json:"utilization,omitempty"`
}

// EventKind implements [event.Payload].
func (RateLimit) EventKind() event.Kind { return KindRateLimit }

// String is the limit, its status, and the share that is used: "five_hour allowed_warning, 91 % used".
func (r RateLimit) String() string {
	text := strings.TrimSpace(r.Type + " " + r.Status)
	if r.Utilization != nil {
		text += fmt.Sprintf(", %.0f %% used", *r.Utilization*100)
	}
	return text
}

func (n *normaliser) task(session string, t Task) {
	n.emit(n.taskPosition(session, t.ToolUseID), t)
}

// leftTask reports the end of a task that was left behind. The CLI may report tasks of the session's last run
// before the init: such a report waits, and does not count as activity of this run.
func (n *normaliser) leftTask(session string, t Task) {
	if n.inited || n.emitted {
		n.task(session, t)
		return
	}
	n.early = append(n.early, n.event(n.taskPosition(session, t.ToolUseID), t))
	n.emitted = false
}

// taskPosition is where a task belongs: in the turn of the call that started it.
func (n *normaliser) taskPosition(session string, call event.CallID) eventPosition {
	n.setSession(session)
	at := eventPosition{turn: n.turn}
	if r := n.ledger.Read(call); r != nil && r.Reading.Turn > 0 {
		at.turn = r.Reading.Turn
	}
	return at
}

func (n *normaliser) taskStarted(m *claude.TaskStarted) {
	if m.Ambient {
		return
	}
	if m.TaskType == claude.TaskLocalAgent && m.ToolUseID != "" {
		n.runs(event.CallID(m.ToolUseID), m.TaskID)
	}
	set(&n.taskCalls, m.TaskID, event.CallID(m.ToolUseID))
	n.task(m.SessionID, Task{
		ID: m.TaskID, State: TaskStarted, ToolUseID: event.CallID(m.ToolUseID), Type: m.TaskType, SubagentType: m.SubagentType,
		Description: m.Description, Background: m.IsBackgrounded,
	})
}

func (n *normaliser) taskProgress(m *claude.TaskProgress) {
	t := Task{
		ID: m.TaskID, State: TaskProgress, ToolUseID: event.CallID(m.ToolUseID), SubagentType: m.SubagentType,
		Description: m.Description, Summary: m.Summary, LastTool: m.LastToolName,
	}
	t.spent(&m.Usage)
	n.task(m.SessionID, t)
}

// taskUpdated reports a change. An end is held until the next message, which mostly is its report; a task may end without.
func (n *normaliser) taskUpdated(m *claude.TaskUpdated) {
	call, known := n.taskCalls[m.TaskID]
	if !known {
		return // ambient, or over
	}
	t := Task{ID: m.TaskID, State: TaskUpdated, ToolUseID: call, Status: m.Patch.Status, Description: m.Patch.Description, Error: m.Patch.Error}
	t.Background = m.Patch.IsBackgrounded != nil && *m.Patch.IsBackgrounded
	if !m.Patch.Ended() {
		n.task(m.SessionID, t)
		return
	}
	t.State = TaskEnded
	delete(n.taskCalls, m.TaskID)
	n.ended = new(n.event(n.taskPosition(m.SessionID, call), t))
}

func (n *normaliser) taskNotification(m *claude.TaskNotification) {
	t := Task{ID: m.TaskID, State: TaskEnded, ToolUseID: event.CallID(m.ToolUseID), Status: m.Status, Summary: m.Summary, Error: m.Reason}
	if m.Usage != nil {
		t.spent(m.Usage)
	}
	_, known := n.taskCalls[m.TaskID]
	switch held := n.heldTask(); {
	case m.Ambient:
	case held.ID == m.TaskID:
		n.ended = nil
		t.Error, t.ToolUseID = cmp.Or(t.Error, held.Error), cmp.Or(t.ToolUseID, held.ToolUseID)
		n.task(m.SessionID, t)
	case known:
		delete(n.taskCalls, m.TaskID)
		n.task(m.SessionID, t)
	default: // its end was reported
		t.State = TaskUpdated
		n.leftTask(m.SessionID, t)
	}
}

func (t *Task) spent(u *claude.TaskUsage) {
	t.Tokens, t.ToolUses, t.DurationMS = u.TotalTokens, u.ToolUses, u.Duration.Milliseconds()
}

func (n *normaliser) heldTask() Task {
	if n.ended == nil {
		return Task{}
	}
	t, _ := n.ended.Payload.(Task)
	return t
}

// flushTask reports an end that was held, unless next is its report.
func (n *normaliser) flushTask(next claude.Message) {
	if n.ended == nil {
		return
	}
	if report, ok := next.(*claude.TaskNotification); ok && report.TaskID == n.heldTask().ID {
		return
	}
	n.out = append(n.out, *n.ended)
	n.ended = nil
}
