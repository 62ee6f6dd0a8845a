// SPDX-License-Identifier: Apache-2.0

// Package plainjson works on the text of JSON: it writes JSON as other languages do, gives texts that mean the same
// the same form, and reads a text in a single pass, without allocating.
//
// A [Scanner] is a cursor: the caller enters objects and arrays, asks for the values it knows and
// skips the others. Promises:
//
//   - What is read to its end with [Scanner.End] without error is exactly what encoding/json's
//     Valid accepts, the nesting limit of 10,000 included: skipped values are checked too.
//   - A value of another type than the one asked for is consumed and reported as absent. Only
//     text that is not JSON is an error, and the error stays.
//   - Strings decode as encoding/json decodes them: bytes that are not UTF-8 and lone surrogates
//     become U+FFFD.
//   - Slices that are handed out point into the input; the input is never modified.
//
// A Scanner is not safe for use by several goroutines.
package plainjson

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Marshal is [json.Marshal] without HTML escapes: <, > and & stay, so that what was read goes back byte for byte.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// TryMarshal is [Marshal] for values of others: a method of theirs that panics is an error.
func TryMarshal(v any) (raw json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("writing a %T panics: %v", v, p)
		}
	}()
	return Marshal(v)
}

// IsObject reports whether a text is a JSON object.
func IsObject(raw json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) && json.Valid(raw)
}

// Sorted returns one JSON value with sorted keys, without spaces, and with numbers as they were
// written. A text that programs read in different ways has no such form: one with a key twice in an
// object, or with characters that stand for broken ones.
func Sorted(raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a float64 would make different numbers equal
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	sorted, err := Marshal(v) // maps are written with sorted keys
	if err != nil {
		return nil, err
	}
	if members(sorted) != members(raw) {
		return nil, errors.New("an object has a key twice")
	}
	if bytes.ContainsRune(sorted, utf8.RuneError) {
		return nil, errors.New("a text has invalid or replacement characters")
	}
	return sorted, nil
}

// members counts those of all objects in a valid text, by their colons. A key that is there twice is lost in a map.
func members(valid []byte) int {
	n, quoted := 0, false
	for i := 0; i < len(valid); i++ {
		switch c := valid[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && c == ':':
			n++
		}
	}
	return n
}

// Digest returns the SHA-256 of the sorted form, in hexadecimal. A text that is not JSON is digested as it is.
func Digest(raw json.RawMessage) string {
	if sorted, err := Sorted(raw); err == nil {
		raw = sorted
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Equal reports whether two texts mean the same. Texts that are not JSON are equal only byte for byte.
func Equal(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	as, aErr := Sorted(a)
	bs, bErr := Sorted(b)
	return aErr == nil && bErr == nil && bytes.Equal(as, bs)
}

// Value reads any JSON value. Numbers are float64, except integers that a float64 would round: they stay a [json.Number].
func Value(raw json.RawMessage) (any, error) {
	var value any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	return plainNumbers(value), nil
}

// Form is the JSON of a value with sorted keys and without white space. Values that mean the
// same have the same form, whether they were read from JSON or made in Go.
func Form(value any) (json.RawMessage, error) {
	raw, err := TryMarshal(value)
	if err != nil {
		return nil, err
	}
	plain, err := Value(raw)
	if err != nil {
		return nil, err
	}
	return Marshal(plain)
}

// plainNumbers makes float64 of the numbers that can be, in place.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return v
		}
		if raw, _ := json.Marshal(f); !strings.ContainsAny(v.String(), ".eE") && string(raw) != v.String() {
			return v // an integer that would be rounded
		}
		return f
	case map[string]any:
		for key, inner := range v {
			v[key] = plainNumbers(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = plainNumbers(inner)
		}
	}
	return value
}

// OneLine is JSON without white space. It is empty for null and an object without fields; a text that is not JSON stays as it is.
func OneLine(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	if b.String() == "{}" || b.String() == "null" {
		return ""
	}
	return b.String()
}
