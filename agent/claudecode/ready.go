// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
)

// install is the command that installs the CLI that was tested most.
const install = "npm install --global @anthropic-ai/claude-code@" + claude.PinnedVersion

// newInstall installs the CLI so that it is found: a variable that names one would be in its way.
func (a *Adapter) newInstall() string {
	if a.base.CLIPath == "" && os.Getenv(claude.EnvCLI) != "" {
		return "unset " + claude.EnvCLI + " && " + install
	}
	return install
}

// Ready implements [agent.Adapter]. It runs the CLI with --version, which takes 20 to 170 milliseconds and
// at most 10 seconds. A CLI that a Spawner of base starts is not asked: its version is unknown. One that
// has a method Unwrap() claude.Spawner counts as what it wraps, and a [claude.HostSpawner] as none.
func (a *Adapter) Ready(ctx context.Context) agent.Readiness {
	r := a.located(a.base.Dir)
	if !r.Available() {
		return r
	}
	if a.startedByOthers() {
		return a.unknown(r, "it is not started on this machine directly, so its version shows only in a run", nil)
	}
	version, err := claude.CLIVersion(ctx, r.Path, a.base.Environ())
	if err != nil {
		return a.unknown(r, firstLine(err), err)
	}
	return a.judged(r, version)
}

// located finds the CLI that a run in this folder starts. It starts no process. The state is unknown if it is there.
func (a *Adapter) located(dir string) agent.Readiness {
	r := agent.Readiness{State: agent.StateUnknown, Tested: claude.OldestTested + " to " + claude.PinnedVersion}
	found, err := claude.Find(claude.FindOptions{Path: a.base.CLIPath, Avoid: dir})
	if err != nil {
		r.State, r.Detail, r.Repair, r.Cause = agent.StateMissing, firstLine(err), a.repair(err), err
		return r
	}
	r.Path = found.Path
	return r
}

// startedByOthers reports whether the CLI cannot be asked for its version by running it.
func (a *Adapter) startedByOthers() bool {
	return !onThisMachine(a.base.Spawner) || len(a.base.Runtime) > 0
}

// onThisMachine reports whether a spawner starts what running the CLI directly would start.
func onThisMachine(s claude.Spawner) bool {
	switch s := s.(type) {
	case nil, claude.HostSpawner, *claude.HostSpawner:
		return true
	case interface{ Unwrap() claude.Spawner }:
		return onThisMachine(s.Unwrap())
	}
	return false
}

func (a *Adapter) judged(r agent.Readiness, version string) agent.Readiness {
	r.Version = version
	old, err := claude.CompareVersions(version, claude.OldestTested)
	if err != nil {
		return a.unknown(r, firstLine(err), err)
	}
	pinned, _ := claude.CompareVersions(version, claude.PinnedVersion)
	switch {
	case old < 0:
		r.State, r.Repair = agent.StateUnsupported, a.newInstall()
		r.Detail = fmt.Sprintf("version %s at %s is older than %s, the oldest that works", version, r.Path, claude.OldestTested)
		r.Cause = claude.ErrTooOld
	case pinned > 0:
		r.State, r.Repair = agent.StateUntested, a.newInstall()
		r.Detail = fmt.Sprintf("version %s is newer than %s, the newest that was tested; it is run all the same", version, claude.PinnedVersion)
	default:
		r.State = agent.StateReady
	}
	return r
}

func (a *Adapter) unknown(r agent.Readiness, detail string, cause error) agent.Readiness {
	r.State, r.Detail, r.Cause = agent.StateUnknown, detail, cause
	if cause != nil {
		r.Repair = a.newInstall()
	}
	return r
}

func (a *Adapter) repair(err error) string {
	launch, ok := errors.AsType[*claude.LaunchError](err)
	if ok && strings.HasPrefix(launch.Hint, "chmod +x ") {
		return "chmod +x " + launch.Path
	}
	return a.newInstall()
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// checkVersion refuses a connected CLI that is too old. Newer CLIs send their version in the handshake,
// so that a run of them costs no second start. The oldest tested one does not: it is run with --version,
// once for each file, which takes 150 milliseconds.
func (r *run) checkVersion(ctx context.Context, version string) error {
	a := r.adapter
	found := a.located(a.workspace(r.opts.Dir))
	if version == "" && found.Available() && !a.startedByOthers() {
		version, _ = a.versions.of(ctx, found.Path, a.base.Environ()) // a CLI of unknown version is run
	}
	if version == "" {
		return nil
	}
	return a.judged(found, version).Err()
}

// connectError is why a CLI could not be started: a limit of its cell, by which it was killed, or else its own
// error. Very old ones fail in many ways, none of which names their age.
func (r *run) connectError(ctx context.Context, err error) error {
	if limit := r.stoppedBy(ctx); limit != nil {
		return limit
	}
	if has[*claude.ProcessError](err) && ctx.Err() == nil {
		if old := r.checkVersion(ctx, ""); old != nil {
			return old
		}
	}
	return err
}

// versions remembers the versions of CLIs that do not send theirs, so that each is queried once.
type versions struct{ seen sync.Map } // the text of a version by programFile

// A programFile is one state of a file: another CLI at the same path has another size or time.
type programFile struct {
	path     string
	size     int64
	modified time.Time
}

func (v *versions) of(ctx context.Context, path string, env []string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	file := programFile{path, info.Size(), info.ModTime()}
	if version, known := v.seen.Load(file); known {
		return version.(string), nil
	}
	version, err := claude.CLIVersion(ctx, path, env)
	if err == nil {
		v.seen.Store(file, version)
	}
	return version, err
}
