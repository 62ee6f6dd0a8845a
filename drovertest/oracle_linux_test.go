// SPDX-License-Identifier: Apache-2.0

package drovertest_test

import (
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
)

func TestOracle_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^TestOracle_")
}
