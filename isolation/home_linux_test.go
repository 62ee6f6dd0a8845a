// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"testing"

	"github.com/drover-agents/drover/internal/testkit"
)

func TestHomes_AsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, "/bin/true", "^Test(Home_(Locked|IsPrivate|DeepTree)|SweepHomes_(KilledProgram|Homes|Foreign))")
}
