// SPDX-License-Identifier: Apache-2.0

// Fakecli stands in for the Claude Code CLI in benchmarks. It accepts any flags, speaks the stream protocol on standard
// input and output, and produces the load that its environment names (see package rig). Everything it writes is prepared
// before the first line is read, so that it is never the slower side.
package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/drover-agents/drover/bench/internal/corpus"
)

func main() {
	args := os.Args[1:]
	if slices.Contains(args, "--version") || slices.Contains(args, "-v") {
		fmt.Println(corpus.Version + " (Claude Code)")
		return
	}
	s, err := newSession(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakecli:", err)
		os.Exit(2)
	}
	s.serve()
}
