// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

const maxName = 64

var errNoName = errors.New("the server lists a tool without a name")

// localName makes a name that a tool may have of any other: characters that it must not hold become
// "_", and what is too long ends in a digest of the whole instead. The same name always gives the
// same; two names may give one, which the caller must notice.
func localName(name string) (string, error) {
	if name == "" {
		return "", errNoName
	}
	local := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	if len(local) <= maxName {
		return local, nil
	}
	sum := sha256.Sum256([]byte(name))
	digest := hex.EncodeToString(sum[:4])
	return local[:maxName-len(digest)-1] + "_" + digest, nil
}
