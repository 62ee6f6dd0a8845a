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

// A TaskStarted says that something runs beside the conversation.
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

func (m *TaskStarted) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "task_id":
		m.TaskID = d.str()
	case "run_id":
		m.RunID = d.str()
	case "tool_use_id":
		m.ToolUseID = d.str()
	case "description":
		m.Description = d.str()
	case "subagent_type":
		m.SubagentType = d.str()
	case "is_backgrounded":
		m.IsBackgrounded = d.bool()
	case "spawn_depth":
		m.SpawnDepth = d.int()
	case "parent_task_id":
		m.ParentTaskID = d.str()
	case "task_type":
		m.TaskType = d.str()
	case "workflow_name":
		m.WorkflowName = d.str()
	case "prompt":
		m.Prompt = d.str()
	case "skip_transcript":
		m.SkipTranscript = d.bool()
	case "ambient":
		m.Ambient = d.bool()
	default:
		return false
	}
	return true
}

// TaskUsage is what a task has used.
type TaskUsage struct {
	TotalTokens int
	ToolUses    int
	Duration    time.Duration
}

func (u *TaskUsage) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "total_tokens":
		u.TotalTokens = d.int()
	case "tool_uses":
		u.ToolUses = d.int()
	case "duration_ms":
		u.Duration = d.millis()
	default:
		return false
	}
	return true
}

// A TaskProgress tells how far a task has come.
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

func (m *TaskProgress) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "task_id":
		m.TaskID = d.str()
	case "run_id":
		m.RunID = d.str()
	case "tool_use_id":
		m.ToolUseID = d.str()
	case "description":
		m.Description = d.str()
	case "subagent_type":
		m.SubagentType = d.str()
	case "usage":
		d.object(&m.Usage)
	case "last_tool_name":
		m.LastToolName = d.str()
	case "summary":
		m.Summary = d.str()
	default:
		return false
	}
	return true
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

func (m *TaskUpdated) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "task_id":
		m.TaskID = d.str()
	case "run_id":
		m.RunID = d.str()
	case "patch":
		d.object(&m.Patch)
	default:
		return false
	}
	return true
}

func (p *TaskPatch) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "status":
		p.Status = d.str()
	case "description":
		p.Description = d.str()
	case "end_time":
		p.EndTime = d.time()
	case "total_paused_ms":
		p.TotalPaused = d.millis()
	case "error":
		p.Error = d.str()
	case "is_backgrounded":
		p.IsBackgrounded = d.boolPtr()
	default:
		return false
	}
	return true
}

// A TaskNotification says that a task is over.
type TaskNotification struct {
	MessageHeader
	TaskID         string
	RunID          string
	ToolUseID      string
	Status         string // completed, failed or stopped
	Reason         string
	OutputFile     string
	Summary        string
	Usage          *TaskUsage // nil if not told
	ResourceLinks  json.RawMessage
	SkipTranscript bool
	Ambient        bool
}

func (m *TaskNotification) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "task_id":
		m.TaskID = d.str()
	case "run_id":
		m.RunID = d.str()
	case "tool_use_id":
		m.ToolUseID = d.str()
	case "status":
		m.Status = d.str()
	case "reason":
		m.Reason = d.str()
	case "output_file":
		m.OutputFile = d.str()
	case "summary":
		m.Summary = d.str()
	case "usage":
		m.Usage = objectPtr[TaskUsage](d)
	case "resource_links":
		m.ResourceLinks = d.raw()
	case "skip_transcript":
		m.SkipTranscript = d.bool()
	case "ambient":
		m.Ambient = d.bool()
	default:
		return false
	}
	return true
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

func (m *BackgroundTasksChanged) field(d *msgDecoder, key []byte) bool {
	if string(key) != "tasks" {
		return false
	}
	m.Tasks = objectList[BackgroundTask](d)
	return true
}

func (t *BackgroundTask) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "task_id":
		t.TaskID = d.str()
	case "run_id":
		t.RunID = d.str()
	case "task_type":
		t.TaskType = d.str()
	case "subagent_type":
		t.SubagentType = d.str()
	case "description":
		t.Description = d.str()
	case "parent_task_id":
		t.ParentTaskID = d.str()
	case "ambient":
		t.Ambient = d.bool()
	default:
		return false
	}
	return true
}
