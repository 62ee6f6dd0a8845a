// SPDX-License-Identifier: Apache-2.0

package plainjson

import "bytes"

// ResetTrusted makes s read data that was read to its end before without error. Values that are skipped are not checked
// again, which is several times faster. Data that is not JSON after all gives an error or a wrong value, never a panic.
func (s *Scanner) ResetTrusted(data []byte) { *s = Scanner{data: data, trusted: true} }

// skipTrusted is skipValue for text that is known to be JSON.
func skipTrusted(b []byte, i int) int {
	i = skipSpace(b, i)
	if i >= len(b) {
		return ^i
	}
	switch b[i] {
	case '"':
		return skipTrustedString(b, i+1)
	case '{', '[':
		return skipTrustedContainer(b, i)
	}
	for i < len(b) && b[i] > ' ' && b[i] != ',' && b[i] != '}' && b[i] != ']' {
		i++
	}
	return i
}

// skipTrustedString looks for the first quote that an even number of backslashes precedes.
func skipTrustedString(b []byte, i int) int {
	for {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return ^len(b)
		}
		i += n + 1
		first := i - 1
		for first > 0 && b[first-1] == '\\' {
			first--
		}
		if (i-1-first)%2 == 0 {
			return i
		}
	}
}

func skipTrustedContainer(b []byte, i int) int {
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			end := skipTrustedString(b, i+1)
			if end < 0 {
				return end
			}
			i = end - 1
		}
	}
	return ^len(b)
}
