// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package main

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

// interruptProcess ends a run at once: there is no gentler signal.
func interruptProcess(p *os.Process) error { return p.Kill() }
