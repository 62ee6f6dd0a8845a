// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"slices"
	"strings"
)

// dropped are the headers that do not pass, in either direction: those about one connection, those
// that carry credentials, and those of proxies. Names are folded.
var dropped = []string{
	"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade",
	"expect", "host", "content-length", "content-encoding", // bodies are read as they are
	"cookie", "set-cookie", "forwarded", "via", "x-real-ip", "accept-encoding",
	"x-http-method", "x-http-method-override", "x-method-override",
}

// droppedPrefixes begin names that do not pass; credentialWords are parts of names of headers that may carry a credential.
var (
	droppedPrefixes = []string{"proxy-", "x-forwarded-", "x-amz-", "x-original-", "x-rewrite-"}
	credentialWords = []string{"authorization", "api-key", "apikey", "auth-token", "access-token", "subscription-key"}
)

// fold is the name of a header for servers that make variables of headers: x-api-key and X_Api_Key are one.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, name)
}

func passed(h http.Header) http.Header {
	var named []string
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			named = append(named, fold(strings.TrimSpace(name)))
		}
	}
	out := make(http.Header, len(h))
	for name, values := range h {
		if folded := fold(name); !isDropped(folded) && !slices.Contains(named, folded) {
			out[name] = values
		}
	}
	return out
}

func isDropped(folded string) bool {
	return slices.Contains(dropped, folded) ||
		slices.ContainsFunc(droppedPrefixes, func(prefix string) bool { return strings.HasPrefix(folded, prefix) }) ||
		slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(folded, word) })
}
