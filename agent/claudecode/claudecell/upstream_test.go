// SPDX-License-Identifier: Apache-2.0

package claudecell_test

import (
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
)

// A made-up key must not lead to a service that is taken for a script.
func TestScripted_AcceptsThisMachineAlone(t *testing.T) {
	for address, want := range map[string]bool{
		"http://127.0.0.1:4000": true, "http://localhost:4000": true, "http://[::1]:4000": true, "http://127.8.0.1": true,
		"": false, "127.0.0.1:4000": false, "http://192.0.2.1:4000": false, "https://api.anthropic.com": false, "http://localhost.example.com": false, "ftp://127.0.0.1": false, "http://127.0.0.1@example.com": false,
	} {
		up, err := claudecell.Scripted(address)
		if (err == nil) != want || (up != nil) != want || err != nil && advice.Of(err) == "" {
			t.Errorf("%q: got %v, %v, want success %v", address, up, err, want)
		}
	}
}
