// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"slices"

	"golang.org/x/sys/unix"
)

// A rule refuses system calls with an error. A call is in one rule only.
type rule struct {
	calls []uint32
	errno unix.Errno
	// whenAll narrows the rule to calls in which each of these arguments has one of these bits.
	whenAll []bits
	// argument and only, or except, narrow it to calls in which the argument is, or is not, one of these values.
	argument     int
	only, except []uint32
	// decide is the whole answer, where the others do not suffice.
	decide []unix.SockFilter
}

type bits struct {
	argument int
	mask     uint32
}

// rules are what a program in a cell does not get, by reason.
func rules(nested bool) []rule {
	all := slices.Concat(plainRules, argumentRules, setuidRules())
	if nested {
		return all
	}
	return append(all, namespaceRules...)
}

var plainRules = []rule{
	// Other processes: their memory, registers and descriptors.
	{errno: unix.EPERM, calls: []uint32{
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
		unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE,
	}},
	// Keyrings belong to the host's user, not to a namespace.
	{errno: unix.EPERM, calls: []uint32{unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY}},
	// Wide doors into the kernel.
	{errno: unix.EPERM, calls: []uint32{unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT}},
	// The newer interface to mounts, which a sandbox inside does not need either.
	{errno: unix.EPERM, calls: []uint32{
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE,
		unix.SYS_OPEN_TREE_ATTR, unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	}},
	// Files by handle, past the folders they are in.
	{errno: unix.EPERM, calls: []uint32{unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT}},
	// The machine itself: modules, kernels, swap, accounts, its log and its clock.
	{errno: unix.EPERM, calls: []uint32{
		unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
		unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT,
		unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SYSLOG, unix.SYS_SETTIMEOFDAY,
		unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_VHANGUP,
		unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
	}},
	{errno: unix.EPERM, calls: machineOfArch},
	// Rings run calls that no filter sees. "Not there" makes programs take the older way; so it does
	// for clone3 and openat2, whose flags are behind pointers that a filter cannot follow.
	{errno: unix.ENOSYS, calls: []uint32{
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		unix.SYS_CLONE3, unix.SYS_OPENAT2,
	}},
}

var argumentRules = []rule{
	// Text that a terminal would take for typed, and protocols for serial lines, which the kernel would
	// load and run for a terminal of the cell's own.
	{errno: unix.EPERM, calls: []uint32{unix.SYS_IOCTL}, argument: 1, only: []uint32{unix.TIOCSTI, tiocLinux, unix.TIOCSETD}},
	// Sockets that no network namespace confines (vsock), that see the wire (packet), and rarities.
	{
		errno: unix.EAFNOSUPPORT, calls: []uint32{unix.SYS_SOCKET}, argument: 0,
		except: []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK},
	},
	// A pair makes sockets of a family too, and has the kernel load what it needs for that.
	{errno: unix.EAFNOSUPPORT, calls: []uint32{unix.SYS_SOCKETPAIR}, argument: 0, except: []uint32{unix.AF_UNIX}},
}

// sharedNetworkRules are the strict ones with sharper rules about sockets.
func sharedNetworkRules() []rule {
	strict := slices.DeleteFunc(rules(false), func(r rule) bool { return slices.Contains(r.calls, unix.SYS_SOCKET) })
	return append(strict, socketRules()...)
}

func socketRules() []rule {
	// A message with MSG_FASTOPEN opens a connection without a call of connect, so rules on connect miss it. A kernel
	// without this feature returns the same error.
	fastOpen := func(argument int, call uint32) rule {
		return rule{errno: unix.EOPNOTSUPP, calls: []uint32{call}, whenAll: []bits{{argument, unix.MSG_FASTOPEN}}}
	}
	return []rule{
		{calls: []uint32{unix.SYS_SOCKET}, decide: decideSocket()},
		fastOpen(3, unix.SYS_SENDTO), fastOpen(2, unix.SYS_SENDMSG), fastOpen(3, unix.SYS_SENDMMSG),
	}
}

// decideSocket allows unix sockets and, of internet ones, streams of protocol 0 or TCP: no UDP, no Multipath TCP, no SCTP.
func decideSocket() []unix.SockFilter {
	const cloexec, nonblock = unix.SOCK_CLOEXEC, unix.SOCK_NONBLOCK
	streams := []uint32{unix.SOCK_STREAM, unix.SOCK_STREAM | cloexec, unix.SOCK_STREAM | nonblock, unix.SOCK_STREAM | cloexec | nonblock}
	code := []unix.SockFilter{
		loadArgument(0),
		ifEqual(unix.AF_UNIX, 0, 1), give(unix.SECCOMP_RET_ALLOW),
		ifEqual(unix.AF_INET, 2, 0),
		ifEqual(unix.AF_INET6, 1, 0),
		refuse(unix.EAFNOSUPPORT),
		loadArgument(1),
	}
	for n, kind := range streams {
		code = append(code, ifEqual(kind, uint8(len(streams)-n), 0))
	}
	return append(code,
		refuse(unix.EACCES),
		loadArgument(2),
		ifEqual(0, 1, 0), ifEqual(unix.IPPROTO_TCP, 0, 1), give(unix.SECCOMP_RET_ALLOW),
		refuse(unix.EACCES),
	)
}

// namespaceRules keep a program from making and entering namespaces, and from mounting. A nested sandbox needs these calls.
var namespaceRules = []rule{
	{errno: unix.EPERM, calls: []uint32{
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	}},
	{errno: unix.EPERM, calls: []uint32{unix.SYS_CLONE}, whenAll: []bits{{0, namespaceFlags}}},
}

const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// tiocLinux is TIOCLINUX, the same on both processors.
const tiocLinux = 0x541c

// setuidRules keep a program from leaving set-uid files in a mount: outside they belong to the
// mount's owner, who may be root, and a user there could run them.
func setuidRules() []rule {
	mode := func(argument int, calls ...uint32) rule {
		return rule{errno: unix.EPERM, calls: calls, whenAll: []bits{{argument, setuidBits}}}
	}
	return append([]rule{
		mode(1, unix.SYS_FCHMOD),
		mode(2, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_MKNODAT),
		{errno: unix.EPERM, calls: []uint32{unix.SYS_OPENAT}, whenAll: []bits{{2, createFlags}, {3, setuidBits}}},
	}, setuidOfArch...)
}

const (
	setuidBits = unix.S_ISUID | unix.S_ISGID
	// createFlags are those with which open looks at its mode: O_CREAT and the bit of its own of O_TMPFILE.
	createFlags = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
)
