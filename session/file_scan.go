// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/drover-agents/drover/internal/lines"
	"github.com/drover-agents/drover/internal/plainjson"
)

// maxRecord is the longest record that is kept, in bytes.
const maxRecord = lines.DefaultLimit

type logLine struct {
	at   int64 // its offset
	text []byte
	// whole means that a newline ends the line; it is not part of text.
	whole bool
	// long means that the line is longer than any record; text is nil then.
	long bool
}

// A lineReader cuts part of a file into lines. Unlike internal/lines it knows the offset of each, and
// hands out its own memory: opening a log looks at every line and keeps none.
type lineReader struct {
	src    *bufio.Reader
	offset int64  // of the next line in the file
	joined []byte // a line that is longer than the buffer of src
}

func newLineReader(f io.ReaderAt, from, to int64) *lineReader {
	size := min(max(to-from, 512), 64<<10)
	return &lineReader{src: bufio.NewReaderSize(io.NewSectionReader(f, from, to-from), int(size)), offset: from}
}

// An EntryReader reads a log from its beginning, wherever it is stored: in a file, an archive, a response.
type EntryReader struct {
	lines *lineReader
	head  Head
	last  int64
}

// NewEntryReader reads the header of a log in the format of [OpenFile].
func NewEntryReader(r io.Reader) (*EntryReader, error) {
	e := &EntryReader{lines: &lineReader{src: bufio.NewReaderSize(r, 64<<10)}}
	l, err := e.lines.next()
	if err == nil {
		e.head, err = decodeHead("the log", l)
	}
	if err != nil {
		return nil, fmt.Errorf("session: reading a log: %w", err)
	}
	return e, nil
}

// Head is the header of the log.
func (e *EntryReader) Head() Head { return e.head }

// ErrTorn is wrapped for a last line without an end: a program that was killed leaves one, and one that writes may for a moment.
var ErrTorn = errors.New("the last line has no end")

// Next returns the next entry, or [io.EOF] behind the last one. Damage is an error that wraps [ErrCorrupt], and a last line without
// an end one that wraps [ErrTorn].
func (e *EntryReader) Next() (Entry, error) {
	l, err := e.lines.next()
	if errors.Is(err, io.EOF) {
		return Entry{}, io.EOF
	}
	if err == nil && !l.whole && !l.long {
		return Entry{}, fmt.Errorf("session: reading a log: after entry %d: %w", e.last, ErrTorn)
	}
	var pos int64
	if err == nil {
		pos, err = l.record()
	}
	if err != nil {
		return Entry{}, fmt.Errorf("session: reading a log: %w: after entry %d: %w", ErrCorrupt, e.last, err)
	}
	entry, err := decodeNext(Record{pos, bytes.Clone(l.text)}, e.last)
	if err != nil {
		return Entry{}, fmt.Errorf("session: reading a log: %w", err)
	}
	e.last = pos
	return *entry, nil
}

// next returns the next line, whose text is valid until the next call, or io.EOF.
func (r *lineReader) next() (logLine, error) {
	l := logLine{at: r.offset}
	r.joined = r.joined[:0]
	for {
		text, err := r.src.ReadSlice('\n')
		r.offset += int64(len(text))
		part := errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !part && (r.offset == l.at || !errors.Is(err, io.EOF)) {
			return logLine{}, err
		}
		if (part || len(r.joined) > 0) && len(r.joined) <= maxRecord { // of a longer line no more is kept
			r.joined = append(r.joined, text...)
		}
		if part {
			continue
		}
		if len(r.joined) > 0 {
			text = r.joined
		}
		if l.whole = err == nil; l.whole {
			text = text[:len(text)-1]
		}
		if l.long = len(text) > maxRecord; !l.long {
			l.text = slices.Clip(text)
		}
		return l, nil
	}
}

const recordStart = `{"pos":`

// positionOf reads the number of a record off the beginning of its line.
func positionOf(line []byte) (int64, bool) {
	digits, ok := bytes.CutPrefix(line, []byte(recordStart))
	if !ok || len(digits) == 0 || digits[0] < '1' || digits[0] > '9' {
		return 0, false
	}
	var pos int64
	for i, c := range digits {
		switch {
		case c == ',' || c == '}':
			return pos, true
		case c < '0' || c > '9' || i >= 18:
			return 0, false
		}
		pos = pos*10 + int64(c-'0')
	}
	return 0, false
}

// checkRecord returns the number of a line, or why the line is not a record.
func checkRecord(line []byte) (int64, error) {
	pos, ok := positionOf(line)
	if !ok {
		return 0, errors.New(`it does not begin with {"pos":<number>`)
	}
	var s plainjson.Scanner
	s.Reset(line)
	s.Skip()
	return pos, s.End()
}

func (l logLine) record() (int64, error) {
	switch {
	case l.long:
		return 0, fmt.Errorf("it is longer than %d bytes", maxRecord)
	case !l.whole:
		return 0, errors.New("it has no end")
	}
	return checkRecord(l.text)
}

// A logPosition is a boundary in a log: the number of the record that ends there, and the offset.
type logPosition struct{ pos, offset int64 }

type logScan struct {
	// good is where the good records end.
	good logPosition
	// fault is what is wrong with the line at good, or nil if the log ends there.
	fault error
	// corrupt means that records follow the fault; they are not to be cut off.
	corrupt bool
}

// scanLog reads the lines up to an offset. Its error is one of reading.
func scanLog(f io.ReaderAt, from logPosition, to int64) (logScan, error) {
	scan := logScan{good: from}
	r := newLineReader(f, from.offset, to)
	for {
		l, err := r.next()
		if errors.Is(err, io.EOF) {
			return scan, nil
		}
		if err != nil {
			return scan, err
		}
		pos, fault := l.record()
		switch {
		case fault == nil && pos == scan.good.pos+1 && scan.fault == nil:
			scan.good = logPosition{pos, r.offset}
		case fault == nil:
			scan.corrupt = true
			if scan.fault == nil {
				scan.fault = fmt.Errorf("it has the number %d instead of %d", pos, scan.good.pos+1)
			}
			return scan, nil
		case scan.fault == nil:
			scan.fault = fault
		}
	}
}
