// SPDX-License-Identifier: Apache-2.0

package claude

// Which event each type belongs to. The takes methods exist for the constraint of [On] alone: they
// let the compiler refuse an output that does not belong to the input's event.

func (in *UnknownHookInput) hookEvent() HookEvent { return in.Event }

func (*PreToolUseInput) hookEvent() HookEvent    { return HookPreToolUse }
func (*PreToolUseInput) takes(*PreToolUseOutput) {}
func (*PreToolUseOutput) hookEvent() HookEvent   { return HookPreToolUse }

func (*PostToolUseInput) hookEvent() HookEvent     { return HookPostToolUse }
func (*PostToolUseInput) takes(*PostToolUseOutput) {}
func (*PostToolUseOutput) hookEvent() HookEvent    { return HookPostToolUse }

func (*PostToolUseFailureInput) hookEvent() HookEvent            { return HookPostToolUseFailure }
func (*PostToolUseFailureInput) takes(*PostToolUseFailureOutput) {}
func (*PostToolUseFailureOutput) hookEvent() HookEvent           { return HookPostToolUseFailure }

func (*PostToolBatchInput) hookEvent() HookEvent       { return HookPostToolBatch }
func (*PostToolBatchInput) takes(*PostToolBatchOutput) {}
func (*PostToolBatchOutput) hookEvent() HookEvent      { return HookPostToolBatch }

func (*PermissionRequestInput) hookEvent() HookEvent           { return HookPermissionRequest }
func (*PermissionRequestInput) takes(*PermissionRequestOutput) {}
func (*PermissionRequestOutput) hookEvent() HookEvent          { return HookPermissionRequest }

func (*PermissionDeniedInput) hookEvent() HookEvent          { return HookPermissionDenied }
func (*PermissionDeniedInput) takes(*PermissionDeniedOutput) {}
func (*PermissionDeniedOutput) hookEvent() HookEvent         { return HookPermissionDenied }

func (*UserPromptSubmitInput) hookEvent() HookEvent          { return HookUserPromptSubmit }
func (*UserPromptSubmitInput) takes(*UserPromptSubmitOutput) {}
func (*UserPromptSubmitOutput) hookEvent() HookEvent         { return HookUserPromptSubmit }

func (*UserPromptExpansionInput) hookEvent() HookEvent             { return HookUserPromptExpansion }
func (*UserPromptExpansionInput) takes(*UserPromptExpansionOutput) {}
func (*UserPromptExpansionOutput) hookEvent() HookEvent            { return HookUserPromptExpansion }

func (*StopInput) hookEvent() HookEvent  { return HookStop }
func (*StopInput) takes(*StopOutput)     {}
func (*StopOutput) hookEvent() HookEvent { return HookStop }

func (*StopFailureInput) hookEvent() HookEvent     { return HookStopFailure }
func (*StopFailureInput) takes(*StopFailureOutput) {}
func (*StopFailureOutput) hookEvent() HookEvent    { return HookStopFailure }

func (*SubagentStartInput) hookEvent() HookEvent       { return HookSubagentStart }
func (*SubagentStartInput) takes(*SubagentStartOutput) {}
func (*SubagentStartOutput) hookEvent() HookEvent      { return HookSubagentStart }

func (*SubagentStopInput) hookEvent() HookEvent      { return HookSubagentStop }
func (*SubagentStopInput) takes(*SubagentStopOutput) {}
func (*SubagentStopOutput) hookEvent() HookEvent     { return HookSubagentStop }

func (*PreCompactInput) hookEvent() HookEvent    { return HookPreCompact }
func (*PreCompactInput) takes(*PreCompactOutput) {}
func (*PreCompactOutput) hookEvent() HookEvent   { return HookPreCompact }

func (*PostCompactInput) hookEvent() HookEvent     { return HookPostCompact }
func (*PostCompactInput) takes(*PostCompactOutput) {}
func (*PostCompactOutput) hookEvent() HookEvent    { return HookPostCompact }

func (*PreModelSwitchInput) hookEvent() HookEvent        { return HookPreModelSwitch }
func (*PreModelSwitchInput) takes(*PreModelSwitchOutput) {}
func (*PreModelSwitchOutput) hookEvent() HookEvent       { return HookPreModelSwitch }

func (*PostModelSwitchInput) hookEvent() HookEvent         { return HookPostModelSwitch }
func (*PostModelSwitchInput) takes(*PostModelSwitchOutput) {}
func (*PostModelSwitchOutput) hookEvent() HookEvent        { return HookPostModelSwitch }

func (*SessionStartInput) hookEvent() HookEvent      { return HookSessionStart }
func (*SessionStartInput) takes(*SessionStartOutput) {}
func (*SessionStartOutput) hookEvent() HookEvent     { return HookSessionStart }

func (*SessionEndInput) hookEvent() HookEvent    { return HookSessionEnd }
func (*SessionEndInput) takes(*SessionEndOutput) {}
func (*SessionEndOutput) hookEvent() HookEvent   { return HookSessionEnd }

func (*SetupInput) hookEvent() HookEvent  { return HookSetup }
func (*SetupInput) takes(*SetupOutput)    {}
func (*SetupOutput) hookEvent() HookEvent { return HookSetup }

func (*InstructionsLoadedInput) hookEvent() HookEvent            { return HookInstructionsLoaded }
func (*InstructionsLoadedInput) takes(*InstructionsLoadedOutput) {}
func (*InstructionsLoadedOutput) hookEvent() HookEvent           { return HookInstructionsLoaded }

func (*MessageDisplayInput) hookEvent() HookEvent        { return HookMessageDisplay }
func (*MessageDisplayInput) takes(*MessageDisplayOutput) {}
func (*MessageDisplayOutput) hookEvent() HookEvent       { return HookMessageDisplay }

func (*NotificationInput) hookEvent() HookEvent      { return HookNotification }
func (*NotificationInput) takes(*NotificationOutput) {}
func (*NotificationOutput) hookEvent() HookEvent     { return HookNotification }

func (*ElicitationInput) hookEvent() HookEvent     { return HookElicitation }
func (*ElicitationInput) takes(*ElicitationOutput) {}
func (*ElicitationOutput) hookEvent() HookEvent    { return HookElicitation }

func (*ElicitationResultInput) hookEvent() HookEvent           { return HookElicitationResult }
func (*ElicitationResultInput) takes(*ElicitationResultOutput) {}
func (*ElicitationResultOutput) hookEvent() HookEvent          { return HookElicitationResult }

func (*ConfigChangeInput) hookEvent() HookEvent      { return HookConfigChange }
func (*ConfigChangeInput) takes(*ConfigChangeOutput) {}
func (*ConfigChangeOutput) hookEvent() HookEvent     { return HookConfigChange }

func (*CwdChangedInput) hookEvent() HookEvent    { return HookCwdChanged }
func (*CwdChangedInput) takes(*CwdChangedOutput) {}
func (*CwdChangedOutput) hookEvent() HookEvent   { return HookCwdChanged }

func (*FileChangedInput) hookEvent() HookEvent     { return HookFileChanged }
func (*FileChangedInput) takes(*FileChangedOutput) {}
func (*FileChangedOutput) hookEvent() HookEvent    { return HookFileChanged }

func (*DirectoryAddedInput) hookEvent() HookEvent        { return HookDirectoryAdded }
func (*DirectoryAddedInput) takes(*DirectoryAddedOutput) {}
func (*DirectoryAddedOutput) hookEvent() HookEvent       { return HookDirectoryAdded }

func (*WorktreeCreateInput) hookEvent() HookEvent        { return HookWorktreeCreate }
func (*WorktreeCreateInput) takes(*WorktreeCreateOutput) {}
func (*WorktreeCreateOutput) hookEvent() HookEvent       { return HookWorktreeCreate }

func (*WorktreeRemoveInput) hookEvent() HookEvent        { return HookWorktreeRemove }
func (*WorktreeRemoveInput) takes(*WorktreeRemoveOutput) {}
func (*WorktreeRemoveOutput) hookEvent() HookEvent       { return HookWorktreeRemove }

func (*TaskCreatedInput) hookEvent() HookEvent     { return HookTaskCreated }
func (*TaskCreatedInput) takes(*TaskCreatedOutput) {}
func (*TaskCreatedOutput) hookEvent() HookEvent    { return HookTaskCreated }

func (*TaskCompletedInput) hookEvent() HookEvent       { return HookTaskCompleted }
func (*TaskCompletedInput) takes(*TaskCompletedOutput) {}
func (*TaskCompletedOutput) hookEvent() HookEvent      { return HookTaskCompleted }

func (*TeammateIdleInput) hookEvent() HookEvent      { return HookTeammateIdle }
func (*TeammateIdleInput) takes(*TeammateIdleOutput) {}
func (*TeammateIdleOutput) hookEvent() HookEvent     { return HookTeammateIdle }
