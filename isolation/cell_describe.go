// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/isolation/internal/landlock"
)

func (c *Cell) describe(upstream string, leftOut []string) Protection {
	f := facts{level: c.level, isolation: &c.isolation, addDirs: c.addDirs, shields: c.shields, guarded: c.guarded, notes: c.notes}
	if w, ok := c.isolator.(*landlockIsolator); ok {
		f.landlock = w.enforced
	}
	f.byName = c.level == LevelCell && !MountsByHandle(c.open)
	if c.level <= LevelLandlock {
		c.grouped = groupAvailable()
		f.group = c.grouped
	}
	w := f.describe()
	w.Upstream, w.LeftOut = upstream, leftOut
	return w
}

// groupAvailable tries once whether the kernel limits a cell as a whole, which depends on the machine and the user.
var groupAvailable = sync.OnceValue(func() bool {
	group, err := newGroup(defaultLimits)
	return err == nil && group.Close() == nil
})

// facts are the input of the texts in a Protection.
type facts struct {
	level     Level
	isolation *Isolation
	addDirs   []string // of the options of the CLI
	group     bool     // there is a control group
	byName    bool     // bubblewrap has no --bind-fd
	guarded   bool     // commands do not reach the memory of the CLI
	landlock  landlock.Enforced
	shields   []string // folders that are read-only because the CLI is in them
	notes     []string
}

func (f facts) describe() Protection {
	w := &words{}
	w.holds("the home is private, and removed when the run is over")
	w.holds("the environment is built from nothing")
	w.holds("the credential for the model stays outside: the CLI has a token for this run")
	switch f.level {
	case LevelCell:
		f.cell(w)
	case LevelLandlock:
		f.behindLandlock(w)
	case LevelSandbox:
		f.cliSandbox(w)
	default:
		f.noIsolation(w)
	}
	for _, folder := range f.shields {
		w.holds("%s is read-only, because the CLI is in it", folder)
	}
	for _, note := range f.notes {
		w.lacks("%s", note)
	}
	return Protection{Level: f.level, Enforced: w.enforced, Missing: w.missing}
}

type words struct{ enforced, missing []string }

func (w *words) holds(format string, args ...any) {
	w.enforced = append(w.enforced, fmt.Sprintf(format, args...))
}

func (w *words) lacks(format string, args ...any) {
	w.missing = append(w.missing, fmt.Sprintf(format, args...))
}

func (f facts) cell(w *words) {
	w.holds("the whole CLI is in a jail of its own: files, processes, network, no privileges, a filter of system calls")
	f.files(w, "the workspace, the home and a private /tmp")
	if f.byName {
		w.holds("mounts are made by name, because bubblewrap has no --bind-fd, and compared inside with what was checked before the CLI runs")
	} else {
		w.holds("mounts are made from handles of what was checked, and compared inside before the CLI runs")
	}
	w.holds("%s", f.isolation.network().inWords())
	w.holds("all processes that the CLI started end with it")
	if f.guarded {
		w.holds("commands cannot open the memory, the output or the environment of the CLI")
	} else {
		w.lacks("commands can write the memory and the output of the CLI, and so speak in its name: it does not use the loader of glibc")
	}
	f.limits(w)
	sandbox := f.isolation.sandbox()
	if sandbox.Nested {
		w.holds("commands of the Bash tool run in the CLI's own sandbox, inside of the jail")
		w.lacks("the filter of system calls lets namespaces and mounts through, which the nested sandbox needs")
		f.excluded(w, "the nested sandbox, though not of the jail")
	}
	for _, path := range f.isolation.network().UnixSockets {
		w.lacks("the socket %s gives away what the program behind it can do", path)
	}
}

func (f facts) behindLandlock(w *words) {
	w.holds("the whole CLI is behind Landlock (version %d) and a filter of system calls, without new privileges", f.landlock.ABI)
	f.files(w, "the workspace and the home")
	for _, hold := range f.landlock.Holds {
		w.holds("%s", hold)
	}
	w.holds("UDP, Multipath TCP, TCP Fast Open, sockets of other families, keyrings, io_uring and namespaces are refused")
	w.holds("%s", f.isolation.network().inWords())
	f.limits(w)
	for _, gap := range f.landlock.Open {
		if !gap.Filterable {
			w.lacks("%s", gap.What)
		}
	}
	w.lacks("other programs of this machine can use the proxy for tools")
	w.lacks("a command that detaches itself and hides where it comes from can outlive the run, and commands can if this program is killed")
}

func (f facts) cliSandbox(w *words) {
	w.holds("commands of the Bash tool run in the CLI's own sandbox, and write only into the workspace%s", f.namedPaths())
	w.holds("the CLI's own tools for files stay within the workspace and the paths that were named")
	w.holds("for commands of the Bash tool: %s", f.isolation.network().inWords())
	w.lacks("the CLI itself, its hooks and its MCP servers are not isolated")
	w.lacks("commands can read what the user can outside of the user's home")
	w.lacks("neither memory nor processes nor disk are limited")
	f.excluded(w, "the sandbox, without isolation")
}

// excluded lists the configured ways out of the CLI's own sandbox.
func (f facts) excluded(w *words, of string) {
	sandbox := f.isolation.sandbox()
	if len(sandbox.ExcludedCommands) > 0 {
		w.lacks("these commands run outside of %s: %s", of, strings.Join(sandbox.ExcludedCommands, ", "))
	}
	if sandbox.AllowUnsandboxedCommands {
		w.lacks("the model may ask for any command to run outside of %s", of)
	}
}

func (f facts) noIsolation(w *words) {
	w.lacks("NO ISOLATION: the agent reads, writes and runs everything that this user can")
	w.lacks("NO ISOLATION: tools reach every host; the network policy is not enforced")
	w.lacks("credentials that the user keeps on this machine can be read by the agent")
	w.lacks("neither memory nor processes nor disk are limited")
}

func (f facts) files(w *words, where string) {
	w.holds("files: written only in %s%s; read only there, in the system's own folders and what was named", where, f.namedPaths())
}

func (f facts) namedPaths() string {
	paths := slices.Concat(f.isolation.sandbox().WritablePaths, f.addDirs)
	if len(paths) == 0 {
		return ""
	}
	return ", and in " + strings.Join(paths, ", ")
}

func (p NetworkPolicy) inWords() string {
	reach := p.domainsInWords()
	if p.ownProxy() {
		reach = "what your proxy lets through (" + p.ownProxyInWords() + ")"
	}
	local := "servers on the loopback of the machine"
	switch {
	case reach == "" && p.AllowLocalhost:
		return "network: tools reach " + local + " through the proxy"
	case reach == "":
		return "network: tools reach nothing"
	case p.AllowLocalhost && !p.ownProxy():
		reach += " and " + local
	}
	if !p.ownProxy() {
		reach += " through the proxy"
	}
	return "network: tools reach " + reach
}

// domainsInWords are hosts with their ports, or "".
func (p NetworkPolicy) domainsInWords() string {
	if p.AllowedPorts != nil && len(p.AllowedPorts) == 0 {
		return ""
	}
	var all []string
	domains := p.AllowedDomains
	if slices.Contains(domains, "*") {
		domains = []string{"every public host"}
	}
	for _, domain := range domains {
		if p.AllowedPorts == nil {
			all = append(all, domain)
		}
		for _, port := range p.AllowedPorts {
			all = append(all, fmt.Sprintf("%s:%d", domain, port))
		}
	}
	return strings.Join(all, ", ")
}

func (p NetworkPolicy) ownProxyInWords() string {
	var all []string
	if p.HTTPProxyPort != 0 {
		all = append(all, fmt.Sprintf("HTTP at port %d", p.HTTPProxyPort))
	}
	if p.SOCKSProxyPort != 0 {
		all = append(all, fmt.Sprintf("SOCKS at port %d", p.SOCKSProxyPort))
	}
	return strings.Join(all, ", ")
}
