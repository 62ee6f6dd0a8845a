// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/isolation"
)

// probeSandbox tries everything: what is installed or configured may still be forbidden to this user or in this container.
func probeSandbox(ctx context.Context) sandboxFacts {
	f := sandboxFacts{root: os.Geteuid() == 0, userFix: userNamespaceFix(os.ReadFile)}
	f.install = func(packages string) string { return installWith(packages, f.root) }
	f.bubblewrap = toolVersion(ctx, "bwrap", "--version")
	f.socat = toolVersion(ctx, "socat", "-V")
	f.namespaces = tryNamespaces(ctx)
	f.byHandle = isolation.MountsByHandle(ctx)
	f.userNamespaces = tryUserNamespace(ctx)
	f.seccomp = seccompFilter()
	f.landlock, f.landlockErr = landlockVersion()
	return f
}

// toolVersion finds "0.8.0" in "bubblewrap 0.8.0" and "1.7.4.4" in the output of socat -V.
func toolVersion(ctx context.Context, name, flag string) toolFact {
	output, err := programOutput(ctx, name, flag)
	if errors.Is(err, exec.ErrNotFound) {
		err = errors.New("not on PATH")
	}
	if err != nil {
		return toolFact{err: err}
	}
	for _, word := range strings.Fields(output) {
		if word[0] >= '0' && word[0] <= '9' && strings.Contains(word, ".") {
			return toolFact{version: word}
		}
	}
	return toolFact{}
}

// tryNamespaces has bubblewrap make every namespace of a sandbox around a program that does nothing.
func tryNamespaces(ctx context.Context) error {
	_, err := programOutput(ctx, "bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
		"--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--chdir", "/", "true")
	return err
}

// tryUserNamespace starts an idle program in a user namespace, without bubblewrap: some systems allow it to bubblewrap only.
func tryUserNamespace(ctx context.Context) error {
	path, err := exec.LookPath("true")
	if err != nil {
		path = "/bin/true" // PATH may be empty, which does not matter for namespaces
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	err = cmd.Run()
	switch system, ok := errors.AsType[syscall.Errno](err); {
	case ctx.Err() != nil:
		return errNoTime
	case system == unix.ENOSPC:
		return errors.New("user.max_user_namespaces allows no more")
	case ok:
		return system // without the path of a program that is not to blame
	}
	return err
}

// seccompFilter asks the kernel whether a filter may refuse a system call.
func seccompFilter() error {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	if errno != 0 {
		return errno
	}
	return nil
}

func landlockVersion() (int, error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errors.Is(errno, unix.ENOSYS):
		return 0, errors.New("the kernel is built without it")
	case errors.Is(errno, unix.EOPNOTSUPP):
		return 0, errors.New("switched off when the kernel was started")
	case errno != 0:
		return 0, errno
	}
	return int(version), nil
}

// userNamespaceFix is the command for the first switch that forbids user namespaces.
func userNamespaceFix(read func(path string) ([]byte, error)) string {
	for _, s := range []struct{ name, off, on string }{
		{"user.max_user_namespaces", "0", "15000"},
		{"kernel.unprivileged_userns_clone", "0", "1"},
		{"kernel.apparmor_restrict_unprivileged_userns", "1", "0"},
	} {
		value, err := read("/proc/sys/" + strings.ReplaceAll(s.name, ".", "/"))
		if err == nil && strings.TrimSpace(string(value)) == s.off {
			return fmt.Sprintf("sudo sysctl -w %s=%s", s.name, s.on)
		}
	}
	return "allow user namespaces in the container or virtual machine around this one"
}
