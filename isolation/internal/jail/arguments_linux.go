// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	defaultTempBytes   = 1 << 30
	defaultSharedBytes = 64 << 20
)

// A bind is a mount as bubblewrap gets it: a path that it can reach or the number of a descriptor, and the path inside.
type bind struct {
	source, target string
	writable, byFD bool
}

// arguments are bubblewrap's own. The numbers of the descriptors of filter and files are given.
func (s Spec) arguments(binds []bind, filter int, files map[string]int) []string {
	args := []string{
		"--unshare-all", "--unshare-user", "--uid", strconv.Itoa(insideID), "--gid", strconv.Itoa(insideID),
		"--cap-drop", "ALL", "--die-with-parent", "--as-pid-1", "--new-session", "--hostname", "cell",
		"--seccomp", strconv.Itoa(filter),
	}
	if !s.Nested {
		args = append(args, "--disable-userns")
	}
	args = append(args, systemArgs()...)
	args = append(args, "--proc", "/proc", "--dev", "/dev")
	args = append(args, tmpfs("/dev/shm", cmp.Or(s.SharedBytes, defaultSharedBytes))...)
	args = append(args, tmpfs("/tmp", cmp.Or(s.TempBytes, defaultTempBytes))...)
	args = append(args, "--perms", "0755", "--dir", "/run", "--perms", "0755", "--dir", "/var")
	args = append(args, s.varTmp(binds)...)
	args = append(args, parentArgs(slices.AppendSeq(targets(binds), maps.Keys(files)))...)
	args = append(args, bindArgs(binds)...)
	args = append(args, fileArgs(files)...)
	// What is left is memory without a bound, in which the program could otherwise write.
	args = append(args, "--remount-ro", "/dev", "--remount-ro", "/")
	return append(args, s.programArgs()...)
}

func tmpfs(path string, size int64) []string {
	return []string{"--perms", "1777", "--size", strconv.FormatInt(size, 10), "--tmpfs", path}
}

// varTmp makes /var/tmp the same as /tmp, unless something is mounted there, which a link would move.
func (s Spec) varTmp(binds []bind) []string {
	if mountsInVarTmp(binds) {
		return tmpfs("/var/tmp", cmp.Or(s.TempBytes, defaultTempBytes))
	}
	return []string{"--symlink", "/tmp", "/var/tmp"}
}

// bindArgs lay mounts over each other from the top down.
func bindArgs(binds []bind) []string {
	binds = slices.Clone(binds)
	slices.SortStableFunc(binds, func(a, b bind) int { return cmp.Compare(depth(a.target), depth(b.target)) })
	var args []string
	for _, b := range binds {
		option := "--ro-bind"
		if b.writable {
			option = "--bind"
		}
		if b.byFD {
			option += "-fd"
		}
		args = append(args, option, b.source, b.target)
	}
	return args
}

func targets(binds []bind) []string {
	var all []string
	for _, b := range binds {
		all = append(all, b.target)
	}
	return all
}

func depth(path string) int { return strings.Count(path, "/") }

// parentArgs make the folders above paths, once, which bubblewrap would make unreadable to others.
func parentArgs(paths []string) []string {
	parents := map[string]bool{}
	for _, path := range paths {
		for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
			parents[dir] = true
		}
	}
	var args []string
	for _, dir := range slices.Sorted(maps.Keys(parents)) {
		args = append(args, "--perms", "0755", "--dir", dir)
	}
	return args
}

func fileArgs(files map[string]int) []string {
	var args []string
	for _, path := range slices.Sorted(maps.Keys(files)) {
		args = append(args, "--perms", "0444", "--ro-bind-data", strconv.Itoa(files[path]), path)
	}
	return args
}

func (s Spec) programArgs() []string {
	args := []string{"--chdir", s.Dir, "--clearenv"}
	for _, entry := range s.Env {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			args = append(args, "--setenv", name, value)
		}
	}
	return args
}
