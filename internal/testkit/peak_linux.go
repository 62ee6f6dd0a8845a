// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"os"
	"syscall"
)

func peakOf(state *os.ProcessState) int64 {
	return int64(state.SysUsage().(*syscall.Rusage).Maxrss) << 10 //nolint:unconvert // not int64 on all platforms
}
