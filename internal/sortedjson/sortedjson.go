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
)

// Of returns the sorted form of one JSON value.
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
	err := enc.Encode(v) // maps are written with sorted keys
	return bytes.TrimSpace(b.Bytes()), err
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
