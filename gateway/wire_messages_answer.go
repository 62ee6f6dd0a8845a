// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
)

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
	// Iterations are the parts of a call, if several. The figures above can lack some of them, such as a compaction.
	Iterations []wireUsage `json:"iterations"`
}

type wireMessage struct {
	Model      string     `json:"model"`
	StopReason string     `json:"stop_reason"`
	Usage      *wireUsage `json:"usage"`
}

// wireEvent is an event of a stream, or an answer that was not streamed, which has the fields of a message itself.
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

// deltaEnvelope is what surrounds the text in an event of a stream.
const deltaEnvelope = 80

func readMessagesEvent(r *Reading, data []byte) {
	if bytes.Contains(data, deltaWord) {
		r.AddPiece(len(data) - deltaEnvelope)
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
		readMessageHead(r, e.Message)
	case "message_delta":
		readUsage(r, e.Usage)
		if e.Delta.StopReason != "" {
			r.StopReason, r.Finished = e.Delta.StopReason, true
		}
	case "message_stop":
		r.Finished = true
	case "error":
		r.Error, r.Finished = e.Error.Type, true
	}
}

// decode reads JSON. A value of an unexpected type, or a number beyond all numbers, counts as nothing and spoils no other.
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

func readMessage(r *Reading, body []byte) {
	var answer struct {
		wireMessage
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	if !decode(body, &answer) {
		return
	}
	readMessageHead(r, answer.wireMessage)
	r.Error, r.Finished = answer.Error.Type, true
}

func readMessageHead(r *Reading, m wireMessage) {
	r.Model = cmp.Or(m.Model, r.Model)
	r.StopReason = cmp.Or(m.StopReason, r.StopReason)
	readUsage(r, m.Usage)
}

// readUsage takes figures over those before. None becomes less: what was spent does not come back.
func readUsage(r *Reading, u *wireUsage) {
	if u == nil {
		return
	}
	r.Metered = true
	t := &r.Tokens
	written := t.CacheWrite5m + t.CacheWrite1h // to the cache, for whatever time
	raise(&t.Input, u.Input)
	raise(&t.CacheRead, u.CacheRead)
	raise(&t.Output, u.Output)
	raise(&written, u.CacheWrite)
	if u.Lifetimes != nil {
		raise(&t.CacheWrite1h, &u.Lifetimes.Hour)
		raise(&written, new(u.Lifetimes.FiveMinutes+float64(t.CacheWrite1h)))
	}
	t.CacheWrite5m = max(written, t.CacheWrite1h) - t.CacheWrite1h
	if u.Details != nil {
		raise(&t.Thinking, &u.Details.Thinking)
	}
	if u.Server != nil {
		raise(&t.WebSearches, &u.Server.WebSearches)
	}
	readIterations(t, u.Iterations)
}

// readIterations counts the parts of a call together.
func readIterations(t *Tokens, parts []wireUsage) {
	var sum Tokens
	for i := range parts {
		var part Reading
		parts[i].Iterations = nil // a part has none
		readUsage(&part, &parts[i])
		sum = sum.plus(part.Tokens)
	}
	raise(&t.Input, new(float64(sum.Input)))
	raise(&t.CacheRead, new(float64(sum.CacheRead)))
	raise(&t.CacheWrite5m, new(float64(sum.CacheWrite5m)))
	raise(&t.CacheWrite1h, new(float64(sum.CacheWrite1h)))
	raise(&t.Output, new(float64(sum.Output)))
}

func raise(to *int64, figure *float64) {
	if figure != nil && *figure > float64(*to) { // which no NaN is
		*to = int64(min(*figure, maxTokens))
	}
}

// deltaFields are the texts that come in pieces. A signature is not among them, because parts of it are useless.
var deltaFields = []string{"text", "partial_json", "thinking"}

func messagesPiece(data []byte) (Piece, bool) {
	var event map[string]json.RawMessage // not a struct, which takes other spellings of a name, too
	var kind string
	var parts map[string]json.RawMessage
	if json.Unmarshal(data, &event) != nil || json.Unmarshal(event["type"], &kind) != nil ||
		kind != "content_block_delta" || json.Unmarshal(event["delta"], &parts) != nil {
		return Piece{}, false
	}
	index := 0
	_ = json.Unmarshal(event["index"], &index) // else it is the first
	for _, field := range deltaFields {
		var text string
		if raw, has := parts[field]; has && json.Unmarshal(raw, &text) == nil {
			return Piece{
				Of: strconv.Itoa(index) + " " + field, Text: text, JSON: field == "partial_json",
				With: func(text string) []byte { return deltaWith(data, field, text) },
			}, true
		}
	}
	return Piece{}, false
}

func deltaWith(data []byte, field, text string) []byte {
	doc, _ := decodeJSON(data) // messagesPiece has read it
	event, _ := doc.(map[string]any)
	if parts, ok := event["delta"].(map[string]any); ok {
		parts[field] = text
	}
	return []byte(encodeJSON(doc))
}
