// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// A host is the machine as this package needs it; tests make one of plain files.
type host struct {
	proc        string // where /proc is
	mkdir       func(path string) error
	rmdir       func(path string) error
	write       func(path, value string) error
	descendants func(pids ...int) []int
	kill        func(pid int, isMember func() bool)
}

// An api names the files of a controller, which differ between the versions.
type api struct {
	limit, swap, peak, oom string
	swapIsExtra            bool // the file limits swap alone, not the sum with memory
}

var (
	v2API = map[string]api{
		"memory": {limit: "memory.max", swap: "memory.swap.max", swapIsExtra: true, peak: "memory.peak", oom: "memory.events"},
		"pids":   {limit: "pids.max"},
	}
	v1API = map[string]api{
		"memory": {
			limit: "memory.limit_in_bytes", swap: "memory.memsw.limit_in_bytes",
			peak: "memory.max_usage_in_bytes", oom: "memory.oom_control",
		},
		"pids": {limit: "pids.max"},
	}
)

// A hierarchy is a mounted tree of groups, and the position of this process in it.
type hierarchy struct {
	mount string // the folder where it is mounted
	own   string // the folder of the group of this process
}

// hierarchies are the mounted ones, by controller; that of version 2 is "".
func (h host) hierarchies() (map[string]hierarchy, error) {
	groups, err := os.ReadFile(filepath.Join(h.proc, "self/cgroup"))
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile(filepath.Join(h.proc, "self/mountinfo"))
	if err != nil {
		return nil, err
	}
	found := map[string]hierarchy{}
	own := ownGroups(string(groups))
	for line := range strings.Lines(string(mounts)) {
		m, ok := parseMount(line)
		if !ok {
			continue
		}
		for _, controller := range m.controllers {
			below, ok := m.below(own[controller])
			if _, have := found[controller]; ok && !have {
				found[controller] = hierarchy{m.point, filepath.Join(m.point, below)}
			}
		}
	}
	return found, nil
}

// ownGroups reads lines such as "4:cpu,cpuacct:/user" and "0::/user" into paths by controller.
func ownGroups(content string) map[string]string {
	own := map[string]string{}
	for line := range strings.Lines(content) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			own[controller] = parts[2]
		}
	}
	return own
}

// A cgroupMount is a line of mountinfo about a hierarchy.
type cgroupMount struct {
	root, point string
	controllers []string // "" alone is version 2
}

// parseMount reads a line such as "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory".
func parseMount(line string) (cgroupMount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	left, right := strings.Fields(before), strings.Fields(after)
	if !ok || len(left) < 5 || len(right) < 3 {
		return cgroupMount{}, false
	}
	m := cgroupMount{root: unescape(left[3]), point: unescape(left[4])}
	switch right[0] {
	case "cgroup2":
		m.controllers = []string{""}
	case "cgroup":
		m.controllers = strings.Split(right[2], ",")
	default:
		return cgroupMount{}, false
	}
	return m, true
}

// unescape undoes how the kernel writes spaces and the like into mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// below is the path of a group inside of the mount, which may show a part of the hierarchy only.
func (m cgroupMount) below(group string) (string, bool) {
	if group == "" || strings.HasPrefix(group, "/..") {
		return "", false
	}
	if m.root == "/" {
		return group, true
	}
	below, ok := strings.CutPrefix(group, m.root)
	return below, ok && (below == "" || below[0] == '/')
}

func wanted(l Limits) []string {
	var names []string
	if l.Memory > 0 {
		names = append(names, "memory")
	}
	if l.Processes > 0 {
		names = append(names, "pids")
	}
	return names
}

// newV2 makes a group of version 2 in the nearest possible group, from this process's own group up.
func (h host) newV2(where map[string]hierarchy, name string, l Limits) (*Group, error) {
	tree, ok := where[""]
	if !ok {
		return nil, errors.New("version 2 is not mounted, or this process's group is not below the mount")
	}
	var reasons []error
	for path := tree.own; ; path = filepath.Dir(path) {
		err := h.usable(path, wanted(l), path == tree.own)
		if err == nil {
			return h.makeV2(filepath.Join(path, name), l)
		}
		reasons = append(reasons, err)
		if path == tree.mount || len(path) <= len(tree.mount) {
			return nil, fmt.Errorf("version 2: %w", reasons[0]) // the reason of our own group is the most useful
		}
	}
}

func (h host) makeV2(path string, l Limits) (*Group, error) {
	g := &Group{host: h}
	controllers := map[string]api{"cpu": {}} // counts in every group
	for _, name := range wanted(l) {
		controllers[name] = v2API[name]
	}
	if err := g.make(path, controllers, l); err != nil {
		return nil, errors.Join(fmt.Errorf("version 2: %w", err), g.Close())
	}
	return g, nil
}

// usable reports why no group with these controllers can be made in the folder. Only in our own
// group it switches controllers on: elsewhere that would be a change to what is not ours.
func (h host) usable(path string, controllers []string, own bool) error {
	if err := unix.Access(filepath.Join(path, "cgroup.procs"), unix.W_OK); err != nil {
		return fmt.Errorf("%s is not delegated to uid %d: %w", path, os.Geteuid(), err)
	}
	if missing := missingIn(path, "cgroup.controllers", controllers); len(missing) > 0 {
		return fmt.Errorf("%s does not have %s", path, strings.Join(missing, ", "))
	}
	missing := missingIn(path, "cgroup.subtree_control", controllers)
	if len(missing) == 0 {
		return nil
	}
	if !own {
		return fmt.Errorf("%s does not hand on %s", path, strings.Join(missing, ", "))
	}
	err := h.write(filepath.Join(path, "cgroup.subtree_control"), "+"+strings.Join(missing, " +"))
	if err != nil {
		return fmt.Errorf("%s cannot hand on %s: %w", path, strings.Join(missing, ", "), err)
	}
	return nil
}

func missingIn(path, file string, controllers []string) []string {
	content, _ := os.ReadFile(filepath.Join(path, file))
	have := strings.Fields(string(content))
	return slices.DeleteFunc(slices.Clone(controllers), func(c string) bool { return slices.Contains(have, c) })
}

// newV1 makes a group of version 1, which is one folder for each controller.
func (h host) newV1(where map[string]hierarchy, name string, l Limits) (*Group, error) {
	g := &Group{host: h}
	for _, controller := range wanted(l) {
		tree, ok := where[controller]
		if !ok {
			return nil, errors.Join(fmt.Errorf("version 1: %s is not mounted", controller), g.Close())
		}
		controllers := map[string]api{controller: v1API[controller]}
		if err := g.make(filepath.Join(tree.own, name), controllers, l); err != nil {
			return nil, errors.Join(fmt.Errorf("version 1: %w", err), g.Close())
		}
	}
	// The count of CPU time is a gift where it can be had, alone or mounted together with others.
	if tree, ok := where["cpuacct"]; ok {
		counter := &Group{host: h}
		if counter.make(filepath.Join(tree.own, name), map[string]api{"cpuacct": {}}, l) == nil {
			g.dirs = append(g.dirs, counter.dirs...)
		}
	}
	if len(g.dirs) == 0 {
		return nil, errors.New("version 1: no hierarchy is mounted")
	}
	return g, nil
}

// parents are the folders in which groups of ours may be.
func (h host) parents() []string {
	where, err := h.hierarchies()
	if err != nil {
		return nil
	}
	found := map[string]bool{}
	for controller, tree := range where {
		found[tree.own] = true
		for path := tree.own; controller == "" && len(path) > len(tree.mount); {
			path = filepath.Dir(path)
			found[path] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
