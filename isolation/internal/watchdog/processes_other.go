// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package watchdog

import (
	"fmt"
	"runtime"

	"github.com/drover-agents/drover/advice"
)

// UsageOf fails: what a tree of processes uses is known on Linux only.
func UsageOf(...int) (Usage, error) {
	return Usage{}, advice.Wrap(fmt.Errorf("the resources of processes cannot be measured on %s", runtime.GOOS),
		"run on Linux, or without limits on memory and CPU time")
}

func spareMemory() (int64, bool) { return 0, false }

func exactMemory([]int) int64 { return 0 }

func (*walk) unnamed([]int) {}
