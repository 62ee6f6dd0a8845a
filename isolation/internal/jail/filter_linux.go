// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Filter is the seccomp program of a cell, as the kernel takes it: an array of struct sock_filter. Nested is the weaker one
// of [Spec]. A program of another processor is killed; anything refused gets an error that programs know how to meet.
func Filter(nested bool) []byte { return assemble(compile(rules(nested))) }

// SharedNetworkFilter is the strict filter for a program that is in the network of the host, behind rules
// about TCP connections. It closes what goes around such rules: of internet sockets only plain TCP ones
// can be made, of others only unix ones, and no connection is opened by sending.
func SharedNetworkFilter() []byte { return assemble(compile(sharedNetworkRules())) }

// Where struct seccomp_data keeps what a filter looks at. Both processors put the low half first.
const (
	callOffset      = 0
	archOffset      = 4
	argumentsOffset = 16
)

func compile(rules []rule) []unix.SockFilter {
	code := []unix.SockFilter{
		load(archOffset),
		ifEqual(auditArch, 1, 0),
		give(unix.SECCOMP_RET_KILL_PROCESS),
		load(callOffset),
	}
	if foreignCalls != 0 {
		code = append(code, jump(unix.BPF_JGE, foreignCalls, 0, 1), refuse(unix.EPERM))
	}
	for _, r := range rules {
		answer := r.answer()
		for _, call := range r.calls {
			code = append(code, ifEqual(call, 0, uint8(len(answer))))
			code = append(code, answer...)
		}
	}
	return append(code, give(unix.SECCOMP_RET_ALLOW))
}

// answer decides about a call of the rule. It always returns.
func (r rule) answer() []unix.SockFilter {
	switch {
	case len(r.decide) > 0:
		return r.decide
	case len(r.whenAll) > 0:
		return r.answerBits()
	case len(r.only) > 0:
		return r.answerValues(r.only, refuse(r.errno), give(unix.SECCOMP_RET_ALLOW))
	case len(r.except) > 0:
		return r.answerValues(r.except, give(unix.SECCOMP_RET_ALLOW), refuse(r.errno))
	}
	return []unix.SockFilter{refuse(r.errno)}
}

// answerBits refuses if every test holds, and allows at the first that does not.
func (r rule) answerBits() []unix.SockFilter {
	var code []unix.SockFilter
	for _, b := range r.whenAll {
		code = append(code, loadArgument(b.argument), jump(unix.BPF_JSET, b.mask, 1, 0), give(unix.SECCOMP_RET_ALLOW))
	}
	return append(code, refuse(r.errno))
}

// answerValues gives one answer for the values and the other for all else.
func (r rule) answerValues(values []uint32, match, other unix.SockFilter) []unix.SockFilter {
	code := []unix.SockFilter{loadArgument(r.argument)}
	for _, v := range values {
		code = append(code, ifEqual(v, 0, 1), match)
	}
	return append(code, other)
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// loadArgument loads the low half of an argument: all that the kernel looks at in the arguments here.
func loadArgument(i int) unix.SockFilter { return load(argumentsOffset + 8*uint32(i)) }

func jump(op uint16, value uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, Jt: yes, Jf: no, K: value}
}

func ifEqual(value uint32, yes, no uint8) unix.SockFilter {
	return jump(unix.BPF_JEQ, value, yes, no)
}

func give(result uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: result}
}

func refuse(e unix.Errno) unix.SockFilter { return give(unix.SECCOMP_RET_ERRNO | uint32(e)) }

func assemble(code []unix.SockFilter) []byte {
	var out []byte
	for _, c := range code {
		out = binary.LittleEndian.AppendUint16(out, c.Code)
		out = append(out, c.Jt, c.Jf)
		out = binary.LittleEndian.AppendUint32(out, c.K)
	}
	return out
}
