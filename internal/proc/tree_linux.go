// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// killDescendants ends root and all that can be reached from it over parent links. It stops every process before it kills
// the first one, from the root down, so that no process forks away or loses its parent link while the walk is on.
func killDescendants(root int) {
	stopped := map[int]bool{}
	for {
		before := len(stopped)
		for _, pid := range below(scannedChildren(), root) {
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

// Descendants returns the roots and everything below them, each once, parents first. A process that detached itself and
// whose parent has ended is not found, unless it is in a PID namespace below a root: there it has the first process of the
// namespace as its parent. A process whose sibling ends at this very moment may be missed; the next call finds it.
//
// Where the kernel lists children, which nearly all do, the cost does not depend on how many other
// processes the machine has.
func Descendants(roots ...int) []int {
	if listsChildren() {
		return below(listedChildren, roots...)
	}
	return below(scannedChildren(), roots...)
}

// listsChildren reports whether this kernel lists the children of a process.
var listsChildren = sync.OnceValue(func() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil
})

// listedChildren reads the children of a process from the lists of its threads.
func listedChildren(pid int) (children []int) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	for _, thread := range numbersIn(tasks) {
		list, _ := os.ReadFile(tasks + "/" + strconv.Itoa(thread) + "/children") // it may have ended
		for word := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(word); err == nil {
				children = append(children, child)
			}
		}
	}
	return children
}

// scannedChildren asks every process of the machine for its parent. None is missed.
func scannedChildren() func(pid int) []int {
	children := map[int][]int{}
	for _, pid := range allPIDs() {
		if ppid, ok := parentOf(pid); ok {
			children[ppid] = append(children[ppid], pid)
		}
	}
	return func(pid int) []int { return children[pid] }
}

func below(children func(pid int) []int, roots ...int) []int {
	seen := map[int]bool{}
	var found []int
	for todo := roots; len(todo) > 0; {
		var next []int
		for _, pid := range todo {
			if !seen[pid] {
				seen[pid] = true
				found = append(found, pid)
				next = append(next, children(pid)...)
			}
		}
		todo = next
	}
	return found
}

func allPIDs() []int { return numbersIn("/proc") }

func numbersIn(path string) []int {
	dir, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	var found []int
	for _, name := range names {
		if number, err := strconv.Atoi(name); err == nil {
			found = append(found, number)
		}
	}
	return found
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
