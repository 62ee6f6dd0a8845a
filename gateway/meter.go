// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"mime"
)

// A meter reads an answer beside its reader, in whatever pieces it comes, and keeps what the model
// reported so far. It never fails: what it cannot read counts as nothing, which [reading.metered]
// shows.
type meter interface {
	// feed reads p and returns the length of the longest beginning of p after which an answer may be
	// cut: up to the end of an event, so that what is said afterwards is understood. It is -1 if there
	// is no such place in p.
	feed(p []byte) (boundary int)
	// close says that nothing more comes.
	close()
	// read returns what was reported.
	read() *reading
}

// A reading is what an answer has told about itself.
type reading struct {
	model      string
	stopReason string
	errorType  string
	tokens     Tokens
	written    int64 // to the cache, for whatever time
	deltas     int64 // an estimate of the output tokens in the pieces that came
	metered    bool  // there was a usage
	finished   bool  // the model has reported its end; only farewells follow
}

// newMeter chooses by the type of the answer's content.
func newMeter(contentType string) meter {
	kind, _, _ := mime.ParseMediaType(contentType)
	switch kind {
	case "text/event-stream":
		return new(sseMeter)
	case eventStreamType:
		return new(frameMeter)
	default:
		return new(jsonMeter)
	}
}

// wireUsage is the usage of the Messages API. Figures are cumulative: later ones replace earlier
// ones. They are floating point only so that no number, however odd, spoils the others.
type wireUsage struct {
	Input      *float64 `json:"input_tokens"`
	CacheRead  *float64 `json:"cache_read_input_tokens"`
	CacheWrite *float64 `json:"cache_creation_input_tokens"`
	Lifetimes  *struct {
		FiveMinutes float64 `json:"ephemeral_5m_input_tokens"`
		Hour        float64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Output  *float64 `json:"output_tokens"`
	Details *struct {
		Thinking float64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	Server *struct {
		WebSearches float64 `json:"web_search_requests"`
	} `json:"server_tool_use"`
	// Iterations are the parts of a call of which the API made several. The figures above can lack some of
	// them, such as a compaction.
	Iterations []wireUsage `json:"iterations"`
}

// wireMessage is a message, whole or as it begins.
type wireMessage struct {
	Model      string     `json:"model"`
	StopReason string     `json:"stop_reason"`
	Usage      *wireUsage `json:"usage"`
}

// wireEvent is an event of a stream, or an answer that was not streamed, which has the fields of a
// message itself.
type wireEvent struct {
	Type    string      `json:"type"`
	Message wireMessage `json:"message"`
	Delta   struct {
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Error struct {
		Type string `json:"type"`
	} `json:"error"`
	Usage *wireUsage `json:"usage"`
}

// event takes one event of a stream.
func (r *reading) event(data []byte) {
	if bytes.Contains(data, deltaWord) {
		r.deltas += max(1, tokensIn(len(data)-deltaEnvelope, outputBytes))
	}
	if !interesting(data) {
		return
	}
	var e wireEvent
	if !decode(data, &e) {
		return
	}
	switch e.Type {
	case "message_start":
		r.message(e.Message)
	case "message_delta":
		r.usage(e.Usage)
		if e.Delta.StopReason != "" {
			r.stopReason, r.finished = clip(e.Delta.StopReason), true
		}
	case "message_stop":
		r.finished = true
	case "error":
		r.errorType, r.finished = clip(e.Error.Type), true
	}
}

// decode reads JSON. A value of another type than expected, or a number beyond all numbers, counts as
// nothing and spoils no other.
func decode(data []byte, to any) bool {
	err := json.Unmarshal(data, to)
	_, odd := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || odd
}

var messageWord, errorWord, deltaWord = []byte(`"message_`), []byte(`"error"`), []byte(`"content_block_delta"`)

// interesting is a quick look that spares reading most of a stream.
func interesting(data []byte) bool {
	return bytes.Contains(data, messageWord) || bytes.Contains(data, errorWord)
}

func (r *reading) message(m wireMessage) {
	if m.Model != "" {
		r.model = CanonicalModel(clip(m.Model))
	}
	if m.StopReason != "" {
		r.stopReason = clip(m.StopReason)
	}
	r.usage(m.Usage)
}

// usage takes figures over those before. None becomes less: what was spent does not come back.
func (r *reading) usage(u *wireUsage) {
	if u == nil {
		return
	}
	r.metered = true
	t := &r.tokens
	raise(&t.Input, u.Input)
	raise(&t.CacheRead, u.CacheRead)
	raise(&t.Output, u.Output)
	raise(&r.written, u.CacheWrite)
	if u.Lifetimes != nil {
		raise(&t.CacheWrite1h, &u.Lifetimes.Hour)
		raise(&r.written, new(u.Lifetimes.FiveMinutes+float64(t.CacheWrite1h)))
	}
	r.written = max(r.written, t.CacheWrite1h)
	t.CacheWrite5m = r.written - t.CacheWrite1h
	if u.Details != nil {
		raise(&t.Thinking, &u.Details.Thinking)
	}
	if u.Server != nil {
		raise(&t.WebSearches, &u.Server.WebSearches)
	}
	r.iterations(u.Iterations)
}

// iterations counts the parts of a call together.
func (r *reading) iterations(parts []wireUsage) {
	var sum Tokens
	for i := range parts {
		var part reading
		parts[i].Iterations = nil // a part has none
		part.usage(&parts[i])
		sum = sum.plus(part.tokens)
	}
	t := &r.tokens
	raise(&t.Input, new(float64(sum.Input)))
	raise(&t.CacheRead, new(float64(sum.CacheRead)))
	raise(&t.CacheWrite5m, new(float64(sum.CacheWrite5m)))
	raise(&t.CacheWrite1h, new(float64(sum.CacheWrite1h)))
	raise(&t.Output, new(float64(sum.Output)))
	r.written = max(r.written, t.CacheWrite5m+t.CacheWrite1h)
}

// maxTokens is more than any answer has, and little enough to be priced and added up.
const maxTokens = 1e9

func raise(to *int64, figure *float64) {
	if figure != nil && *figure > float64(*to) { // which no NaN is
		*to = int64(min(*figure, maxTokens))
	}
}

// maxName is how much is kept of a name that others have chosen.
const maxName = 128

func clip(name string) string {
	if len(name) > maxName {
		return name[:maxName]
	}
	return name
}

// maxKept bounds what a meter keeps of an answer to understand it.
const maxKept = 64 << 20

// A jsonMeter reads an answer that was not streamed.
type jsonMeter struct {
	reading
	kept []byte
	lost bool
}

func (m *jsonMeter) feed(p []byte) int {
	if m.lost = m.lost || len(m.kept)+len(p) > maxKept; !m.lost {
		m.kept = append(m.kept, p...)
	}
	return -1
}

func (m *jsonMeter) close() {
	var answer struct {
		wireMessage
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	if m.lost || !decode(m.kept, &answer) {
		return
	}
	m.message(answer.wireMessage)
	m.errorType, m.finished = clip(answer.Error.Type), true
}

func (m *jsonMeter) read() *reading { return &m.reading }
