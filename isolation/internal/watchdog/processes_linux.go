// SPDX-License-Identifier: Apache-2.0

package watchdog

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/internal/proc"
)

// tick is the unit of CPU time in /proc; the kernel has used it for user programs for ever.
const tick = time.Second / 100

// UsageOf asks the processes and all their descendants. Processes that end meanwhile are left out.
func UsageOf(pids ...int) (Usage, error) {
	var all Usage
	for _, pid := range proc.Descendants(pids...) {
		cpu, ok := cpuOf(pid)
		if !ok {
			continue
		}
		all.Processes++
		all.CPU += cpu
		memory, _ := fields(pid, "status", "RssAnon:", "RssShmem:", "VmSwap:")
		all.Memory += memory
	}
	return all, nil
}

// cpuOf is the CPU time of a process and of its children that it has reaped.
func cpuOf(pid int) (time.Duration, bool) {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	if err != nil {
		return 0, false
	}
	// The name in parentheses may hold anything; the times are the fields 12 to 15 after its end.
	words := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(words) < 15 {
		return 0, false
	}
	var sum time.Duration
	for _, word := range words[11:15] {
		n, _ := strconv.ParseInt(string(word), 10, 64)
		sum += time.Duration(n) * tick
	}
	return sum, true
}

// spareMemory is what the machine can give to programs without swapping.
func spareMemory() (int64, bool) { return fieldsOf("/proc/meminfo", "MemAvailable:") }

// fields sums lines such as "RssAnon:   1234 kB" of a file, in bytes; false without such a line.
func fields(pid int, file string, keys ...string) (sum int64, ok bool) {
	return fieldsOf(procFile(pid, file), keys...)
}

func fieldsOf(path string, keys ...string) (sum int64, ok bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(content) {
		for _, key := range keys {
			rest, found := bytes.CutPrefix(line, []byte(key))
			words := bytes.Fields(rest)
			if !found || len(words) == 0 {
				continue
			}
			n, err := strconv.ParseInt(string(words[0]), 10, 64)
			sum, ok = sum+n<<10, ok || err == nil
		}
	}
	return sum, ok
}

// exactMemory is the memory of processes, with what they share counted once. It is slow: the kernel goes through their pages.
func exactMemory(pids []int) (sum int64) {
	for _, pid := range proc.Descendants(pids...) {
		// Pss_Anon and Pss_Shmem are there since Linux 5.4.
		share, ok := fields(pid, "smaps_rollup", "Pss_Anon:", "Pss_Shmem:", "SwapPss:")
		if !ok {
			share, _ = fields(pid, "status", "RssAnon:", "RssShmem:", "VmSwap:")
		}
		sum += share
	}
	return sum
}

// unnamed counts the open files of processes that have no name any more and are on a disk that is watched.
func (w *walk) unnamed(pids []int) {
	if len(pids) == 0 {
		return
	}
	disks := map[uint64]bool{}
	for _, root := range w.roots {
		var s unix.Stat_t
		if unix.Stat(root, &s) == nil {
			disks[s.Dev] = true
		}
	}
	for _, pid := range proc.Descendants(pids...) {
		dir := procFile(pid, "fd")
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			w.unnamedFile(dir+"/"+e.Name(), disks)
		}
	}
}

func (w *walk) unnamedFile(link string, disks map[uint64]bool) {
	var s unix.Stat_t
	if unix.Stat(link, &s) != nil || s.Nlink > 0 || s.Mode&unix.S_IFMT != unix.S_IFREG || !disks[s.Dev] {
		return
	}
	e := entry{id: fileID{s.Dev, s.Ino}, linked: true, bytes: s.Blocks * 512, apparent: s.Size}
	w.add(e, func() string {
		name, _ := os.Readlink(link)
		return name
	})
}

func procFile(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
