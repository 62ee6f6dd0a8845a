// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
)

// A fake is a machine made of plain files: groups appear with the files that the kernel would show,
// and are busy while cgroup.procs names a process.
type fake struct {
	root, sys string
	refuse    map[string]error // writes to files whose paths end so fail
	busy      string           // the group whose members can be killed
	killed    []int
}

func newFake(t *testing.T, groups, mountinfo string) (*fake, host) {
	t.Helper()
	f := &fake{root: t.TempDir(), refuse: map[string]error{}}
	f.sys = filepath.Join(f.root, "cgroup")
	f.put(t, "proc/self/cgroup", groups)
	f.put(t, "proc/self/mountinfo", strings.ReplaceAll(mountinfo, "SYS", f.sys))
	f.put(t, "proc/self/ns/pid", "")
	f.put(t, "cgroup/kernel", "")
	f.put(t, "proc/self/stat", stat(77))
	f.put(t, "proc/"+strconv.Itoa(os.Getpid())+"/stat", stat(77))
	return f, host{
		proc: filepath.Join(f.root, "proc"), mkdir: f.mkdir, rmdir: f.rmdir, write: f.write,
		descendants: func(pids ...int) []int { return pids },
		kill: func(pid int, isMember func() bool) {
			if isMember() {
				f.killed = append(f.killed, pid)
			}
			f.put(t, "cgroup/app/"+f.busy+"/cgroup.procs", "")
		},
	}
}

// stat is the file of a process with a difficult name.
func stat(start int) string {
	return fmt.Sprintf("1 (a) b) S%s %d 0 0", strings.Repeat(" 0", 18), start)
}

func (f *fake) put(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(f.root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// v2 makes a folder of version 2, with what it has and what it hands on.
func (f *fake) v2(t *testing.T, path, controllers, subtree string) {
	t.Helper()
	f.put(t, filepath.Join("cgroup", path, "cgroup.procs"), "")
	f.put(t, filepath.Join("cgroup", path, "cgroup.controllers"), controllers)
	f.put(t, filepath.Join("cgroup", path, "cgroup.subtree_control"), subtree)
}

func (f *fake) mkdir(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	for name, content := range map[string]string{
		"cgroup.procs": "", "memory.max": "max", "memory.swap.max": "max", "pids.max": "max",
		"memory.peak": "4096\n", "memory.events": "low 0\noom 3\noom_kill 2\n", "pids.events": "max 5\n",
		"cpu.stat": "usage_usec 1500\nuser_usec 1000\n", "memory.limit_in_bytes": "-1",
	} {
		if err := os.WriteFile(filepath.Join(path, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (*fake) rmdir(path string) error {
	if procs, _ := os.ReadFile(filepath.Join(path, "cgroup.procs")); len(procs) > 0 {
		return &os.PathError{Op: "rmdir", Path: path, Err: unix.EBUSY}
	}
	if _, err := os.Stat(path); err != nil {
		return err
	}
	return os.RemoveAll(path)
}

func (f *fake) write(path, value string) error {
	for end, err := range f.refuse {
		if strings.HasSuffix(path, end) {
			return &os.PathError{Op: "write", Path: path, Err: err}
		}
	}
	if _, err := os.Stat(path); err != nil { // the kernel makes no files for a writer
		return err
	}
	return os.WriteFile(path, []byte(value), 0o644)
}

// groups lists the folders of ours below the mounts, by what limits they have.
func (f *fake) groups(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(f.sys, func(path string, d os.DirEntry, err error) error {
		if _, ours := ownerOf(filepath.Base(path)); err != nil || !ours {
			return err
		}
		memory, _ := os.ReadFile(filepath.Join(path, "memory.max"))
		swap, _ := os.ReadFile(filepath.Join(path, "memory.swap.max"))
		pids, _ := os.ReadFile(filepath.Join(path, "pids.max"))
		below, _ := filepath.Rel(f.sys, filepath.Dir(path))
		found[below] = fmt.Sprintf("memory %s swap %s pids %s", memory, swap, pids)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const unified = "30 20 0:26 / SYS rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

func TestGroupV2_Location(t *testing.T) {
	limits := Limits{Memory: 1 << 20, Processes: 9}
	const set = "memory 1048576 swap 0 pids 9"
	cases := []struct {
		name    string
		arrange func(t *testing.T, f *fake)
		limits  Limits
		want    map[string]string
		reason  string
	}{
		{
			"our own group hands them on", func(t *testing.T, f *fake) {
				f.v2(t, "app/me", "cpu memory pids", "memory pids")
			}, limits, map[string]string{"app/me": set}, "",
		},
		{
			"our own group can be set to hand them on", func(t *testing.T, f *fake) {
				f.v2(t, "app/me", "cpu memory pids", "pids")
			}, limits, map[string]string{"app/me": set}, "",
		},
		{
			"our own group holds processes, the one above hands them on", func(t *testing.T, f *fake) {
				f.v2(t, "app/me", "memory pids", "")
				f.v2(t, "app", "memory pids", "memory pids")
				f.refuse["me/cgroup.subtree_control"] = unix.EBUSY
			}, limits, map[string]string{"app": set}, "",
		},
		{
			"a group above is not changed", func(t *testing.T, f *fake) {
				f.v2(t, "app/me", "memory pids", "")
				f.v2(t, "app", "memory pids", "pids")
				f.v2(t, "", "memory pids", "pids")
				f.refuse["me/cgroup.subtree_control"] = unix.EBUSY
			}, limits, map[string]string{}, "cannot hand on memory, pids: write ",
		},
		{
			"no such controller", func(t *testing.T, f *fake) {
				f.v2(t, "app/me", "hugetlb", "")
				f.v2(t, "app", "hugetlb", "")
				f.v2(t, "", "hugetlb", "")
			}, limits, map[string]string{}, "app/me does not have memory, pids",
		},
		{
			"not delegated", func(*testing.T, *fake) {}, limits, map[string]string{}, "is not delegated to uid",
		},
		{
			"only processes", func(t *testing.T, f *fake) {
				f.v2(t, "app/me", "pids", "pids")
			}, Limits{Processes: 3}, map[string]string{"app/me": "memory max swap max pids 3"}, "",
		},
		{
			"nothing of a failed group is left", func(t *testing.T, f *fake) {
				f.v2(t, "app/me", "memory pids", "memory pids")
				f.refuse["memory.swap.max"] = unix.EACCES
			}, limits, map[string]string{}, "memory.swap.max: permission denied",
		},
		{
			"a kernel that does not count swap", func(t *testing.T, f *fake) {
				f.v2(t, "app/me", "memory pids", "memory pids")
				f.refuse["memory.swap.max"] = unix.ENOENT
			}, limits, map[string]string{"app/me": "memory 1048576 swap max pids 9"}, "",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, h := newFake(t, "0::/app/me\n", unified)
			c.arrange(t, f)
			g, err := h.newGroup("run", c.limits)
			if c.reason == "" && err != nil || c.reason != "" && (!errors.Is(err, ErrUnavailable) || !strings.Contains(advice.Text(err), c.reason)) {
				t.Errorf("error: got %v, want %q", err, c.reason)
			}
			if diff := cmp.Diff(c.want, f.groups(t)); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			if g != nil {
				if err := g.Close(); err != nil {
					t.Error(err)
				}
				if left := f.groups(t); len(left) > 0 {
					t.Errorf("after Close: got %v, want none", left)
				}
			}
		})
	}
}

func TestGroupV2_Counts(t *testing.T) {
	f, h := newFake(t, "0::/\n", unified)
	f.v2(t, "", "memory pids", "memory pids")
	g, err := h.newGroup("run", Limits{Memory: 1 << 20, Processes: 9})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	got["peak"], _ = g.MemoryPeak()
	got["oom"], _ = g.OOMKills()
	got["forks"], _ = g.ForksRefused()
	cpu, _ := g.CPUTime()
	got["cpu"] = cpu.Microseconds()
	if diff := cmp.Diff(map[string]int64{"peak": 4096, "oom": 2, "forks": 5, "cpu": 1500}, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if err := g.Add(4711); err != nil {
		t.Fatal(err)
	}
	if got := members(g.dirs[0].path); got != "4711" {
		t.Errorf("members: got %q, want 4711", got)
	}
}

func TestHierarchies_OfThisProcess(t *testing.T) {
	cases := []struct {
		name, groups, mounts string
		want                 map[string]string
	}{
		{"version 2", "0::/user.slice/a\n", unified, map[string]string{"": "/user.slice/a"}},
		{
			"version 1, two controllers in one", "4:cpu,cpuacct:/x\n3:memory:/y z\n",
			"1 2 0:1 / SYS/cpu rw - cgroup cgroup rw,cpu,cpuacct\n1 2 0:1 / SYS/mem\\040ory rw - cgroup cgroup rw,memory\n",
			map[string]string{"cpu": "/cpu/x", "cpuacct": "/cpu/x", "memory": "/mem ory/y z"},
		},
		{"a part is mounted", "0::/docker/1/in\n", "1 2 0:1 /docker/1 SYS rw - cgroup2 cgroup2 rw\n", map[string]string{"": "/in"}},
		{"another part is mounted", "0::/docker/12\n", "1 2 0:1 /docker/1 SYS rw - cgroup2 cgroup2 rw\n", map[string]string{}},
		{"outside of the namespace", "0::/../me\n", unified, map[string]string{}},
		{"not mounted", "0::/\n", "1 2 0:1 / / rw - ext4 /dev/sda rw\n", map[string]string{}},
		{"the first mount counts", "0::/\n", unified + strings.ReplaceAll(unified, "SYS", "SYS/again"), map[string]string{"": ""}},
		{"nonsense", "x\n::\n", "a - b\n\n - cgroup2\n", map[string]string{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f, h := newFake(t, c.groups, c.mounts)
			found, err := h.hierarchies()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for controller, tree := range maps.All(found) {
				got[controller] = strings.TrimPrefix(tree.own, f.sys)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSweep_RemovesOnlyOurAbandonedGroups(t *testing.T) {
	f, h := newFake(t, "0::/app/me\n", unified)
	f.v2(t, "app/me", "pids", "pids")
	f.put(t, "proc/21/stat", stat(500))
	me, err := h.self()
	if err != nil {
		t.Fatal(err)
	}
	named := func(namespace uint64, pid int, start uint64) string {
		return owner{namespace, pid, start}.prefix() + "run"
	}
	gone := []string{named(me.namespace, 20, 9), named(me.namespace, 21, 499)}
	kept := []string{
		named(me.namespace, 21, 500), named(me.namespace, me.pid, me.start), named(me.namespace+1, 20, 9),
		"drover", "drover.1.2", "drover.a.b.c.d", "other.1.2.3.run", "user.slice", "drover.1.2.3.",
	}
	for _, name := range append(append([]string{}, gone...), kept...) {
		f.v2(t, "app/me/"+name, "", "")
	}
	f.busy = named(me.namespace, 20, 10)
	f.v2(t, "app/"+f.busy, "", "")
	f.put(t, "cgroup/app/"+f.busy+"/cgroup.procs", "12\n0\n13\n")
	inUse := named(me.namespace, me.pid, me.start+1) + "2" // of an ended program with our pid
	f.v2(t, "app/me/"+inUse, "", "")
	gone = append(gone, inUse, "../"+f.busy)
	if got, want := h.sweep(), len(gone); got != want {
		t.Errorf("folders removed: got %d, want %d", got, want)
	}
	for _, name := range gone {
		if _, err := os.Stat(filepath.Join(f.sys, "app/me", name)); err == nil {
			t.Errorf("%s of an ended program is still there", name)
		}
	}
	if !slices.Equal(f.killed, []int{12}) { // which was the end of the other one too
		t.Errorf("killed: got %v, want 12", f.killed)
	}
	for _, name := range kept {
		if _, err := os.Stat(filepath.Join(f.sys, "app/me", name)); err != nil {
			t.Errorf("%s was removed: %v", name, err)
		}
	}
}

// In the /proc of another PID namespace the processes have other numbers.
func TestSweep_ForeignProcIsNoEvidenceOfOwners(t *testing.T) {
	f, h := newFake(t, "0::/app/me\n", unified)
	f.v2(t, "app/me", "pids", "pids")
	me, err := h.self()
	if err != nil {
		t.Fatal(err)
	}
	f.v2(t, "app/me/"+owner{me.namespace, 20, 9}.prefix()+"run", "", "")
	f.put(t, "proc/"+strconv.Itoa(os.Getpid())+"/stat", stat(78))
	if removed := h.sweep(); removed != 0 {
		t.Errorf("%d groups were removed, whose owners may live", removed)
	}
	if _, err := h.self(); err == nil || !strings.Contains(advice.Text(err), "another PID namespace") {
		t.Errorf("got %v", err)
	}
}

func TestOwner_IsInTheNameOfAGroup(t *testing.T) {
	want := owner{4026531836, 12, 345}
	if got, ok := ownerOf(want.prefix() + "run-7_a"); !ok || got != want {
		t.Errorf("got %+v, %v, want %+v", got, ok, want)
	}
}

func FuzzWhatTheKernelSaysOfGroups(f *testing.F) {
	f.Add("0::/user.slice/a\n", "30 20 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n", "drover.1.2.3.run")
	f.Add("4:cpu,cpuacct:/x\n", "1 2 0:1 /x /c rw - cgroup cgroup rw,cpu,cpuacct\n", "drover.1.2.3.")
	f.Fuzz(func(t *testing.T, groups, line, name string) {
		own := ownGroups(groups)
		if m, ok := parseMount(line); ok {
			for _, controller := range m.controllers {
				if below, ok := m.below(own[controller]); ok && strings.HasPrefix(below, "/..") {
					t.Errorf("group %q of mount %q: got %q, which leads out of it", own[controller], line, below)
				}
			}
		}
		if o, ours := ownerOf(name); ours {
			if again, _ := ownerOf(o.prefix() + "run"); again != o {
				t.Errorf("owner of %q: got %+v and then %+v", name, o, again)
			}
		}
		_, _ = numberIn(groups, name)
	})
}
