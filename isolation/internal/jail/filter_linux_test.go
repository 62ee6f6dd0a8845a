// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

const allowed, killed = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_KILL_PROCESS

func errno(e unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(e) }

func TestFilter_Decides(t *testing.T) {
	cases := []struct {
		name           string
		call           uint32
		args           []uint64
		strict, nested uint32
	}{
		{"reading", unix.SYS_READ, nil, allowed, allowed},
		{"running a program", unix.SYS_EXECVE, nil, allowed, allowed},
		{"an unknown call", 999, nil, allowed, allowed},
		{"ptrace", unix.SYS_PTRACE, nil, errno(unix.EPERM), errno(unix.EPERM)},
		{"keyctl", unix.SYS_KEYCTL, nil, errno(unix.EPERM), errno(unix.EPERM)},
		{"io_uring", unix.SYS_IO_URING_SETUP, nil, errno(unix.ENOSYS), errno(unix.ENOSYS)},
		{"clone3", unix.SYS_CLONE3, nil, errno(unix.ENOSYS), errno(unix.ENOSYS)},
		{"fsopen", unix.SYS_FSOPEN, nil, errno(unix.EPERM), errno(unix.EPERM)},
		{"mount", unix.SYS_MOUNT, nil, errno(unix.EPERM), allowed},
		{"unshare", unix.SYS_UNSHARE, nil, errno(unix.EPERM), allowed},
		{"a thread", unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allowed, allowed},
		{"a process", unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, allowed, allowed},
		{"a user namespace", unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, errno(unix.EPERM), allowed},
		{"a network namespace", unix.SYS_CLONE, []uint64{unix.CLONE_NEWNET}, errno(unix.EPERM), allowed},
		{"unix socket", unix.SYS_SOCKET, []uint64{unix.AF_UNIX}, allowed, allowed},
		{"IPv6 socket", unix.SYS_SOCKET, []uint64{unix.AF_INET6}, allowed, allowed},
		{"netlink socket", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK}, allowed, allowed},
		{"vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK}, errno(unix.EAFNOSUPPORT), errno(unix.EAFNOSUPPORT)},
		{"vsock behind high bits", unix.SYS_SOCKET, []uint64{1<<40 | unix.AF_VSOCK}, errno(unix.EAFNOSUPPORT), errno(unix.EAFNOSUPPORT)},
		{"packet socket", unix.SYS_SOCKET, []uint64{unix.AF_PACKET}, errno(unix.EAFNOSUPPORT), errno(unix.EAFNOSUPPORT)},
		{"a pair of unix sockets", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX}, allowed, allowed},
		{"a pair of TIPC sockets", unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC}, errno(unix.EAFNOSUPPORT), errno(unix.EAFNOSUPPORT)},
		{"window size", unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, allowed, allowed},
		{"typing", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, errno(unix.EPERM), errno(unix.EPERM)},
		{"a line discipline", unix.SYS_IOCTL, []uint64{0, unix.TIOCSETD}, errno(unix.EPERM), errno(unix.EPERM)},
		{"typing behind high bits", unix.SYS_IOCTL, []uint64{0, 1<<32 | unix.TIOCSTI}, errno(unix.EPERM), errno(unix.EPERM)},
		{"chmod", unix.SYS_FCHMODAT, []uint64{0, 0, 0o755}, allowed, allowed},
		{"chmod to set-uid", unix.SYS_FCHMODAT, []uint64{0, 0, 0o4755}, errno(unix.EPERM), errno(unix.EPERM)},
		{"fchmodat2", unix.SYS_FCHMODAT2, []uint64{0, 0, 0o755, 0}, allowed, allowed},
		{"fchmodat2 to set-uid", unix.SYS_FCHMODAT2, []uint64{0, 0, 0o4755, 0}, errno(unix.EPERM), errno(unix.EPERM)},
		{"fchmodat2 to set-gid", unix.SYS_FCHMODAT2, []uint64{0, 0, 0o2755, 0}, errno(unix.EPERM), errno(unix.EPERM)},
		{"mknodat of a set-uid file", unix.SYS_MKNODAT, []uint64{0, 0, unix.S_IFREG | 0o4755}, errno(unix.EPERM), errno(unix.EPERM)},
		{"chmod to set-gid", unix.SYS_FCHMOD, []uint64{0, 0o2755}, errno(unix.EPERM), errno(unix.EPERM)},
		{"open", unix.SYS_OPENAT, []uint64{0, 0, unix.O_RDONLY, 0o4755}, allowed, allowed},
		{"create", unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT, 0o644}, allowed, allowed},
		{"create set-uid", unix.SYS_OPENAT, []uint64{0, 0, unix.O_CREAT, 0o4755}, errno(unix.EPERM), errno(unix.EPERM)},
		{"create set-uid without a name", unix.SYS_OPENAT, []uint64{0, 0, unix.O_TMPFILE, 0o4755}, errno(unix.EPERM), errno(unix.EPERM)},
		{"open a folder", unix.SYS_OPENAT, []uint64{0, 0, unix.O_DIRECTORY, 0o4755}, allowed, allowed},
	}
	for _, c := range cases {
		for nested, want := range map[bool]uint32{false: c.strict, true: c.nested} {
			if got := judge(t, Filter(nested), auditArch, c.call, c.args); got != want {
				t.Errorf("%s, nested %v: got %#x, want %#x", c.name, nested, got, want)
			}
		}
	}
	if got := judge(t, Filter(false), 0x40000003, unix.SYS_READ, nil); got != killed { // i386
		t.Errorf("a call of another processor: got %#x, want %#x", got, uint32(killed))
	}
}

func TestSharedNetworkFilter_AllowsOnlyTCP(t *testing.T) {
	const stream, tcp, mptcp, sctp = unix.SOCK_STREAM, unix.IPPROTO_TCP, 262, unix.IPPROTO_SCTP
	fast := uint64(unix.MSG_FASTOPEN)
	cases := []struct {
		name string
		call uint32
		args []uint64
		want uint32
	}{
		{"a unix stream", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, stream}, allowed},
		{"unix datagrams", unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, allowed},
		{"TCP", unix.SYS_SOCKET, []uint64{unix.AF_INET, stream, 0}, allowed},
		{"TCP by name", unix.SYS_SOCKET, []uint64{unix.AF_INET, stream | unix.SOCK_CLOEXEC, tcp}, allowed},
		{"TCP without waiting", unix.SYS_SOCKET, []uint64{unix.AF_INET6, stream | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, tcp}, allowed},
		{"TCP, nonblock alone", unix.SYS_SOCKET, []uint64{unix.AF_INET6, stream | unix.SOCK_NONBLOCK}, allowed},
		{"TCP with high bits", unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_INET, 1<<32 | stream, 1 << 32}, allowed},
		{"UDP", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, errno(unix.EACCES)},
		{"UDP with a flag", unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC}, errno(unix.EACCES)},
		{"ping", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP}, errno(unix.EACCES)},
		{"raw", unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW, tcp}, errno(unix.EACCES)},
		{"Multipath TCP", unix.SYS_SOCKET, []uint64{unix.AF_INET, stream, mptcp}, errno(unix.EACCES)},
		{"SCTP", unix.SYS_SOCKET, []uint64{unix.AF_INET6, stream, sctp}, errno(unix.EACCES)},
		{"netlink", unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW}, errno(unix.EAFNOSUPPORT)},
		{"vsock", unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, stream}, errno(unix.EAFNOSUPPORT)},
		{"a pair", unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, stream}, allowed},
		{"a pair of another family", unix.SYS_SOCKETPAIR, []uint64{unix.AF_TIPC, stream}, errno(unix.EAFNOSUPPORT)},
		{"sending", unix.SYS_SENDTO, []uint64{3, 0, 0, unix.MSG_NOSIGNAL}, allowed},
		{"sendto that connects", unix.SYS_SENDTO, []uint64{3, 0, 0, fast | unix.MSG_NOSIGNAL}, errno(unix.EOPNOTSUPP)},
		{"sendmsg that connects", unix.SYS_SENDMSG, []uint64{3, 0, fast}, errno(unix.EOPNOTSUPP)},
		{"sendmmsg that connects", unix.SYS_SENDMMSG, []uint64{3, 0, 1, fast}, errno(unix.EOPNOTSUPP)},
		{"what the strict filter refuses", unix.SYS_UNSHARE, nil, errno(unix.EPERM)},
		{"rings", unix.SYS_IO_URING_SETUP, nil, errno(unix.ENOSYS)},
	}
	for _, c := range cases {
		if got := judge(t, SharedNetworkFilter(), auditArch, c.call, c.args); got != c.want {
			t.Errorf("%s: got %#x, want %#x", c.name, got, c.want)
		}
	}
}

// Each call is in one rule only: a second one would never be looked at.
func TestFilter_NoCallIsInTwoRules(t *testing.T) {
	for name, all := range map[string][]rule{"cell": rules(false), "shared network": sharedNetworkRules()} {
		seen := map[uint32]bool{}
		for _, r := range all {
			for _, call := range r.calls {
				if seen[call] {
					t.Errorf("%s: call %d is in two rules", name, call)
				}
				seen[call] = true
			}
		}
	}
}

// judge runs a filter as the kernel does, as far as filters here go.
func judge(t *testing.T, program []byte, arch, call uint32, args []uint64) uint32 {
	t.Helper()
	data := binary.LittleEndian.AppendUint32(nil, call)
	data = binary.LittleEndian.AppendUint32(data, arch)
	data = binary.LittleEndian.AppendUint64(data, 0)
	for i := range 6 {
		var a uint64
		if i < len(args) {
			a = args[i]
		}
		data = binary.LittleEndian.AppendUint64(data, a)
	}
	var loaded uint32
	for at := 0; at < len(program); at += 8 {
		code, value := binary.LittleEndian.Uint16(program[at:]), binary.LittleEndian.Uint32(program[at+4:])
		var holds bool
		switch code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			loaded = binary.LittleEndian.Uint32(data[value:])
			continue
		case unix.BPF_RET | unix.BPF_K:
			return value
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			holds = loaded == value
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			holds = loaded >= value
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			holds = loaded&value != 0
		default:
			t.Fatalf("instruction %d: code %#x is not one that filters here use", at/8, code)
		}
		skip := program[at+3]
		if holds {
			skip = program[at+2]
		}
		at += 8 * int(skip)
	}
	t.Fatal("the filter ends without an answer")
	return 0
}
