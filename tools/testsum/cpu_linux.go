// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cpu is the CPU time of tests by the folder of their package.
type cpu struct {
	folders map[int]string     // of a process: that of the test binary above it
	seconds map[string]float64 // of a folder
}

// watchCPU looks at the processes below go test until it has ended, and returns the seconds of CPU time by folder of
// the tests. It is an estimate: what a test binary took after the last look at it is not counted.
func watchCPU(goTest int, ended <-chan struct{}) map[string]float64 {
	seen := cpu{map[int]string{}, map[string]float64{}}
	for {
		seen.look(goTest)
		select {
		case <-ended:
			return seen.seconds
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// look adds up the times of the processes of each folder. The time of a child that has ended is that of its parent; a process that
// lost its parent stays where it was.
func (c *cpu) look(goTest int) {
	now := map[string]float64{}
	entries, _ := os.ReadDir("/proc")
	pids := make([]int, 0, len(entries))
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids) // parents mostly come first, before they have the time of a child that ends meanwhile
	for _, pid := range pids {
		parent, seconds := readStat(pid)
		folder := c.folders[pid]
		if folder == "" {
			folder = c.folders[parent]
		}
		if folder == "" && parent == goTest {
			folder = testedFolder(pid)
		}
		if folder != "" { // else a compiler, or a test that is elsewhere at the moment
			c.folders[pid] = folder
			now[folder] += seconds
		}
	}
	for folder, seconds := range now {
		c.seconds[folder] = max(c.seconds[folder], seconds)
	}
}

// testedFolder is the folder of a test binary, which runs in its package.
func testedFolder(pid int) string {
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	root, _ := os.Getwd()
	rel, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(rel) || !strings.HasSuffix(exe, ".test") {
		return ""
	}
	return rel
}

// readStat gives the parent of a process, and the time that it and its children took that have ended.
func readStat(pid int) (parent int, seconds float64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := strings.Cut(string(text), ") ") // the name of the program may have spaces
	fields := strings.Fields(after)
	if len(fields) < 15 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	for _, field := range fields[11:15] {
		ticks, _ := strconv.ParseFloat(field, 64)
		seconds += ticks / 100
	}
	return parent, seconds
}
