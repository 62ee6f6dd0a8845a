// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A tree is the job object that the program and its descendants belong to.
type tree struct{ job windows.Handle }

// Namespaced reports false: there are no PID namespaces here.
func (p *Process) Namespaced() bool { return false }

// NamespaceAvailable reports false: there are no PID namespaces here.
func NamespaceAvailable(context.Context, string) bool { return false }

func start(_ context.Context, s Spec) (*Process, error) {
	if s.Credential != nil {
		return nil, startError(s.Path, errors.New("running as another user is not supported on Windows"))
	}
	p, ends, err := newProcess(s, s.Path, s.Args)
	if err != nil {
		return nil, err
	}
	// The program is created suspended, so that it cannot start anything before it is in the job.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		HideWindow:    true,
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP,
	}
	err = p.cmd.Start()
	ends.close()
	if err != nil {
		p.abandon()
		return nil, startError(s.Path, err)
	}
	if p.tree.job, err = jobFor(p.cmd.Process.Pid); err == nil {
		err = resume(uint32(p.cmd.Process.Pid))
	}
	if err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.abandon()
		return nil, startError(s.Path, err)
	}
	go p.reap()
	return p, nil
}

// jobFor puts the process into a new job that ends with its last handle.
func jobFor(pid int) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("creating a job object: %w", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err == nil {
		err = assign(job, uint32(pid))
	}
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, fmt.Errorf("setting up the job object: %w", err)
	}
	return job, nil
}

func assign(job windows.Handle, pid uint32) error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, pid)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(h) }()
	return windows.AssignProcessToJobObject(job, h)
}

// resume lets the only thread of a process that was created suspended run.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return fmt.Errorf("listing threads: %w", err)
	}
	defer func() { _ = windows.CloseHandle(snapshot) }()
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID == pid {
			return resumeThread(entry.ThreadID)
		}
	}
	return fmt.Errorf("finding the program's thread: %w", err)
}

func resumeThread(id uint32) error {
	h, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, id)
	if err != nil {
		return err
	}
	defer func() { _ = windows.CloseHandle(h) }()
	_, err = windows.ResumeThread(h)
	return err
}

// reap waits for the program and then ends what is left in its job.
func (p *Process) reap() {
	_ = p.cmd.Wait()
	p.mu.Lock()
	p.reaped = true
	_ = windows.CloseHandle(p.tree.job)
	p.mu.Unlock()
	p.finish(statusOf(p.cmd))
}

// signal can only end a program: Windows knows no other signal for one without a console.
func (p *Process) signal(sig os.Signal) error {
	if sig == os.Kill {
		return p.cmd.Process.Kill()
	}
	return fmt.Errorf("signal %v: %w", sig, errors.ErrUnsupported)
}

func (p *Process) killTreeLocked() error { return windows.TerminateJobObject(p.tree.job, 1) }

func isBrokenPipe(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}

// readNow is never needed: there are no deadlines on pipes here.
func readNow(*os.File, []byte) (int, error) { return 0, errors.ErrUnsupported }
