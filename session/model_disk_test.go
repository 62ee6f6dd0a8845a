// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"errors"
	"iter"
	"sync/atomic"

	"github.com/drover-agents/drover/session"
)

// A disk is a store that can be opened again after Close, and can be full.
type disk struct {
	*session.MemoryStore
	full   bool
	forget bool // has no checkpoint
	shut   atomic.Bool
}

func newDisk() *disk { return &disk{MemoryStore: session.NewMemoryStore()} }

var errFull = errors.New("the disk is full")

func (d *disk) Append(records []session.Record) error {
	if d.full {
		return errFull
	}
	return d.MemoryStore.Append(records)
}

func (d *disk) Checkpoint() (session.Checkpoint, error) {
	if d.forget {
		return session.Checkpoint{}, nil
	}
	return d.MemoryStore.Checkpoint()
}

// Head is what an Open begins with.
func (d *disk) Head() (session.Head, error) {
	d.shut.Store(false)
	return d.MemoryStore.Head()
}

func (d *disk) Records(after int64) iter.Seq2[session.Record, error] {
	if d.shut.Load() {
		return func(yield func(session.Record, error) bool) { yield(session.Record{}, session.ErrClosed) }
	}
	return d.MemoryStore.Records(after)
}

func (d *disk) Close() error {
	d.shut.Store(true)
	return nil
}
