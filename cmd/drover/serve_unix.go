// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"syscall"
)

// ownGroup keeps the signals of the server's terminal from a run: the server passes them on.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func interruptProcess(p *os.Process) error { return p.Signal(os.Interrupt) }
