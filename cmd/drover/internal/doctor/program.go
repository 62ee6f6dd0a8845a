// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// errNoTime is the error of a program that did not end in time. Its output is not known.
var errNoTime = errors.New("no answer in time")

// programOutput runs a program of PATH in an empty environment and returns its output, trimmed. Its
// error has the program's own words.
func programOutput(ctx context.Context, name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = []string{}
	cmd.WaitDelay = 100 * time.Millisecond // another process may hold the pipe
	out, err := cmd.CombinedOutput()
	output := strings.TrimSpace(string(out[:min(len(out), 4096)]))
	switch {
	case ctx.Err() != nil:
		return "", errNoTime
	case err != nil && output != "":
		return "", fmt.Errorf("%w: %.200s", err, oneLine(output))
	}
	return output, err
}

// installWith is the command by which this machine's package manager installs something.
func installWith(packages string, root bool) string {
	for _, manager := range []string{"apt-get install", "dnf install", "pacman -S", "zypper install", "apk add"} {
		program, _, _ := strings.Cut(manager, " ")
		if _, err := exec.LookPath(program); err != nil {
			continue
		}
		if !root {
			manager = "sudo " + manager
		}
		return manager + " " + packages
	}
	return "install " + packages + " with the package manager of this system"
}
