// SPDX-License-Identifier: Apache-2.0

package plainjson

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
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

// maxFused is the most memory that Decode asks for before it knows the length of a string.
const maxFused = 256 << 10

// Large reports whether a string that comes next may be so long that Text and [Unescape] serve better than Decode.
func (s *Scanner) Large() bool { return len(s.data)-s.pos > maxFused }

// Decode consumes the next value and returns, if it is a string, its decoded bytes. They are part of
// the input, or of scratch, which may have grown and is returned for the next call.
func (s *Scanner) Decode(scratch []byte) (text, grown []byte, ok bool) {
	if s.Kind() != String {
		s.Skip()
		return nil, scratch, false
	}
	start := s.pos + 1
	if len(s.data)-start > maxFused {
		return s.decodeLarge(scratch)
	}
	for i := start; i+8 <= len(s.data); {
		w := binary.LittleEndian.Uint64(s.data[i:])
		b := w ^ everySlash
		q := w ^ everyQuote
		hit := ((q-everyByte)&^q | (b-everyByte)&^b | (w-everySpace)&^w) & everyHigh
		if hit == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(hit) / 8
		if s.data[i] == '\\' {
			return s.decodeEscaped(scratch, start, i)
		}
		if raw := s.data[start:i:i]; s.data[i] == '"' && utf8.Valid(raw) {
			s.pos = i + 1
			s.first = false
			return raw, scratch, true
		}
		break
	}
	return s.decodeLarge(scratch)
}

// decodeLarge decodes a string in two passes, with no more memory than it needs.
func (s *Scanner) decodeLarge(scratch []byte) (text, grown []byte, ok bool) {
	raw, plain, ok := s.Text()
	if !ok || plain {
		return raw, scratch, ok
	}
	scratch = Unescape(scratch[:0], raw)
	return scratch, scratch, true
}

// decodeEscaped decodes the string that begins at start and has its first backslash at i, in one pass.
func (s *Scanner) decodeEscaped(scratch []byte, start, i int) (text, grown []byte, ok bool) {
	scratch = slices.Grow(scratch[:0], len(s.data)-start+8)
	text, end := unescapeString(scratch[:cap(scratch)], s.data, start, i)
	if end < 0 {
		s.fail(^end)
		return nil, scratch, false
	}
	s.pos = end
	s.first = false
	if raw := s.data[start : end-1]; !utf8.Valid(raw) {
		text = unescapeInvalid(scratch[:0], raw)
		scratch = text
	}
	return text, scratch, true
}

// unescapeString decodes the string from start up to its closing quote into dst, which is long enough for all of b,
// and returns the offset after it. There is neither an escape nor a control character before i.
func unescapeString(dst, b []byte, start, i int) (text []byte, end int) {
	at := copy(dst, b[start:i])
	for i < len(b) {
		if i+8 <= len(b) {
			w := binary.LittleEndian.Uint64(b[i:])
			binary.LittleEndian.PutUint64(dst[at:], w)
			q := w ^ everyQuote
			s := w ^ everySlash
			hit := ((q-everyByte)&^q | (s-everyByte)&^s | (w-everySpace)&^w) & everyHigh
			n := 8
			if hit != 0 {
				n = bits.TrailingZeros64(hit) / 8
			}
			i += n
			at += n
			if n == 8 {
				continue
			}
		}
		switch c := b[i]; {
		case c == '\\':
			if i+1 < len(b) && escapes[b[i+1]] != 0 {
				dst[at] = escapes[b[i+1]]
				i += 2
				at++
				continue
			}
			if end := skipUnicode(b, i+1); end < 0 {
				return nil, end
			}
			out, rest := appendRune(dst[:at], b[i:])
			i = len(b) - len(rest)
			at = len(out)
		case c == '"':
			return dst[:at], i + 1
		case c < ' ':
			return nil, ^i
		default:
			dst[at] = c
			i++
			at++
		}
	}
	return nil, ^i
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

// Int consumes the next value and returns it if it is a number in the range of an int64. A fraction is cut off.
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
	if !utf8.Valid(raw) {
		return unescapeInvalid(dst, raw)
	}
	// The result is never longer than raw; whole words are written before it is known how much of them counts.
	at := len(dst)
	dst = slices.Grow(dst, len(raw)+8)[:at+len(raw)+8]
	for i := 0; i < len(raw); {
		if i+8 <= len(raw) {
			w := binary.LittleEndian.Uint64(raw[i:])
			binary.LittleEndian.PutUint64(dst[at:], w)
			s := w ^ everySlash
			hit := (s - everyByte) &^ s & everyHigh
			if hit == 0 {
				i += 8
				at += 8
				continue
			}
			n := bits.TrailingZeros64(hit) / 8
			i += n
			at += n
		}
		switch {
		case raw[i] != '\\':
			dst[at] = raw[i]
			i++
			at++
		case raw[i+1] != 'u':
			dst[at] = escapes[raw[i+1]]
			i += 2
			at++
		default:
			rest := raw[i:]
			out, left := appendRune(dst[:at], rest)
			at = len(out)
			i += len(rest) - len(left)
		}
	}
	return dst[:at]
}

// unescapeInvalid is Unescape for text that is not UTF-8 throughout.
func unescapeInvalid(dst, raw []byte) []byte {
	for len(raw) > 0 {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 {
			n = len(raw)
		}
		dst = appendValid(dst, raw[:n])
		raw = raw[n:]
		switch {
		case len(raw) < 2:
			return dst
		case raw[1] == 'u':
			dst, raw = appendRune(dst, raw)
		default:
			dst = append(dst, escapes[raw[1]])
			raw = raw[2:]
		}
	}
	return dst
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

// hexRune returns the number in the \uXXXX at the start of raw, or -1 if raw does not start with one.
func hexRune(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	var r rune
	for _, c := range raw[2:6] {
		digit := hexDigit(c)
		if digit < 0 {
			return -1
		}
		r = r<<4 | digit
	}
	return r
}

// appendValid appends raw, with U+FFFD for each byte that is not part of UTF-8.
func appendValid(dst, raw []byte) []byte {
	for len(raw) > 0 {
		r, n := utf8.DecodeRune(raw)
		dst = utf8.AppendRune(dst, r)
		raw = raw[n:]
	}
	return dst
}
