// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// eachField calls visit for the members of the JSON object in text, in order and without looking
// inside their values, until the text ends. Unlike a decoder it also serves the start of a line
// that was cut off: the last value is then passed with whole == false.
func eachField(text []byte, visit func(key string, value []byte, whole bool)) {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
	for ok {
		rest = bytes.TrimLeft(rest, " \t\r\n,")
		n, whole := skipValue(rest)
		if !whole || rest[0] != '"' {
			return
		}
		key := unquote(rest[:n])
		rest, ok = bytes.CutPrefix(bytes.TrimLeft(rest[n:], " \t\r\n"), []byte(":"))
		if !ok {
			return
		}
		rest = bytes.TrimLeft(rest, " \t\r\n")
		n, ok = skipValue(rest)
		visit(key, rest[:n], ok)
		rest = rest[n:]
	}
}

// skipValue returns the length of the JSON value at the start of b and whether it ends there. It
// finds ends only; it does not check that the value is valid.
func skipValue(b []byte) (n int, whole bool) {
	depth := 0
	for n < len(b) {
		switch b[n] {
		case '"':
			m, ok := skipString(b[n:])
			n += m
			if !ok {
				return n, false
			}
		case '{', '[':
			depth++
			n++
		case '}', ']':
			if depth == 0 {
				return n, false // the object around this value ends
			}
			depth--
			n++
		default:
			m := bytes.IndexAny(b[n:], "\"{}[],")
			if m < 0 {
				return len(b), false
			}
			if depth == 0 {
				return n + m, m > 0
			}
			n += max(m, 1)
		}
		if depth == 0 {
			return n, true
		}
	}
	return n, false
}

func skipString(b []byte) (n int, whole bool) {
	for n = 1; n < len(b); n++ {
		i := bytes.IndexByte(b[n:], '"')
		if i < 0 {
			return len(b), false
		}
		n += i
		escapes := 0
		for b[n-1-escapes] == '\\' {
			escapes++ // ends at the opening quote
		}
		if escapes%2 == 0 {
			return n + 1, true
		}
	}
	return len(b), false
}

// unquote returns the text of a JSON string, or "" if b is not a JSON string.
func unquote(b []byte) string {
	if n := len(b); n >= 2 && b[0] == '"' && bytes.IndexByte(b, '\\') < 0 && utf8.Valid(b) {
		return string(b[1 : n-1]) // the usual case: nothing to decode
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// unquoteStart returns what can be read of a JSON string that was cut off.
func unquoteStart(b []byte) string {
	for cut := range min(7, len(b)) { // at worst in the middle of \uXXXX
		end := b[:len(b)-cut]
		for len(end) > 0 && !utf8.RuneStart(end[len(end)-1]) {
			end = end[:len(end)-1]
		}
		if s := unquote(append(bytes.Clone(end), '"')); s != "" {
			return strings.ToValidUTF8(strings.TrimSuffix(s, "\uFFFD"), "")
		}
	}
	return ""
}
