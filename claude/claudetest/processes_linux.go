// SPDX-License-Identifier: Apache-2.0

package claudetest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A process is one that the CLI of a test has started, or the CLI itself.
type process struct {
	pid     int
	command string
}

func (p process) kill() { _ = syscall.Kill(p.pid, syscall.SIGKILL) }

// processesOf are the living processes whose environment carries the marker of a run.
func processesOf(run string) []process {
	entry := []byte(marker + "=" + run)
	var found []process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		env, err := os.ReadFile(filepath.Join(dir, "environ")) // empty for a zombie
		if err != nil || pid == os.Getpid() || !bytes.Contains(env, entry) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found = append(found, process{pid, strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))})
	}
	return found
}
