// SPDX-License-Identifier: Apache-2.0

package plainjson

import (
	"fmt"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting that is read; it is the limit of encoding/json.
const MaxDepth = 10000

// A SyntaxError has the byte at which a text stops being JSON.
type SyntaxError struct {
	Offset int
	reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not JSON at byte %d: %s", e.Offset, e.reason)
}

// A Kind is the type of a JSON value.
type Kind byte

// The kinds. Invalid is also the end of the text.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// A Scanner reads one JSON text. The zero value reads the empty text; use [Scanner.Reset].
type Scanner struct {
	data  []byte
	pos   int
	depth int
	first bool // the next Field or Elem is the first of its container
	err   error
	// trusted text was checked before.
	trusted bool
}

// Reset makes s read data from its beginning.
func (s *Scanner) Reset(data []byte) { *s = Scanner{data: data} }

// Err returns the error that stopped the scanner, or nil.
func (s *Scanner) Err() error { return s.err }

// Pos returns the offset of the next byte to be read, white space skipped.
func (s *Scanner) Pos() int {
	s.pos = skipSpace(s.data, s.pos)
	return s.pos
}

// Since returns what was read from offset start, a former result of Pos, up to here. It returns nil after an error.
func (s *Scanner) Since(start int) []byte {
	if s.err != nil {
		return nil
	}
	return s.data[start:s.pos:s.pos]
}

// End reports the error of s, or one if anything but white space is left.
func (s *Scanner) End() error {
	if s.err == nil && s.Pos() < len(s.data) {
		s.fail(s.pos)
	}
	return s.err
}

// Kind returns the kind of the next value without consuming it.
func (s *Scanner) Kind() Kind {
	if s.err != nil || s.Pos() >= len(s.data) {
		return Invalid
	}
	return kindOf(s.data[s.pos])
}

// Object enters the next value if it is an object: the caller then calls [Scanner.Field] until it
// reports false, consuming one value after each field. Any other value is skipped.
func (s *Scanner) Object() bool { return s.enter('{') }

// Array enters the next value if it is an array: the caller then calls [Scanner.Elem] until it
// reports false, consuming one value after each call. Any other value is skipped.
func (s *Scanner) Array() bool { return s.enter('[') }

func (s *Scanner) enter(open byte) bool {
	if s.err != nil {
		return false
	}
	if s.Pos() >= len(s.data) || s.data[s.pos] != open {
		s.Skip()
		return false
	}
	if s.depth++; s.depth > MaxDepth {
		s.fail(s.pos)
		return false
	}
	s.pos++
	s.first = true
	return true
}

// Field returns the next key of the entered object, decoded, or false at its end. The key is valid until the input changes.
func (s *Scanner) Field() (key []byte, ok bool) {
	if !s.more('}') {
		return nil, false
	}
	i := skipSpace(s.data, s.pos)
	if i >= len(s.data) || s.data[i] != '"' {
		s.fail(i)
		return nil, false
	}
	end, escaped := scanString(s.data, i+1)
	if end < 0 {
		s.fail(^end)
		return nil, false
	}
	key = s.data[i+1 : end-1]
	if escaped || !utf8.Valid(key) {
		key = Unescape(nil, key)
	}
	i = skipSpace(s.data, end)
	if i >= len(s.data) || s.data[i] != ':' {
		s.fail(i)
		return nil, false
	}
	s.pos = i + 1
	return key, true
}

// Elem reports whether the entered array has another element, which is then the next value.
func (s *Scanner) Elem() bool { return s.more(']') }

// more steps over the comma before the next member, or over the closing byte.
func (s *Scanner) more(closing byte) bool {
	if s.err != nil {
		return false
	}
	i := skipSpace(s.data, s.pos)
	if i >= len(s.data) {
		s.fail(i)
		return false
	}
	first := s.first
	s.first = false
	switch c := s.data[i]; {
	case c == closing:
		s.pos = i + 1
		s.depth--
		return false
	case first:
		s.pos = i
		return true
	case c == ',':
		s.pos = i + 1
		return true
	}
	s.fail(i)
	return false
}

// Skip consumes the next value, checking that it is JSON.
func (s *Scanner) Skip() {
	if s.err != nil {
		return
	}
	var end int
	if s.trusted {
		end = skipTrusted(s.data, s.pos)
	} else {
		end = skipValue(s.data, s.pos, s.depth)
	}
	if end < 0 {
		s.fail(^end)
		return
	}
	s.pos = end
	s.first = false
}

// Raw consumes the next value and returns its bytes. It returns nil after an error.
func (s *Scanner) Raw() []byte {
	start := s.Pos()
	s.Skip()
	return s.Since(start)
}

func (s *Scanner) fail(at int) {
	if s.err != nil {
		return
	}
	e := &SyntaxError{Offset: at, reason: "the text ends in the middle of a value"}
	switch {
	case at < len(s.data) && s.depth >= MaxDepth:
		e.reason = "nested too deeply"
	case at < len(s.data):
		e.reason = fmt.Sprintf("unexpected character %q", s.data[at])
	}
	s.err = e
}

func kindOf(c byte) Kind {
	switch {
	case c == '"':
		return String
	case c == '{':
		return Object
	case c == '[':
		return Array
	case c == 't', c == 'f':
		return Bool
	case c == 'n':
		return Null
	case c == '-', '0' <= c && c <= '9':
		return Number
	}
	return Invalid
}
