// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"testing"

	"github.com/drover-agents/drover/claude"
)

// Connect connects a client and closes it at the end of the test, which fails if either does.
func Connect(t testing.TB, opts *claude.Options) *claude.Client {
	t.Helper()
	c, err := claude.Connect(t.Context(), opts)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}
