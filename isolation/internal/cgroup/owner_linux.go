// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
)

// mark begins the name of every group of ours.
const mark = "drover."

// An owner is the process that made a group. Its start distinguishes it from a later process with the same
// pid, the namespace from one that has the pid in another container.
type owner struct {
	namespace uint64 // inode of the PID namespace
	pid       int
	start     uint64 // in ticks since the machine started
}

func (o owner) prefix() string { return fmt.Sprintf("%s%d.%d.%d.", mark, o.namespace, o.pid, o.start) }

// ownerOf reads the name of a group; false if it is not one of ours.
func ownerOf(name string) (owner, bool) {
	rest, ok := strings.CutPrefix(name, mark)
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 4 || !goodName(parts[3]) {
		return owner{}, false
	}
	namespace, err1 := strconv.ParseUint(parts[0], 10, 64)
	pid, err2 := strconv.Atoi(parts[1])
	start, err3 := strconv.ParseUint(parts[2], 10, 64)
	return owner{namespace, pid, start}, errors.Join(err1, err2, err3) == nil
}

func goodName(name string) bool {
	return name != "" && len(name) <= 128 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

func (h host) self() (owner, error) {
	var space unix.Stat_t
	if err := unix.Stat(filepath.Join(h.proc, "self/ns/pid"), &space); err != nil {
		return owner{}, &os.PathError{Op: "stat", Path: filepath.Join(h.proc, "self/ns/pid"), Err: err}
	}
	start, err := h.startOf("self")
	if err != nil {
		return owner{}, err
	}
	if same, err := h.startOf(strconv.Itoa(os.Getpid())); err != nil || same != start { // owners that live would look gone
		return owner{}, advice.Wrap(fmt.Errorf("%s is of another PID namespace than this process", h.proc), "mount a /proc of its own there")
	}
	return owner{space.Ino, os.Getpid(), start}, nil
}

// startOf is when a process started, in ticks.
func (h host) startOf(pid string) (uint64, error) {
	stat, err := os.ReadFile(filepath.Join(h.proc, pid, "stat"))
	if err != nil {
		return 0, err
	}
	// The name in parentheses may hold anything; the start is the twentieth field after its end.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, fmt.Errorf("%s/%s/stat has %d fields after the name, want 20", h.proc, pid, len(fields))
	}
	return strconv.ParseUint(string(fields[19]), 10, 64)
}

// Sweep removes the groups of programs of ours that ended without doing it, from where this process
// would make its own, and returns how many folders it removed. Processes that are still in such a group are
// killed: no program controls them any more.
func Sweep() int { return realHost().sweep() }

func (h host) sweep() (removed int) {
	me, err := h.self()
	if err != nil {
		return 0
	}
	for _, parent := range h.parents() {
		entries, _ := os.ReadDir(parent)
		for _, e := range entries {
			o, ours := ownerOf(e.Name())
			if ours && h.gone(o, me) && h.clear(filepath.Join(parent, e.Name())) == nil {
				removed++
			}
		}
	}
	return removed
}

// clear removes a group, after it has ended the processes in it.
func (h host) clear(path string) error {
	err := h.rmdir(path)
	for deadline := time.Now().Add(closeWait); errors.Is(err, unix.EBUSY) && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if h.write(filepath.Join(path, "cgroup.kill"), "1") != nil { // version 1, or before Linux 5.14
			for _, pid := range membersOf(path) {
				h.kill(pid, func() bool { return slices.Contains(membersOf(path), pid) })
			}
		}
		err = h.rmdir(path)
	}
	return err
}

// killMember kills a process that is still a member once there is a handle on it.
func killMember(pid int, isMember func() bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if isMember() {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// gone reports whether an owner has surely ended. Nothing is known of other PID namespaces and of hidden processes.
func (h host) gone(o, me owner) bool {
	if o.namespace != me.namespace {
		return false
	}
	start, err := h.startOf(strconv.Itoa(o.pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	return start != o.start
}
