// SPDX-License-Identifier: Apache-2.0

package jail

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-agents/drover/advice"
)

// A Spec describes the program to start, and what it may see.
type Spec struct {
	// Path is the program, as inside, and Args are the arguments after its name.
	Path string
	Args []string
	// Dir is the working directory, as inside. Empty means "/".
	Dir string
	// Env is the whole environment as "NAME=value" entries, last one wins.
	Env []string
	// Mounts are what the program sees beside the system. One below another is laid over it, whatever their order.
	Mounts []Mount
	// Files are small read-only files inside. They replace the default passwd, group, hosts and nsswitch.conf in /etc.
	Files []File
	// Listen are loopback TCP addresses (IPv4, ports from 1024, at most 16) opened inside and handed out, in order.
	Listen []netip.AddrPort
	// Limits are resource limits of each process inside.
	Limits Limits
	// TempBytes and SharedBytes are the sizes of /tmp and /dev/shm. Zero means 1 GiB and 64 MiB.
	TempBytes, SharedBytes int64
	// Nested lets the program use namespaces, as the CLI's Bash sandbox needs. It is weaker: more of the kernel is exposed.
	Nested bool
	// Guard keeps other processes inside, of the same user, from memory and descriptors of a [Guardable] program.
	Guard bool
	// UID is the cell's host user and group if this program is root; else that is the current user. Zero means 65534.
	UID uint32
	// Bwrap is the bubblewrap. Empty means the one on this process's PATH.
	Bwrap string
	// Confine gets the host pids of bubblewrap and of the namespace's init before the program may
	// run, to put them into control groups. An error ends the start. It may be nil.
	Confine func(pids []int) error
}

// A Mount shows a file, a folder or a socket of the host inside.
type Mount struct {
	// Source is the path on the host. No part of it may be a symbolic link.
	Source string
	// Handle is what is mounted, opened with O_PATH; Source is then only a name for it. It stays the
	// caller's. Nil means that [Start] opens Source: beneath the innermost writable mount that holds it.
	Handle *os.File
	// Target is the path inside. Empty means Source.
	Target string
	// Writable lets the program write there. The zero value does not.
	Writable bool
}

// A File is a small file that exists only inside, and cannot be written.
type File struct {
	Path string
	Data []byte
}

// Limits are resource limits. Zero values do not limit. Core dumps are never written.
type Limits struct {
	// Processes bounds the processes and threads of the whole cell.
	Processes int
	// AddressSpace and FileSize are bytes of one process, and of one file it writes.
	AddressSpace, FileSize int64
	// CPU is the processor time of one process, in whole seconds, rounded up.
	CPU time.Duration
	// OpenFiles bounds the descriptors of one process.
	OpenFiles int
}

// A Launch is what the helper does before it becomes the program. It runs without bubblewrap too.
// Descriptors are numbers in the helper's process; zero means none.
type Launch struct {
	// Host is the read end of a pipe whose other end the host program alone holds. With it the helper
	// stays as the first process of its PID namespace, and ends with the program and with the pipe.
	Host int
	// Report is the child's end of a [Handoff].
	Report int
	// Listen are opened in the network that the helper is in.
	Listen []netip.AddrPort
	Limits Limits
	// Ruleset is a Landlock ruleset, Filter holds a seccomp program as made by [Filter], Dir is the
	// working directory, for a helper that is not in a mount namespace of its own.
	Ruleset, Filter, Dir int
	// Path is the program, absolute; Args are the arguments after its name.
	Path string
	Args []string

	mounted []mounted // what the helper must find
	hold    bool      // it waits after its report
}

// mounted is a file or folder that must be at a path.
type mounted struct {
	path         string
	major, minor uint32
	inode        uint64
	readOnly     bool
}

// An UnsupportedError is why there is no cell here, with advice.
type UnsupportedError struct{ Reason, Fix string }

func (e *UnsupportedError) Error() string { return "no cell can be had here: " + e.Reason }

// Advice implements [advice.Adviser].
func (e *UnsupportedError) Advice() string { return e.Fix }

func (m Mount) target() string {
	if m.Target != "" {
		return m.Target
	}
	return m.Source
}

// check refuses what bubblewrap or the helper would take for something else.
func (s Spec) check() error {
	paths := []string{s.Path, s.Dir}
	for _, m := range s.Mounts {
		paths = append(paths, m.Source, m.target())
	}
	for _, f := range s.Files {
		paths = append(paths, f.Path)
	}
	for _, path := range paths {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path {
			return advice.Wrap(fmt.Errorf("starting a cell: the path %q is not absolute and clean", path),
				"give the full path, without dots and without a slash at its end")
		}
	}
	for _, text := range append(append(paths, s.Args...), s.Env...) {
		if strings.Contains(text, "\x00") {
			return advice.Wrap(errors.New("starting a cell: a path, argument or variable holds a zero byte"), "remove it")
		}
	}
	for _, m := range s.Mounts {
		if m.target() == "/" {
			return advice.Wrap(errors.New("starting a cell: a mount covers the whole file system"), "mount the folders that are needed")
		}
	}
	return checkListen(s.Listen)
}

func missing(path string, err error) error {
	return advice.Wrap(fmt.Errorf("starting a cell: mounting %s: %w", path, err), "make it, or take it out of the mounts")
}

// MaxListen is how many listeners a jail has at most.
const MaxListen = 16

func checkListen(addrs []netip.AddrPort) error {
	if len(addrs) > MaxListen {
		return advice.Wrap(fmt.Errorf("starting a cell: %d listeners", len(addrs)), "ask for at most %d", MaxListen)
	}
	for _, a := range addrs {
		if !a.Addr().Is4() || !a.Addr().IsLoopback() || a.Port() < 1024 {
			return advice.Wrap(fmt.Errorf("starting a cell: cannot listen on %s", a), "use an address of 127.0.0.0/8 and a port from 1024")
		}
	}
	return nil
}

// UnsupportedOn describes what a system (a GOOS) without cells offers.
func UnsupportedOn(system, processor string) *UnsupportedError {
	switch system {
	case "linux":
		return &UnsupportedError{
			"the cell's helper is not built for " + processor,
			"use amd64 or arm64, or accept a weaker isolation level by name",
		}
	case "darwin":
		return &UnsupportedError{
			"macOS has no namespaces; what holds here is the CLI's own sandbox around Bash, a private home and a private environment",
			"run in a Linux container or virtual machine, or accept the CLI's sandbox by name",
		}
	}
	return &UnsupportedError{
		system + " has no namespaces; what holds here is a private home and a private environment",
		"run in a Linux container or virtual machine, or accept the host mode by name",
	}
}
