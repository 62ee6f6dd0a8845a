// SPDX-License-Identifier: Apache-2.0

package cgroup

import "errors"

// ErrUnavailable is what [New] returns, wrapped with the reasons, where the kernel gives this process
// no group with the limits that were asked for.
var ErrUnavailable = errors.New("no control group can be had here")

// Limits are what the processes of a group may use together. A zero field sets no limit.
type Limits struct {
	// Memory is in bytes. Swap counts where the kernel can count it. The kernel ends a process of
	// the group that needs more; the others live on.
	Memory int64
	// Processes is the number of processes and threads. A fork above it fails.
	Processes int
}
