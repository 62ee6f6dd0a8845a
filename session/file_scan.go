// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/drover-agents/drover/internal/jsonscan"
	"github.com/drover-agents/drover/internal/lines"
)

// maxRecord is the longest record that is kept, in bytes.
const maxRecord = lines.DefaultLimit

// A logLine is one line of a log.
type logLine struct {
	at   int64 // its offset
	text []byte
	// whole says that a newline ends the line, which is not part of text.
	whole bool
	// long says that the line is longer than any record; text is nil then.
	long bool
}

// A lineReader cuts part of a file into lines. Unlike internal/lines it knows the offset of each, and
// hands out its own memory: opening a log looks at every line and keeps none.
type lineReader struct {
	src        io.Reader
	buf        []byte
	start, end int   // buf[start:end] is not yet returned
	offset     int64 // of buf[start] in the file
	err        error // of src
}

func newLineReader(f io.ReaderAt, from, to int64) *lineReader {
	size := min(max(to-from, 512), 64<<10)
	return &lineReader{src: io.NewSectionReader(f, from, to-from), buf: make([]byte, size), offset: from}
}

// next returns the next line, whose text is valid until the next call, or io.EOF.
func (r *lineReader) next() (logLine, error) {
	searched := r.start
	for {
		if i := bytes.IndexByte(r.buf[searched:r.end], '\n'); i >= 0 {
			return r.take(searched+i, true), nil
		}
		if r.end-r.start > maxRecord {
			return r.skip()
		}
		if errors.Is(r.err, io.EOF) && r.start < r.end {
			return r.take(r.end, false), nil
		}
		if r.err != nil {
			return logLine{}, r.err
		}
		r.makeRoom()
		searched = r.end
		r.fill()
	}
}

func (r *lineReader) take(end int, whole bool) logLine {
	l := logLine{at: r.offset, text: r.buf[r.start:end:end], whole: whole}
	size := len(l.text)
	if whole {
		size++
	}
	r.start += size
	r.offset += int64(size)
	return l
}

// skip passes over a line that is too long.
func (r *lineReader) skip() (logLine, error) {
	l := logLine{at: r.offset, long: true}
	for {
		if i := bytes.IndexByte(r.buf[r.start:r.end], '\n'); i >= 0 {
			r.take(r.start+i, true)
			l.whole = true
			return l, nil
		}
		r.take(r.end, false)
		if errors.Is(r.err, io.EOF) {
			return l, nil
		}
		if r.err != nil {
			return logLine{}, r.err
		}
		r.start, r.end = 0, 0
		r.fill()
	}
}

// makeRoom sees to it that the buffer has free bytes.
func (r *lineReader) makeRoom() {
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
	}
	if r.end == len(r.buf) {
		// One byte more than a record, for its newline.
		r.buf = append(r.buf, make([]byte, min(len(r.buf), maxRecord+1-len(r.buf)))...)
	}
}

func (r *lineReader) fill() {
	n, err := r.src.Read(r.buf[r.end:])
	r.end += n
	r.err = err
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

// checkRecord says what keeps a line from being a record, or returns its number.
func checkRecord(line []byte) (int64, error) {
	pos, ok := positionOf(line)
	if !ok {
		return 0, errors.New(`it does not begin with {"pos":<number>`)
	}
	var s jsonscan.Scanner
	s.Reset(line)
	s.Skip()
	return pos, s.End()
}

// record returns the number of the record that l is.
func (l logLine) record() (int64, error) {
	switch {
	case l.long:
		return 0, fmt.Errorf("it is longer than %d bytes", maxRecord)
	case !l.whole:
		return 0, errors.New("it has no end")
	}
	return checkRecord(l.text)
}

// A logPlace is a boundary in a log: the number of the record that ends there, and the offset.
type logPlace struct{ pos, offset int64 }

// A logScan is what a look at all lines from a place on has found.
type logScan struct {
	// good is where the good records end.
	good logPlace
	// fault is what is wrong with the line at good, or nil if the log ends there.
	fault error
	// corrupt says that there are records behind the fault, which are not to be cut off.
	corrupt bool
}

// scanLog reads the lines up to an offset. Its error is one of reading.
func scanLog(f io.ReaderAt, from logPlace, to int64) (logScan, error) {
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
			scan.good = logPlace{pos, r.offset}
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
