// SPDX-License-Identifier: Apache-2.0

package watchdog

import "time"

// A Usage is what processes use together.
type Usage struct {
	Processes int
	// Memory is in bytes, swap included, without the pages of files, which the kernel can drop. What
	// processes share counts for each of them.
	Memory int64
	// CPU is the time of the processes and of their ended children. The time of a child whose parent
	// did not want to know of its end is lost.
	CPU time.Duration
}
