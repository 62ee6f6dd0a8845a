// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workspace

import "golang.org/x/sys/unix"

// canWrite reports why nothing can be made in a folder. Somebody may change that at any time: it is only to
// say so early.
func canWrite(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
