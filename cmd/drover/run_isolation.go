// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/proc"
)

// An isolation is how far an agent is kept apart from the machine. Empty means the strongest there is.
type isolation string

const (
	// isolationCell is a jail with files, network and rights of its own.
	isolationCell isolation = "cell"
	// isolationProcess is a PID namespace: whatever the agent starts ends with the run.
	isolationProcess isolation = "process"
	// isolationNone runs the agent as an ordinary program.
	isolationNone isolation = "none"
)

func isolationNames() []string {
	return []string{string(isolationCell), string(isolationProcess), string(isolationNone)}
}

func (i *isolation) Type() string   { return "name" }
func (i *isolation) String() string { return string(*i) }

func (i *isolation) Set(value string) error {
	if !slices.Contains(isolationNames(), value) {
		return fmt.Errorf("there is no such isolation\n  next: choose among %s", strings.Join(isolationNames(), ", "))
	}
	*i = isolation(value)
	return nil
}

// spawner starts the agent in this isolation.
func (i isolation) spawner(ctx context.Context) (*killableSpawner, error) {
	switch i {
	case isolationCell:
		return nil, usageError("--isolation cell: this version of drover has no cell\n  next: use --isolation process, which ends whatever the agent started, and --deny or --read-only")
	case isolationProcess:
		if !proc.NamespaceAvailable(ctx, "") {
			return nil, fmt.Errorf("--isolation process: %s", noNamespace())
		}
	}
	return &killableSpawner{host: claude.HostSpawner{NoPIDNamespace: i == isolationNone}}, nil
}

// contains reports whether nothing that the agent starts can outlive it.
func (i isolation) contains() bool {
	return i != isolationNone && (runtime.GOOS == "windows" || proc.NamespaceAvailable(context.Background(), ""))
}

// noNamespace says why there is no PID namespace here, and what to do.
func noNamespace() string {
	if runtime.GOOS != "linux" {
		return "it needs Linux, and this is " + runtime.GOOS + "\n  next: use --isolation none"
	}
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return "bubblewrap (bwrap) is not on PATH\n  next: " + installWith("bubblewrap", os.Geteuid() == 0) + ", or use --isolation none"
	}
	return path + " cannot make a PID namespace here\n  next: " + path + " --unshare-pid --dev-bind / / true shows why; or use --isolation none"
}

// A killableSpawner starts processes of which it can end all at once.
type killableSpawner struct {
	host claude.Spawner

	mu      sync.Mutex
	started []claude.Process
	over    bool
}

// Spawn implements [claude.Spawner].
func (s *killableSpawner) Spawn(ctx context.Context, cmd claude.Command) (claude.Process, error) {
	p, err := s.host.Spawn(ctx, cmd)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = append(s.started, p)
	if s.over {
		_ = p.Kill() // it has an end of its own, if this fails
	}
	return p, nil
}

// Unwrap says how the processes are started, so that the agent's version can be asked.
func (s *killableSpawner) Unwrap() claude.Spawner { return s.host }

// kill ends all processes, and those that are started from now on.
func (s *killableSpawner) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, p := range s.started {
		_ = p.Kill() // what has ended cannot be killed
	}
}
