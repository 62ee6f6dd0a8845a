// SPDX-License-Identifier: Apache-2.0

package jsonscan

import (
	"math"
	"strconv"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text consumes the next value and returns, if it is a string, the bytes between its quotes.
// Plain means that they are the string itself; otherwise [Unescape] makes it of them.
func (s *Scanner) Text() (raw []byte, plain, ok bool) {
	if s.err != nil {
		return nil, false, false
	}
	if s.Pos() >= len(s.data) || s.data[s.pos] != '"' {
		s.Skip()
		return nil, false, false
	}
	start := s.pos + 1
	end, escaped := scanString(s.data, start)
	if end < 0 {
		s.fail(^end)
		return nil, false, false
	}
	s.pos = end
	s.first = false
	raw = s.data[start : end-1 : end-1]
	return raw, !escaped && utf8.Valid(raw), true
}

// Bool consumes the next value and returns it if it is true or false.
func (s *Scanner) Bool() (v, ok bool) {
	if s.Kind() != Bool {
		s.Skip()
		return false, false
	}
	v = s.data[s.pos] == 't'
	s.Skip()
	return v && s.err == nil, s.err == nil
}

// Float consumes the next value and returns it if it is a number that a float64 can hold.
func (s *Scanner) Float() (v float64, ok bool) {
	if s.Kind() != Number {
		s.Skip()
		return 0, false
	}
	raw := s.Raw()
	if s.err != nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(raw), 64)
	return v, err == nil
}

// Int consumes the next value and returns it if it is a number in the range of an int64. A
// fraction is cut off.
func (s *Scanner) Int() (v int64, ok bool) {
	if s.Kind() != Number {
		s.Skip()
		return 0, false
	}
	raw := s.Raw()
	if s.err != nil {
		return 0, false
	}
	return parseInt(raw)
}

func parseInt(raw []byte) (int64, bool) {
	if v, ok := parseDigits(raw); ok {
		return v, true
	}
	if v, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return v, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < math.MinInt64 || f >= math.MaxInt64 {
		return 0, false
	}
	return int64(f), true
}

// parseDigits is the case of nearly every number on the wire: a few digits and nothing else.
func parseDigits(raw []byte) (v int64, ok bool) {
	if len(raw) > 18 {
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, true
}

// Unescape appends to dst the string whose text between the quotes is raw. The escapes in raw must
// be valid, as they are in what [Scanner.Text] returns.
func Unescape(dst, raw []byte) []byte {
	for len(raw) > 0 {
		n := escapeIndex(raw)
		dst = appendValid(dst, raw[:n])
		raw = raw[n:]
		if len(raw) < 2 {
			break
		}
		if raw[1] == 'u' {
			dst, raw = appendRune(dst, raw)
			continue
		}
		dst = append(dst, escapedByte(raw[1]))
		raw = raw[2:]
	}
	return dst
}

// escapeIndex returns the offset of the first backslash, or the length of raw.
func escapeIndex(raw []byte) int {
	i := 0
	for {
		i = plainRun(raw, i)
		if i >= len(raw) || raw[i] == '\\' {
			return i
		}
		i++
	}
}

// appendRune decodes the \uXXXX at the start of raw, or the surrogate pair of two of them.
func appendRune(dst, raw []byte) (out, rest []byte) {
	r, rest := hexRune(raw), raw[6:]
	if utf16.IsSurrogate(r) {
		if pair := utf16.DecodeRune(r, hexRune(rest)); pair != unicode.ReplacementChar {
			return utf8.AppendRune(dst, pair), rest[6:]
		}
		r = unicode.ReplacementChar
	}
	return utf8.AppendRune(dst, r), rest
}

// hexRune returns the number in the \uXXXX at the start of raw, or -1 if there is none.
func hexRune(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range raw[2:6] {
		r = r<<4 | hexDigit(c)
	}
	return r
}

func escapedByte(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return c
}

// appendValid appends raw, with U+FFFD for each byte that is not part of UTF-8.
func appendValid(dst, raw []byte) []byte {
	if utf8.Valid(raw) {
		return append(dst, raw...)
	}
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		dst = utf8.AppendRune(dst, r)
		raw = raw[n:]
	}
	return dst
}
