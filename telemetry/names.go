// SPDX-License-Identifier: Apache-2.0

package telemetry

// The names of the GenAI semantic conventions, which are still in development: those of version 1.41 of the
// semantic conventions, the last that had them in one document. They are written here, since the Go package of
// the conventions has dropped them.
const (
	keyOperation      = "gen_ai.operation.name"
	keyProvider       = "gen_ai.provider.name"
	keyAgentName      = "gen_ai.agent.name"
	keyAgentID        = "gen_ai.agent.id"
	keyConversation   = "gen_ai.conversation.id"
	keyOutputType     = "gen_ai.output.type"
	keyRequestModel   = "gen_ai.request.model"
	keyResponseModel  = "gen_ai.response.model"
	keyFinishReasons  = "gen_ai.response.finish_reasons"
	keyInputTokens    = "gen_ai.usage.input_tokens"
	keyOutputTokens   = "gen_ai.usage.output_tokens"
	keyCacheRead      = "gen_ai.usage.cache_read.input_tokens"
	keyCacheCreation  = "gen_ai.usage.cache_creation.input_tokens"
	keyTokenType      = "gen_ai.token.type"
	keyToolName       = "gen_ai.tool.name"
	keyToolCallID     = "gen_ai.tool.call.id"
	keyToolType       = "gen_ai.tool.type"
	keyToolArguments  = "gen_ai.tool.call.arguments"
	keyToolResult     = "gen_ai.tool.call.result"
	keyInputMessages  = "gen_ai.input.messages"
	keyOutputMessages = "gen_ai.output.messages"
	keyErrorType      = "error.type"
	keyHTTPStatus     = "http.response.status_code"

	opInvokeAgent = "invoke_agent"
	opChat        = "chat"
	opExecuteTool = "execute_tool"

	metricTokens   = "gen_ai.client.token.usage"
	metricDuration = "gen_ai.client.operation.duration"
)

// Names of our own, where the conventions have none.
const (
	keyRunID      = "drover.run.id"
	keyStage      = "drover.stage"
	keyStatus     = "drover.status"
	keyCost       = "drover.cost.usd"
	keyTurns      = "drover.turns"
	keyTurn       = "drover.turn"
	keyToolStatus = "drover.tool.status"
	keyToolSource = "drover.tool.source"
	keyAttempts   = "drover.model.attempts"
	keyFirstByte  = "drover.model.time_to_first_byte"

	spanTurn = "turn"

	metricToolCalls = "drover.tool.calls"
)

// Buckets that the conventions advise.
var (
	tokenBuckets    = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	durationBuckets = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
)
