// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"bytes"
	"encoding/json"
)

// An object is keys and values in turn. It encodes as the CLI encodes: in the order given, and
// without escaping what only HTML needs escaped.
type object []any

func (o object) appendTo(dst []byte) []byte {
	dst = append(dst, '{')
	for i, v := range o {
		switch {
		case i%2 == 1:
			dst = append(dst, ':')
		case i > 0:
			dst = append(dst, ',')
		}
		dst = appendValue(dst, v)
	}
	return append(dst, '}')
}

func appendValue(dst []byte, v any) []byte {
	switch v := v.(type) {
	case object:
		return v.appendTo(dst)
	case []object:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.appendTo(dst)
		}
		return append(dst, ']')
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings, numbers, booleans and nil always encode
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
