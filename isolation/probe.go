// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/launch"
)

// An Attempt is one try to break the isolation.
type Attempt struct {
	// Name is what was tried: "read a file of the host".
	Name string `json:"name"`
	// Blocked means that the isolation blocked it.
	Blocked bool `json:"held"`
	// Detail is what was seen.
	Detail string `json:"detail,omitempty"`
}

// A Report has the protections that hold, as tested from inside.
type Report struct {
	Level    Level     `json:"level"`
	Attempts []Attempt `json:"attempts"`
}

// Err names the protections that do not hold, or is nil.
func (r Report) Err() error {
	var open []string
	for _, a := range r.Attempts {
		if !a.Blocked {
			open = append(open, fmt.Sprintf("%s (%s)", a.Name, a.Detail))
		}
	}
	if len(open) == 0 {
		return nil
	}
	return advice.Wrap(fmt.Errorf("isolation: at level %s an agent can: %s", r.Level, strings.Join(open, "; ")),
		"run in a cell; drover doctor lists what it needs")
}

const (
	// probeTime bounds the attempts together. They take some 50 milliseconds.
	probeTime = 10 * time.Second
	// probeOutput is how much of what the attempts see is looked at, in bytes.
	probeOutput = 8 << 20
)

// Probe tries the protections that a run of this program with this isolation would have. Instead of the program it starts a
// script, which tries to read, write, reach and see what was planted for it on this machine: a file, a server on loopback,
// a process, a key without access. It touches no other file or process. A nil Isolation is the default one.
//
// Probe returns an error if it cannot try the protections, or if their level is weaker than the isolation
// accepts. Protections that do not hold are in the report. The CLI's own sandbox, which is around single commands, is not
// tried: at [LevelSandbox] and [LevelHost] several attempts succeed.
func Probe(ctx context.Context, i *Isolation, program Program) (Report, error) {
	shell, err := probeShell()
	if err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	p, err := plant(ctx, shell)
	if err != nil {
		return Report{}, fmt.Errorf("isolation: preparing the probe: %w", err)
	}
	defer p.remove()
	report, err := p.tryFrom(ctx, i, program)
	if err != nil {
		return Report{}, fmt.Errorf("isolation: probing: %w", err)
	}
	return report, nil
}

// tryFrom opens a cell and has the script try everything from inside.
func (p *planted) tryFrom(ctx context.Context, i *Isolation, program Program) (_ Report, err error) {
	isolation, err := p.isolation(i, program)
	if err != nil {
		return Report{}, err
	}
	program.Path, program.Find, program.Dir, program.Wires = p.shell, nil, p.work, nil
	cell, err := isolation.Open(ctx, program, OpenOptions{})
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, cell.Close()) }()
	process, err := cell.Spawn(ctx, launch.Command{
		Path: p.shell, Args: []string{"--noprofile", "--norc", "-c", p.script(cell.Home().Path())}, Env: cell.Inside().Environ(), Dir: p.work,
	})
	if err != nil {
		return Report{}, err
	}
	defer context.AfterFunc(ctx, func() { _ = process.Kill() })()
	_ = process.Stdin().Close()
	go func() { _, _ = io.Copy(io.Discard, process.Stderr()) }()
	output, err := io.ReadAll(io.LimitReader(process.Stdout(), probeOutput))
	_ = process.Kill() // it may have more output
	process.Wait()
	if err != nil {
		return Report{}, err
	}
	seen, err := p.read(string(output))
	if err != nil {
		return Report{}, err
	}
	return Report{Level: cell.Level(), Attempts: p.judge(seen)}, nil
}

// isolation is the one to try, with the planted key, which opens nothing, in place of the user's credential.
func (p *planted) isolation(i *Isolation, program Program) (*Isolation, error) {
	probe := Isolation{}
	if i != nil {
		probe = *i
	}
	upstream, err := gateway.Endpoint("http://127.0.0.1:9", gateway.APIKey(p.key)) // it is never called
	if err != nil {
		return nil, err
	}
	probe.Upstream, probe.APIKey, probe.Trackers, probe.Started, probe.Populate = upstream, "", nil, nil, nil
	around := slices.Clone(probe.Host.or(program.HostEnviron).environ())
	for _, name := range append([]string{"PROBE"}, program.Secrets...) {
		around = append(around, name+"="+p.key)
	}
	probe.Host.Environ = func() []string { return around }
	return &probe, nil
}

// probeShell is the shell that runs the script. It must be able to open TCP connections by itself.
func probeShell() (string, error) {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash"} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return filepath.EvalSymlinks(path)
		}
	}
	return "", advice.Wrap(errors.New("isolation: the probe needs bash, and there is no /bin/bash"), "install bash")
}
