// SPDX-License-Identifier: Apache-2.0

package lines

import (
	"bytes"
	"fmt"
	"io"
)

const (
	// DefaultLimit is the longest line that is returned if no limit is given.
	DefaultLimit = 64 << 20

	chunkSize = 64 << 10 // what a pipe holds
	maxSpare  = 16       // chunks kept for the next long line: 1 MiB
	maxEmpty  = 100      // reads without data before the source counts as broken
)

// A TooLongError reports a line longer than the limit. The line is skipped.
type TooLongError struct {
	Limit int // in bytes
	Line  int // number of the line, from 1
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("line %d is longer than %d bytes", e.Line, e.Limit)
}

// A Reader returns the lines of a stream.
type Reader struct {
	src   io.Reader
	limit int

	buf        []byte // chunk being read into; buf[start:end] is not yet returned
	start, end int
	full       [][]byte // chunks with the beginning of the current line
	fullLen    int
	spare      [][]byte

	number   int
	skipping bool // the rest of a line that was too long is still to come
	last     bool
	err      error // from src, reported after everything before it
}

// NewReader returns a Reader of src. A limit of zero or less means [DefaultLimit].
func NewReader(src io.Reader, limit int) *Reader {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return &Reader{src: src, limit: limit, buf: make([]byte, chunkSize)}
}

// Number returns the number, from 1, of the line that [Reader.Next] returned or refused last.
func (r *Reader) Number() int { return r.number }

// Last reports whether the end of the stream, and not LF, ended the line that [Reader.Next] returned last.
func (r *Reader) Last() bool { return r.last }

// Next returns the next line without its line end. It returns io.EOF at the end of the stream, a
// [TooLongError] for a line above the limit, or the error of the stream after the bytes that came
// before it. Only a TooLongError may be followed by more lines.
func (r *Reader) Next() ([]byte, error) {
	r.last = false
	if r.skipping {
		if err := r.skipLine(); err != nil {
			return nil, err
		}
	}
	searched := r.start
	for {
		if i := bytes.IndexByte(r.buf[searched:r.end], '\n'); i >= 0 {
			return r.takeLine(searched + i)
		}
		// One byte more than the limit may be the CR of a line that is just short enough.
		if r.fullLen+r.end-r.start > r.limit+1 {
			r.skipping = true
			return r.tooLong()
		}
		if r.err != nil {
			return r.takeRest()
		}
		r.makeRoom()
		searched = r.end
		r.fill()
	}
}

// takeLine returns the line that ends with the LF at r.buf[at].
func (r *Reader) takeLine(at int) ([]byte, error) {
	tail := r.buf[r.start:at]
	r.start = at + 1
	size := r.fullLen + len(tail)
	if size > 0 && r.lastByte(tail) == '\r' {
		size--
	}
	if size > r.limit {
		return r.tooLong()
	}
	r.number++
	return r.join(tail, size), nil
}

// takeRest returns what is left before the end of the stream, then the stream's error.
func (r *Reader) takeRest() ([]byte, error) {
	tail := r.buf[r.start:r.end]
	size := r.fullLen + len(tail)
	if size == 0 {
		return nil, r.err
	}
	r.start = r.end
	if size > r.limit {
		return r.tooLong()
	}
	r.number++
	r.last = true
	return r.join(tail, size), nil
}

func (r *Reader) lastByte(tail []byte) byte {
	if len(tail) == 0 {
		tail = r.full[len(r.full)-1]
	}
	return tail[len(tail)-1]
}

// join copies the first size bytes of the full chunks and tail into new memory.
func (r *Reader) join(tail []byte, size int) []byte {
	if len(r.full) == 0 {
		return append(make([]byte, 0, size), tail[:size]...)
	}
	line := make([]byte, size)
	n := 0
	for _, chunk := range r.full {
		n += copy(line[n:], chunk)
	}
	copy(line[n:], tail)
	r.release()
	return line
}

func (r *Reader) tooLong() ([]byte, error) {
	r.number++
	r.release()
	return nil, &TooLongError{Limit: r.limit, Line: r.number}
}

// skipLine discards everything up to and with the next LF.
func (r *Reader) skipLine() error {
	for {
		if i := bytes.IndexByte(r.buf[r.start:r.end], '\n'); i >= 0 {
			r.start += i + 1
			r.skipping = false
			return nil
		}
		r.start, r.end = 0, 0
		if r.err != nil {
			return r.err
		}
		r.fill()
	}
}

// makeRoom sees to it that r.buf has free bytes: what is left moves to its front, or, if the
// current line fills all of it, the chunk is set aside.
func (r *Reader) makeRoom() {
	if r.start == r.end {
		r.start, r.end = 0, 0
	}
	if r.end < len(r.buf) {
		return
	}
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
		return
	}
	r.full = append(r.full, r.buf)
	r.fullLen += len(r.buf)
	if n := len(r.spare); n > 0 {
		r.buf, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		r.buf = make([]byte, chunkSize)
	}
	r.end = 0
}

// release keeps the chunks of a finished line for the next one.
func (r *Reader) release() {
	for i, chunk := range r.full {
		if len(r.spare) < maxSpare {
			r.spare = append(r.spare, chunk)
		}
		r.full[i] = nil
	}
	r.full = r.full[:0]
	r.fullLen = 0
}

// fill reads once into the free part of r.buf.
func (r *Reader) fill() {
	for range maxEmpty {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}
