// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/bench/internal/rig"
)

// exitCode is what the CLI dies with; a good report of the death names it.
const exitCode = 7

func (s *session) dieAt(moment string) {
	if s.die != moment {
		return
	}
	fmt.Fprintln(os.Stderr, "fakecli: fatal: this is the end")
	s.report(rig.Report{DiedAt: time.Now().UnixNano()})
	os.Exit(exitCode)
}

func (s *session) deadlyStream() {
	kind, number, _ := strings.Cut(s.die, ":")
	lines, _ := strconv.Atoi(number)
	switch kind {
	case "request":
		s.write(s.hookRequest().appendTo(nil, 1))
		time.Sleep(20 * time.Millisecond) // the host's hook is at work by now
	case "torn":
		next := s.block.Prefix(lines + 1)
		s.write(next[:len(next)-100])
	default:
		s.write(s.block.Prefix(lines))
	}
	s.dieAt(s.die)
}
