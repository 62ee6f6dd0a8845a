// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/drover-agents/drover/guard"
)

// An operation is something that an agent may ask of the model.
type operation string

const (
	opMessages    operation = "messages"
	opCountTokens operation = "count_tokens"
	opProfiles    operation = "inference_profiles"
	opHello       operation = "hello" // answered here
)

// metered reports whether the operation costs anything.
func (o operation) metered() bool { return o == opMessages }

// A target is what an allowed request asks for.
type target struct {
	op    operation
	path  string // escaped, for the upstream
	model string // where the path names it
	// streams says that the path asks for a stream.
	streams bool
}

// A wire knows how a dialect is spoken.
type wire struct {
	// authorize compares the token, and returns the escaped path that was asked for.
	authorize func(req *http.Request, token string) (path string, ok bool)
	// route finds what is asked for. Whatever it does not know is forbidden.
	route func(method, path string) (target, bool)
	// errorBody is the body of an error, and errorEvent one in the middle of a stream.
	errorBody, errorEvent func(kind, message string) []byte
}

var wires = map[Wire]*wire{
	WireAnthropic: {headerToken, anthropicRoute, anthropicError, anthropicErrorEvent},
	WireBedrock:   {pathToken, bedrockRoute, bedrockError, bedrockErrorEvent},
}

func sameToken(got, want string) bool {
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}

// headerToken finds the token where clients put a key.
func headerToken(req *http.Request, token string) (string, bool) {
	bearer, _ := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	key := sameToken(req.Header.Get("X-Api-Key"), token)
	return req.URL.EscapedPath(), sameToken(bearer, token) || key
}

// pathToken finds the token in the first segment of the path: the CLI sends no key to Bedrock.
func pathToken(req *http.Request, token string) (string, bool) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(req.URL.EscapedPath(), "/"), "/")
	got, err := url.PathUnescape(first)
	return "/" + rest, err == nil && sameToken(got, token)
}

func anthropicRoute(method, path string) (target, bool) {
	switch {
	case method == http.MethodPost && path == "/v1/messages":
		return target{op: opMessages, path: path}, true
	case method == http.MethodPost && path == "/v1/messages/count_tokens":
		return target{op: opCountTokens, path: path}, true
	}
	return target{}, false
}

func bedrockRoute(method, path string) (target, bool) {
	if method == http.MethodGet && path == "/inference-profiles" {
		return target{op: opProfiles, path: path}, true
	}
	parts := strings.Split(path, "/")
	if method != http.MethodPost || len(parts) != 4 || parts[1] != "model" ||
		(parts[3] != "invoke" && parts[3] != "invoke-with-response-stream") {
		return target{}, false
	}
	model, err := url.PathUnescape(parts[2])
	if err != nil || model == "" || strings.Trim(model, ".") == "" {
		return target{}, false
	}
	return target{opMessages, path, model, parts[3] == "invoke-with-response-stream"}, true
}

// isHello recognises the question of the CLI whether anybody is there. It needs no token: the answer
// says nothing.
func isHello(req *http.Request) bool {
	return req.URL.Path == "/api/hello" && (req.Method == http.MethodGet || req.Method == http.MethodHead)
}

// affordable reports whether the cost of a model can be counted, where somebody limits it: a model without
// a price would cost nothing, and whoever talks to the gateway may choose the model.
func (r *Run) affordable(model string) bool {
	if _, priced := r.gateway.prices.Of(model); priced {
		return true
	}
	return !slices.ContainsFunc(r.o.Trackers, func(t *guard.Tracker) bool { return t.Budget().MaxCostUSD != 0 })
}

// allowed reports whether a model may be asked for.
func (r *Run) allowed(model string) bool {
	return r.o.Models == nil || slices.ContainsFunc(r.o.Models, func(m string) bool {
		return CanonicalModel(m) == CanonicalModel(model)
	})
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

func errorJSON(kind, message, awsMessage string) []byte {
	body := wireErrorBody{Type: "error", Message: awsMessage}
	body.Error.Type, body.Error.Message = kind, message
	data, err := json.Marshal(body)
	if err != nil {
		panic(err) // strings only
	}
	return data
}

func anthropicError(kind, message string) []byte { return errorJSON(kind, message, "") }

func anthropicErrorEvent(kind, message string) []byte {
	return []byte("event: error\ndata: " + string(errorJSON(kind, message, "")) + "\n\n")
}

func bedrockError(kind, message string) []byte { return errorJSON(kind, message, message) }

// bedrockException is an error of Bedrock that may come in the middle of a stream.
const bedrockException = "modelStreamErrorException"

func bedrockErrorEvent(kind, message string) []byte {
	return exceptionFrame(bedrockException, errorJSON(kind, message, message))
}

// writeError answers with an error of the API.
func writeError(w http.ResponseWriter, as *wire, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Should-Retry", "false")
	w.WriteHeader(status)
	_, _ = w.Write(as.errorBody(kind, message)) // an agent that has gone needs no answer
}
