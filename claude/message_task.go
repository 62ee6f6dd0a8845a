// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"time"
)

// Types of task that a turn waits for; other types may never end.
const (
	TaskLocalAgent    = "local_agent"
	TaskLocalWorkflow = "local_workflow"
)

// A TaskStarted reports that a task runs in parallel to the conversation.
type TaskStarted struct {
	MessageHeader
	TaskID         string
	RunID          string
	ToolUseID      string
	Description    string
	SubagentType   string
	IsBackgrounded bool
	SpawnDepth     int
	ParentTaskID   string
	TaskType       string // TaskLocalAgent, TaskLocalWorkflow or another one
	WorkflowName   string
	Prompt         string
	SkipTranscript bool
	Ambient        bool
}

// TaskUsage is what a task has used.
type TaskUsage struct {
	TotalTokens int
	ToolUses    int
	Duration    time.Duration
}

// A TaskProgress reports the progress of a task.
type TaskProgress struct {
	MessageHeader
	TaskID       string
	RunID        string
	ToolUseID    string
	Description  string
	SubagentType string
	Usage        TaskUsage
	LastToolName string
	Summary      string
}

// A TaskUpdated changes what is known of a task. A task may end with this message alone.
type TaskUpdated struct {
	MessageHeader
	TaskID string
	RunID  string
	Patch  TaskPatch
}

// A TaskPatch holds the fields of a task that changed.
type TaskPatch struct {
	Status         string // pending, running, completed, failed, killed or paused; empty if unchanged
	Description    string
	EndTime        time.Time
	TotalPaused    time.Duration
	Error          string
	IsBackgrounded *bool // nil if unchanged
}

// Ended reports whether the task is over with this change.
func (p *TaskPatch) Ended() bool {
	return p.Status == "completed" || p.Status == "failed" || p.Status == "killed"
}

// A TaskNotification reports that a task is over.
type TaskNotification struct {
	MessageHeader
	TaskID         string
	RunID          string
	ToolUseID      string
	Status         string // completed, failed or stopped
	Reason         string
	OutputFile     string
	Summary        string
	Usage          *TaskUsage // nil if not sent
	ResourceLinks  json.RawMessage
	SkipTranscript bool
	Ambient        bool
}

// A BackgroundTasksChanged lists all tasks in the background, replacing any earlier list.
type BackgroundTasksChanged struct {
	MessageHeader
	Tasks []BackgroundTask
}

// A BackgroundTask is a task in the background.
type BackgroundTask struct {
	TaskID       string
	RunID        string
	TaskType     string
	SubagentType string
	Description  string
	ParentTaskID string
	Ambient      bool
}
