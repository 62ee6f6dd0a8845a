// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainfile"
)

// maxKeptBuffer is the most memory that Append keeps for the next call.
const maxKeptBuffer = 1 << 20

// Init implements [Store].
func (s *FileStore) Init(head Head) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	if len(s.headLine) > 0 {
		return fmt.Errorf("session: the log %s is begun already, by session %s", s.path, s.head.ID)
	}
	line, err := encodeHead(head)
	if err != nil {
		return err
	}
	if err := s.write(line); err != nil {
		return fmt.Errorf("session: beginning the log %s: %w", s.path, err)
	}
	if s.opts.Sync != SyncNever {
		if err := plainfile.SyncDir(filepath.Dir(s.path)); err != nil {
			return s.breakDown(fmt.Errorf("session: beginning the log %s: %w", s.path, err))
		}
	}
	head.Tags = maps.Clone(head.Tags)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head, s.headLine = head, line
	s.logEnd.offset += int64(len(line))
	return nil
}

// Append implements [Store].
func (s *FileStore) Append(records []Record) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.writable(); err != nil {
		return err
	}
	if len(s.headLine) == 0 {
		return fmt.Errorf("session: the log %s is not begun; call Init first", s.path)
	}
	if err := checkRecords(s.logEnd.pos, records); err != nil || len(records) == 0 {
		return err
	}
	text := s.buffer[:0]
	for _, r := range records {
		text = append(append(text, r.Data...), '\n')
	}
	if s.buffer = text; cap(text) > maxKeptBuffer {
		s.buffer = nil
	}
	if err := s.write(text); err != nil {
		return fmt.Errorf("session: appending to %s: %w", s.path, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logEnd.pos += int64(len(records))
	s.logEnd.offset += int64(len(text))
	return nil
}

// checkRecords refuses what could not be read again.
func checkRecords(last int64, records []Record) error {
	for i, r := range records {
		want := last + 1 + int64(i)
		if r.Pos != want {
			return fmt.Errorf("session: record %d cannot be appended; the next is %d", r.Pos, want)
		}
		pos, err := checkRecord(r.Data)
		switch {
		case err != nil:
		case pos != r.Pos:
			err = fmt.Errorf("its text has the number %d", pos)
		case bytes.IndexByte(r.Data, '\n') >= 0:
			err = errors.New("it has more than one line")
		case len(r.Data) > maxRecord:
			err = fmt.Errorf("it is longer than %d bytes", maxRecord)
		}
		if err != nil {
			return fmt.Errorf("session: record %d cannot be kept: %w", r.Pos, err)
		}
	}
	return nil
}

// write appends text, or leaves the file as it was. The caller moves the end, so that readers see only stored records.
func (s *FileStore) write(text []byte) error {
	end := s.kept().offset
	if _, err := s.f.WriteAt(text, end); err != nil {
		if undone := s.f.Truncate(end); undone != nil {
			return s.breakDown(errors.Join(err, undone))
		}
		return err
	}
	switch s.opts.Sync {
	case SyncAlways:
		// Asking again would be answered yes by a system that has dropped the data: once is all.
		if err := s.f.Sync(); err != nil {
			return s.breakDown(errors.Join(err, s.f.Truncate(end)))
		}
	case SyncInterval:
		s.syncer.notify()
	}
	return nil
}

// syncNow forces the log to the disk for the sake of records that were acknowledged before.
func (s *FileStore) syncNow() {
	if s.failure() != nil {
		return
	}
	if err := s.f.Sync(); err != nil {
		_ = s.breakDown(err)
		s.opts.Logger.Error("session log could not be forced to the disk", "path", s.path, "error", err)
	}
}

// breakDown makes the store refuse everything that would change it.
func (s *FileStore) breakDown(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = advice.Wrap(fmt.Errorf("the log takes no more records since a write could not be completed: %w", err),
		"close it and open it again; it then has what reached the disk")
	return s.broken
}

func (s *FileStore) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

var errReadOnly = errors.New("open for reading only")

func (s *FileStore) writable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return s.errClosed()
	case s.opts.ReadOnly:
		return fmt.Errorf("session: %s is %w", s.path, errReadOnly)
	case s.broken != nil:
		return fmt.Errorf("session: %s: %w", s.path, s.broken)
	}
	return nil
}
