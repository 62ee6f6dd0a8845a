// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

var errTrailing = errors.New("more than one document")

// A rewriter gives the text that is to stand in place of another, which may be JSON.
type rewriter func(text string, isJSON bool) string

// rewriteAnswer applies rewrite to the text of an answer. A model's text comes in pieces, one event
// for each; what rewrite looks for may be spread over many of them, so it sees the pieces of a block
// joined. Chunks in which nothing changes stay as they are.
func rewriteAnswer(contentType string, chunks []chunk, rewrite rewriter) []chunk {
	var events []*answerEvent
	switch {
	case strings.HasPrefix(contentType, "text/event-stream"):
		events = splitSSE(chunks)
	case strings.HasPrefix(contentType, eventStreamType):
		events = splitFrames(chunks)
	default:
		return rewriteWhole(chunks, rewrite)
	}
	if !rewriteEvents(events, rewrite) {
		return chunks
	}
	out := make([]chunk, len(events))
	for i, e := range events {
		out[i] = newChunk(e.ms, e.raw)
	}
	return out
}

// rewriteWhole rewrites an answer that is one document.
func rewriteWhole(chunks []chunk, rewrite rewriter) []chunk {
	var whole []byte
	for _, c := range chunks {
		whole = append(whole, c.bytes()...)
	}
	was := string(whole)
	if now := rewrite(was, json.Valid(whole)); now != was {
		return []chunk{newChunk(chunks[len(chunks)-1].MS, []byte(now))}
	}
	return chunks
}

// An answerEvent is one event of a stream.
type answerEvent struct {
	ms   int64
	raw  []byte
	data []byte                   // its JSON; nil if it has none
	wrap func(data []byte) []byte // encodes other data as this event
}

func (e *answerEvent) set(data []byte) { e.data, e.raw = data, e.wrap(data) }

// A delta is a piece of a block.
type delta struct {
	event *answerEvent
	field string
	text  string
}

// deltaFields are the texts that come in pieces. A signature is none: it is of no use in parts.
var deltaFields = []string{"text", "partial_json", "thinking"}

func rewriteEvents(events []*answerEvent, rewrite rewriter) (changed bool) {
	type block struct {
		index int
		field string
	}
	blocks, order := map[block][]delta{}, []block(nil)
	for _, e := range events {
		if index, d, ok := asDelta(e); ok {
			key := block{index, d.field}
			if blocks[key] == nil {
				order = append(order, key)
			}
			blocks[key] = append(blocks[key], d)
			continue
		}
		changed = rewriteEvent(e, rewrite) || changed
	}
	for _, key := range order {
		changed = rewriteBlock(blocks[key], rewrite) || changed
	}
	return changed
}

func asDelta(e *answerEvent) (index int, d delta, ok bool) {
	var event map[string]json.RawMessage // not a struct, which takes other spellings of a name, too
	var kind string
	var parts map[string]json.RawMessage
	if e.data == nil || json.Unmarshal(e.data, &event) != nil || json.Unmarshal(event["type"], &kind) != nil ||
		kind != "content_block_delta" || json.Unmarshal(event["delta"], &parts) != nil {
		return 0, delta{}, false
	}
	_ = json.Unmarshal(event["index"], &index) // else it is the first
	for _, field := range deltaFields {
		var text string
		if raw, has := parts[field]; has && json.Unmarshal(raw, &text) == nil {
			return index, delta{e, field, text}, true
		}
	}
	return 0, delta{}, false
}

func rewriteEvent(e *answerEvent, rewrite rewriter) bool {
	was := e.data
	if was == nil {
		was = e.raw
	}
	now := rewrite(string(was), e.data != nil)
	if now == string(was) {
		return false
	}
	if e.data == nil {
		e.raw = []byte(now)
	} else {
		e.set([]byte(now))
	}
	return true
}

func rewriteBlock(pieces []delta, rewrite rewriter) bool {
	texts := make([]string, len(pieces))
	for i, p := range pieces {
		texts[i] = p.text
	}
	was := strings.Join(texts, "")
	now := rewrite(was, pieces[0].field == "partial_json")
	if now == was {
		return false
	}
	for i, text := range spread(texts, now) {
		if text != texts[i] {
			pieces[i].set(text)
		}
	}
	return true
}

// set puts another text into the event.
func (d delta) set(text string) {
	doc, _ := decodeJSON(d.event.data) // asDelta has read it
	event, _ := doc.(map[string]any)
	if parts, ok := event["delta"].(map[string]any); ok {
		parts[d.field] = text
	}
	d.event.set([]byte(encodeJSON(doc)))
}

// spread deals a new text out to the pieces of an old one. What lies between the first and the last
// change goes to the piece in which the first change is.
func spread(pieces []string, now string) []string {
	was := strings.Join(pieces, "")
	from := commonPrefix(was, now)
	to := len(was) - commonSuffix(was[from:], now[from:])
	middle := now[from : len(now)-(len(was)-to)]
	out, at := make([]string, len(pieces)), 0
	for i, p := range pieces {
		begin, end := at, at+len(p)
		at = end
		within := func(x int) int { return min(max(x, begin), end) }
		out[i] = was[begin:within(from)]
		if from < end || i == len(pieces)-1 {
			out[i] += middle
			middle = ""
		}
		out[i] += was[within(to):end]
	}
	return out
}

// commonPrefix and commonSuffix count bytes and never cut a character.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	for n > 0 && (n < len(a) && !utf8.RuneStart(a[n]) || n < len(b) && !utf8.RuneStart(b[n])) {
		n--
	}
	return n
}

func commonSuffix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for n > 0 && !utf8.RuneStart(a[len(a)-n]) {
		n--
	}
	return n
}

// splitSSE cuts an answer into its events; each has the time of the chunk in which it ended.
func splitSSE(chunks []chunk) []*answerEvent {
	var events []*answerEvent
	var open []byte
	seen := 0 // of open: no event ends before
	for _, c := range chunks {
		open = append(open, c.bytes()...)
		for {
			end := eventEnd(open, seen)
			if end < 0 {
				seen = max(len(open)-len("\n\r"), 0)
				break
			}
			events = append(events, newSSE(c.MS, open[:end:end]))
			open, seen = open[end:], 0
		}
	}
	if len(open) > 0 { // the answer was cut
		events = append(events, &answerEvent{ms: chunks[len(chunks)-1].MS, raw: open})
	}
	return events
}

// eventEnd is the length of the first event with the empty line after it, or -1. It looks from a place
// on, so that a long event that comes in many pieces is read once.
func eventEnd(b []byte, from int) int {
	for at := from; ; {
		end := bytes.IndexByte(b[at:], '\n')
		if end < 0 {
			return -1
		}
		at += end + 1
		switch {
		case bytes.HasPrefix(b[at:], []byte("\n")):
			return at + 1
		case bytes.HasPrefix(b[at:], []byte("\r\n")):
			return at + 2
		}
	}
}

func newSSE(ms int64, raw []byte) *answerEvent {
	e := &answerEvent{ms: ms, raw: raw}
	var before, data []string
	for line := range strings.Lines(string(raw)) {
		if text, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimRight(strings.TrimPrefix(text, " "), "\r\n"))
		} else if strings.TrimRight(line, "\r\n") != "" {
			before = append(before, line)
		}
	}
	if joined := strings.Join(data, "\n"); json.Valid([]byte(joined)) {
		e.data = []byte(joined)
	}
	e.wrap = func(data []byte) []byte {
		return []byte(strings.Join(before, "") + "data: " + string(data) + "\n\n")
	}
	return e
}
