// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/testkit"
)

func TestCLI_GateAppliesToAnOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^(TestCLI_CapabilitiesDecideAboutItsTools|TestCLI_EachCallIsAskedAboutOnce|TestCLI_HookDeniesAToolThatTheCLIAllows|TestCLI_MutatingToolIsDeniedInBypassMode)$")
}
