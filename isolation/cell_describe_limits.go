// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"strings"
)

func (f facts) limits(w *words) {
	l := f.isolation.Limits.resolved()
	f.memory(w, l)
	f.processes(w, l)
	kernel := some(
		limited(l.FileSize, "a file has at most %s", bytesInWords),
		limited(int64(l.OpenFiles), "a process has at most %s open files", plain))
	if kernel != nil {
		w.holds("limits of the kernel: %s", strings.Join(kernel, ", "))
	}
	watched := some(
		limited(int64(l.CPUTime.Seconds()), "it computes for more than %s s", plain),
		limited(l.WorkspaceBytes, "workspace and home grow by more than %s", bytesInWords),
		limited(int64(l.WorkspaceFiles), "they get more than %s files", plain),
		limited(l.FreeSpace, "less than %s stays free on the disk", bytesInWords))
	if watched != nil {
		w.holds("a watchdog ends the run if %s", strings.Join(watched, ", or if "))
	}
	if l.CPUTime == 0 {
		w.lacks("the time that the run computes is not limited")
	}
	if l.WorkspaceBytes == 0 {
		w.lacks("what the run writes is not limited")
	}
}

// some are the phrases that are not empty.
func some(phrases ...string) []string {
	var kept []string
	for _, phrase := range phrases {
		if phrase != "" {
			kept = append(kept, phrase)
		}
	}
	return kept
}

func (f facts) memory(w *words, l Limits) {
	switch {
	case l.Memory == 0:
		w.lacks("memory is not limited")
	case f.group:
		w.holds("memory: at most %s, kept by the kernel", bytesInWords(l.Memory))
	default:
		w.holds("memory: watched, and the run is ended above %s, or when the machine has less than %s left",
			bytesInWords(l.Memory), bytesInWords(minSpareMemory))
		w.lacks("memory is not limited by the kernel, since this program may not make control groups: what grows fast is ended late, " +
			"and what is in no process, as files in memory and messages in sockets, is not counted")
	}
}

func (f facts) processes(w *words, l Limits) {
	switch {
	case l.Processes == 0:
		w.lacks("processes are not limited")
	case f.group || f.level == LevelCell:
		w.holds("processes: at most %d with their threads, kept by the kernel", l.Processes)
	default:
		w.holds("processes: at most %d more of this user than at the start, with their threads, kept by the kernel", l.Processes)
		w.lacks("the limit of processes is shared with everything else that this user runs")
	}
}

// limited is a phrase about a limit, or "" without a limit.
func limited(limit int64, format string, show func(int64) string) string {
	if limit == 0 {
		return ""
	}
	return fmt.Sprintf(format, show(limit))
}

func plain(n int64) string { return fmt.Sprint(n) }

// bytesInWords is exact.
func bytesInWords(n int64) string {
	switch {
	case n%gibibyte == 0:
		return fmt.Sprintf("%d GiB", n/gibibyte)
	case n%mebibyte == 0:
		return fmt.Sprintf("%d MiB", n/mebibyte)
	}
	return fmt.Sprintf("%d bytes", n)
}
