// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/drover-agents/drover/internal/leftover"
)

// detached is a CLI without a PID namespace, from which commands can detach themselves. Kill sees to those
// that still have the run's home in their environment, also after the CLI has ended.
type detached struct {
	isolated
	home string
}

// Kill implements Process of package launch.
func (d detached) Kill() error {
	err := d.isolated.Kill()
	endThoseOf(d.home)
	return err
}

// maxSweeps bounds the looks for processes that start others while they are ended, sweepPause is between two of them.
const (
	maxSweeps  = 50
	sweepPause = 2 * time.Millisecond
)

// endThoseOf ends the processes of this user whose HOME is the home of the run, which no other run has.
func endThoseOf(home string) {
	for range maxSweeps {
		found := false
		for _, pid := range ownProcesses() {
			found = endIfOf(pid, home) || found
		}
		if !found {
			return
		}
		time.Sleep(sweepPause)
	}
}

// endIfOf ends a process if it belongs to the home. It takes a handle before it looks, because pids are used again.
func endIfOf(pid int, home string) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	defer func() { _ = p.Release() }()
	environ, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00HOME="+home+"\x00")) {
		return false
	}
	return p.Kill() == nil
}

func ownProcesses() []int {
	entries, _ := os.ReadDir("/proc")
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if info, err := entry.Info(); err == nil && leftover.OwnFile(info) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// userTasks is how many processes and threads this user has.
func userTasks() int {
	tasks := 0
	for _, pid := range ownProcesses() {
		entries, _ := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
		tasks += len(entries)
	}
	return tasks
}
