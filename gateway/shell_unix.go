// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package gateway

// shell runs the command of a [KeyCommand].
var shell = []string{"/bin/sh", "-c"}
