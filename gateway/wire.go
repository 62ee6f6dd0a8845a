// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"crypto/subtle"
	"errors"
	"mime"
	"net/http"
	"regexp"
)

// A Wire is an API of models as a value: what may be asked, how requests and answers are read, what errors look
// like, what differs between runs and what tokens cost. All else in this package is the same for every wire. The
// agent speaks the same wire with the gateway as the gateway with its upstream: the gateway translates nothing.
//
// [WireAnthropic] and [WireBedrock] come with this package. Functions are called from any goroutine.
type Wire struct {
	// Name is the name in recordings. It must not change.
	Name string
	// Provider is who runs the models, as OpenTelemetry names it: anthropic, aws.bedrock. Empty means Name.
	Provider string

	// Authorize finds the token of a request, checks it with same, and returns the escaped path without the token. A header
	// with the token must be named like a credential (authorization, api-key and so on): those do not reach the upstream.
	Authorize func(req *http.Request, same func(token string) bool) (path string, ok bool)
	// Route finds what is asked for. The gateway refuses what it does not know.
	Route func(method, path string) (Route, bool)
	// Hello answers a request that needs no token, because the answer has no content. A nil Hello and a
	// nil Reply mean that the wire has no such request.
	Hello func(method, path string) *Reply
	// AgentHeader is where a request names the subagent that it is for. Empty means nowhere.
	AgentHeader string
	// ReadRequest reads a request, unless it is a GET that costs nothing. An error refuses it.
	ReadRequest func(header http.Header, body []byte) (Request, error)
	// Input is what so many tokens of a request may be, at the highest price that they may have. Nil means plain input.
	Input func(body []byte, tokens int64) Tokens

	// Stream is how a streamed answer is read. Nil means that none is streamed.
	Stream *Stream
	// ReadAnswer reads an answer that is not streamed. An answer that it cannot read is not Metered.
	ReadAnswer func(r *Reading, body []byte)

	// Error is the answer of the gateway with an error, which the status names.
	Error func(status int, message string) Reply
	// ErrorName is what the API calls an error with a status.
	ErrorName func(status int) string
	// Overloaded is the API's own status, beside 429, for overload. Zero means that it has none.
	Overloaded int
	// RetryHeader is a header of an answer in which "false" forbids to repeat the request. Empty means no such header.
	RetryHeader string

	// WarmUpAnswer is an almost empty answer; see [Run.WarmUp]. Nil means that it is not possible.
	WarmUpAnswer func(route Route, streamed bool) Reply
	// Replay describes how equal requests of two runs differ.
	Replay Variations

	// CanonicalModel is the one name for a model that has several. Nil means that none has.
	CanonicalModel func(id string) string
	// Prices is the table, by canonical names, for gateways without [Options.Prices]. Nil means that no model has a price.
	Prices func() *Prices
}

// A Route is what an allowed request asks for.
type Route struct {
	// Operation is the name in [ModelCall].
	Operation string
	// Path is the escaped path for the upstream.
	Path string
	// Model is the model, where the path names it.
	Model string
	// Streams means that the path asks for a stream.
	Streams bool
	// Metered means that the operation has a cost.
	Metered bool
}

// A Request is what the headers and the body of a request contain.
type Request struct {
	// Ask has the model as the request spells it, or "" where the path names it. Agent is not set.
	Ask
	// Stream means that the answer is to be streamed.
	Stream bool
	// Result is the id of a tool call whose result the request brings and the model has not answered yet.
	Result string
	// Fallbacks are models that may answer instead of the requested one. An empty name is one that is not known.
	Fallbacks []string
	// Surcharges name what changes the price of the call in a way that [Prices] does not cover.
	Surcharges []string
	// Remote is what the API would reach for.
	Remote []RemoteUse
}

// A Reply is an answer that the gateway gives itself.
type Reply struct {
	ContentType string
	Body        []byte
}

func (r Reply) write(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", r.ContentType)
	w.WriteHeader(status)
	_, _ = w.Write(r.Body) // an agent that has gone needs no answer
}

// A Stream is how streamed answers of a wire are read. [ServerSentEvents] makes one.
type Stream struct {
	// ContentType is the media type by which such an answer is known.
	ContentType string
	// NewMeter makes the meter of one answer.
	NewMeter func() Meter
	// ErrorEvent is an event that ends an answer with an error, which the status names.
	ErrorEvent func(status int, message string) []byte
	// EndEvent follows a part of an event, so that the error is understood. Empty means that such an answer breaks off.
	EndEvent string

	// Cut is the length of the first event of a recorded answer, or -1 if it has not ended. In the first seen
	// bytes it has not.
	Cut func(answer []byte, seen int) int
	// Open is the JSON in an event, and a function that makes an event of other JSON. It is nil for an event that has none.
	Open func(event []byte) (data []byte, wrap func(data []byte) []byte)
	// Piece recognises an event that carries a part of a text, by its JSON. Nil means that texts come whole.
	Piece func(data []byte) (Piece, bool)
}

// A Piece is a part of a text that comes in several events.
type Piece struct {
	// Of identifies the text that the part belongs to.
	Of string
	// Text is the part, and JSON means that the whole text is JSON.
	Text string
	JSON bool
	// With is the event's JSON with another part instead of this one.
	With func(text string) []byte
}

// Variations are what is new in each run, so that replaying ignores it. Texts are those in the JSON of requests.
type Variations struct {
	// RequestHeaders and ResponseHeaders are recorded beside those of every HTTP API. None may contain a credential.
	RequestHeaders, ResponseHeaders []string
	// Tidy removes from the body of a request what differs by its position, such as an order that depends on time,
	// and returns the id of the session. Nil means that the body stays.
	Tidy func(body any, headers map[string]string) (session string)
	// IDs find ids that the agent made up: what the first group matches.
	IDs []Pattern
	// Texts find text of an agent about the time and the machine; Replace is written instead.
	Texts []Pattern
	// Renamed are beginnings of names that agents used in earlier versions, with those that they use now.
	Renamed map[string]string
}

// A Pattern is an expression that is compiled when a text contains Hint, which is in every match.
type Pattern struct {
	Hint    string
	Regexp  func() *regexp.Regexp
	Replace string
}

// validate names the first thing without which a run cannot be.
func (w *Wire) validate() error {
	switch {
	case w == nil:
		return errors.New("it is nil")
	case w.Name == "":
		return errors.New("it has no Name")
	case w.Authorize == nil || w.Route == nil || w.ReadRequest == nil:
		return errors.New("one of Authorize, Route and ReadRequest is missing")
	case w.ReadAnswer == nil || w.Error == nil || w.ErrorName == nil:
		return errors.New("ReadAnswer, Error or ErrorName is missing")
	}
	if s := w.Stream; s != nil && (s.ContentType == "" || s.NewMeter == nil || s.ErrorEvent == nil || s.Cut == nil || s.Open == nil) {
		return errors.New("ContentType, NewMeter, ErrorEvent, Cut or Open of its Stream is missing")
	}
	return nil
}

// newMeter is the meter of an answer, and its Stream if it is one. The wire decides that, never the content of the answer.
func (w *Wire) newMeter(contentType string) (*Stream, Meter) {
	if s := w.streamOf(contentType); s != nil {
		return s, s.NewMeter()
	}
	return nil, &wholeMeter{read: w.ReadAnswer}
}

func (w *Wire) streamOf(contentType string) *Stream {
	if w.Stream != nil {
		if kind, _, _ := mime.ParseMediaType(contentType); kind == w.Stream.ContentType {
			return w.Stream
		}
	}
	return nil
}

func (w *Wire) canonical(model string) string {
	if w.CanonicalModel == nil {
		return model
	}
	return w.CanonicalModel(model)
}

// writeError answers with an error, after which the agent must not retry.
func (w *Wire) writeError(to http.ResponseWriter, status int, message string) {
	w.forbidRetry(to.Header())
	w.Error(status, message).write(to, status)
}

func (w *Wire) forbidRetry(h http.Header) {
	if w.RetryHeader != "" {
		h.Set(w.RetryHeader, "false")
	}
}

func sameToken(got, want string) bool {
	return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1
}
