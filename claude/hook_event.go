// SPDX-License-Identifier: Apache-2.0

package claude

// A HookEvent names a moment at which the CLI calls hooks.
type HookEvent string

// The hook events of the CLI.
//
// The table has the observed behaviour of 2.1.325 and 2.1.197 with SDK callbacks, and the value that a matcher of the event
// is compared with ("-": the event takes no matcher and the CLI ignores one). "yes" means that the callback was called.
//
//	event                2.1.325  2.1.197  matcher         remark
//	PreToolUse           yes      yes      tool name
//	PostToolUse          yes      yes      tool name
//	PostToolUseFailure   yes      yes      tool name       also for a Bash command that exits non-zero
//	PostToolBatch        yes      yes      -
//	PermissionRequest    yes      yes      tool name       at the same moment as CanUseTool
//	PermissionDenied     yes      yes      tool name       only when mode "auto" denies
//	UserPromptSubmit     yes      yes      -
//	UserPromptExpansion  yes      yes      command name
//	Stop                 yes      yes      -
//	StopFailure          yes      yes      error           the turn ended on an API error
//	SubagentStart        yes      yes      agent type
//	SubagentStop         yes      yes      agent type      internal agents have type "", which on 2.1.197 fits every matcher
//	PreCompact           yes      yes      trigger
//	PostCompact          yes      yes      trigger         only when the compaction succeeded
//	PreModelSwitch       yes      never    target model    on set_model
//	PostModelSwitch      yes      never    target model
//	SessionStart         partly   partly   source          "clear" and "compact"; never "startup" or "resume"
//	SessionEnd           partly   partly   reason          "clear"; never at the end of the process
//	Setup                never    never    trigger         as a command hook only, also with --init
//	InstructionsLoaded   yes      yes      load reason     not for files loaded before the first turn
//	MessageDisplay       yes      yes      -
//	Notification         yes      yes      type            seen after an elicitation
//	Elicitation          yes      yes      server name     not for in-process servers
//	ElicitationResult    yes      yes      server name
//	ConfigChange         yes      yes      source
//	CwdChanged           yes      yes      -               not on every change of directory
//	FileChanged          yes      yes      file name       for paths named in WatchPaths
//	DirectoryAdded       yes      never    source          on register_repo_root
//	WorktreeCreate       yes      yes      -
//	WorktreeRemove       yes      yes      -
//	TaskCreated          unseen   yes      -               2.1.325 does not offer the task tools by default
//	TaskCompleted        unseen   yes      -
//	TeammateIdle         unseen   unseen   -
const (
	HookPreToolUse          HookEvent = "PreToolUse"
	HookPostToolUse         HookEvent = "PostToolUse"
	HookPostToolUseFailure  HookEvent = "PostToolUseFailure"
	HookPostToolBatch       HookEvent = "PostToolBatch"
	HookPermissionRequest   HookEvent = "PermissionRequest"
	HookPermissionDenied    HookEvent = "PermissionDenied"
	HookUserPromptSubmit    HookEvent = "UserPromptSubmit"
	HookUserPromptExpansion HookEvent = "UserPromptExpansion"
	HookStop                HookEvent = "Stop"
	HookStopFailure         HookEvent = "StopFailure"
	HookSubagentStart       HookEvent = "SubagentStart"
	HookSubagentStop        HookEvent = "SubagentStop"
	HookPreCompact          HookEvent = "PreCompact"
	HookPostCompact         HookEvent = "PostCompact"
	HookPreModelSwitch      HookEvent = "PreModelSwitch"
	HookPostModelSwitch     HookEvent = "PostModelSwitch"
	HookSessionStart        HookEvent = "SessionStart"
	HookSessionEnd          HookEvent = "SessionEnd"
	HookSetup               HookEvent = "Setup"
	HookInstructionsLoaded  HookEvent = "InstructionsLoaded"
	HookMessageDisplay      HookEvent = "MessageDisplay"
	HookNotification        HookEvent = "Notification"
	HookElicitation         HookEvent = "Elicitation"
	HookElicitationResult   HookEvent = "ElicitationResult"
	HookConfigChange        HookEvent = "ConfigChange"
	HookCwdChanged          HookEvent = "CwdChanged"
	HookFileChanged         HookEvent = "FileChanged"
	HookDirectoryAdded      HookEvent = "DirectoryAdded"
	HookWorktreeCreate      HookEvent = "WorktreeCreate"
	HookWorktreeRemove      HookEvent = "WorktreeRemove"
	HookTaskCreated         HookEvent = "TaskCreated"
	HookTaskCompleted       HookEvent = "TaskCompleted"
	HookTeammateIdle        HookEvent = "TeammateIdle"
)

type hookEventInfo struct {
	newInput func() HookInput
	// noMatcher: the CLI ignores a matcher, so that it would not filter.
	noMatcher bool
	// complete reports whether the input holds what a gate needs to decide; nil means always.
	complete func(HookInput) bool
	// denial is the answer of a failed callback; empty means no decision.
	denial func(reason string) HookOutput
	// calledFor are the values of the matched field for which the CLI calls callbacks; nil means all, an empty list none.
	calledFor []string
	// since is the first known version that calls callbacks for the event; empty means all.
	since string
	// instead is the advice that goes with calledFor.
	instead string
}

const firstWithModelSwitch = "2.1.325" // the oldest version in which these were seen

var hookEvents = map[HookEvent]*hookEventInfo{
	HookPreToolUse: {
		newInput: func() HookInput { return new(PreToolUseInput) },
		complete: func(in HookInput) bool { p := in.(*PreToolUseInput); return p.ToolName != "" && p.ToolInput != nil },
		denial:   func(reason string) HookOutput { return DenyTool(reason) },
	},
	HookPermissionRequest: {
		newInput: func() HookInput { return new(PermissionRequestInput) },
		complete: func(in HookInput) bool {
			p := in.(*PermissionRequestInput)
			return p.ToolName != "" && p.ToolInput != nil
		},
		denial: func(reason string) HookOutput { return &PermissionRequestOutput{Answer: Deny{Message: reason}} },
	},
	HookPreModelSwitch: {
		newInput: func() HookInput { return new(PreModelSwitchInput) }, since: firstWithModelSwitch,
		complete: func(in HookInput) bool { return in.(*PreModelSwitchInput).ToModel != "" },
		denial: func(reason string) HookOutput {
			return &PreModelSwitchOutput{PermissionDecision: DecideDeny, PermissionDecisionReason: reason}
		},
	},
	HookPostToolUse:         {newInput: func() HookInput { return new(PostToolUseInput) }},
	HookPostToolUseFailure:  {newInput: func() HookInput { return new(PostToolUseFailureInput) }},
	HookPostToolBatch:       {newInput: func() HookInput { return new(PostToolBatchInput) }, noMatcher: true},
	HookPermissionDenied:    {newInput: func() HookInput { return new(PermissionDeniedInput) }},
	HookUserPromptSubmit:    {newInput: func() HookInput { return new(UserPromptSubmitInput) }, noMatcher: true},
	HookUserPromptExpansion: {newInput: func() HookInput { return new(UserPromptExpansionInput) }},
	HookStop:                {newInput: func() HookInput { return new(StopInput) }, noMatcher: true},
	HookStopFailure:         {newInput: func() HookInput { return new(StopFailureInput) }},
	HookSubagentStart:       {newInput: func() HookInput { return new(SubagentStartInput) }},
	HookSubagentStop:        {newInput: func() HookInput { return new(SubagentStopInput) }},
	HookPreCompact:          {newInput: func() HookInput { return new(PreCompactInput) }},
	HookPostCompact:         {newInput: func() HookInput { return new(PostCompactInput) }},
	HookPostModelSwitch:     {newInput: func() HookInput { return new(PostModelSwitchInput) }, since: firstWithModelSwitch},
	HookSessionStart: {
		newInput: func() HookInput { return new(SessionStartInput) }, calledFor: []string{"clear", "compact"},
		instead: "for the start of the process use the value returned by Connect, or a command hook in Settings",
	},
	HookSessionEnd: {
		newInput: func() HookInput { return new(SessionEndInput) }, calledFor: []string{"clear"},
		instead: "for the end of the process use Close, or a command hook in Settings",
	},
	HookSetup: {
		newInput: func() HookInput { return new(SetupInput) }, calledFor: []string{},
		instead: "use a command hook in Settings",
	},
	HookInstructionsLoaded: {newInput: func() HookInput { return new(InstructionsLoadedInput) }},
	HookMessageDisplay:     {newInput: func() HookInput { return new(MessageDisplayInput) }, noMatcher: true},
	HookNotification:       {newInput: func() HookInput { return new(NotificationInput) }},
	HookElicitation:        {newInput: func() HookInput { return new(ElicitationInput) }},
	HookElicitationResult:  {newInput: func() HookInput { return new(ElicitationResultInput) }},
	HookConfigChange:       {newInput: func() HookInput { return new(ConfigChangeInput) }},
	HookCwdChanged:         {newInput: func() HookInput { return new(CwdChangedInput) }, noMatcher: true},
	HookFileChanged:        {newInput: func() HookInput { return new(FileChangedInput) }},
	HookDirectoryAdded:     {newInput: func() HookInput { return new(DirectoryAddedInput) }, since: firstWithModelSwitch},
	HookWorktreeCreate:     {newInput: func() HookInput { return new(WorktreeCreateInput) }, noMatcher: true},
	HookWorktreeRemove:     {newInput: func() HookInput { return new(WorktreeRemoveInput) }, noMatcher: true},
	HookTaskCreated:        {newInput: func() HookInput { return new(TaskCreatedInput) }, noMatcher: true},
	HookTaskCompleted:      {newInput: func() HookInput { return new(TaskCompletedInput) }, noMatcher: true},
	HookTeammateIdle:       {newInput: func() HookInput { return new(TeammateIdleInput) }, noMatcher: true},
}
