// SPDX-License-Identifier: Apache-2.0

package safetext

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// maxNested is how many levels of escapes are looked through: JSON in JSON in JSON, as of a tool that has read a log of tools.
const maxNested = 8

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// mayNest reports whether a level of escapes in b may hide a secret.
func (r *Redactor) mayNest(b []byte) bool {
	if bytes.IndexByte(b, '\\') < 0 {
		return false
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	for range maxNested {
		text, _, changed := unescape((*buffer)[:0], b, nil)
		if !changed {
			return false
		}
		if known, may := find(r.find(), text); known || may != 0 {
			return true
		}
		*buffer, b = text, text // it is never longer: what is read is not yet written over
	}
	return false
}

// maxTraced is the longest text whose escaped secrets are taken out one by one.
const maxTraced = 1 << 20

// nested returns s without the secrets that are escaped in it. The escapes around them stay. A text that is too long, or that has new
// ones after several rounds, is given up rather than the secret.
func (r *Redactor) nested(s string) string {
	for range 8 {
		if len(s) > maxTraced {
			break
		}
		out := r.nestedOnce(s)
		if out == s {
			return s
		}
		s = out
	}
	return r.Mark()
}

// nestedOnce replaces the secrets of the first level that has some.
func (r *Redactor) nestedOnce(s string) string {
	text, at := []byte(s), make([]int, len(s)+1)
	for i := range at {
		at[i] = i
	}
	for range maxNested {
		var changed bool
		if text, at, changed = unescape(nil, text, at); !changed {
			return s
		}
		var b strings.Builder
		last := 0
		for _, span := range r.spans(string(text)) {
			if from := at[span[0]]; from >= last {
				b.WriteString(s[last:from])
				b.WriteString(r.Mark())
			}
			last = max(last, at[span[1]])
		}
		if last > 0 {
			return b.String() + s[last:]
		}
	}
	return s
}

// spans are where s has secrets, in order. They may overlap.
func (r *Redactor) spans(s string) (all [][2]int) {
	known, may := find(r.find(), s)
	for i := range patterns {
		if known || may>>i&1 != 0 {
			all = append(all, patterns[i].spans(s, r.Mark())...)
		}
	}
	if known {
		for _, form := range r.forms {
			for from := 0; ; {
				n := strings.Index(s[from:], form)
				if n < 0 {
					break
				}
				from += n + len(form)
				all = append(all, [2]int{from - len(form), from})
			}
		}
	}
	slices.SortFunc(all, func(a, b [2]int) int { return a[0] - b[0] })
	return all
}

// unescape appends to dst the text with one level of the escapes of JSON taken off. Other backslashes stay. Unless at, which has where
// each byte of the text begins in another one, and its end, is nil, moved is that of what was appended.
func unescape(dst, text []byte, at []int) (out []byte, moved []int, changed bool) {
	for i := 0; i < len(text); {
		n := bytes.IndexByte(text[i:], '\\')
		if n < 0 {
			n = len(text) - i
		}
		r, size := escapeAt(text[i+n:])
		if size == 0 {
			n = min(n+1, len(text)-i)
		}
		dst = append(dst, text[i:i+n]...)
		if at != nil {
			moved = append(moved, at[i:i+n]...)
		}
		if i += n; size == 0 {
			continue
		}
		before := len(dst)
		dst, changed = utf8.AppendRune(dst, r), true
		for range len(dst) - before {
			if at != nil {
				moved = append(moved, at[i])
			}
		}
		i += size
	}
	if at != nil {
		moved = append(moved, at[len(text)])
	}
	return dst, moved, changed
}

// escapeAt is the character of the escape that s begins with, and the length of the escape, or 0 without one.
func escapeAt(s []byte) (r rune, size int) {
	if len(s) < 2 || s[0] != '\\' {
		return 0, 0
	}
	if s[1] != 'u' {
		if i := strings.IndexByte(`"\/bfnrt`, s[1]); i >= 0 {
			return rune("\"\\/\b\f\n\r\t"[i]), 2
		}
		return 0, 0
	}
	if r, size = hexAt(s), 6; r < 0 {
		return 0, 0
	}
	if utf16.IsSurrogate(r) {
		if whole := utf16.DecodeRune(r, hexAt(s[6:])); whole != utf8.RuneError {
			return whole, 12
		}
	}
	return r, size
}

// hexAt is the unit of the escape \u0000 that s begins with, or -1.
func hexAt(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
