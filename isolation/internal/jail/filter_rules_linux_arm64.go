// SPDX-License-Identifier: Apache-2.0

package jail

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	// foreignCalls is where the numbers of another set of calls begin. Zero: there is none.
	foreignCalls = 0
)

var machineOfArch []uint32

// setuidOfArch are older calls, of which this processor has none.
var setuidOfArch []rule
