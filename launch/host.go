// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/drover-agents/drover/internal/proc"
)

// ErrProcessEnded is returned by writes to the standard input of a program that has ended. Where the
// operating system reported the broken pipe itself, its error is wrapped too.
var ErrProcessEnded = proc.ErrEnded

// A HostSpawner starts a program on this machine, outside any jail. The zero value is ready to use.
//
// An agent may give every shell command it runs a session of its own, so that killing the agent, or its
// process group, leaves those commands running. HostSpawner ends them as far as the system allows:
//
//   - On Linux with bubblewrap (bwrap) installed and allowed, the agent runs in a PID namespace of its
//     own. [Process.Kill], the agent's own end, and the end of this program, also by SIGKILL, end
//     everything the agent started. Files, devices and network stay those of the host; this is not a
//     jail. Inside, bubblewrap sets PWD to the working directory, programs like sudo gain no
//     rights, and for an ordinary user files of other users show as owned by "nobody", which ssh
//     for one may object to; NoPIDNamespace avoids all that.
//   - On Linux without it, Kill ends the process group and whatever a walk over /proc finds below
//     the agent. A command that detached itself and whose parent has ended may remain. If this
//     program dies, the agent is killed, and commands it was running at that moment may remain.
//   - On macOS and other Unix systems, Kill ends the process group only; shell commands of the agent
//     may remain. If this program dies, the agent sees the end of its input and ends by itself.
//   - On Windows a job object ends everything, also when this program dies.
//
// Signals sent with [Process.Signal] let an agent end its commands itself, so a client tries SIGTERM before Kill.
type HostSpawner struct {
	// NoPIDNamespace keeps the program out of a PID namespace of its own. Default: one is used where it can be had.
	NoPIDNamespace bool
	// User is the name or number of the OS user that the program runs as. Changing users needs root. Default: the current.
	User string
	// BwrapPath is the bubblewrap executable. Default: bwrap on this program's PATH.
	BwrapPath string
}

// Spawn starts cmd. All errors but those of the context are [*Error]s.
func (h HostSpawner) Spawn(ctx context.Context, cmd Command) (Process, error) {
	if err := CheckProgram(cmd.Path); err != nil {
		return nil, err
	}
	if err := CheckDir(cmd.Dir); err != nil {
		return nil, err
	}
	if err := checkFormat(cmd.Path); err != nil {
		return nil, err
	}
	spec := proc.Spec{
		Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env,
		NoPIDNamespace: h.NoPIDNamespace, BwrapPath: h.BwrapPath,
	}
	var err error
	if spec.Credential, err = credential(h.User); err != nil {
		return nil, err
	}
	p, err := proc.Start(ctx, spec)
	if err != nil {
		return nil, h.startFailure(ctx, cmd, err)
	}
	return hostProcess{p}, nil
}

// CheckProgram returns an error if the program at path cannot be run.
func CheckProgram(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrPermission):
		return &Error{path, fmt.Errorf("%w: %w", ErrNotExecutable, err), "give this user access to the file and the directories above it"}
	case err != nil:
		return &Error{path, ErrNotFound, "correct the path"}
	case runtime.GOOS == "windows" && IsBatchFile(path):
		return &Error{path, fmt.Errorf("%w: a batch file would pass its arguments through a shell", ErrNotExecutable), "name the .exe file that it starts"}
	case info.IsDir():
		return &Error{path, fmt.Errorf("%w: it is a directory", ErrNotExecutable), "name the program inside it"}
	case runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return &Error{path, fmt.Errorf("%w: no execute permission (mode %s)", ErrNotExecutable, info.Mode()), "chmod +x " + path}
	}
	if _, err := exec.LookPath(path); errors.Is(err, os.ErrPermission) {
		return &Error{path, fmt.Errorf("%w: this user may not execute it (mode %s)", ErrNotExecutable, info.Mode()), "chmod +x " + path + " or run as its owner"}
	}
	return nil
}

// IsBatchFile reports whether any component of a Windows path names a batch file. Windows runs those
// through its shell, which takes arguments apart again and would run what they contain.
func IsBatchFile(path string) bool {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' || r == ':' })
	for _, part := range parts {
		part = strings.ToLower(strings.TrimRight(part, ". "))
		if strings.HasSuffix(part, ".bat") || strings.HasSuffix(part, ".cmd") {
			return true
		}
	}
	return false
}

// CheckDir returns an error if a working directory cannot be used. Empty is the current one.
func CheckDir(dir string) error {
	if dir == "" {
		dir = "."
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &Error{dir, fmt.Errorf("%w: it does not exist", ErrWorkingDir), "create the directory, or correct its path"}
	case err != nil:
		return &Error{dir, fmt.Errorf("%w: %w", ErrWorkingDir, err), "give this user access to the directory"}
	case !info.IsDir():
		return &Error{dir, fmt.Errorf("%w: it is not a directory", ErrWorkingDir), "name a directory"}
	}
	return nil
}

// checkFormat refuses text without a "#!" line and programs of another architecture, on Linux. The
// kernel does so too, but bubblewrap would then have a shell read the file.
func checkFormat(path string) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // a program may be executable without being readable
	}
	defer func() { _ = file.Close() }()
	begin := make([]byte, 2)
	n, _ := io.ReadFull(file, begin)
	if string(begin[:n]) == "#!" {
		return nil
	}
	refuse := func(reason string) error {
		return &Error{path, fmt.Errorf("%w: %w: %s", ErrNotExecutable, syscall.ENOEXEC, reason), "run it by hand to see its output: " + path + " --version"}
	}
	program, err := elf.NewFile(file)
	if err != nil {
		return refuse("it is neither a program nor a script with a #! line")
	}
	own := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if own != elf.EM_NONE && program.Machine != own && (own != elf.EM_X86_64 || program.Machine != elf.EM_386) {
		return refuse(fmt.Sprintf("it is a program for %v, and this machine is %s", program.Machine, runtime.GOARCH))
	}
	return nil
}

func (h HostSpawner) startFailure(ctx context.Context, cmd Command, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("starting %s: %w", cmd.Path, ctx.Err())
	}
	hint := "run it by hand to see its output: " + cmd.Path + " --version"
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: %w", ErrNotExecutable, err)
		if h.User != "" {
			hint = fmt.Sprintf("let user %s enter the working directory %q and run %s", h.User, cmd.Dir, cmd.Path)
		}
	}
	return &Error{Path: cmd.Path, Err: err, Hint: hint}
}

// credential looks name up. An empty name and the current user need no change of user.
func credential(name string) (*proc.Credential, error) {
	if name == "" {
		return nil, nil
	}
	fail := func(err error, hint string) (*proc.Credential, error) {
		return nil, &Error{Path: "user " + name, Err: err, Hint: hint}
	}
	u, err := user.Lookup(name)
	if err != nil {
		byID, idErr := user.LookupId(name)
		if idErr != nil {
			return fail(err, "create the user, or leave HostSpawner.User empty")
		}
		u = byID
	}
	c, err := numeric(u)
	if err != nil {
		return fail(err, "use HostSpawner.User only where users have numbers")
	}
	switch os.Geteuid() {
	case int(c.UID):
		return nil, nil
	case 0:
		return c, nil
	default:
		return fail(os.ErrPermission, "run as root, or leave HostSpawner.User empty")
	}
}

func numeric(u *user.User) (*proc.Credential, error) {
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	c := &proc.Credential{UID: uint32(uid), GID: uint32(gid)}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			c.Groups = append(c.Groups, uint32(n))
		}
	}
	return c, nil
}

type hostProcess struct{ *proc.Process }

// Wait implements [Process].
func (h hostProcess) Wait() ExitStatus {
	st := h.Process.Wait()
	return ExitStatus{Code: st.Code, Signal: st.Signal}
}
