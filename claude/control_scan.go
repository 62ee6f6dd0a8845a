// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// maxDepth bounds the nesting of what is skipped; encoding/json has the same limit.
const maxDepth = 10000

var errWantObject = errors.New("not a JSON object")

// eachField calls fn for every member of the object data with its decoded name and its raw value,
// whose brackets and strings are balanced. It stops at the first error.
func eachField(data []byte, fn func(key, value []byte) error) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return errWantObject
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return atEnd(data, i+1)
	}
	for {
		next, err := oneField(data, i, fn)
		if err != nil {
			return err
		}
		if data[next] == '}' {
			return atEnd(data, next+1)
		}
		i = skipSpace(data, next+1)
	}
}

// eachElement calls fn for every element of the array data. It stops at the first error.
func eachElement(data []byte, fn func(element []byte) error) error {
	if data[0] != '[' {
		return errFieldKind
	}
	i := skipSpace(data, 1)
	if i < len(data) && data[i] == ']' {
		return atEnd(data, i+1)
	}
	for {
		end, err := skipValue(data, i)
		if err != nil {
			return err
		}
		if err := fn(data[i:end:end]); err != nil {
			return err
		}
		i = skipSpace(data, end)
		switch {
		case i < len(data) && data[i] == ']':
			return atEnd(data, i+1)
		case i >= len(data) || data[i] != ',':
			return syntaxError(i)
		}
		i = skipSpace(data, i+1)
	}
}

// oneField reads `"name": value` at i and returns the position of the comma or brace behind it.
func oneField(data []byte, i int, fn func(key, value []byte) error) (int, error) {
	if i >= len(data) || data[i] != '"' {
		return 0, syntaxError(i)
	}
	end, err := skipString(data, i)
	if err != nil {
		return 0, err
	}
	key, err := fieldName(data[i:end])
	if err != nil {
		return 0, err
	}
	i = skipSpace(data, end)
	if i >= len(data) || data[i] != ':' {
		return 0, syntaxError(i)
	}
	i = skipSpace(data, i+1)
	end, err = skipValue(data, i)
	if err != nil {
		return 0, err
	}
	if err := fn(key, data[i:end:end]); err != nil {
		return 0, err
	}
	i = skipSpace(data, end)
	if i >= len(data) || data[i] != ',' && data[i] != '}' {
		return 0, syntaxError(i)
	}
	return i, nil
}

func fieldName(quoted []byte) ([]byte, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1], nil
	}
	s, err := unquote(quoted)
	return []byte(s), err
}

func atEnd(data []byte, i int) error {
	if i = skipSpace(data, i); i != len(data) {
		return syntaxError(i)
	}
	return nil
}

func syntaxError(i int) error { return fmt.Errorf("malformed JSON at byte %d", i) }

func skipSpace(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\n' || data[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the position behind the string that starts at i.
func skipString(data []byte, i int) (int, error) {
	for j := i + 1; j < len(data); j++ {
		switch data[j] {
		case '\\':
			j++
		case '"':
			return j + 1, nil
		}
	}
	return 0, syntaxError(i)
}

// skipValue returns the position behind the value that starts at i.
func skipValue(data []byte, i int) (int, error) {
	if i >= len(data) {
		return 0, syntaxError(i)
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		return skipNested(data, i)
	}
	j := i
	for j < len(data) && bytes.IndexByte([]byte(" \t\r\n,}]"), data[j]) < 0 {
		j++
	}
	if j == i || !json.Valid(data[i:j]) {
		return 0, syntaxError(i)
	}
	return j, nil
}

// skipNested returns the position behind the object or array that starts at i.
func skipNested(data []byte, i int) (int, error) {
	depth := 0
	for j := i; j < len(data); j++ {
		switch data[j] {
		case '"':
			end, err := skipString(data, j)
			if err != nil {
				return 0, err
			}
			j = end - 1
		case '{', '[':
			if depth++; depth > maxDepth {
				return 0, syntaxError(j)
			}
		case '}', ']':
			if depth--; depth == 0 {
				return j + 1, nil
			}
		}
	}
	return 0, syntaxError(i)
}
