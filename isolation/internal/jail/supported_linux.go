// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/advice"
)

// probeWait bounds one try.
const probeWait = 20 * time.Second

type probeKey struct {
	bwrap string
	uid   int
}

type finding struct {
	err  error // why cells are unavailable
	byFD bool  // bubblewrap takes mounts as descriptors
}

// probes remembers the answer for each bubblewrap and user: kernel settings and the container around us do not change.
var probes sync.Map // probeKey -> func() finding

// Supported tries whether a cell can be had here, with the bubblewrap at that path or, if empty, the
// one on PATH. The answer is remembered. The error is an [UnsupportedError].
func Supported(ctx context.Context, bwrap string) error {
	path, err := findBwrap(bwrap)
	if err != nil {
		return err
	}
	return tried(ctx, path).err
}

// MountsByHandle reports whether mounts are made from handles: as root by this package itself, for others if
// bubblewrap has --bind-fd, which is tried. Otherwise they are made by name. In both cases the helper
// compares inside what is mounted with the handles, and a difference ends the start.
func MountsByHandle(ctx context.Context, bwrap string) bool {
	path, err := findBwrap(bwrap)
	return err == nil && (os.Geteuid() == 0 || tried(ctx, path).byFD)
}

func tried(ctx context.Context, path string) finding {
	// The answer is shared, so one caller's cancellation must not decide it for all.
	try := sync.OnceValue(func() finding { return probe(context.WithoutCancel(ctx), path) })
	known, _ := probes.LoadOrStore(probeKey{path, os.Geteuid()}, try)
	return known.(func() finding)()
}

// probe starts a real cell with a mount, by a descriptor and, where that fails, by name.
func probe(ctx context.Context, bwrap string) finding {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	if probeCell(ctx, bwrap, true) == nil {
		return finding{byFD: true}
	}
	return finding{err: probeCell(ctx, bwrap, false)}
}

// probeCell starts a cell in which the helper runs no program but waits for the end of its input. As root the mount tries
// the way to id-mapped ones; whether a folder's file system knows them is seen when it is mounted.
func probeCell(ctx context.Context, bwrap string, byFD bool) error {
	s := Spec{Dir: "/", Bwrap: bwrap, Mounts: []Mount{{Source: "/usr", Target: "/tmp/probe"}}}
	cell, err := start(ctx, s, byFD, func(l Launch) []string { return append(l.options(), "-w") }, Launch{})
	if err != nil {
		return unsupported(err)
	}
	_ = cell.Stdin().Close()
	if status := cell.Wait(); status.Code != 0 {
		return &UnsupportedError{"a program that does nothing failed in a cell", fixes[len(fixes)-1].fix}
	}
	return nil
}

const allowNamespaces = "allow user namespaces (sysctl user.max_user_namespaces above 0, kernel.unprivileged_userns_clone=1, " +
	"kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for bubblewrap); " +
	"in a container, a seccomp profile that allows them"

// fixes are the advice, by words in the error. The last one is for everything else.
var fixes = []struct{ words, fix string }{
	{"Unknown option", "install bubblewrap 0.8 or newer"},
	{"making an id map", allowNamespaces},
	{"fork/exec", "put bubblewrap where every user may run it, such as /usr/bin"},
	{"CAP_SYS_ADMIN", "run as an ordinary user, or give this process CAP_SYS_ADMIN"},
	{"mount proc", "in a container, run it with an unmasked /proc (for example --security-opt systempaths=unconfined)"},
	{"No permissions", allowNamespaces},
	{"ENOSPC", allowNamespaces},
	{"not support user namespaces", allowNamespaces},
	{"uid map", allowNamespaces},
	{"loopback", allowNamespaces},
	{"", "try bubblewrap by hand: bwrap --unshare-all --ro-bind / / true; it needs user namespaces, which the system or the container around this program may forbid"},
}

func unsupported(err error) error {
	reason, words := err.Error(), advice.Text(err)
	if errors.Is(err, unix.EPERM) && strings.Contains(reason, "fork/exec") {
		return &UnsupportedError{reason, "run as an ordinary user: this root may not become another user (it needs CAP_SETUID and CAP_SETGID, and more ids than its own)"}
	}
	for _, f := range fixes {
		if strings.Contains(words, f.words) {
			return &UnsupportedError{reason, f.fix}
		}
	}
	return nil
}
