// SPDX-License-Identifier: Apache-2.0

package corpus

// These lines are around every stream. Like the CLI's, the result does not begin with its type.
const (
	Init = `{"type":"system","subtype":"init","cwd":"/work/project","session_id":"` + sessionID + `","tools":["Bash","Read","Write"],"mcp_servers":[],"model":"` + model + `","permissionMode":"default","slash_commands":[],"apiKeySource":"none","claude_code_version":"` + Version + `","output_style":"default","agents":[],"skills":[],"plugins":[],"uuid":"4c0e0d0a-1111-4222-8333-444455556666"}` + "\n"

	Result = `{"duration_api_ms":812,"is_error":false,"num_turns":1,"type":"result","subtype":"success","duration_ms":1043,"result":"done","stop_reason":"end_turn","session_id":"` + sessionID + `","total_cost_usd":0.0123,"usage":{"input_tokens":12,"cache_creation_input_tokens":350,"cache_read_input_tokens":18200,"output_tokens":210},"modelUsage":{},"permission_denials":[],"uuid":"4c0e0d0a-1111-4222-8333-444455557777"}` + "\n"

	Idle = `{"type":"system","subtype":"session_state_changed","state":"idle","sdk_host_only":true,"uuid":"4c0e0d0a-1111-4222-8333-444455558888","session_id":"` + sessionID + `"}` + "\n"

	// Version is the version that the fake CLI gives itself.
	Version = "2.1.325"
)
