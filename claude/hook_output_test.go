// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"testing"
	"time"
)

// Row 42: hook outputs use the CLI's exact names and leave out what is empty.
func TestHookOutput_UsesTheNamesOfTheCLI(t *testing.T) {
	suggestion := PermissionUpdate{Type: AddRules, Rules: []PermissionRule{{ToolName: "Read"}}, Behavior: RuleAllow, Destination: ToSession}
	tests := []struct {
		name string
		out  HookOutput
		want string
	}{
		{"nil", nil, `{}`},
		{"nil pointer", (*StopOutput)(nil), `{}`},
		{"zero", &PreToolUseOutput{}, `{}`},
		{
			"every common field", &StopFailureOutput{HookControl{StopRun: true, StopReason: "budget", Decision: DecisionBlock, Reason: "r", SystemMessage: "<m>&", SuppressOutput: true, TerminalSequence: "\a"}},
			`{"continue":false,"suppressOutput":true,"stopReason":"budget","decision":"block","systemMessage":"<m>&","terminalSequence":"\u0007","reason":"r"}`,
		},
		{"async", &PostToolUseOutput{HookControl: HookControl{Async: true, AsyncTimeout: 2 * time.Second, Reason: "dropped"}, AdditionalContext: "dropped"}, `{"async":true,"asyncTimeout":2000}`},
		{"async without timeout", &PostToolUseOutput{HookControl: HookControl{Async: true}}, `{"async":true}`},
		{"allow", AllowTool(), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`},
		{"deny", DenyTool("no"), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`},
		{"ask", AskTool("sure?"), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"sure?"}}`},
		{"defer", &PreToolUseOutput{PermissionDecision: DecideDefer}, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}`},
		{"rewrite", RewriteTool(map[string]string{"command": "ls <x>"}), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"ls <x>"}}}`},
		{"rewrite raw", RewriteTool(json.RawMessage(`{"b":1,"a":"<"}`)), `{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"b":1,"a":"<"}}}`},
		{"control and specific", &PreToolUseOutput{HookControl: HookControl{SystemMessage: "hi"}, AdditionalContext: "c"}, `{"systemMessage":"hi","hookSpecificOutput":{"hookEventName":"PreToolUse","additionalContext":"c"}}`},
		{
			"PostToolUse", &PostToolUseOutput{AdditionalContext: "a", UpdatedToolOutput: map[string]any{"stdout": ""}, UpdatedMCPToolOutput: "x", ClassifierContext: "k"},
			`{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"a","updatedToolOutput":{"stdout":""},"updatedMCPToolOutput":"x","classifierContext":"k"}}`,
		},
		{"PostToolUseFailure", &PostToolUseFailureOutput{AdditionalContext: "a"}, `{"hookSpecificOutput":{"hookEventName":"PostToolUseFailure","additionalContext":"a"}}`},
		{"PostToolBatch", &PostToolBatchOutput{AdditionalContext: "a"}, `{"hookSpecificOutput":{"hookEventName":"PostToolBatch","additionalContext":"a"}}`},
		{
			"PermissionRequest allow", &PermissionRequestOutput{Answer: Allow{UpdatedInput: map[string]int{"n": 1}, UpdatedPermissions: []PermissionUpdate{suggestion}}},
			`{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow","updatedInput":{"n":1},"updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Read"}],"behavior":"allow","destination":"session"}]}}}`,
		},
		{"PermissionRequest allow plain", &PermissionRequestOutput{Answer: Allow{}}, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}`},
		{"PermissionRequest deny", &PermissionRequestOutput{Answer: Deny{Message: "m", Interrupt: true}}, `{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"m","interrupt":true}}}`},
		{"PermissionDenied", &PermissionDeniedOutput{Retry: true}, `{"hookSpecificOutput":{"hookEventName":"PermissionDenied","retry":true}}`},
		{"UserPromptSubmit", &UserPromptSubmitOutput{AdditionalContext: "a", SessionTitle: "t", SuppressOriginalPrompt: true}, `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"a","sessionTitle":"t","suppressOriginalPrompt":true}}`},
		{"UserPromptExpansion", &UserPromptExpansionOutput{AdditionalContext: "a", SuppressOriginalPrompt: true}, `{"hookSpecificOutput":{"hookEventName":"UserPromptExpansion","additionalContext":"a","suppressOriginalPrompt":true}}`},
		{"Stop", BlockStop("go on"), `{"decision":"block","reason":"go on"}`},
		{"Stop with context", &StopOutput{AdditionalContext: "a"}, `{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"a"}}`},
		{"SubagentStart", &SubagentStartOutput{AdditionalContext: "a"}, `{"hookSpecificOutput":{"hookEventName":"SubagentStart","additionalContext":"a"}}`},
		{"SubagentStop", &SubagentStopOutput{AdditionalContext: "a"}, `{"hookSpecificOutput":{"hookEventName":"SubagentStop","additionalContext":"a"}}`},
		{"PreModelSwitch", &PreModelSwitchOutput{PermissionDecision: DecideDeny, PermissionDecisionReason: "r"}, `{"hookSpecificOutput":{"hookEventName":"PreModelSwitch","permissionDecision":"deny","permissionDecisionReason":"r"}}`},
		{"PostModelSwitch", &PostModelSwitchOutput{AdditionalContext: "a"}, `{"hookSpecificOutput":{"hookEventName":"PostModelSwitch","additionalContext":"a"}}`},
		{
			"SessionStart", &SessionStartOutput{AdditionalContext: "a", InitialUserMessage: "u", SessionTitle: "t", WatchPaths: []string{}, ReloadSkills: true},
			`{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"a","initialUserMessage":"u","sessionTitle":"t","watchPaths":[],"reloadSkills":true}}`,
		},
		{"Setup", &SetupOutput{AdditionalContext: "a"}, `{"hookSpecificOutput":{"hookEventName":"Setup","additionalContext":"a"}}`},
		{"MessageDisplay", &MessageDisplayOutput{DisplayContent: new("")}, `{"hookSpecificOutput":{"hookEventName":"MessageDisplay","displayContent":""}}`},
		{"Notification", &NotificationOutput{AdditionalContext: "a"}, `{"hookSpecificOutput":{"hookEventName":"Notification","additionalContext":"a"}}`},
		{"Elicitation", &ElicitationOutput{Action: ElicitAccept, Content: map[string]string{"n": "b"}}, `{"hookSpecificOutput":{"hookEventName":"Elicitation","action":"accept","content":{"n":"b"}}}`},
		{"ElicitationResult", &ElicitationResultOutput{Action: ElicitDecline}, `{"hookSpecificOutput":{"hookEventName":"ElicitationResult","action":"decline"}}`},
		{"CwdChanged", &CwdChangedOutput{WatchPaths: []string{"/a"}}, `{"hookSpecificOutput":{"hookEventName":"CwdChanged","watchPaths":["/a"]}}`},
		{"FileChanged", &FileChangedOutput{WatchPaths: []string{"/a"}}, `{"hookSpecificOutput":{"hookEventName":"FileChanged","watchPaths":["/a"]}}`},
		{"WorktreeCreate", &WorktreeCreateOutput{WorktreePath: "/w"}, `{"hookSpecificOutput":{"hookEventName":"WorktreeCreate","worktreePath":"/w"}}`},
		{"PreCompact", &PreCompactOutput{HookControl{SystemMessage: "s"}}, `{"systemMessage":"s"}`},
		{"PostCompact", &PostCompactOutput{HookControl{SystemMessage: "s"}}, `{"systemMessage":"s"}`},
		{"SessionEnd", &SessionEndOutput{HookControl{SystemMessage: "s"}}, `{"systemMessage":"s"}`},
		{"InstructionsLoaded", &InstructionsLoadedOutput{HookControl{SystemMessage: "s"}}, `{"systemMessage":"s"}`},
		{"ConfigChange", &ConfigChangeOutput{HookControl{SystemMessage: "s"}}, `{"systemMessage":"s"}`},
		{"DirectoryAdded", &DirectoryAddedOutput{HookControl{SystemMessage: "s"}}, `{"systemMessage":"s"}`},
		{"WorktreeRemove", &WorktreeRemoveOutput{HookControl{SystemMessage: "s"}}, `{"systemMessage":"s"}`},
		{"TaskCreated", &TaskCreatedOutput{HookControl{Decision: DecisionBlock, Reason: "s"}}, `{"decision":"block","reason":"s"}`},
		{"TaskCompleted", &TaskCompletedOutput{HookControl{SystemMessage: "s"}}, `{"systemMessage":"s"}`},
		{"TeammateIdle", &TeammateIdleOutput{HookControl{SystemMessage: "s"}}, `{"systemMessage":"s"}`},
	}
	events := make(map[HookEvent]bool)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := encodeHookOutput(tt.out)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
		if !isNil(tt.out) {
			events[tt.out.hookEvent()] = true
		}
	}
	for event := range hookEvents {
		if !events[event] {
			t.Errorf("no output of %s is tested", event)
		}
	}
}
