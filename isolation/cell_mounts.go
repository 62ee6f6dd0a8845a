// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation/internal/jail"
)

// mounts are what of the host's files the program sees: its workspace and home, what the isolation adds, and
// the files that it needs. Everything has the same path inside.
func (c *Cell) mounts(p Program) ([]jail.Mount, error) {
	m := c.newMounts(true)
	sandbox := c.isolation.sandbox()
	for _, path := range sandbox.WritablePaths {
		m.add(path, true, "Sandbox.WritablePaths")
	}
	for _, path := range p.AddDirs {
		m.add(path, true, "AddDirs")
	}
	for _, path := range sandbox.ReadablePaths {
		m.addReadOnly(path, "Sandbox.ReadablePaths")
	}
	for _, path := range c.isolation.network().UnixSockets {
		m.addSocket(path, "NetworkPolicy.UnixSockets")
	}
	m.addFiles(p.Files)
	c.notes = append(c.notes, m.addServers(p.Servers)...)
	return m.checked()
}

// newMounts are the working directory and the home.
func (c *Cell) newMounts(writable bool) *mountList {
	m := &mountList{dir: c.dir, homes: filepath.Dir(c.home.Path()), layered: c.level == LevelCell, keep: c.onClose}
	const field = "the working directory"
	if m.fits(c.dir, c.dir, writable, field) {
		m.mounts = append(m.mounts, jail.Mount{Source: c.dir, Target: c.dir, Handle: c.workdir, Writable: writable})
	}
	m.mounts = append(m.mounts, ownMount(c.home.Path()))
	return m
}

// ownMount is a folder of this program's, which no agent has named.
func ownMount(path string) jail.Mount {
	return jail.Mount{Source: leadsTo(path), Target: path, Writable: true}
}

// A mountList grows by what is asked for, and by what is wrong with it.
type mountList struct {
	dir     string // relative paths begin here
	homes   string // the folder with the homes of all runs
	layered bool   // what is mounted below something else has rights of its own
	keep    func(closer func() error)
	mounts  []jail.Mount
	asked   []asked
	errs    []error
}

// asked is a path that is requested inside, and what is there.
type asked struct {
	field, path, real string
	handle            *os.File
}

func (m *mountList) add(path string, writable bool, field string) {
	m.addTrusting(agentsCannotWrite, path, writable, field)
}

// addOwn adds a file of the program's own, which is not the agent's to choose: all links to it are followed.
func (m *mountList) addOwn(path, field string) {
	m.addTrusting(func(*os.File, string) bool { return true }, path, false, field)
}

func (m *mountList) addTrusting(trusted trust, path string, writable bool, field string) {
	if mount, ok := m.resolve(trusted, path, writable, field); ok && !covered(m.mounts, mount) {
		m.mounts = append(m.mounts, mount)
	}
}

// addReadOnly adds what can only be read, also where it is in a folder that can be written.
func (m *mountList) addReadOnly(path, field string) {
	mount, ok := m.resolve(agentsCannotWrite, path, false, field)
	if !ok {
		return
	}
	inWritable := slices.ContainsFunc(m.mounts, func(in jail.Mount) bool {
		return in.Writable && in.Target != mount.Target && within(in.Target, mount.Target)
	})
	switch {
	case inWritable && !m.layered:
		m.refuse(field, path, errors.New("is in a folder that can be written, from which Landlock cannot take a part"), "run in a cell, or name what is elsewhere")
	case inWritable || !covered(m.mounts, mount):
		m.mounts = append(m.mounts, mount)
	}
}

// addSocket adds a socket and nothing else.
func (m *mountList) addSocket(path, field string) {
	if info, err := os.Stat(path); err == nil && info.Mode().Type() != os.ModeSocket {
		m.refuse(field, path, errors.New("is not a socket"), "name the socket itself; folders belong into Sandbox.WritablePaths")
	}
	m.add(path, true, field)
}

// resolve opens what a path names. From now on it is the handle that counts.
func (m *mountList) resolve(trusted trust, path string, writable bool, field string) (_ jail.Mount, ok bool) {
	path = m.absolute(path)
	handle, real, err := m.open(trusted, path, field)
	if err != nil {
		return jail.Mount{}, false
	}
	m.keep(handle.Close)
	if !m.fits(path, real, writable, field) {
		return jail.Mount{}, false
	}
	m.asked = append(m.asked, asked{field, path, real, handle})
	return jail.Mount{Source: real, Target: path, Handle: handle, Writable: writable}, true
}

// A trust decides which links are followed: those in folders that it accepts.
type trust func(folder *os.File, name string) bool

// open opens a path: beneath its writable mount, else following the links that are trusted.
func (m *mountList) open(trusted trust, path, field string) (handle *os.File, real string, err error) {
	in, found := innermost(m.mounts, path)
	rest := strings.TrimPrefix(strings.TrimPrefix(path, in.Target), "/")
	if found && in.Writable && in.Handle != nil && rest != "" {
		if handle, err = openBeneath(in.Handle, rest); err == nil {
			real, err = realName(handle)
		}
	} else {
		handle, real, err = openPath(path, trusted)
	}
	switch {
	case err == nil:
		return handle, real, nil
	case leadsTo(path) != path:
		m.refuseLink(field, path, leadsTo(path))
	default:
		m.refuse(field, path, err, nameNarrowly)
	}
	return nil, "", err
}

func (m *mountList) fits(path, real string, writable bool, field string) bool {
	switch {
	case tooOpen(real, writable):
		m.refuse(field, path, errors.New("would open too much of the machine"), nameNarrowly)
	case within(real, m.homes):
		m.refuse(field, path, errors.New("contains the private homes of all runs"), "set Isolation.TempDir to a folder outside of it")
	default:
		return true
	}
	return false
}

// absolute is a path as the CLI would find it, without dots.
func (m *mountList) absolute(path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.dir, path)
	}
	return filepath.Clean(path)
}

const nameNarrowly = "name files and folders that there are, as narrow as can be"

func (m *mountList) refuse(field, path string, err error, next string) {
	m.errs = append(m.errs, advice.Wrap(fmt.Errorf("isolation: %s: %s: %w", field, path, err), "%s", next))
}

// refuseLink is for a link that an agent may have made, to choose what the next one is shown.
func (m *mountList) refuseLink(field, path, real string) {
	m.refuse(field, path, fmt.Errorf("is a link to %s, which the agent may have made in an earlier run", real), "name "+real+" itself, if that is meant")
}

// checked refuses a path in a folder that agents can write, if it was opened elsewhere: before that folder was
// named, or while another process exchanged folders.
func (m *mountList) checked() ([]jail.Mount, error) {
	for _, a := range m.asked {
		in, found := innermost(m.mounts, filepath.Dir(a.path))
		if !found || !in.Writable || in.Handle == nil {
			continue
		}
		rest, err := filepath.Rel(in.Target, a.path)
		if err == nil {
			err = sameBeneath(in.Handle, rest, a.handle)
		}
		if err != nil {
			m.refuseLink(a.field, a.path, a.real)
		}
	}
	return ordered(m.mounts), errors.Join(m.errs...)
}

// sameBeneath is nil if a path below a folder is the file of a handle.
func sameBeneath(folder *os.File, rest string, handle *os.File) error {
	found, err := openBeneath(folder, rest)
	if err != nil {
		return err
	}
	defer func() { _ = found.Close() }()
	have, err := found.Stat()
	if err != nil {
		return err
	}
	want, err := handle.Stat()
	if err == nil && !os.SameFile(have, want) {
		err = errors.New("is another file now")
	}
	return err
}

// within reports whether a path is a folder or something in it. Both are clean.
func within(folder, path string) bool {
	below, ok := strings.CutPrefix(path, folder)
	return ok && (below == "" || folder == "/" || strings.HasPrefix(below, "/"))
}

// tooOpen reports whether a path must never be shown to an agent.
func tooOpen(path string, writable bool) bool {
	always := []string{"/", "/dev", "/run", "/tmp"} // the last one is private inside
	return slices.Contains(always, path) || within("/proc", path) || within("/sys", path) || writable && tooWide(path)
}

func (m *mountList) addFiles(files []File) {
	for _, file := range files {
		if _, err := os.Stat(m.absolute(file.Path)); file.Optional && err != nil {
			continue
		}
		if file.Output {
			m.addOutput(file)
		} else {
			m.addOwn(file.Path, file.Setting)
		}
	}
}

// addOutput adds a file that the program writes. If it is outside it is created first: a missing file cannot be shown.
func (m *mountList) addOutput(file File) {
	path := m.absolute(file.Path)
	if slices.ContainsFunc(m.mounts, func(in jail.Mount) bool { return in.Writable && within(in.Target, path) }) {
		return
	}
	made, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		m.refuse(file.Setting, path, err, "name a file that can be written")
		return
	}
	_ = made.Close() // nothing was written
	m.add(path, true, file.Setting)
}

// isOutside reports whether there is a file or folder that can not be seen inside so far.
func (m *mountList) isOutside(path string) bool {
	path = m.absolute(path)
	holds := func(folder string) bool { return within(folder, path) }
	seen := slices.ContainsFunc(m.mounts, func(in jail.Mount) bool { return holds(in.Target) })
	if seen || slices.ContainsFunc(jail.SystemPaths(), holds) {
		return false
	}
	_, err := os.Stat(path)
	return err == nil
}

// addServers adds the programs of servers, which the program starts inside. It returns the paths that
// they name and will not find: Sandbox.ReadablePaths is for more than their program.
func (m *mountList) addServers(servers []Server) (notes []string) {
	for _, server := range servers {
		if filepath.IsAbs(server.Command) && m.isOutside(server.Command) {
			m.addOwn(server.Command, "the MCP server "+server.Name)
		}
		for _, arg := range server.Args {
			if filepath.IsAbs(arg) && m.isOutside(arg) {
				notes = append(notes, fmt.Sprintf("the MCP server %s does not find %s, which is outside; Sandbox.ReadablePaths would show it", server.Name, arg))
			}
		}
	}
	return notes
}

// covered reports whether a mount adds nothing to others.
func covered(mounts []jail.Mount, m jail.Mount) bool {
	target := cmp.Or(m.Target, m.Source)
	return slices.ContainsFunc(mounts, func(other jail.Mount) bool {
		at := cmp.Or(other.Target, other.Source)
		return within(at, target) && other.Source+strings.TrimPrefix(target, at) == m.Source && (other.Writable || !m.Writable)
	})
}

// ordered puts folders before what is in them: a later mount covers an earlier one.
func ordered(mounts []jail.Mount) []jail.Mount {
	depth := func(m jail.Mount) int { return strings.Count(cmp.Or(m.Target, m.Source), "/") }
	slices.SortStableFunc(mounts, func(a, b jail.Mount) int { return cmp.Compare(depth(a), depth(b)) })
	return mounts
}
