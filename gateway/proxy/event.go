// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/internal/safetext"
)

// A Protocol is how a client asked.
type Protocol string

// The protocols.
const (
	ProtocolConnect Protocol = "connect" // HTTP CONNECT
	ProtocolHTTP    Protocol = "http"    // HTTP with an absolute address in the request line
	ProtocolSOCKS4  Protocol = "socks4"  // SOCKS4 and SOCKS4a
	ProtocolSOCKS5  Protocol = "socks5"
)

// A Verdict is what became of an attempt.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "allowed"
	Denied  Verdict = "denied" // by the policy, by a limit, or because it was not understood
	Failed  Verdict = "failed" // permitted, but the host could not be found, reached or understood
)

// A Connection is the payload of kind [gateway.KindConnection]: one attempt of a tool to reach
// something. One that is denied or fails is told at once, one that is allowed when it has ended. Of
// plain HTTP each request is an attempt. What is not even a request of a known protocol is not told.
type Connection struct {
	Protocol Protocol `json:"protocol,omitzero"`
	// Host is in its one spelling; of a host that was not understood it is what the client wrote. It
	// is printable and has at most 255 bytes. It is empty, and Port zero, where the client named none.
	Host    string  `json:"host"`
	Port    int     `json:"port,omitzero"`
	Verdict Verdict `json:"verdict"`
	// Reason says why an attempt was denied or failed, or what ended an allowed one before its time.
	Reason string `json:"reason,omitzero"`
	// Address is what was dialled, or the address that Host led to and that was denied.
	Address string `json:"address,omitzero"`
	// BytesUp and BytesDown are what was sent to the host and what came back.
	BytesUp   int64 `json:"bytesUp,omitzero"`
	BytesDown int64 `json:"bytesDown,omitzero"`
	// Duration is rounded to milliseconds on the wire.
	Duration time.Duration `json:"-"`
	// Missed is how many attempts before this one nobody was told of, since Options.Emit was slower
	// than the attempts came, or since there were thousands that led nowhere. An event without a host and
	// a protocol is told for the last of them when the proxy is closed.
	Missed int `json:"missed,omitzero"`
}

// EventKind implements [event.Payload].
func (Connection) EventKind() event.Kind { return gateway.KindConnection }

type connectionFields Connection

type connectionWire struct {
	connectionFields
	DurationMS int64 `json:"durationMs"`
}

// MarshalJSON writes the duration in milliseconds.
func (c Connection) MarshalJSON() ([]byte, error) {
	return json.Marshal(connectionWire{connectionFields(c), c.Duration.Round(time.Millisecond).Milliseconds()})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Connection) UnmarshalJSON(data []byte) error {
	var w connectionWire
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*c = Connection(w.connectionFields)
	c.Duration = time.Duration(w.DurationMS) * time.Millisecond
	return nil
}

// The longest host and reason of an event.
const (
	maxEventHost   = 255
	maxEventReason = 1000
)

// printable makes text of strangers safe to show and to keep, in at most limit bytes.
func printable(text string, limit int) string {
	// An escape is longer than what it stands for: cutting first only saves work.
	text = safetext.Line(text[:min(len(text), limit)])
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return strings.TrimSpace(text[:limit])
}

const (
	// maxQueued bounds the events that wait for a slow listener.
	maxQueued = 4096
	// maxFruitless bounds the events about attempts that led nowhere, which cost a client nothing: so
	// many at once, and fruitlessRate more in each second. Without it, stored events would fill a disk.
	maxFruitless  = 4096
	fruitlessRate = 20
)

// A teller emits events, one at a time and in order, so that a slow listener never holds up a
// connection.
type teller struct {
	emit func(event.Payload)
	wake chan struct{}
	done chan struct{}

	mu     sync.Mutex
	queue  []Connection
	missed int
	closed bool
	told   float64   // fruitless attempts, less what time has forgiven
	last   time.Time // when told was counted
}

// newTeller starts a teller; its close must be called.
func newTeller(emit func(event.Payload)) *teller {
	t := &teller{emit: emit, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if emit == nil {
		close(t.done)
		return t
	}
	go t.run()
	return t
}

// tell never blocks.
func (t *teller) tell(c Connection) {
	if t.emit == nil {
		return
	}
	t.mu.Lock()
	if len(t.queue) >= maxQueued || c.Verdict != Allowed && !t.affordLocked() {
		t.missed++
	} else {
		c.Missed, t.missed = t.missed, 0
		t.queue = append(t.queue, c)
	}
	t.mu.Unlock()
	t.signal()
}

// affordLocked reports whether one more fruitless attempt may be told, and counts it then.
func (t *teller) affordLocked() bool {
	now := time.Now()
	t.told = max(0, t.told-fruitlessRate*now.Sub(t.last).Seconds())
	t.last = now
	if t.told+1 > maxFruitless {
		return false
	}
	t.told++
	return true
}

func (t *teller) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *teller) run() {
	defer close(t.done)
	for range t.wake {
		waiting, closed := t.take()
		for _, c := range waiting {
			t.emit(c)
		}
		if closed {
			return
		}
	}
}

func (t *teller) take() ([]Connection, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := t.queue
	t.queue = nil
	return waiting, t.closed
}

// close waits until everything has been told. Nothing may be told afterwards.
func (t *teller) close() {
	t.mu.Lock()
	t.closed = true
	if t.missed > 0 {
		t.queue = append(t.queue, Connection{Verdict: Denied, Reason: "there were too many attempts to tell of each", Missed: t.missed})
	}
	t.mu.Unlock()
	t.signal()
	<-t.done
}
