// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
)

// A source is a mount with a handle of its own on what is mounted: names are looked up once, and what was
// checked is what is mounted, also while a process exchanges folders.
type source struct {
	Mount
	file *os.File
	stat unix.Stat_t
}

// openSources opens what is mounted, in the order of the mounts. The caller closes it.
func (s Spec) openSources() (all sources, err error) {
	all = make(sources, len(s.Mounts))
	order := make([]int, len(s.Mounts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return depth(s.Mounts[a].Source) - depth(s.Mounts[b].Source) })
	for _, i := range order {
		if all[i], err = all.open(s.Mounts[i]); err != nil {
			all.close()
			return nil, err
		}
	}
	return all, nil
}

type sources []source

func (all sources) close() {
	for _, s := range all {
		_ = s.file.Close() // harmless for one that was not opened
	}
}

func (all sources) open(m Mount) (source, error) {
	file, err := m.Handle, error(nil)
	if file != nil {
		file, err = dup(file)
	} else {
		file, err = all.handle(m)
	}
	if err != nil {
		return source{}, err
	}
	s := source{Mount: m, file: file}
	if err := unix.Fstat(int(file.Fd()), &s.stat); err != nil {
		_ = file.Close()
		return source{}, missing(m.Source, err)
	}
	return s, nil
}

func dup(handle *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(handle.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, advice.Wrap(fmt.Errorf("starting a cell: keeping %s open: %w", handle.Name(), err),
			"see whether this program may open more files (ulimit -n)")
	}
	return os.NewFile(uintptr(fd), handle.Name()), nil
}

// handle opens the source of a mount beneath the writable one that holds it, where there is one: an earlier
// program in a cell may have put links there, or exchange folders for them now.
func (all sources) handle(m Mount) (*os.File, error) {
	above, rest := all.above(m.Source)
	if above == nil {
		root, err := os.OpenFile("/", unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return nil, missing(m.Source, err)
		}
		defer func() { _ = root.Close() }()
		return openBeneath(root, m.Source, rest, "")
	}
	return openBeneath(above.file, m.Source, rest, above.Source)
}

// above is the innermost writable source that holds a path, and the rest of the path.
func (all sources) above(path string) (found *source, rest string) {
	rest = strings.TrimPrefix(path, "/")
	for i := range all {
		s := &all[i]
		below, ok := strings.CutPrefix(path, s.Source+"/")
		if ok && s.file != nil && s.Writable && len(below) < len(rest) {
			found, rest = s, below
		}
	}
	return found, rest
}

// openBeneath opens a path below a folder, following no link and not leaving the folder.
func openBeneath(folder *os.File, path, rest, writable string) (*os.File, error) {
	fd, err := unix.Openat2(int(folder.Fd()), rest, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case err == nil:
		return os.NewFile(uintptr(fd), path), nil
	case errors.Is(err, unix.ENOSYS):
		return nil, advice.Wrap(fmt.Errorf("starting a cell: mounting %s: openat2 is missing: %w", path, err),
			"use Linux 5.6 or newer; in a container, allow the system call openat2")
	case errors.Is(err, unix.ELOOP) && writable != "":
		return nil, advice.Wrap(fmt.Errorf("starting a cell: mounting %s: a symbolic link in the writable %s is on the way: %w", path, writable, err),
			"remove the link, or name what it leads to")
	case errors.Is(err, unix.ELOOP):
		return nil, advice.Wrap(fmt.Errorf("starting a cell: mounting %s: a symbolic link is on the way: %w", path, err),
			"name what the link leads to")
	}
	return nil, missing(path, err)
}

func (s source) folder() bool { return s.stat.Mode&unix.S_IFMT == unix.S_IFDIR }

func (s source) mounted(path string, readOnly bool) mounted {
	return mounted{path, unix.Major(s.stat.Dev), unix.Minor(s.stat.Dev), s.stat.Ino, readOnly}
}

// expected is what the helper compares inside before the program runs: each mount, of several at one path the
// last, and the working directory if it is in one.
func (all sources) expected(dir string) ([]mounted, error) {
	var found []mounted
	for i, s := range all {
		later := func(o source) bool { return o.target() == s.target() }
		if !slices.ContainsFunc(all[i+1:], later) {
			found = append(found, s.mounted(s.target(), !s.Writable))
		}
	}
	in, rest := all.holding(dir)
	if in == nil {
		return found, nil
	}
	if rest == "" {
		return append(found, in.mounted(".", false)), nil
	}
	file, err := openBeneath(in.file, dir, rest, in.Source)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var below source
	if err := unix.Fstat(int(file.Fd()), &below.stat); err != nil {
		return nil, missing(dir, err)
	}
	return append(found, below.mounted(".", false)), nil
}

// holding is the innermost mount that a path inside is in, and the rest of the path.
func (all sources) holding(path string) (found *source, rest string) {
	for i := range all {
		at := all[i].target()
		below, err := filepath.Rel(at, path)
		if err != nil || below == ".." || strings.HasPrefix(below, "../") || found != nil && len(at) < len(found.target()) {
			continue
		}
		found, rest = &all[i], strings.TrimPrefix(below, ".")
	}
	return found, rest
}
