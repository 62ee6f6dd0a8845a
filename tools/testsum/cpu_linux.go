// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

type process struct {
	folder  string // of the package that it tests, or that the test binary above it does
	seconds float64
}

// watchCPU looks at the processes below go test until it has ended, and returns the seconds of CPU time by folder of
// the tests. It is an estimate: what a process took after the last look at it is not counted.
func watchCPU(goTest int, ended <-chan struct{}) map[string]float64 {
	seen := map[int]process{}
	for {
		look(goTest, seen)
		select {
		case <-ended:
			byFolder := map[string]float64{}
			for _, p := range seen {
				byFolder[p.folder] += p.seconds
			}
			return byFolder
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// look notes the time of every process whose parent is known. A process that lost its parent stays where it was.
func look(goTest int, seen map[int]process) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // by number, so that parents mostly come first
	for _, name := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		parent, seconds := readStat(name)
		p, known := seen[pid]
		if !known {
			above, below := seen[parent]
			if !below && parent != goTest {
				continue
			}
			p.folder = above.folder
			if parent == goTest {
				p.folder = testedFolder(pid)
			}
			if p.folder == "" {
				continue // a compiler, or a test that is elsewhere at the moment
			}
		}
		p.seconds = max(p.seconds, seconds)
		seen[pid] = p
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

// readStat gives the parent of a process, and the time that it took itself.
func readStat(name string) (parent int, seconds float64) {
	text, _ := os.ReadFile(name)
	_, after, _ := strings.Cut(string(text), ") ") // the name of the program may have spaces
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	for _, field := range fields[11:13] {
		ticks, _ := strconv.ParseFloat(field, 64)
		seconds += ticks / 100
	}
	return parent, seconds
}
