// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
)

// oldestNode is the first Node.js that the CLI's package accepts.
const oldestNode = 22

// readyStates map an agent's states to those of a check. An unreadable version is worse here than for a run, which may try.
var readyStates = map[agent.State]State{
	agent.StateReady:       stateOK,
	agent.StateUntested:    stateWarning,
	agent.StateUnknown:     stateBroken,
	agent.StateUnsupported: stateBroken,
	agent.StateMissing:     stateMissing,
}

// examineClaude asks the adapter, which is the one that will decide before a run.
func (m *machine) examineClaude(ctx context.Context) *Check {
	r := m.adapter.Ready(ctx)
	c := &Check{State: readyStates[r.State], Version: r.Version, Path: r.Path, Tested: r.Tested}
	if found, err := m.find(); err == nil && found.Path == r.Path {
		c.Source = found.Source
	}
	c.Detail = m.claudeDetail(r, c.Source)
	if c.State != stateOK && r.Repair != "" {
		c.Fix = []string{m.claudeFix(r, c.Source)}
	}
	if c.State == stateBroken && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		c.Fix = append([]string{moreTime}, c.Fix...)
	}
	return c
}

// claudeDetail is "2.1.325 at ./.drover/bin/claude (project install), tested 2.1.197 to 2.1.325", or what is wrong.
func (m *machine) claudeDetail(r agent.Readiness, source string) string {
	where := "at " + m.shortPath(r.Path)
	if source != "" {
		where += " (" + source + ")"
	}
	detail := strings.TrimPrefix(r.Detail, "claude: ")
	switch r.State {
	case agent.StateReady:
		return r.Version + " " + where + ", tested " + r.Tested
	case agent.StateUntested:
		return r.Version + " " + where + " is newer than those that were tested, " + r.Tested
	case agent.StateUnsupported:
		return r.Version + " " + where + " is too old, tested " + r.Tested
	case agent.StateMissing:
		return detail
	}
	return "its version cannot be read, " + where + ": " + strings.TrimSuffix(detail, ": "+r.Path)
}

// claudeFix is the adapter's own, and for a CLI that would be found before a new one, the way to prefer the new one.
func (m *machine) claudeFix(r agent.Readiness, source string) string {
	first := m.getenv(claude.EnvCLI) != "" || source == claude.FoundProject
	if !first || !strings.HasPrefix(r.Repair, "npm ") || m.goos == "windows" {
		return r.Repair
	}
	return r.Repair + " && export " + claude.EnvCLI + `="$(npm prefix --global)/bin/claude"`
}

// shortPath is path as seen from the working folder, if it is in it.
func (m *machine) shortPath(path string) string {
	dir, err := m.options.WorkDir()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return "." + string(filepath.Separator) + rel
	}
	return path
}

// examineNode asks for Node.js only if the CLI is a script for it; the usual one is a program.
func (m *machine) examineNode(ctx context.Context) *Check {
	found, err := m.find()
	if err != nil || !runsOnNode(found.Path) {
		return nil
	}
	fix := []string{fmt.Sprintf("install Node.js %d or newer", oldestNode), "claude install   replaces the script by a program that needs no Node.js"}
	version, err := m.node(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return &Check{State: stateMissing, Detail: "the CLI is a script for Node.js, and node is not on PATH", Fix: fix}
	case err != nil:
		return &Check{State: stateBroken, Detail: "the CLI is a script for Node.js, and node --version failed: " + err.Error(), Fix: fix}
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	n, err := strconv.Atoi(major)
	c := &Check{State: stateOK, Version: version, Detail: version + ", which runs the CLI's script"}
	if err != nil || n < oldestNode {
		c.State, c.Fix = stateBroken, fix
		c.Detail = fmt.Sprintf("the version of node is %.40q, and the CLI's script needs %d or newer", version, oldestNode)
	}
	return c
}

// runsOnNode reports whether the first line of a program calls node.
func runsOnNode(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	first, _ := bufio.NewReader(io.LimitReader(file, 256)).ReadString('\n')
	words := strings.Fields(strings.TrimPrefix(first, "#!"))
	if !strings.HasPrefix(first, "#!") || len(words) == 0 {
		return false
	}
	if filepath.Base(words[0]) == "env" {
		words = words[1:]
	}
	for _, word := range words { // env may have flags and variables before the program
		if name := filepath.Base(word); !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
			return name == "node" || name == "nodejs"
		}
	}
	return false
}

func nodeVersion(ctx context.Context) (string, error) {
	return programOutput(ctx, "node", "--version")
}
