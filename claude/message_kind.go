// SPDX-License-Identifier: Apache-2.0

package claude

// A messageKind numbers the known pairs of type and subtype. Numbers are not stored anywhere that outlives the process.
type messageKind uint8

const (
	kindUnknown messageKind = iota
	kindControlRequest
	kindControlResponse
	kindControlCancel
	firstOrdinaryKind
)

type kindInfo struct {
	typ     string
	subtype string // of system messages
	control bool
	make    func() Message
}

// messageKinds is the list of everything this version knows.
var messageKinds = [...]kindInfo{
	kindUnknown:         {make: func() Message { return new(UnknownMessage) }},
	kindControlRequest:  {typ: "control_request", control: true, make: func() Message { return new(ControlFrame) }},
	kindControlResponse: {typ: "control_response", control: true, make: func() Message { return new(ControlFrame) }},
	kindControlCancel:   {typ: "control_cancel_request", control: true, make: func() Message { return new(ControlFrame) }},
	firstOrdinaryKind:   {typ: "keep_alive", make: func() Message { return new(KeepAlive) }},

	{typ: "assistant", make: func() Message { return new(AssistantMessage) }},
	{typ: "user", make: func() Message { return new(UserMessage) }},
	{typ: "result", make: func() Message { return new(ResultMessage) }},
	{typ: "stream_event", make: func() Message { return new(StreamEvent) }},
	{typ: "tool_progress", make: func() Message { return new(ToolProgress) }},
	{typ: "tool_use_summary", make: func() Message { return new(ToolUseSummary) }},
	{typ: "auth_status", make: func() Message { return new(AuthStatus) }},
	{typ: "rate_limit_event", make: func() Message { return new(RateLimitEvent) }},
	{typ: "prompt_suggestion", make: func() Message { return new(PromptSuggestion) }},
	{typ: "conversation_reset", make: func() Message { return new(ConversationReset) }},
	{typ: "active_goal", make: func() Message { return new(ActiveGoal) }},
	{typ: "command_lifecycle", make: func() Message { return new(CommandLifecycle) }},
	{typ: "autocompact_state", make: func() Message { return new(AutocompactState) }},
	{typ: "transcript_mirror", make: func() Message { return new(TranscriptMirror) }},

	{typ: "system", subtype: "init", make: func() Message { return new(SystemInit) }},
	{typ: "system", subtype: "compact_boundary", make: func() Message { return new(CompactBoundary) }},
	{typ: "system", subtype: "status", make: func() Message { return new(StatusMessage) }},
	{typ: "system", subtype: "api_retry", make: func() Message { return new(APIRetry) }},
	{typ: "system", subtype: "control_request_progress", make: func() Message { return new(ControlRequestProgress) }},
	{typ: "system", subtype: "model_refusal_fallback", make: func() Message { return new(ModelRefusalFallback) }},
	{typ: "system", subtype: "model_refusal_no_fallback", make: func() Message { return new(ModelRefusalNoFallback) }},
	{typ: "system", subtype: "local_command_output", make: func() Message { return new(LocalCommandOutput) }},
	{typ: "system", subtype: "hook_started", make: func() Message { return new(HookStarted) }},
	{typ: "system", subtype: "hook_progress", make: func() Message { return new(HookProgress) }},
	{typ: "system", subtype: "hook_response", make: func() Message { return new(HookResponse) }},
	{typ: "system", subtype: "plugin_install", make: func() Message { return new(PluginInstall) }},
	{typ: "system", subtype: "task_started", make: func() Message { return new(TaskStarted) }},
	{typ: "system", subtype: "task_progress", make: func() Message { return new(TaskProgress) }},
	{typ: "system", subtype: "task_updated", make: func() Message { return new(TaskUpdated) }},
	{typ: "system", subtype: "task_notification", make: func() Message { return new(TaskNotification) }},
	{typ: "system", subtype: "background_tasks_changed", make: func() Message { return new(BackgroundTasksChanged) }},
	{typ: "system", subtype: "thinking_tokens", make: func() Message { return new(ThinkingTokens) }},
	{typ: "system", subtype: "session_state_changed", make: func() Message { return new(SessionStateChanged) }},
	{typ: "system", subtype: "worker_shutting_down", make: func() Message { return new(WorkerShuttingDown) }},
	{typ: "system", subtype: "commands_changed", make: func() Message { return new(CommandsChanged) }},
	{typ: "system", subtype: "notification", make: func() Message { return new(NotificationMessage) }},
	{typ: "system", subtype: "files_persisted", make: func() Message { return new(FilesPersisted) }},
	{typ: "system", subtype: "memory_recall", make: func() Message { return new(MemoryRecall) }},
	{typ: "system", subtype: "elicitation_complete", make: func() Message { return new(ElicitationComplete) }},
	{typ: "system", subtype: "permission_denied", make: func() Message { return new(PermissionDenied) }},
	{typ: "system", subtype: "mirror_error", make: func() Message { return new(MirrorError) }},
	{typ: "system", subtype: "informational", make: func() Message { return new(Informational) }},
	{typ: "system", subtype: "session_writes_lost", make: func() Message { return new(SessionWritesLost) }},
}

// typeKinds and systemKinds find a kind by its type, and by the subtype of type "system".
var typeKinds, systemKinds = func() (types, system map[string]messageKind) {
	types, system = map[string]messageKind{}, map[string]messageKind{}
	for i, k := range messageKinds {
		switch {
		case messageKind(i) == kindUnknown:
		case k.typ == "system":
			system[k.subtype] = messageKind(i)
		default:
			types[k.typ] = messageKind(i)
		}
	}
	return types, system
}()

// knownSubtypes are strings that need no allocation: subtypes of results and of control frames.
var knownSubtypes = func() map[string]string {
	known := map[string]string{}
	for _, s := range []string{
		ResultSuccess, ResultErrorDuringExecution, ResultErrorMaxTurns, ResultErrorMaxBudget, ResultErrorStructuredOutput,
		"error", "can_use_tool", "hook_callback", "mcp_message", "elicitation", "request_user_dialog",
	} {
		known[s] = s
	}
	return known
}()

func internSubtype(b []byte) string {
	if s, ok := knownSubtypes[string(b)]; ok {
		return s
	}
	return string(b)
}

// hasSubtype reports whether lines of this type, known or not, may have a subtype.
func hasSubtype(typ []byte) bool {
	if string(typ) == "result" {
		return true
	}
	_, plain := typeKinds[string(typ)]
	return !plain
}

// headOf finds the kind of a line. Subtypes of types that have none are kept as they are.
func headOf(typ, subtype []byte) lineHead {
	if kind, ok := typeKinds[string(typ)]; ok {
		return lineHead{kind: kind, typ: messageKinds[kind].typ, subtype: internSubtype(subtype)}
	}
	if string(typ) != "system" {
		return lineHead{typ: string(typ), subtype: string(subtype)}
	}
	if kind, ok := systemKinds[string(subtype)]; ok {
		return lineHead{kind: kind, typ: "system", subtype: messageKinds[kind].subtype}
	}
	return lineHead{typ: "system", subtype: string(subtype)}
}
