// SPDX-License-Identifier: Apache-2.0

package cgroup

import "errors"

// ErrUnavailable is returned by [New], wrapped with the reasons, where the kernel gives no group with these limits.
var ErrUnavailable = errors.New("no control group can be had here")

// Limits are what the processes of a group may use together. A zero field sets no limit.
type Limits struct {
	// Memory is in bytes, with swap if the kernel counts it. The kernel ends a process that needs more, not the others.
	Memory int64
	// Processes is the number of processes and threads. A fork above it fails.
	Processes int
}
