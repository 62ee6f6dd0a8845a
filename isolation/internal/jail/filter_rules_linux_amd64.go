// SPDX-License-Identifier: Apache-2.0

package jail

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	// foreignCalls is where the numbers of another set of calls begin (x32). Zero means no such set.
	foreignCalls = 0x40000000
)

var machineOfArch = []uint32{
	unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS,
	unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE, unix.SYS_QUERY_MODULE, unix.SYS_GET_KERNEL_SYMS,
}

// setuidOfArch are the older calls that this processor still has.
var setuidOfArch = []rule{
	{errno: unix.EPERM, calls: []uint32{unix.SYS_CHMOD, unix.SYS_CREAT, unix.SYS_MKNOD}, whenAll: []bits{{1, setuidBits}}},
	{errno: unix.EPERM, calls: []uint32{unix.SYS_OPEN}, whenAll: []bits{{1, createFlags}, {2, setuidBits}}},
}
