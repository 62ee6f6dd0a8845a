// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// An owner is a user and a group of the host.
type owner struct{ uid, gid uint32 }

type idmapKey struct{ on, as owner }

// idmaps keeps the user namespaces that stand for id maps open: there is one for each owner of mounted folders.
var idmaps = struct {
	mu   sync.Mutex
	open map[idmapKey]*os.File
}{open: map[idmapKey]*os.File{}}

// idmap is a user namespace that swaps only two owners: a mount with this map shows files of the one as files of the other.
func idmap(on, as owner) (*os.File, error) {
	idmaps.mu.Lock()
	defer idmaps.mu.Unlock()
	key := idmapKey{on, as}
	if f := idmaps.open[key]; f != nil {
		return f, nil
	}
	f, err := newIDMap(on, as)
	if err != nil {
		return nil, fmt.Errorf("making an id map for uid %d and gid %d: %w", on.uid, on.gid, err)
	}
	idmaps.open[key] = f
	return f, nil
}

// newIDMap starts a process that waits in a new user namespace, takes a handle on the namespace, and lets the process end.
func newIDMap(on, as owner) (*os.File, error) {
	uids, err := ownRanges("/proc/self/uid_map")
	if err != nil {
		return nil, err
	}
	gids, err := ownRanges("/proc/self/gid_map")
	if err != nil {
		return nil, err
	}
	helper, err := HelperFile()
	if err != nil {
		return nil, err
	}
	defer func() { _ = helper.Close() }()
	cmd := exec.Command("/proc/self/fd/3", "-w")
	cmd.Dir, cmd.Env, cmd.ExtraFiles = "/", []string{}, []*os.File{helper}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER,
		UidMappings: swapped(uids, int(on.uid), int(as.uid)),
		GidMappings: swapped(gids, int(on.gid), int(as.gid)),
	}
	hold, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		_ = hold.Close()
		return nil, err
	}
	ns, err := os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/user")
	_ = hold.Close()
	_ = cmd.Wait()
	return ns, err
}

// An idRange is a run of ids that exist here.
type idRange struct{ start, count int }

// ownRanges reads which ids exist in our own user namespace: all of them on most machines, some in a container.
func ownRanges(path string) ([]idRange, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []idRange
	for line := range strings.Lines(string(data)) {
		var r idRange
		var outside int
		if _, err := fmt.Sscan(line, &r.start, &outside, &r.count); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// swapped maps every id to itself, but a to b and b to a.
func swapped(ranges []idRange, a, b int) []syscall.SysProcIDMap {
	var all []syscall.SysProcIDMap
	add := func(from, to, count int) {
		if count > 0 {
			all = append(all, syscall.SysProcIDMap{ContainerID: from, HostID: to, Size: count})
		}
	}
	for _, r := range ranges {
		next, end := r.start, r.start+r.count
		for _, pair := range [][2]int{{min(a, b), max(a, b)}, {max(a, b), min(a, b)}} {
			if id := pair[0]; id >= next && id < end {
				add(next, next, id-next)
				add(id, pair[1], 1)
				next = id + 1
			}
		}
		add(next, next, end-next)
	}
	return all
}
