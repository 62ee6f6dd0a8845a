// SPDX-License-Identifier: Apache-2.0

package plainjson

import (
	"encoding/binary"
	"math/bits"
)

// The functions of this file take the text and an offset and return the offset after what they
// read, or the complement (^offset) of the byte that is wrong.

const (
	everyByte  = 0x0101010101010101
	everyHigh  = 0x8080808080808080
	everyQuote = '"' * everyByte
	everySlash = '\\' * everyByte
	everySpace = ' ' * everyByte
)

func skipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' {
		if c := b[i]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			break
		}
		i++
	}
	return i
}

// scanString reads a string whose opening quote is before i, up to and with its closing quote.
//
// It looks at eight bytes at a time: a subtraction borrows into the high bit of the lowest byte that
// is a quote, a backslash or below a space, and only bytes above that one can be wrong.
func scanString(b []byte, i int) (end int, escaped bool) {
	for i+8 <= len(b) {
		w := binary.LittleEndian.Uint64(b[i:])
		q := w ^ everyQuote
		s := w ^ everySlash
		hit := ((q-everyByte)&^q | (s-everyByte)&^s | (w-everySpace)&^w) & everyHigh
		if hit == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(hit) / 8
		if b[i] != '\\' {
			break
		}
		escaped = true
		if i+1 < len(b) && escapes[b[i+1]] != 0 {
			i += 2
		} else if i = skipUnicode(b, i+1); i < 0 {
			return i, escaped
		}
	}
	return scanTail(b, i, escaped)
}

// scanTail is scanString byte by byte: for the end of the text, and for text that is not a string.
func scanTail(b []byte, i int, escaped bool) (int, bool) {
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			return i + 1, escaped
		case c < ' ':
			return ^i, escaped
		case c != '\\':
			i++
		case i+1 < len(b) && escapes[b[i+1]] != 0:
			escaped = true
			i += 2
		default:
			escaped = true
			if i = skipUnicode(b, i+1); i < 0 {
				return i, escaped
			}
		}
	}
	return ^i, escaped
}

// escapes maps the byte after a backslash to what the two mean, for all but \u.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// skipUnicode reads the u and the four digits that follow a backslash.
func skipUnicode(b []byte, i int) int {
	if i >= len(b) || b[i] != 'u' {
		return ^i
	}
	for n := 1; n <= 4; n++ {
		if i+n >= len(b) || hexDigit(b[i+n]) < 0 {
			return ^(i + n)
		}
	}
	return i + 5
}

func hexDigit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c - 'a' + 10)
	case 'A' <= c && c <= 'F':
		return rune(c - 'A' + 10)
	}
	return -1
}

func skipValue(b []byte, i, depth int) int {
	i = skipSpace(b, i)
	if i >= len(b) {
		return ^i
	}
	switch c := b[i]; c {
	case '"':
		end, _ := scanString(b, i+1)
		return end
	case '{':
		return skipObject(b, i, depth+1)
	case '[':
		return skipArray(b, i, depth+1)
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	default:
		return skipNumber(b, i)
	}
}

func skipObject(b []byte, i, depth int) int {
	if depth > MaxDepth {
		return ^i
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		if i = skipSpace(b, i); i >= len(b) || b[i] != '"' {
			return ^i
		}
		if i, _ = scanString(b, i+1); i < 0 {
			return i
		}
		if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
			return ^i
		}
		if i = skipValue(b, i+1, depth); i < 0 {
			return i
		}
		if i = skipSpace(b, i); i >= len(b) {
			return ^i
		}
		switch b[i] {
		case ',':
			i++
		case '}':
			return i + 1
		default:
			return ^i
		}
	}
}

func skipArray(b []byte, i, depth int) int {
	if depth > MaxDepth {
		return ^i
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		if i = skipValue(b, i, depth); i < 0 {
			return i
		}
		if i = skipSpace(b, i); i >= len(b) {
			return ^i
		}
		switch b[i] {
		case ',':
			i++
		case ']':
			return i + 1
		default:
			return ^i
		}
	}
}

func skipWord(b []byte, i int, word string) int {
	for n := range len(word) {
		if i+n >= len(b) || b[i+n] != word[n] {
			return ^(i + n)
		}
	}
	return i + len(word)
}

func skipNumber(b []byte, i int) int {
	if i < len(b) && b[i] == '-' {
		i++
	}
	if i >= len(b) {
		return ^i
	}
	switch c := b[i]; {
	case c == '0':
		i++
	case '1' <= c && c <= '9':
		i = skipDigits(b, i)
	default:
		return ^i
	}
	if i < len(b) && b[i] == '.' {
		start := i + 1
		if i = skipDigits(b, start); i == start {
			return ^i
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start := i
		if i = skipDigits(b, start); i == start {
			return ^i
		}
	}
	return i
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}
