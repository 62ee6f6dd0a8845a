// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package watchdog

import (
	"fmt"
	"runtime"
)

// UsageOf fails: what a tree of processes uses is known on Linux only.
func UsageOf(...int) (Usage, error) {
	return Usage{}, fmt.Errorf("what processes use cannot be told on %s\n  next: run on Linux, or without limits on memory and CPU time", runtime.GOOS)
}

func spareMemory() (int64, bool) { return 0, false }

func exactMemory([]int) int64 { return 0 }

func (*walk) unnamed([]int) {}
