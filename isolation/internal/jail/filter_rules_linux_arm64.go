// SPDX-License-Identifier: Apache-2.0

package jail

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	// foreignCalls is where the numbers of another set of calls begin. Zero means no such set.
	foreignCalls = 0
)

var machineOfArch []uint32

// setuidOfArch are older calls, of which this processor has none.
var setuidOfArch []rule
