// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package claudetest

// A process is one that the CLI of a test has started. Other systems than Linux do not show the
// environment of a process, so none is ever found there.
type process struct {
	pid     int
	command string
}

func (process) kill() {}

func processesOf(string) []process { return nil }
