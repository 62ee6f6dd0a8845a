// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

// In a strict cell the CLI's own sandbox does not work, and it does not notice; the try before a run does.
func TestSandbox_FailureInACellIsDetected(t *testing.T) {
	if err := jail.Supported(t.Context(), ""); err != nil {
		t.Skip(err)
	}
	if err := probeNested(t.Context(), jail.Spec{Dir: "/tmp", Nested: true}); err != nil {
		t.Errorf("in a relaxed cell: %v", err)
	}
	err := probeNested(t.Context(), jail.Spec{Dir: "/tmp"})
	if err == nil || !strings.Contains(advice.Text(err), "does not work in a cell here") || !strings.Contains(advice.Text(err), "next: leave Nested out") {
		t.Errorf("in a strict cell: got %v, want a refusal that says what to do", err)
	}
}
