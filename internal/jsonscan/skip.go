// SPDX-License-Identifier: Apache-2.0

package jsonscan

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

// plainRun returns the offset of the first quote, backslash or control character at or after i.
// It looks at eight bytes at a time: a subtraction borrows into the high bit of the lowest byte
// that is zero (or below a space), and only bytes above that one can be wrong.
func plainRun(b []byte, i int) int {
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		q := w ^ everyQuote
		s := w ^ everySlash
		hit := ((q-everyByte)&^q | (s-everyByte)&^s | (w-everySpace)&^w) & everyHigh
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return i
}

// scanString reads a string whose opening quote is before i, up to and with its closing quote.
func scanString(b []byte, i int) (end int, escaped bool) {
	for {
		i = plainRun(b, i)
		if i >= len(b) {
			return ^i, escaped
		}
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			if i = skipEscape(b, i+1); i < 0 {
				return i, escaped
			}
		default:
			return ^i, escaped
		}
	}
}

// skipEscape reads what follows a backslash.
func skipEscape(b []byte, i int) int {
	if i >= len(b) {
		return ^i
	}
	switch b[i] {
	case 'n', '"', '\\', '/', 't', 'r', 'b', 'f':
		return i + 1
	case 'u':
		for n := 1; n <= 4; n++ {
			if i+n >= len(b) || hexDigit(b[i+n]) < 0 {
				return ^(i + n)
			}
		}
		return i + 5
	}
	return ^i
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
