// SPDX-License-Identifier: Apache-2.0

// Package catalogue has what is known of the tools of Claude Code. It is apart from the adapter so that
// programs and tests which only judge calls need not link it.
package catalogue

import (
	"encoding/json"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// Tools is the catalogue of the tools of Claude Code.
func Tools() *tool.Catalogue { return &tools }

var tools = tool.Catalogue{
	Agent: "claude-code", Natives: natives,
	// Every tool is read for all of them: what is written there counts, also if the tool does not know it.
	Others:   tool.Fields{Paths: []string{"file_path", "notebook_path", "path"}},
	ReadRule: "Read", WriteRule: "Edit", CommandRule: "Bash",
	AnswerTool: "StructuredOutput", SkillTool: "Skill",
}

var (
	globs     = tool.Fields{Glob: "pattern"}
	commands  = tool.Fields{Command: "command"}
	hosts     = tool.Fields{Host: "url"}
	subagents = tool.Fields{Subagent: "subagent_type"}
	writes    = tool.Fields{New: "content"}
	replaces  = tool.Fields{New: "new_string", Old: "old_string", All: "replace_all"}
	edits     = tool.Fields{New: replaces.New, Old: replaces.Old, All: replaces.All, Edits: "edits"}
)

const (
	harmless = tool.ReadOnly
	mutates  = tool.Mutates
	harmful  = tool.Mutates | tool.Dangerous
)

// byWorktree is what a tool needs that makes a worktree.
const byWorktree = tool.FileWrite | tool.ShellExecute

// worktree is what the call of a subagent needs that gets a worktree of its own.
func worktree(input json.RawMessage) (tool.Risk, tool.Capability) {
	var in struct{ Isolation any }
	if json.Unmarshal(input, &in) == nil && in.Isolation == nil {
		return 0, 0
	}
	return harmful, byWorktree
}

// natives is the catalogue. A tool that changes only the conversation (todo list, plan) and what it started is read-only.
var natives = []tool.Native{
	// Files. Replace, NotebookEditCell and Create are older names.
	{Name: "Write", Risk: mutates, Needs: tool.FileWrite, Files: tool.WritesFile, Fields: writes, Verb: "write"},
	{Name: "Edit", Risk: mutates, Needs: tool.FileWrite, Files: tool.WritesFile, Fields: replaces, Verb: "change"},
	{Name: "MultiEdit", Risk: mutates, Needs: tool.FileWrite, Files: tool.WritesFile, Fields: edits, Verb: "change"},
	{Name: "NotebookEdit", Risk: mutates, Needs: tool.FileWrite, Files: tool.WritesFile, Verb: "change"},
	{Name: "Replace", Risk: mutates, Needs: tool.FileWrite, Files: tool.WritesFile},
	{Name: "NotebookEditCell", Risk: mutates, Needs: tool.FileWrite, Files: tool.WritesFile},
	{Name: "Create", Risk: mutates, Needs: tool.FileWrite, Files: tool.WritesFile},
	{Name: "Read", Risk: harmless, Files: tool.ReadsFile, Verb: "read"},
	{Name: "View", Risk: harmless, Files: tool.ReadsFile},
	{Name: "Glob", Risk: harmless, Files: tool.ListsFiles, Fields: globs},
	{Name: "GlobTool", Risk: harmless, Files: tool.ListsFiles, Fields: globs},
	{Name: "Grep", Risk: harmless, Files: tool.SearchesFiles},
	{Name: "GrepTool", Risk: harmless, Files: tool.SearchesFiles},
	{Name: "LS", Risk: harmless, Files: tool.ListsFiles},
	{Name: "NotebookRead", Risk: harmless, Files: tool.ReadsFile},
	{Name: "ReadNotebook", Risk: harmless, Files: tool.ReadsFile},
	{Name: "LSP", Risk: harmless},

	// Commands. Monitor runs a command or opens a socket.
	{Name: "Bash", Risk: harmful, Needs: tool.ShellExecute, Fields: commands, Shell: true, Verb: "run"},
	{Name: "PowerShell", Risk: harmful, Needs: tool.ShellExecute, Fields: commands},
	{Name: "REPL", Risk: harmful, Needs: tool.ShellExecute},
	{Name: "Monitor", Risk: harmful, Needs: tool.ShellExecute | tool.NetworkAccess, Fields: commands, Shell: true},
	// A skill or a command may hold shell commands that the CLI runs while it loads the text, unless its setting
	// disableSkillShellExecution is on. No hook and no permission callback sees them: they can be judged only here.
	{Name: "Skill", Risk: harmful, Needs: tool.ShellExecute, Caller: true},
	{Name: "SlashCommand", Risk: harmful, Needs: tool.ShellExecute, Caller: true},
	// These look at what runs already, or end it.
	{Name: "BashOutput", Risk: harmless},
	{Name: "BashOutputTool", Risk: harmless},
	{Name: "KillShell", Risk: harmless},
	{Name: "KillBash", Risk: harmless},
	{Name: "TaskOutput", Risk: harmless},
	{Name: "AgentOutputTool", Risk: harmless},
	{Name: "TaskStop", Risk: harmless},

	// The network.
	{Name: "WebFetch", Risk: harmless, Needs: tool.NetworkAccess, Fields: hosts, Verb: "fetch"},
	{Name: "WebSearch", Risk: harmless, Needs: tool.NetworkAccess, Verb: "search for"},
	{Name: "PushNotification", Risk: harmless, Needs: tool.NetworkAccess}, // to the user's own phone
	{Name: "ReadNotifications", Risk: harmless, Needs: tool.NetworkAccess},
	// These change what is kept elsewhere, or publish it.
	{Name: "Artifact", Risk: mutates, Needs: tool.NetworkAccess},
	{Name: "ClaudeDesign", Risk: mutates, Needs: tool.NetworkAccess},
	{Name: "Projects", Risk: harmful, Needs: tool.NetworkAccess}, // also deletes
	{Name: "SendFeedback", Risk: mutates, Needs: tool.NetworkAccess},
	// A remote run is under no gate of ours.
	{Name: "RemoteTrigger", Risk: harmful, Needs: tool.NetworkAccess},
	// A message may reach a session that this gate does not watch, even on another machine.
	{Name: "SendMessage", Risk: mutates, Needs: tool.NetworkAccess},

	// Agents. Their work is judged call by call, as the main agent's calls are.
	{Name: "Agent", Risk: harmless, More: worktree, Fields: subagents, Caller: true},
	{Name: "Task", Risk: harmless, More: worktree, Fields: subagents, Caller: true},
	{Name: "AgentTool", Risk: harmless, More: worktree, Fields: subagents, Caller: true},
	{Name: "dispatch_agent", Risk: harmless, More: worktree, Fields: subagents, Caller: true},
	{Name: "ListAgents", Risk: harmless},
	{Name: "TeamCreate", Risk: harmless},
	{Name: "TeamDelete", Risk: harmless},

	// A worktree is a folder and a branch, which the CLI makes with git; leaving one can throw away what was not
	// committed. CLI 2.1.197 lets git run the hooks and filters of the repository. A workflow is a script, which can
	// have worktrees made for its agents.
	{Name: "EnterWorktree", Risk: harmful, Needs: byWorktree},
	{Name: "ExitWorktree", Risk: harmful, Needs: byWorktree},
	{Name: "Workflow", Risk: harmful, Needs: byWorktree, Caller: true},

	// Schedules. A scheduled prompt such as "/deploy" is a command or a skill: at its time the CLI runs the shell commands
	// in it without a hook, as it does for Skill. A job may be kept in a file of the project, and then outlives the run.
	{Name: "CronCreate", Risk: harmful, Needs: tool.FileWrite | tool.ShellExecute},
	{Name: "ScheduleWakeup", Risk: harmful, Needs: tool.ShellExecute},
	{Name: "CronDelete", Risk: mutates, Needs: tool.FileWrite},
	{Name: "CronList", Risk: harmless},
	{Name: "Sleep", Risk: harmless},

	// The CLI's own settings and skills.
	{Name: "Config", Risk: mutates, Needs: tool.FileWrite},
	{Name: "ProposeSkills", Risk: mutates, Needs: tool.FileWrite},

	// The conversation.
	{Name: "AskUserQuestion", Risk: harmless},
	{Name: "EnterPlanMode", Risk: harmless},
	{Name: "ExitPlanMode", Risk: harmless},
	{Name: "exit_plan_mode", Risk: harmless},
	{Name: "TodoRead", Risk: harmless},
	{Name: "TodoWrite", Risk: harmless, Effect: plan},
	{Name: "TaskCreate", Risk: harmless, Effect: addedStep},
	{Name: "TaskGet", Risk: harmless},
	{Name: "TaskList", Risk: harmless},
	{Name: "TaskUpdate", Risk: harmless, Effect: changedStep},
	{Name: "ToolSearch", Risk: harmless, Plumbing: true},
	{Name: "MCPSearch", Risk: harmless},
	{Name: "DeferredToolPlaceholder", Risk: harmless}, // replaces tools that are not loaded yet
	{Name: "StructuredOutput", Risk: harmless, Plumbing: true},
	{Name: "ReportFindings", Risk: harmless},
	{Name: "ProposeGoal", Risk: harmless},
	{Name: "OfferChromeSetup", Risk: harmless},
	{Name: "ShowOnboardingRolePicker", Risk: harmless},
	{Name: "Think", Risk: harmless},

	// Other people's MCP servers. Resources are read; what a server's tools do is not known here.
	{Name: "ListMcpResources", Risk: harmless},
	{Name: "ListMcpResourcesTool", Risk: harmless},
	{Name: "ReadMcpResource", Risk: harmless},
	{Name: "ReadMcpResourceTool", Risk: harmless},
	{Name: "ReadMcpResourceDir", Risk: harmless},
	{Name: "ReadMcpResourceDirTool", Risk: harmless},
	{Name: "RefreshMcpTools", Risk: harmless},
	{Name: "WaitForMcpServers", Risk: harmless},
}

func plan(input, _ json.RawMessage) event.Payload {
	var in struct {
		Todos *[]session.PlanStep `json:"todos"`
	}
	if json.Unmarshal(input, &in) != nil || in.Todos == nil {
		return nil
	}
	return session.PlanUpdated{Steps: *in.Todos}
}

// addedStep makes a step of a task that the agent has added. Its number is in the result.
func addedStep(input, output json.RawMessage) event.Payload {
	var in struct {
		Subject    string `json:"subject"`
		ActiveForm string `json:"activeForm"`
	}
	var out struct {
		Task struct {
			ID string `json:"id"`
		} `json:"task"`
	}
	if json.Unmarshal(input, &in) != nil || json.Unmarshal(output, &out) != nil || out.Task.ID == "" {
		return nil
	}
	return session.PlanStepUpdated{ID: out.Task.ID, Description: in.Subject, Status: "pending", ActiveForm: in.ActiveForm}
}

func changedStep(input, _ json.RawMessage) event.Payload {
	var in struct {
		ID         string `json:"taskId"`
		Subject    string `json:"subject"`
		Status     string `json:"status"`
		ActiveForm string `json:"activeForm"`
	}
	if json.Unmarshal(input, &in) != nil || in.ID == "" {
		return nil
	}
	return session.PlanStepUpdated{ID: in.ID, Description: in.Subject, Status: in.Status, ActiveForm: in.ActiveForm}
}
