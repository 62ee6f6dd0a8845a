// SPDX-License-Identifier: Apache-2.0

// Package sortedjson gives JSON texts that mean the same the same form: keys sorted, no spaces,
// numbers as they were written.
package sortedjson

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// Of returns the sorted form of one JSON value. A text that programs read in different ways has none:
// one with a key twice in an object, or with characters that stand for broken ones.
func Of(raw json.RawMessage) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a float64 would make different numbers equal
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil { // maps are written with sorted keys
		return nil, err
	}
	sorted := bytes.TrimSpace(b.Bytes())
	if members(sorted) != members(raw) {
		return nil, errors.New("an object has a key twice")
	}
	if bytes.ContainsRune(sorted, utf8.RuneError) {
		return nil, errors.New("a text has characters that cannot be told from others")
	}
	return sorted, nil
}

// members counts those of all objects in a valid text, by their colons. A key that is there twice is
// lost in a map.
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

// Digest returns the SHA-256 of the sorted form, in hexadecimal. A text that is no JSON is digested
// as it is.
func Digest(raw json.RawMessage) string {
	if sorted, err := Of(raw); err == nil {
		raw = sorted
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// Equal reports whether two texts mean the same. Texts that are no JSON are equal only byte for
// byte.
func Equal(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	as, aErr := Of(a)
	bs, bErr := Of(b)
	return aErr == nil && bErr == nil && bytes.Equal(as, bs)
}
