// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/textproto"
	"strings"
)

// dropped are the headers that do not pass, in either direction: those about one connection, those
// that carry credentials, and those of proxies.
var dropped = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
	"Expect": true, "Host": true, "Content-Length": true, "Content-Encoding": true, // bodies are read as they are
	"Authorization": true, "X-Api-Key": true, "Cookie": true, "Set-Cookie": true,
	"Forwarded": true, "Via": true, "X-Real-Ip": true, "Accept-Encoding": true,
}

// droppedPrefixes are the beginnings of names that do not pass.
var droppedPrefixes = []string{"Proxy-", "X-Forwarded-", "X-Amz-"}

// passed returns the headers that go on.
func passed(h http.Header) http.Header {
	named := map[string]bool{}
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			named[textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name))] = true
		}
	}
	out := make(http.Header, len(h))
	for name, values := range h {
		if !dropped[name] && !named[name] && !hasPrefix(name, droppedPrefixes) {
			out[name] = values
		}
	}
	return out
}

func hasPrefix(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
