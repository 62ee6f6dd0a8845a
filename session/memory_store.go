// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync"
)

// A MemoryStore is a [Store] that forgets everything with the process. All methods may be called by several goroutines.
type MemoryStore struct {
	mu         sync.Mutex
	head       Head
	begun      bool
	records    []Record
	checkpoint Checkpoint
	closed     bool
}

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore { return new(MemoryStore) }

// Head implements [Store].
func (s *MemoryStore) Head() (Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	head := s.head
	head.Tags = maps.Clone(head.Tags)
	return head, s.usableLocked()
}

// Init implements [Store].
func (s *MemoryStore) Init(head Head) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return err
	}
	if s.begun {
		return fmt.Errorf("session: the log is begun already, by session %s", s.head.ID)
	}
	head.Tags = maps.Clone(head.Tags)
	s.head, s.begun = head, true
	return nil
}

// Last implements [Store].
func (s *MemoryStore) Last() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.records))
}

// Append implements [Store].
func (s *MemoryStore) Append(records []Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return err
	}
	if !s.begun {
		return errors.New("session: the log is not begun; call Init first")
	}
	if err := checkRecords(int64(len(s.records)), records); err != nil {
		return err
	}
	for _, r := range records {
		s.records = append(s.records, Record{r.Pos, bytes.Clone(r.Data)})
	}
	return nil
}

// Records implements [Store]. The data of a record must not be changed.
func (s *MemoryStore) Records(after int64) iter.Seq2[Record, error] {
	s.mu.Lock()
	records, err := s.records, s.usableLocked()
	s.mu.Unlock()
	return func(yield func(Record, error) bool) {
		if err != nil {
			yield(Record{}, err)
			return
		}
		for _, r := range records[min(max(after, 0), int64(len(records))):] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// SaveCheckpoint implements [Store].
func (s *MemoryStore) SaveCheckpoint(c Checkpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return err
	}
	if last := int64(len(s.records)); c.Pos < 1 || c.Pos > last {
		return fmt.Errorf("session: saving a checkpoint: there is no record %d; the last is %d", c.Pos, last)
	}
	s.checkpoint = Checkpoint{c.Pos, bytes.Clone(c.Data)}
	return nil
}

// Checkpoint implements [Store].
func (s *MemoryStore) Checkpoint() (Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.checkpoint, s.usableLocked()
}

// Close implements [Store].
func (s *MemoryStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *MemoryStore) usableLocked() error {
	if s.closed {
		return ErrClosed
	}
	return nil
}
