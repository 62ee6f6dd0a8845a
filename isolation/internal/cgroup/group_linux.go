// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/proc"
)

// closeWait bounds how long Close waits for the kernel to let go of processes that have ended.
const closeWait = 2 * time.Second

// A Group is a control group of ours. Its methods may be called from any goroutine.
type Group struct {
	host host
	dirs []dir
}

// A dir is one folder of a group: version 2 has one for all controllers, version 1 one for each.
type dir struct {
	path string
	api  map[string]api // controller to the files that stand for it
}

// New makes a group with these limits. The name is part of the group's name: letters, digits, '-'
// and '_'; no two groups of this process that exist at once have the same.
func New(name string, l Limits) (*Group, error) { return realHost().newGroup(name, l) }

func (h host) newGroup(name string, l Limits) (*Group, error) {
	if !goodName(name) {
		return nil, advice.Wrap(fmt.Errorf("control group name %q: want letters, digits, '-' and '_' only", name), "use the id of the run")
	}
	if l.Memory < 0 || l.Processes < 0 {
		return nil, advice.Wrap(fmt.Errorf("control group limits %+v: negative", l), "use zero for no limit")
	}
	owner, err := h.self()
	if err != nil {
		return nil, unavailable(err)
	}
	where, err := h.hierarchies()
	if err != nil {
		return nil, unavailable(err)
	}
	full := owner.prefix() + name
	group, err2 := h.newV2(where, full, l)
	if err2 == nil {
		return group, nil
	}
	group, err1 := h.newV1(where, full, l)
	if err1 == nil {
		return group, nil
	}
	return nil, unavailable(err2, err1)
}

func unavailable(reasons ...error) error {
	var words []string
	for _, reason := range reasons {
		words = append(words, reason.Error())
	}
	err := fmt.Errorf("%w: %s", ErrUnavailable, strings.Join(words, "; "))
	if next := advice.Of(errors.Join(reasons...)); next != "" {
		err = advice.Wrap(err, "%s", next)
	}
	return advice.Wrap(err,
		"run as root, or where a part of the hierarchy is delegated to this user (systemd-run --user --scope -p Delegate=yes), or without limits on a cell's memory and processes")
}

// make makes the folder and sets the limits in it; on failure nothing is left.
func (g *Group) make(path string, controllers map[string]api, l Limits) error {
	if err := g.host.mkdir(path); err != nil {
		return err
	}
	g.dirs = append(g.dirs, dir{path, controllers})
	for name, api := range controllers {
		if err := g.limit(path, name, api, l); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) limit(path, controller string, api api, l Limits) error {
	value := map[string]int64{"memory": l.Memory, "pids": int64(l.Processes)}[controller]
	if value == 0 {
		return nil
	}
	if err := g.host.write(filepath.Join(path, api.limit), strconv.FormatInt(value, 10)); err != nil {
		return err
	}
	if api.swap == "" {
		return nil
	}
	swap := strconv.FormatInt(value, 10) // version 1 limits the sum of memory and swap
	if api.swapIsExtra {
		swap = "0"
	}
	// A kernel that does not count swap does not have the file.
	if err := g.host.write(filepath.Join(path, api.swap), swap); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Add puts processes and all their descendants into the group, also those that are started
// meanwhile. Their later child processes are in it too. Processes that have ended are left out.
func (g *Group) Add(pids ...int) error {
	added := map[int]bool{}
	for {
		before := len(added)
		for _, pid := range g.host.descendants(pids...) {
			if added[pid] {
				continue
			}
			added[pid] = true
			if err := g.addOne(pid); err != nil {
				return err
			}
		}
		if len(added) == before {
			return nil
		}
	}
}

func (g *Group) addOne(pid int) error {
	for _, d := range g.dirs {
		err := g.host.write(filepath.Join(d.path, "cgroup.procs"), strconv.Itoa(pid))
		if errors.Is(err, unix.ESRCH) {
			return nil
		}
		if err != nil {
			return advice.Wrap(fmt.Errorf("putting process %d into control group %s: %w", pid, d.path, err),
				"start the cell without limits, or as the user that owns the group above")
		}
	}
	return nil
}

// MemoryPeak is the most memory in bytes that the group ever used; false if the kernel does not report it.
func (g *Group) MemoryPeak() (int64, bool) {
	return g.number("memory", func(a api) (string, string) { return a.peak, "" })
}

// OOMKills is how many processes of the group the kernel ended because of the memory limit.
func (g *Group) OOMKills() (int64, bool) {
	return g.number("memory", func(a api) (string, string) { return a.oom, "oom_kill" })
}

// ForksRefused is how often the limit on processes refused a new one.
func (g *Group) ForksRefused() (int64, bool) {
	return g.number("pids", func(api) (string, string) { return "pids.events", "max" })
}

// CPUTime is the CPU time that the group used, ended processes included.
func (g *Group) CPUTime() (time.Duration, bool) {
	if us, ok := g.number("cpu", func(api) (string, string) { return "cpu.stat", "usage_usec" }); ok {
		return time.Duration(us) * time.Microsecond, true
	}
	ns, ok := g.number("cpuacct", func(api) (string, string) { return "cpuacct.usage", "" })
	return time.Duration(ns), ok
}

// number reads a number of a controller: the whole file, or the line of it that begins with a key.
func (g *Group) number(controller string, file func(api) (name, key string)) (int64, bool) {
	for _, d := range g.dirs {
		api, ok := d.api[controller]
		if !ok {
			continue
		}
		name, key := file(api)
		content, err := os.ReadFile(filepath.Join(d.path, name))
		if err != nil {
			return 0, false
		}
		return numberIn(string(content), key)
	}
	return 0, false
}

func numberIn(content, key string) (int64, bool) {
	for line := range strings.Lines(content) {
		words := strings.Fields(line)
		if key != "" && (len(words) != 2 || words[0] != key) || len(words) == 0 {
			continue
		}
		n, err := strconv.ParseInt(words[len(words)-1], 10, 64)
		return n, err == nil
	}
	return 0, false
}

// Close removes the group. Call it when the cell is gone: a group with processes in it is not
// removed, which is an error after two seconds. Calling it again tries again.
func (g *Group) Close() error {
	var errs []error
	deadline := time.Now().Add(closeWait)
	for _, d := range g.dirs {
		errs = append(errs, g.host.remove(d.path, deadline))
	}
	return errors.Join(errs...)
}

// remove removes an empty folder. The kernel takes a moment after the last process was reaped.
func (h host) remove(path string, deadline time.Time) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := h.rmdir(path)
		if err == nil || errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return advice.Wrap(fmt.Errorf("removing control group %s, in which are the processes [%s]: %w", path, members(path), err),
				"end the cell first, then close again")
		}
		time.Sleep(wait)
	}
}

// membersOf are the processes of a group, as far as they have a pid here.
func membersOf(path string) (pids []int) {
	content, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	for _, word := range strings.Fields(string(content)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}

// members lists the first processes of a group, for an error.
func members(path string) string {
	content, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	words := strings.Fields(string(content))
	if len(words) > 8 {
		words = append(words[:8], "...")
	}
	return strings.Join(words, " ")
}

func realHost() host {
	return host{
		proc:        "/proc",
		mkdir:       func(path string) error { return os.Mkdir(path, 0o755) },
		rmdir:       unixRmdir,
		write:       writeFile,
		descendants: proc.Descendants,
		kill:        killMember,
	}
}

func unixRmdir(path string) error {
	if err := unix.Rmdir(path); err != nil {
		return &os.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}

// writeFile writes into a file of the kernel, in one write; it never makes a file.
func writeFile(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
