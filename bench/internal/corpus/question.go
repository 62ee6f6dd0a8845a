// SPDX-License-Identifier: Apache-2.0

package corpus

// Bodies of requests to the host. Each # is replaced by the number of the request.
const (
	Hook = `{"subtype":"hook_callback","callback_id":"CALLBACK","input":{"session_id":"` + sessionID + `","transcript_path":"/work/.claude/projects/-work-project/` + sessionID + `.jsonl","cwd":"/work/project","prompt_id":"9a2d7a55-0c55-4f0e-8f38-4b8b1f3f0a11","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"go test ./... && git status --short","description":"Run the tests"},"tool_use_id":"toolu_bench#"},"tool_use_id":"toolu_bench#"}`

	Permission = `{"subtype":"can_use_tool","tool_name":"Bash","display_name":"Bash","input":{"command":"go test ./... && git status --short","description":"Run the tests"},"permission_suggestions":[{"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"go test:*"}],"behavior":"allow","destination":"localSettings"}],"tool_use_id":"toolu_bench#"}`

	Initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"claude-code","version":"` + Version + `"}}}`
	Ready      = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	ListTools  = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	CallTool   = `{"jsonrpc":"2.0","id":#,"method":"tools/call","params":{"name":"add","arguments":{"a":19,"b":23},"_meta":{"claudecode/toolUseId":"toolu_bench#","progressToken":#}}}`

	// Sum is what the tool of the MCP benchmark answers.
	Sum = "the sum is 42"
)
