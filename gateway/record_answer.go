// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

var errTrailing = errors.New("more than one document")

// A rewriter returns the replacement of a text, which may be JSON.
type rewriter func(text string, isJSON bool) string

// rewriteAnswer applies rewrite to the text of an answer. It joins the pieces of a text, one in each event, because a match
// may be spread over many of them. Chunks in which nothing changes stay as they are.
func rewriteAnswer(w *Wire, contentType string, chunks []chunk, rewrite rewriter) []chunk {
	stream := w.streamOf(contentType)
	if stream == nil {
		return rewriteWhole(chunks, rewrite)
	}
	events := splitAnswer(stream, chunks)
	if !rewriteEvents(stream, events, rewrite) {
		return chunks
	}
	out := make([]chunk, len(events))
	for i, e := range events {
		out[i] = newChunk(e.ms, e.raw)
	}
	return out
}

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

type answerEvent struct {
	ms   int64
	raw  []byte
	data []byte                   // its JSON; nil if it has none
	wrap func(data []byte) []byte // encodes other data as this event
}

func (e *answerEvent) set(data []byte) { e.data, e.raw = data, e.wrap(data) }

type heldPiece struct {
	Piece
	event *answerEvent
}

func rewriteEvents(s *Stream, events []*answerEvent, rewrite rewriter) (changed bool) {
	texts, order := map[string][]heldPiece{}, []string(nil)
	for _, e := range events {
		if s.Piece != nil && e.data != nil {
			if p, ok := s.Piece(e.data); ok {
				if texts[p.Of] == nil {
					order = append(order, p.Of)
				}
				texts[p.Of] = append(texts[p.Of], heldPiece{p, e})
				continue
			}
		}
		changed = rewriteEvent(e, rewrite) || changed
	}
	for _, of := range order {
		changed = rewritePieces(texts[of], rewrite) || changed
	}
	return changed
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

func rewritePieces(pieces []heldPiece, rewrite rewriter) bool {
	texts := make([]string, len(pieces))
	for i, p := range pieces {
		texts[i] = p.Text
	}
	was := strings.Join(texts, "")
	now := rewrite(was, pieces[0].JSON)
	if now == was {
		return false
	}
	for i, text := range spread(texts, now) {
		if text != texts[i] {
			pieces[i].event.set(pieces[i].With(text))
		}
	}
	return true
}

// spread deals a new text out to the pieces of an old one. All from first to last change goes to the first changed piece.
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

// splitAnswer cuts an answer into its events; each has the time of the chunk in which it ended.
func splitAnswer(s *Stream, chunks []chunk) []*answerEvent {
	var events []*answerEvent
	var open []byte
	seen := 0 // of open: no event ends in it
	for _, c := range chunks {
		open = append(open, c.bytes()...)
		for {
			end := s.Cut(open, seen)
			if end <= 0 {
				seen = len(open)
				break
			}
			e := &answerEvent{ms: c.MS, raw: open[:end:end]}
			e.data, e.wrap = s.Open(e.raw)
			events = append(events, e)
			open, seen = open[end:], 0
		}
	}
	if len(open) > 0 { // the answer was cut, or has no events
		events = append(events, &answerEvent{ms: chunks[len(chunks)-1].MS, raw: open})
	}
	return events
}
