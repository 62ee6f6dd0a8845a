// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"
	"errors"
	"iter"
	"time"
)

// A Store keeps the log of one session. A session calls Append, SaveCheckpoint and Close from one goroutine at a time;
// Records may be called at any time, by many. [storetest] is the suite that a store must pass.
//
// [storetest]: https://pkg.go.dev/github.com/drover-agents/drover/session/storetest
type Store interface {
	// Head returns what Init was given, or the zero value if the store is new.
	Head() (Head, error)
	// Init begins a new log. It is called once, before the first Append.
	Init(head Head) error
	// Last is the number of the last record, or zero.
	Last() int64
	// Append keeps records, whose numbers follow Last. It keeps all of them or, if it fails, none:
	// after an error Last is what it was, and Append may be called again.
	Append(records []Record) error
	// Records yields the records above a number that are kept at the call, in order. An error is the last pair.
	Records(after int64) iter.Seq2[Record, error]
	// SaveCheckpoint replaces the last checkpoint. It only makes opening faster: a store may forget it, and may do nothing.
	SaveCheckpoint(c Checkpoint) error
	// Checkpoint returns the last checkpoint, or the zero value.
	Checkpoint() (Checkpoint, error)
	// Close releases the store. It may be called more than once.
	Close() error
}

// A Record is an entry as it is kept: a JSON object in one line.
type Record struct {
	Pos  int64
	Data json.RawMessage
}

// A Checkpoint is the state of a session after an entry, as JSON.
type Checkpoint struct {
	Pos  int64
	Data json.RawMessage
}

// A Head identifies a log.
type Head struct {
	// Version is the version of the encoding; see [EncodingVersion].
	Version int               `json:"version"`
	ID      string            `json:"id"`
	Parent  string            `json:"parent,omitzero"`
	Tags    map[string]string `json:"tags,omitempty"`
	Created time.Time         `json:"created"`
}

// EncodingVersion is the version of the encoding that this package writes. It reads all versions from 1 up to it.
const EncodingVersion = 1

// Errors of stores, to be wrapped.
var (
	// ErrLocked: another process or session has the store open.
	ErrLocked = errors.New("session: the log is in use")
	// ErrCorrupt: a record in the middle of a log cannot be read.
	ErrCorrupt = errors.New("session: the log is damaged")
	// ErrVersion: the log was written by a newer version of this package.
	ErrVersion = errors.New("session: the log has a newer encoding")
	// ErrClosed: the session or the store is closed.
	ErrClosed = errors.New("session: closed")
)
