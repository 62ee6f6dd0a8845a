// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"runtime"
	"testing"
)

// slots limits the starts of this test program alone: Windows has no lock that is given up when
// its owner dies and costs no more code than it saves.
var slots = make(chan struct{}, runtime.NumCPU())

func takeSlot(t testing.TB) {
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
}

func slotFolder() string { return "" }
