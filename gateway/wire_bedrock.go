// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// WireBedrock is the Messages API as Amazon Bedrock wraps it: the two ways to invoke a model, POST /model/{id}/invoke and
// /model/{id}/invoke-with-response-stream, with AWS event streams, and GET /inference-profiles. Do not change it.
var WireBedrock = &Wire{
	Name:        "bedrock",
	Provider:    "aws.bedrock",
	Authorize:   pathToken,
	Route:       bedrockRoute,
	Hello:       messagesHello,
	AgentHeader: WireAnthropic.AgentHeader,
	ReadRequest: readMessagesRequest,
	Input:       messagesInput,
	Stream: &Stream{
		ContentType: eventStreamType,
		NewMeter:    func() Meter { return new(frameMeter) },
		ErrorEvent:  bedrockErrorEvent,
		Cut:         frameEnd,
		Open:        openFrame,
		Piece:       messagesPiece,
	},
	ReadAnswer:     readMessage,
	Error:          bedrockError,
	ErrorName:      messagesErrorName,
	Overloaded:     WireAnthropic.Overloaded,
	RetryHeader:    WireAnthropic.RetryHeader,
	Replay:         bedrockVariations,
	CanonicalModel: CanonicalModel,
	Prices:         BuiltinPrices,
}

const opProfiles = "inference_profiles"

// pathToken finds the token in the first segment of the path: the CLI sends no key to Bedrock.
func pathToken(req *http.Request, same func(string) bool) (string, bool) {
	first, rest, _ := strings.Cut(strings.TrimPrefix(req.URL.EscapedPath(), "/"), "/")
	got, err := url.PathUnescape(first)
	return "/" + rest, err == nil && same(got)
}

func bedrockRoute(method, path string) (Route, bool) {
	if method == http.MethodGet && path == "/inference-profiles" {
		return Route{Operation: opProfiles, Path: path}, true
	}
	parts := strings.Split(path, "/")
	if method != http.MethodPost || len(parts) != 4 || parts[1] != "model" ||
		(parts[3] != "invoke" && parts[3] != "invoke-with-response-stream") {
		return Route{}, false
	}
	model, err := url.PathUnescape(parts[2])
	if err != nil || model == "" || strings.Trim(model, ".") == "" {
		return Route{}, false
	}
	return Route{Operation: opMessages, Path: path, Model: model, Streams: parts[3] == "invoke-with-response-stream", Metered: true}, true
}

func bedrockSurcharges(header http.Header) (found []string) {
	for name, values := range header {
		if len(name) < 6 || !strings.EqualFold(name[2:6], "amzn") {
			continue // most are
		}
		folded := fold(name)
		priced := slices.ContainsFunc([]string{"latency", "service-tier", "guardrail"}, func(word string) bool { return strings.Contains(folded, word) })
		if strings.HasPrefix(folded, "x-amzn-bedrock-") && priced && !slices.Contains(plainValues, strings.Join(values, ",")) {
			found = append(found, "the header "+clip(name))
		}
	}
	return found
}

func bedrockError(status int, message string) Reply {
	return Reply{"application/json", errorJSON(status, message, message)}
}

// bedrockException is an error of Bedrock that may come in the middle of a stream.
const bedrockException = "modelStreamErrorException"

func bedrockErrorEvent(status int, message string) []byte {
	return exceptionFrame(bedrockException, errorJSON(status, message, message))
}

var bedrockVariations = func() Variations {
	v := messagesVariations
	v.ResponseHeaders = append(slices.Clone(v.ResponseHeaders), "X-Amzn-Bedrock-Content-Type", "X-Amzn-Errortype", "X-Amzn-Requestid")
	return v
}()
