// SPDX-License-Identifier: Apache-2.0

package watchdog

// A space is what an ordinary user may still take on a disk. Some file systems have no number of
// files; then it is always the same.
type space struct {
	known       bool
	free, files int64
}
