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

func TestTheFilterDecides(t *testing.T) {
	cases := []struct {
		name           string
		call           uint32
		args           []uint64
		strict, nested uint32
	}{
		{"reading", unix.SYS_READ, nil, allowed, allowed},
		{"running a program", unix.SYS_EXECVE, nil, allowed, allowed},
		{"a call that nobody knows", 999, nil, allowed, allowed},
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
		{"window size", unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, allowed, allowed},
		{"typing", unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, errno(unix.EPERM), errno(unix.EPERM)},
		{"typing behind high bits", unix.SYS_IOCTL, []uint64{0, 1<<32 | unix.TIOCSTI}, errno(unix.EPERM), errno(unix.EPERM)},
		{"chmod", unix.SYS_FCHMODAT, []uint64{0, 0, 0o755}, allowed, allowed},
		{"chmod to set-uid", unix.SYS_FCHMODAT, []uint64{0, 0, 0o4755}, errno(unix.EPERM), errno(unix.EPERM)},
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

// Each call is in one rule only: a second one would never be looked at.
func TestNoCallIsInTwoRules(t *testing.T) {
	seen := map[uint32]bool{}
	for _, r := range rules(false) {
		for _, call := range r.calls {
			if seen[call] {
				t.Errorf("call %d is in two rules", call)
			}
			seen[call] = true
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
