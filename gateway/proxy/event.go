// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"encoding/json"
	"fmt"
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

// A Verdict is the outcome of an attempt.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "allowed"
	Denied  Verdict = "denied" // by the policy, by a limit, or because it was not understood
	Failed  Verdict = "failed" // permitted, but the host could not be found, reached or understood
)

// A Connection is the payload of kind [gateway.KindConnection]: one attempt of a tool to reach
// something. A denied or failed attempt is emitted at once, an allowed one when it has ended. In
// plain HTTP each request is an attempt. Bytes of an unknown protocol emit no event.
type Connection struct {
	Protocol Protocol `json:"protocol,omitzero"`
	// Host is in its one spelling; of a host that was not understood it is what the client wrote. It
	// is printable and has at most 255 bytes. It is empty, and Port zero, where the client named none.
	Host    string  `json:"host"`
	Port    int     `json:"port,omitzero"`
	Verdict Verdict `json:"verdict"`
	// Reason is why an attempt was denied or failed, or ended early.
	Reason string `json:"reason,omitzero"`
	// Address is what was dialled, or the address that Host led to and that was denied.
	Address string `json:"address,omitzero"`
	// BytesUp and BytesDown are what was sent to the host and what came back.
	BytesUp   int64 `json:"bytesUp,omitzero"`
	BytesDown int64 `json:"bytesDown,omitzero"`
	// Duration is rounded to milliseconds on the wire.
	Duration time.Duration `json:"-"`
	// Missed is how many attempts before this one have no event, because Options.Emit was too slow or there were thousands
	// of fruitless ones. When the proxy is closed, an event without a host and a protocol reports the last of them.
	Missed int `json:"missed,omitzero"`
}

// EventKind implements [event.Payload].
func (Connection) EventKind() event.Kind { return gateway.KindConnection }

// String is the host, the verdict, and the reason: "example.com:443 denied: it is not permitted".
func (c Connection) String() string {
	text := string(c.Verdict)
	if c.Host != "" {
		text = fmt.Sprintf("%s:%d %s", c.Host, c.Port, c.Verdict)
	}
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}

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
	// An escape is longer than its character: cutting first only saves work.
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
	// maxQueued bounds the events that wait for a slow Emit.
	maxQueued = 4096
	// maxFruitless bounds the events about attempts that led nowhere, which cost a client nothing: so
	// many at once, and fruitlessRate more in each second. Without it, stored events would fill a disk.
	maxFruitless  = 4096
	fruitlessRate = 20
)

// A reporter emits events, one at a time and in order, so that a slow Emit never delays a connection.
type reporter struct {
	emit func(event.Payload)
	wake chan struct{}
	done chan struct{}

	mu     sync.Mutex
	queue  []Connection
	missed int
	closed bool
	spent  float64   // fruitless attempts, less what time has forgiven
	last   time.Time // when spent was updated
}

// newReporter starts a reporter; its close must be called.
func newReporter(emit func(event.Payload)) *reporter {
	t := &reporter{emit: emit, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if emit == nil {
		close(t.done)
		return t
	}
	go t.run()
	return t
}

// report never blocks.
func (t *reporter) report(c Connection) {
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

// affordLocked reports whether one more fruitless attempt may be reported, and counts it then.
func (t *reporter) affordLocked() bool {
	now := time.Now()
	t.spent = max(0, t.spent-fruitlessRate*now.Sub(t.last).Seconds())
	t.last = now
	if t.spent+1 > maxFruitless {
		return false
	}
	t.spent++
	return true
}

func (t *reporter) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

func (t *reporter) run() {
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

func (t *reporter) take() ([]Connection, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	waiting := t.queue
	t.queue = nil
	return waiting, t.closed
}

// close waits until every event is emitted. It must be the last call.
func (t *reporter) close() {
	t.mu.Lock()
	t.closed = true
	if t.missed > 0 {
		t.queue = append(t.queue, Connection{Verdict: Denied, Reason: "there were too many attempts to report each", Missed: t.missed})
	}
	t.mu.Unlock()
	t.signal()
	<-t.done
}
