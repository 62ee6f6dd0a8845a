// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
)

func TestHomesOfOrdinaryUsers(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^(TestWhatTheAgentLockedIsRemovedToo|TestAHomeIsPrivate|TestADeepTreeIsRemovedToo|TestLeftovers.*)$")
}
