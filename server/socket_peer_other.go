// SPDX-License-Identifier: Apache-2.0

//go:build !(linux || darwin || freebsd)

package server

import "os"

// peerOf is this user: the system does not tell who is at the other end, and the mode of the socket is all.
func peerOf(int) (uid int, err error) { return os.Geteuid(), nil }
