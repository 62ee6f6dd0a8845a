// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/tool"
)

// A NativeTool is what the catalogue knows of a tool of Claude Code.
type NativeTool struct {
	Name  string
	Risk  tool.Risk
	Needs tool.Capability
}

// Native looks a tool of Claude Code up, by today's name or an older one. Names are compared
// exactly.
func Native(name string) (NativeTool, bool) {
	t, ok := nativeByName()[name]
	return t, ok
}

// isPlumbing reports whether a call is of a tool that the CLI adds by itself and that does nothing but
// let the others be used: ToolSearch shows the model descriptions of tools, StructuredOutput takes
// its answer. To deny them because nobody named them would be to deny the run.
func isPlumbing(c *Call) bool {
	return c.Origin == Builtin && (c.Tool == "ToolSearch" || c.Tool == "StructuredOutput")
}

// Natives returns the whole catalogue, sorted by name.
func Natives() []NativeTool {
	all := slices.Clone(natives)
	slices.SortFunc(all, func(a, b NativeTool) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// NativeBuiltin gives the catalogue as lists for [RiskOptions].
func NativeBuiltin() BuiltinLists {
	var lists BuiltinLists
	for _, t := range Natives() {
		if t.Risk.Has(tool.ReadOnly) {
			lists.ReadOnly = append(lists.ReadOnly, t.Name)
		}
		if t.Risk.Has(tool.Mutates) {
			lists.Mutating = append(lists.Mutating, t.Name)
		}
		if t.Risk.Has(tool.Dangerous) {
			lists.Dangerous = append(lists.Dangerous, t.Name)
		}
	}
	return lists
}

var nativeByName = sync.OnceValue(func() map[string]NativeTool {
	byName := make(map[string]NativeTool, len(natives))
	for _, t := range natives {
		byName[t.Name] = t
	}
	return byName
})

const (
	harmless = tool.ReadOnly
	mutates  = tool.Mutates
	harmful  = tool.Mutates | tool.Dangerous
)

// byWorktree is what a tool needs that makes a worktree.
const byWorktree = tool.FileWrite | tool.ShellExecute

// makesWorktree reports whether a call starts an agent in a place of its own, which is a worktree.
func makesWorktree(name string, input json.RawMessage) bool {
	switch name {
	case "Agent", "Task", "AgentTool", "dispatch_agent":
		var in struct{ Isolation any }
		return json.Unmarshal(input, &in) != nil || in.Isolation != nil
	}
	return false
}

// natives is the catalogue. A tool that changes nothing but the conversation and what it started is
// read-only: its todo list, its plan, its background tasks.
var natives = []NativeTool{
	// Files. Replace, NotebookEditCell and Create are older names.
	{"Write", mutates, tool.FileWrite},
	{"Edit", mutates, tool.FileWrite},
	{"MultiEdit", mutates, tool.FileWrite},
	{"NotebookEdit", mutates, tool.FileWrite},
	{"Replace", mutates, tool.FileWrite},
	{"NotebookEditCell", mutates, tool.FileWrite},
	{"Create", mutates, tool.FileWrite},
	{"Read", harmless, 0},
	{"View", harmless, 0},
	{"Glob", harmless, 0},
	{"GlobTool", harmless, 0},
	{"Grep", harmless, 0},
	{"GrepTool", harmless, 0},
	{"LS", harmless, 0},
	{"NotebookRead", harmless, 0},
	{"ReadNotebook", harmless, 0},
	{"LSP", harmless, 0},

	// Commands. Monitor runs a command or opens a socket.
	{"Bash", harmful, tool.ShellExecute},
	{"PowerShell", harmful, tool.ShellExecute},
	{"REPL", harmful, tool.ShellExecute},
	{"Monitor", harmful, tool.ShellExecute | tool.NetworkAccess},
	// A skill or a command may hold shell commands that the CLI runs while it loads the text. No
	// hook and no permission callback sees them, so the one chance to judge them is here. The CLI's
	// setting disableSkillShellExecution turns them off.
	{"Skill", harmful, tool.ShellExecute},
	{"SlashCommand", harmful, tool.ShellExecute},
	// These look at what runs already, or end it.
	{"BashOutput", harmless, 0},
	{"BashOutputTool", harmless, 0},
	{"KillShell", harmless, 0},
	{"KillBash", harmless, 0},
	{"TaskOutput", harmless, 0},
	{"AgentOutputTool", harmless, 0},
	{"TaskStop", harmless, 0},

	// The network.
	{"WebFetch", harmless, tool.NetworkAccess},
	{"WebSearch", harmless, tool.NetworkAccess},
	{"PushNotification", harmless, tool.NetworkAccess}, // to the user's own phone
	{"ReadNotifications", harmless, tool.NetworkAccess},
	// These change what is kept elsewhere, or publish it.
	{"Artifact", mutates, tool.NetworkAccess},
	{"ClaudeDesign", mutates, tool.NetworkAccess},
	{"Projects", harmful, tool.NetworkAccess}, // also deletes
	{"SendFeedback", mutates, tool.NetworkAccess},
	// A remote run is under no gate of ours.
	{"RemoteTrigger", harmful, tool.NetworkAccess},
	// A message may reach a session that this gate does not watch, even on another machine.
	{"SendMessage", mutates, tool.NetworkAccess},

	// Agents. What they do is judged call by call, as the main agent's calls are.
	{"Agent", harmless, 0},
	{"Task", harmless, 0},
	{"AgentTool", harmless, 0},
	{"dispatch_agent", harmless, 0},
	{"ListAgents", harmless, 0},
	{"TeamCreate", harmless, 0},
	{"TeamDelete", harmless, 0},

	// A worktree is a folder and a branch, which the CLI makes with git; leaving one can throw away what was not
	// committed. CLI 2.1.197 lets git run the hooks and filters of the repository. A workflow is a script, which can
	// have worktrees made for its agents.
	{"EnterWorktree", harmful, byWorktree},
	{"ExitWorktree", harmful, byWorktree},
	{"Workflow", harmful, byWorktree},

	// Schedules. What is scheduled is a prompt, and one such as "/deploy" is a command or a skill: when
	// its time comes the CLI runs the shell commands in that, unseen, as it does for Skill. A job may
	// be kept in a file of the project, and then outlives the run.
	{"CronCreate", harmful, tool.FileWrite | tool.ShellExecute},
	{"ScheduleWakeup", harmful, tool.ShellExecute},
	{"CronDelete", mutates, tool.FileWrite},
	{"CronList", harmless, 0},
	{"Sleep", harmless, 0},

	// The CLI's own settings and skills.
	{"Config", mutates, tool.FileWrite},
	{"ProposeSkills", mutates, tool.FileWrite},

	// The conversation.
	{"AskUserQuestion", harmless, 0},
	{"EnterPlanMode", harmless, 0},
	{"ExitPlanMode", harmless, 0},
	{"exit_plan_mode", harmless, 0},
	{"TodoRead", harmless, 0},
	{"TodoWrite", harmless, 0},
	{"TaskCreate", harmless, 0},
	{"TaskGet", harmless, 0},
	{"TaskList", harmless, 0},
	{"TaskUpdate", harmless, 0},
	{"ToolSearch", harmless, 0},
	{"MCPSearch", harmless, 0},
	{"DeferredToolPlaceholder", harmless, 0}, // stands for tools that are not loaded yet
	{"StructuredOutput", harmless, 0},
	{"ReportFindings", harmless, 0},
	{"ProposeGoal", harmless, 0},
	{"OfferChromeSetup", harmless, 0},
	{"ShowOnboardingRolePicker", harmless, 0},
	{"Think", harmless, 0},

	// Other people's MCP servers. Resources are read; what a server's tools do is not known here.
	{"ListMcpResources", harmless, 0},
	{"ListMcpResourcesTool", harmless, 0},
	{"ReadMcpResource", harmless, 0},
	{"ReadMcpResourceTool", harmless, 0},
	{"ReadMcpResourceDir", harmless, 0},
	{"ReadMcpResourceDirTool", harmless, 0},
	{"RefreshMcpTools", harmless, 0},
	{"WaitForMcpServers", harmless, 0},
}
