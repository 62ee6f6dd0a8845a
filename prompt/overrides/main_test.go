// SPDX-License-Identifier: Apache-2.0

package overrides_test

import (
	"testing"

	"github.com/drover-agents/drover/claude/claudetest"
)

func TestMain(m *testing.M) { claudetest.Main(m) }
