// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// killDescendants ends root and all that can be reached from it over parent links. It stops every
// process before it kills the first one, from the root down, so that nobody forks away or loses
// its parent link while the walk is on.
func killDescendants(root int) {
	stopped := map[int]bool{}
	for {
		before := len(stopped)
		for _, pid := range Descendants(root) {
			if !stopped[pid] {
				stopped[pid] = true
				_ = unix.Kill(pid, unix.SIGSTOP)
			}
		}
		if len(stopped) == before {
			break
		}
	}
	for pid := range stopped {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// Descendants returns the roots and everything below them, each once, parents first. A process that
// detached itself and whose parent has ended is not found, unless it is in a PID namespace below a
// root: there it has the first process of the namespace as its parent.
func Descendants(roots ...int) []int {
	children := map[int][]int{}
	for _, pid := range allPIDs() {
		if ppid, ok := parentOf(pid); ok {
			children[ppid] = append(children[ppid], pid)
		}
	}
	seen := map[int]bool{}
	var found []int
	for next := roots; len(next) > 0; {
		var below []int
		for _, pid := range next {
			if !seen[pid] {
				seen[pid] = true
				found = append(found, pid)
				below = append(below, children[pid]...)
			}
		}
		next = below
	}
	return found
}

func allPIDs() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf returns the parent of pid; false if pid is gone.
func parentOf(pid int) (int, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The name in parentheses may hold anything; the fields after its end are "state ppid …".
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	ppid, err := strconv.Atoi(string(fields[1]))
	return ppid, err == nil
}

// statusField returns a field of /proc/pid/status, or "".
func statusField(pid int, name string) string {
	data, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
