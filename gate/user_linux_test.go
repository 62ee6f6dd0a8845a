// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/testkit"
)

func TestTheGateHoldsForAnOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^(TestAMutatingTool|TestTheHookDenies|TestNativeTools|TestAnAskIsAnsweredOnce)")
}
