// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
)

// WireAnthropic is the Messages API of Anthropic, as Claude Code speaks it: POST /v1/messages and
// /v1/messages/count_tokens, server-sent events. GET and HEAD of /api/hello are answered by the gateway. Do not change it.
var WireAnthropic = &Wire{
	Name:           "anthropic",
	Authorize:      headerToken,
	Route:          messagesRoute,
	Hello:          messagesHello,
	AgentHeader:    "X-Claude-Code-Agent-Id",
	ReadRequest:    readMessagesRequest,
	Input:          messagesInput,
	Stream:         ServerSentEvents(readMessagesEvent, messagesPiece, messagesErrorEvent),
	ReadAnswer:     readMessage,
	Error:          messagesError,
	ErrorName:      messagesErrorName,
	Overloaded:     529,
	RetryHeader:    "X-Should-Retry",
	WarmUpAnswer:   messagesWarmUp,
	Replay:         messagesVariations,
	CanonicalModel: CanonicalModel,
	Prices:         BuiltinPrices,
}

const (
	opMessages    = "messages"
	opCountTokens = "count_tokens"
)

// headerToken finds the token where clients put a key.
func headerToken(req *http.Request, same func(string) bool) (string, bool) {
	bearer, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	key := same(req.Header.Get("X-Api-Key"))
	return req.URL.EscapedPath(), same(bearer) || key
}

func messagesRoute(method, path string) (Route, bool) {
	switch {
	case method == http.MethodPost && path == "/v1/messages":
		return Route{Operation: opMessages, Path: path, Metered: true}, true
	case method == http.MethodPost && path == "/v1/messages/count_tokens":
		return Route{Operation: opCountTokens, Path: path}, true
	}
	return Route{}, false
}

// messagesHello answers the check of the CLI whether the API is reachable.
func messagesHello(method, path string) *Reply {
	if path == "/api/hello" && (method == http.MethodGet || method == http.MethodHead) {
		return &Reply{"application/json", []byte(`{"message":"hello"}`)}
	}
	return nil
}

type wireErrorBody struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	// Message is where AWS puts it.
	Message string `json:"message,omitempty"`
}

func errorJSON(status int, message, awsMessage string) []byte {
	body := wireErrorBody{Type: "error", Message: awsMessage}
	body.Error.Type, body.Error.Message = messagesErrorName(status), message
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings only
	}
	return data
}

func messagesError(status int, message string) Reply {
	return Reply{"application/json", errorJSON(status, message, "")}
}

func messagesErrorEvent(status int, message string) []byte {
	return []byte("event: error\ndata: " + string(errorJSON(status, message, "")) + "\n\n")
}

func messagesErrorName(status int) string { return cmp.Or(statusErrors[status], "api_error") }

var statusErrors = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error",
	413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
}

const warmUpMessage = `{"id":"msg_warm_up","type":"message","role":"assistant","model":"warm-up","content":[{"type":"text","text":"."}],` +
	`"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}`

var warmUpEvents = func() string {
	var b strings.Builder
	for _, event := range [][2]string{
		{"message_start", `"message":{"id":"msg_warm_up","type":"message","role":"assistant","model":"warm-up","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0}}`},
		{"content_block_start", `"index":0,"content_block":{"type":"text","text":""}`},
		{"content_block_delta", `"index":0,"delta":{"type":"text_delta","text":"."}`},
		{"content_block_stop", `"index":0`},
		{"message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":0}`},
		{"message_stop", ""},
	} {
		b.WriteString("event: " + event[0] + "\ndata: {\"type\":\"" + event[0] + "\"")
		if event[1] != "" {
			b.WriteString("," + event[1])
		}
		b.WriteString("}\n\n")
	}
	return b.String()
}()

func messagesWarmUp(route Route, streamed bool) Reply {
	switch {
	case route.Operation == opCountTokens:
		return Reply{"application/json", []byte(`{"input_tokens":0}`)}
	case streamed:
		return Reply{"text/event-stream", []byte(warmUpEvents)}
	}
	return Reply{"application/json", []byte(warmUpMessage)}
}
