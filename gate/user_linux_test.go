// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/testuser"
)

func TestTheGateHoldsForAnOrdinaryUser(t *testing.T) {
	testuser.Rerun(t, claudetest.CLI(t).Path, "^(TestAMutatingTool|TestTheHookDenies|TestNativeTools|TestAnAskIsAnsweredOnce)")
}
