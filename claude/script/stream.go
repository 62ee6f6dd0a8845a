// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"iter"
	"net/http"
)

type event struct {
	name  string
	data  any
	delta bool // content, before which DeltaDelay is spent
}

type wireStart struct {
	Type    string      `json:"type"`
	Message wireMessage `json:"message"`
}

type wireBlockStart struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Block any    `json:"content_block"`
}

type wireBlockDelta struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
	Delta any    `json:"delta"`
}

type wireBlockStop struct {
	Type  string `json:"type"`
	Index int    `json:"index"`
}

type wireMessageDelta struct {
	Type  string        `json:"type"`
	Delta wireStopDelta `json:"delta"`
	Usage wireUsage     `json:"usage"`
}

type wireStopDelta struct {
	StopReason   string  `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
}

type wireBare struct {
	Type string `json:"type"`
}

// events are the whole stream without pings.
func (a *answer) events() []event {
	out := []event{{"message_start", wireStart{"message_start", a.openingMessage()}, false}}
	for i, b := range a.turn.Content {
		for e := range blockEvents(i, b, a.turn.ChunkSize) {
			out = append(out, e)
		}
	}
	u := a.turn.usage()
	end := wireMessageDelta{
		"message_delta",
		wireStopDelta{a.turn.stopReason(), a.stopSequence()},
		wireUsage{u.Input, u.CacheCreation, u.CacheRead, u.Output},
	}
	return append(out, event{"message_delta", end, false}, event{"message_stop", wireBare{"message_stop"}, false})
}

func blockEvents(i int, b Block, size int) iter.Seq[event] {
	return func(yield func(event) bool) {
		if !yield(event{"content_block_start", wireBlockStart{"content_block_start", i, b.opening()}, false}) {
			return
		}
		for _, d := range b.deltas(size) {
			if !yield(event{"content_block_delta", wireBlockDelta{"content_block_delta", i, d}, true}) {
				return
			}
		}
		yield(event{"content_block_stop", wireBlockStop{"content_block_stop", i}, false})
	}
}

// stream sends the message as server-sent events, up to the turn's fault if it has one.
func (a *answer) stream() {
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	a.w.WriteHeader(http.StatusOK)
	a.flush()
	events := a.events()
	if a.turn.Fault != nil {
		events = events[:a.turn.Fault.cut(len(events))]
	}
	for i, e := range events {
		if e.delta && !pause(a.ctx, a.turn.DeltaDelay) {
			abort()
		}
		a.sendEvent(e.name, mustJSON(e.data))
		if i == 0 {
			a.sendEvent("ping", []byte(`{"type":"ping"}`))
		}
	}
	if a.turn.Fault != nil {
		a.breakStream()
	}
}

func (a *answer) breakStream() {
	switch a.turn.Fault.Kind {
	case FaultMalformed:
		a.sendEvent("content_block_delta", []byte(`{"type":"content_block_delta","index":0,"delta":{"ty`))
	case FaultErrorEvent:
		a.sendEvent("error", mustJSON(a.turn.Fault.apiError().wire("")))
	case FaultReset, FaultHang:
		a.breakOff()
	}
}

// sendEvent writes and flushes one event; a client that has gone ends the answer.
func (a *answer) sendEvent(name string, data []byte) {
	var buf bytes.Buffer
	buf.Grow(len(name) + len(data) + 16)
	buf.WriteString("event: ")
	buf.WriteString(name)
	buf.WriteString("\ndata: ")
	buf.Write(data)
	buf.WriteString("\n\n")
	if _, err := a.w.Write(buf.Bytes()); err != nil {
		abort()
	}
	a.flush()
}
