// SPDX-License-Identifier: Apache-2.0

package claude

// SubagentStartOutput answers a SubagentStart hook.
type SubagentStartOutput struct {
	HookControl       `json:"-"`
	AdditionalContext string `json:"additionalContext,omitzero"`
}

// SubagentStopOutput answers a SubagentStop hook.
type SubagentStopOutput struct {
	HookControl       `json:"-"`
	AdditionalContext string `json:"additionalContext,omitzero"`
}

// PreModelSwitchOutput answers a PreModelSwitch hook.
type PreModelSwitchOutput struct {
	HookControl              `json:"-"`
	PermissionDecision       ToolDecision `json:"permissionDecision,omitzero"`
	PermissionDecisionReason string       `json:"permissionDecisionReason,omitzero"`
}

// PostModelSwitchOutput answers a PostModelSwitch hook.
type PostModelSwitchOutput struct {
	HookControl       `json:"-"`
	AdditionalContext string `json:"additionalContext,omitzero"`
}

// SessionStartOutput answers a SessionStart hook.
type SessionStartOutput struct {
	HookControl        `json:"-"`
	AdditionalContext  string `json:"additionalContext,omitzero"`
	InitialUserMessage string `json:"initialUserMessage,omitzero"`
	SessionTitle       string `json:"sessionTitle,omitzero"`
	// WatchPaths are the files whose changes FileChanged reports from now on. Nil leaves the list, an empty list clears it.
	WatchPaths   []string `json:"watchPaths,omitzero"`
	ReloadSkills bool     `json:"reloadSkills,omitzero"`
}

// SetupOutput answers a Setup hook.
type SetupOutput struct {
	HookControl       `json:"-"`
	AdditionalContext string `json:"additionalContext,omitzero"`
}

// MessageDisplayOutput answers a MessageDisplay hook.
type MessageDisplayOutput struct {
	HookControl `json:"-"`
	// DisplayContent is shown instead of the text, also as the text of the turn's result. Nil leaves the text alone.
	DisplayContent *string `json:"displayContent,omitzero"`
}

// NotificationOutput answers a Notification hook.
type NotificationOutput struct {
	HookControl       `json:"-"`
	AdditionalContext string `json:"additionalContext,omitzero"`
}

// ElicitationOutput answers an Elicitation hook in place of the user.
type ElicitationOutput struct {
	HookControl `json:"-"`
	Action      ElicitationAction `json:"action,omitzero"`
	// Content marshals to the object that the server's schema asks for.
	Content any `json:"content,omitzero"`
}

// ElicitationResultOutput answers an ElicitationResult hook; it replaces the user's answer.
type ElicitationResultOutput struct {
	HookControl `json:"-"`
	Action      ElicitationAction `json:"action,omitzero"`
	Content     any               `json:"content,omitzero"`
}

// CwdChangedOutput answers a CwdChanged hook.
type CwdChangedOutput struct {
	HookControl `json:"-"`
	// WatchPaths is as in [SessionStartOutput].
	WatchPaths []string `json:"watchPaths,omitzero"`
}

// FileChangedOutput answers a FileChanged hook.
type FileChangedOutput struct {
	HookControl `json:"-"`
	// WatchPaths is as in [SessionStartOutput].
	WatchPaths []string `json:"watchPaths,omitzero"`
}

// WorktreeCreateOutput answers a WorktreeCreate hook.
type WorktreeCreateOutput struct {
	HookControl `json:"-"`
	// WorktreePath is the directory that the hook made. Without it the tool fails.
	WorktreePath string `json:"worktreePath,omitzero"`
}

// The outputs below have only the fields of [HookControl].
type (
	// StopFailureOutput answers a StopFailure hook.
	StopFailureOutput struct {
		HookControl `json:"-"`
	}
	// PreCompactOutput answers a PreCompact hook.
	PreCompactOutput struct {
		HookControl `json:"-"`
	}
	// PostCompactOutput answers a PostCompact hook.
	PostCompactOutput struct {
		HookControl `json:"-"`
	}
	// SessionEndOutput answers a SessionEnd hook.
	SessionEndOutput struct {
		HookControl `json:"-"`
	}
	// InstructionsLoadedOutput answers an InstructionsLoaded hook.
	InstructionsLoadedOutput struct {
		HookControl `json:"-"`
	}
	// ConfigChangeOutput answers a ConfigChange hook.
	ConfigChangeOutput struct {
		HookControl `json:"-"`
	}
	// DirectoryAddedOutput answers a DirectoryAdded hook.
	DirectoryAddedOutput struct {
		HookControl `json:"-"`
	}
	// WorktreeRemoveOutput answers a WorktreeRemove hook.
	WorktreeRemoveOutput struct {
		HookControl `json:"-"`
	}
	// TaskCreatedOutput answers a TaskCreated hook.
	TaskCreatedOutput struct {
		HookControl `json:"-"`
	}
	// TaskCompletedOutput answers a TaskCompleted hook.
	TaskCompletedOutput struct {
		HookControl `json:"-"`
	}
	// TeammateIdleOutput answers a TeammateIdle hook.
	TeammateIdleOutput struct {
		HookControl `json:"-"`
	}
)
