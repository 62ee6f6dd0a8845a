// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"testing"

	"github.com/drover-agents/drover/internal/testuser"
)

func TestHomesOfOrdinaryUsers(t *testing.T) {
	testuser.Rerun(t, "/bin/true", "^(TestWhatTheAgentLockedIsRemovedToo|TestAHomeIsPrivate|TestADeepTreeIsRemovedToo|TestLeftovers.*)$")
}
