// SPDX-License-Identifier: Apache-2.0

// Package ident makes and recognises UUIDs of sessions and messages, and names of tools, also of earlier versions.
package ident

import (
	"crypto/rand"
	"fmt"
)

// NewUUID returns a random UUID of version 4.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ValidUUID reports whether s is a UUID in its usual form, of any version. Such a string is safe as a file name.
func ValidUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return false
		}
	}
	return true
}
