// SPDX-License-Identifier: Apache-2.0

package drovertest_test

import (
	"testing"

	"github.com/drover-agents/drover/internal/testuser"
)

func TestOracleAsAnOrdinaryUser(t *testing.T) {
	testuser.Rerun(t, "/bin/true", "^TestOracle_")
}
