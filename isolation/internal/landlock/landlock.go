// SPDX-License-Identifier: Apache-2.0

package landlock

import (
	"errors"
	"os"
)

// ErrUnavailable is what Open returns, wrapped with the reason, where the system has no Landlock.
var ErrUnavailable = errors.New("no Landlock is available here")

// A Ruleset lists what stays possible. The zero value allows nothing: no file can be opened and no TCP port reached. Paths
// must exist and be absolute; a folder includes everything below it, a link means its target.
type Ruleset struct {
	// ReadOnly are files and folders to read and to run programs from.
	ReadOnly []string
	// ReadWrite are files and folders to do everything in but to make devices.
	ReadWrite []string
	// Handles are the files of paths in ReadOnly and ReadWrite, opened with O_PATH. Paths that have none are looked up.
	Handles map[string]*os.File
	// Devices are device files to use, such as /dev/null.
	Devices []string
	// ConnectTCP are ports to connect to, on every address, BindTCP ports to listen on; 0 means any that the kernel picks.
	ConnectTCP, BindTCP []uint16
	// BindAnyTCP lets every port be listened on.
	BindAnyTCP bool
}

// Enforced describes what the running kernel enforces of a ruleset.
type Enforced struct {
	// ABI is the version of Landlock in the kernel.
	ABI int
	// Holds are the restrictions that are in effect.
	Holds []string
	// Open are the gaps that remain.
	Open []Gap
}

// A Gap is something that the ruleset leaves possible.
type Gap struct {
	// What describes it.
	What string
	// Filterable gaps are closed by a seccomp filter that allows, of internet sockets, only streams
	// with protocol 0 or TCP, no MSG_FASTOPEN in sendto, sendmsg and sendmmsg, of other families
	// only unix sockets, and neither keyrings nor io_uring.
	Filterable bool
}
