// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
)

// A Hash is the SHA-256 of a content.
type Hash [sha256.Size]byte

// empty is the hash of the content without bytes, which is always there and costs nothing.
var empty = Hash(sha256.Sum256(nil))

// String is the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

func sumOf(digest hash.Hash) (h Hash) {
	digest.Sum(h[:0])
	return h
}
