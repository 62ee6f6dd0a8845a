// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/proc"
	"github.com/drover-agents/drover/isolation/internal/cgroup"
	"github.com/drover-agents/drover/isolation/internal/jail"
	"github.com/drover-agents/drover/isolation/internal/watchdog"
	"github.com/drover-agents/drover/launch"
)

// A confinement keeps one start of the CLI within the limits of the whole cell: by a control group, if any, and a watchdog.
type confinement struct {
	cell     *Cell
	limits   Limits
	writable []string      // folders and files
	group    *cgroup.Group // nil without one
	watchdog *watchdog.Watchdog
	killed   atomic.Bool // by us
}

// groups numbers the control groups of this program: each cell, and each start in it, has its own.
var groups atomic.Int64

func newGroup(limits Limits) (*cgroup.Group, error) {
	groupSweeps.try(func() { cgroup.Sweep() })
	name := fmt.Sprintf("cell-%d", groups.Add(1))
	return cgroup.New(name, cgroup.Limits{Memory: limits.Memory, Processes: limits.Processes})
}

// confine prepares a start of the CLI, which sees these mounts.
func (c *Cell) confine(ctx context.Context, mounts []jail.Mount) (*confinement, error) {
	f := &confinement{cell: c, limits: c.isolation.Limits.resolved()}
	for _, m := range mounts {
		if m.Writable && isContent(m) {
			f.writable = append(f.writable, m.Source)
		}
	}
	group, err := newGroup(f.limits)
	if err == nil {
		f.group = group
	} else if c.grouped { // else the watchdog does it, as the Protection event says
		return nil, advice.Wrap(fmt.Errorf("isolation: a control group could be had when the cell was opened, and cannot any more: %w", err),
			"try again; see whether there are too many groups")
	}
	if c.run == nil { // a command, which no model call delays
		if err := f.refuseSetID(ctx); err != nil {
			return nil, errors.Join(err, f.release())
		}
	}
	return f, nil
}

// isContent reports whether a mount is a folder or a file, and no device, pipe or socket.
func isContent(m jail.Mount) bool {
	info, err := os.Stat(m.Source)
	if m.Handle != nil {
		info, err = m.Handle.Stat()
	}
	return err == nil && (info.IsDir() || info.Mode().IsRegular())
}

func (f *confinement) add(pids []int) error {
	if f.group == nil {
		return nil
	}
	return f.group.Add(pids...)
}

// hold keeps a started CLI within its limits, and ends it when the cell is closed.
func (f *confinement) hold(pid int, p launch.Process) error {
	f.cell.onClose(func() error {
		err := p.Kill()
		p.Wait()
		return errors.Join(err, f.release())
	})
	return f.watch(pid, p.Kill)
}

// refuseSetID refuses a program that the cell could replace with its set-id bits kept. The watchdog would find it too late.
func (f *confinement) refuseSetID(ctx context.Context) error {
	found, err := watchdog.Count(ctx, false, f.writable...)
	if err == nil && found.SetID != "" {
		return &BreachError{breachOf(watchdog.Breach{What: watchdog.SetID, Path: found.SetID})}
	}
	return err
}

// watch looks after the cell until release is called. A disk that is full already is a reason not to
// start. It returns before the folders are counted: a CLI does nothing in them before the first answer of
// the model, so that the gateway waits for the count, and the CLI starts meanwhile.
func (f *confinement) watch(init int, kill func() error) error {
	w, err := watchdog.Begin(context.Background(), watchdog.Options{
		Paths:    f.writable,
		NoSetID:  true,
		MaxBytes: f.limits.WorkspaceBytes, MaxFiles: int64(f.limits.WorkspaceFiles), MinFree: f.limits.FreeSpace,
		Processes: func() []int { return []int{init} },
		MaxMemory: f.watchedMemory(), MinMemory: f.spareMemory(), MaxCPU: f.limits.CPUTime, CPU: f.countedCPU(),
		Exceeded: func(b watchdog.Breach) { f.cell.stop(breachOf(b), kill) },
	})
	if b, broken := errors.AsType[watchdog.Breach](err); broken {
		return &BreachError{breachOf(b)}
	}
	f.watchdog = w
	return err
}

// watchedMemory is the limit that the watchdog keeps: none if the kernel does.
func (f *confinement) watchedMemory() int64 {
	if f.group != nil {
		return 0
	}
	return f.limits.Memory
}

// minSpareMemory is what a run leaves of the machine's memory where no control group bounds what it takes.
const minSpareMemory = 256 * mebibyte

// spareMemory is what must stay available on the machine: the processes of a cell do not show all that
// it takes. It is zero if the kernel counts, or if there is no limit.
func (f *confinement) spareMemory() int64 {
	if f.watchedMemory() == 0 {
		return 0
	}
	return minSpareMemory
}

// countedCPU asks the kernel where it counts the CPU time of the cell, which costs much less than to ask
// every process. Nil means that it does not.
func (f *confinement) countedCPU() func() (time.Duration, bool) {
	if f.group == nil {
		return nil
	}
	if _, counted := f.group.CPUTime(); !counted {
		return nil
	}
	return f.group.CPUTime
}

// killedByKernel is the exit code of a program in a cell that was killed with -9.
const killedByKernel = 128 + 9

// ended reports that a CLI was killed because of its memory: nothing else reports that.
func (f *confinement) ended(status proc.Status) {
	if f.group == nil || f.killed.Load() || status.Code != killedByKernel && status.Code != -1 {
		return
	}
	if kills, _ := f.group.OOMKills(); kills == 0 {
		return
	}
	peak, _ := f.group.MemoryPeak()
	b := watchdog.Breach{What: watchdog.Memory, Limit: f.limits.Memory, Found: max(peak, f.limits.Memory)}
	f.cell.stop(breachOf(b), func() error { return nil })
}

// release ends the watching, after the processes are gone.
func (f *confinement) release() error {
	if f.watchdog != nil {
		f.watchdog.Close()
	}
	if f.group != nil {
		return f.group.Close()
	}
	return nil
}

func breachOf(b watchdog.Breach) Breach {
	return Breach{What: string(b.What), Limit: b.Limit, Found: b.Found, Message: b.Error(), Next: b.Advice()}
}
