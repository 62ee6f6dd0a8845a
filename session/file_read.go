// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
)

// Records implements [Store]. It finds the first record by bisection and reads on from there, with no more memory
// than the longest record needs. The caller may keep the data of each record. A log that was damaged since it was
// opened ends in a [CorruptError].
func (s *FileStore) Records(after int64) iter.Seq2[Record, error] {
	s.mu.Lock()
	end, closed := s.logEnd, s.closed
	first := logPosition{0, int64(len(s.headLine))}
	s.mu.Unlock()
	return func(yield func(Record, error) bool) {
		if closed {
			yield(Record{}, s.errClosed())
			return
		}
		if after >= end.pos {
			return
		}
		at := seekRecord(s.f, after+1, first, end.offset)
		if err := s.readRecords(at, end, after, yield); err != nil {
			yield(Record{}, err)
		}
	}
}

// readRecords yields the records above a number, from a position before them to the end.
func (s *FileStore) readRecords(at, end logPosition, after int64, yield func(Record, error) bool) error {
	r := newLineReader(s.f, at.offset, end.offset)
	for at.pos < end.pos {
		l, err := r.next()
		if err != nil {
			return s.readError(at, err)
		}
		pos, err := l.record()
		if err == nil && pos != at.pos+1 {
			err = fmt.Errorf("it has the number %d instead of %d", pos, at.pos+1)
		}
		if err != nil {
			return corruptAt(s.path, logScan{good: at, fault: err})
		}
		at = logPosition{pos, r.offset}
		if at.pos > after && !yield(Record{at.pos, bytes.Clone(l.text)}, nil) {
			return nil
		}
	}
	return nil
}

// readError is the error of a missing line at a position.
func (s *FileStore) readError(at logPosition, err error) error {
	switch {
	case errors.Is(err, os.ErrClosed):
		return s.errClosed()
	case errors.Is(err, io.EOF):
		return corruptAt(s.path, logScan{good: at, fault: errors.New("the file ends before it")})
	}
	return fmt.Errorf("session: reading %s: %w", s.path, err)
}

// seekWindow is the part of a log that is read in order to find a record.
const seekWindow = 64 << 10

// seekRecord returns a position at or before the record pos, within a window if it can. Each line has its number,
// and a newline is never part of one, so the file is its own index. The reader finds damage that seekRecord skips.
func seekRecord(f io.ReaderAt, pos int64, from logPosition, to int64) logPosition {
	var window [512]byte
	for to-from.offset > seekWindow {
		middle := from.offset + (to-from.offset)/2
		start := nextLine(f, window[:], middle, to)
		if start == to { // the line in the middle is the last
			to = middle
			continue
		}
		n, _ := f.ReadAt(window[:min(32, to-start)], start)
		found, ok := positionOf(window[:n])
		switch {
		case !ok || found <= from.pos+1:
			return from
		case found > pos:
			to = middle
		default:
			from = logPosition{found - 1, start}
		}
	}
	return from
}

// nextLine returns the offset after the first newline at or above an offset, or to.
func nextLine(f io.ReaderAt, window []byte, at, to int64) int64 {
	for at < to {
		n, err := f.ReadAt(window[:min(int64(len(window)), to-at)], at)
		if i := bytes.IndexByte(window[:n], '\n'); i >= 0 {
			return at + int64(i) + 1
		}
		if err != nil || n == 0 {
			return to
		}
		at += int64(n)
	}
	return to
}
