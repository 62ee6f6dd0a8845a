// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"cmp"
	"context"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const probeWait = 20 * time.Second

type probeKey struct {
	path string
	uid  int
}

// probes remembers for each bubblewrap and user whether a PID namespace can be had here: that
// depends on the kernel's settings and on the container around us, and does not change.
var probes sync.Map // probeKey -> func() bool

// usableBwrap returns the bubblewrap to use for s, or "" for none.
func usableBwrap(ctx context.Context, s Spec) string {
	if s.NoPIDNamespace {
		return ""
	}
	path, err := exec.LookPath(cmp.Or(s.BwrapPath, "bwrap"))
	if err != nil {
		return ""
	}
	key := probeKey{path, unix.Geteuid()}
	if s.Credential != nil {
		key.uid = int(s.Credential.UID)
	}
	// The answer is shared, so one caller's cancellation must not decide it for all.
	probe := sync.OnceValue(func() bool { return probeBwrap(context.WithoutCancel(ctx), path, s.Credential) })
	known, _ := probes.LoadOrStore(key, probe)
	if !known.(func() bool)() {
		return ""
	}
	return path
}

// probeBwrap tries the real arguments with a program that does nothing. The kernel must know pid handles too (Linux 5.3).
func probeBwrap(ctx context.Context, path string, c *Credential) bool {
	fd, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	nothing, err := exec.LookPath("true")
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append(namespaceArgs("/"), "--", nothing)...)
	cmd.Env = []string{}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
	}
	return cmd.Run() == nil
}

// NamespaceAvailable reports whether [Start] would give a program of the current user a PID
// namespace of its own here, with the bubblewrap at path or, if empty, the one on PATH.
func NamespaceAvailable(ctx context.Context, path string) bool {
	return usableBwrap(ctx, Spec{BwrapPath: path}) != ""
}
