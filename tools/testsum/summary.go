// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// slowest is how many tests are named at the end.
const slowest = 10

// keptLines is how many lines of a failed test's output are repeated at the end.
const keptLines = 4

// An event is one line of go test -json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build output
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// key names a test; with an empty test, a package.
type key struct{ pkg, test string }

// A summary collects events. Output of a test is kept until it is known how the test ended, and printed only if it failed.
type summary struct {
	w        io.Writer
	output   map[key]*strings.Builder
	builds   map[string]*strings.Builder
	times    []timed
	passed   []string // go's own lines about packages, in the order they ended
	broken   []string // the same about packages that failed: last, next to what failed in them
	failures []string // what failed, a few lines each
	running  map[key]bool
}

type timed struct {
	key
	seconds float64
}

func newSummary(w io.Writer) *summary {
	return &summary{w: w, output: map[key]*strings.Builder{}, builds: map[string]*strings.Builder{}, running: map[key]bool{}}
}

// read takes events from r to its end. Lines that are not events are passed through.
func (s *summary) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				_, _ = s.w.Write(line)
			} else {
				s.take(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) take(e event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "run":
		s.running[k] = true
	case "output":
		builder(s.output, k).WriteString(e.Output)
	case "build-output":
		builder(s.builds, e.ImportPath).WriteString(e.Output)
	case "pass", "skip":
		s.ended(k, e)
		delete(s.output, k)
	case "fail":
		s.ended(k, e)
		s.printFailure(k, e)
	}
}

func builder[K comparable](m map[K]*strings.Builder, k K) *strings.Builder {
	if m[k] == nil {
		m[k] = new(strings.Builder)
	}
	return m[k]
}

// ended notes the time of a test, or the verdict of a package.
func (s *summary) ended(k key, e event) {
	delete(s.running, k)
	if k.test != "" {
		s.times = append(s.times, timed{k, e.Elapsed})
		return
	}
	if line := s.verdict(k, e); e.Action == "fail" {
		s.broken = append(s.broken, line)
	} else if line != "" {
		s.passed = append(s.passed, line)
	}
}

// verdict finds go's own line about a package in its output.
func (s *summary) verdict(k key, e event) string {
	if out := s.output[k]; out != nil {
		for line := range strings.Lines(out.String()) {
			line = strings.TrimRight(line, "\n")
			if strings.HasPrefix(line, "ok  \t") || strings.HasPrefix(line, "FAIL\t") {
				return line
			}
		}
	}
	if e.Action == "fail" {
		return "FAIL\t" + k.pkg
	}
	return ""
}

// printFailure shows all output of a failed test. A package shows its own output only, with that of
// tests that never ended (after a panic or a timeout, it has the reason).
func (s *summary) printFailure(k key, e event) {
	if k.test != "" {
		s.heading("failed", k, fmt.Sprintf(" (%.2f s)", e.Elapsed))
		s.printOutput(k)
		return
	}
	if out := s.builds[e.FailedBuild]; out != nil {
		s.heading("does not build", k, "")
		fmt.Fprint(s.w, out)
	}
	var unfinished []key
	for r := range s.running {
		if r.pkg == k.pkg {
			unfinished = append(unfinished, r)
		}
	}
	slices.SortFunc(unfinished, func(a, b key) int { return cmp.Compare(a.test, b.test) })
	for _, r := range unfinished {
		s.heading("never ended", r, "")
		s.printOutput(r)
		delete(s.running, r)
	}
	s.heading("failed", k, "")
	s.printOutput(k)
}

// heading states the result of k, at once and once more at the end.
func (s *summary) heading(what string, k key, more string) {
	line := strings.TrimRight(what+": "+k.pkg+" "+k.test, " ") + more
	fmt.Fprintln(s.w, "---", line)
	s.failures = append(s.failures, line)
}

// printOutput shows the output of k, and keeps its beginning for the end, where readers of a long log look.
func (s *summary) printOutput(k key) {
	kept := 0
	if out := s.output[k]; out != nil {
		for line := range strings.Lines(out.String()) {
			if isNoise(line) {
				continue
			}
			line = "    " + strings.TrimRight(line, "\n")
			fmt.Fprintln(s.w, line)
			if kept++; kept <= keptLines {
				s.failures = append(s.failures, line)
			}
		}
	}
	delete(s.output, k)
}

// isNoise reports lines that only repeat the headings.
func isNoise(line string) bool {
	noise := []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "FAIL\n", "FAIL\t", "exit status", "PASS\n"}
	return slices.ContainsFunc(noise, func(prefix string) bool { return strings.HasPrefix(line, prefix) })
}

func (s *summary) failed() bool { return len(s.failures) > 0 }

// finish prints the slowest tests, the CPU time of packages in seconds, the verdicts, and last of all what failed.
func (s *summary) finish(cpu map[string]float64) {
	// A parent's time has that of its parts, which are more specific.
	parents := map[key]bool{}
	for _, t := range s.times {
		if i := strings.LastIndexByte(t.test, '/'); i >= 0 {
			parents[key{t.pkg, t.test[:i]}] = true
		}
	}
	leaves := slices.DeleteFunc(slices.Clone(s.times), func(t timed) bool { return parents[t.key] })
	slices.SortStableFunc(leaves, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	fmt.Fprintf(s.w, "slowest of %d tests\n", len(leaves))
	for _, t := range leaves[:min(slowest, len(leaves))] {
		fmt.Fprintf(s.w, "  %6.2f s  %s %s\n", t.seconds, t.pkg, t.test)
	}
	if len(cpu) > 0 {
		all := 0.0
		for _, pkg := range slices.SortedFunc(maps.Keys(cpu), func(a, b string) int { return cmp.Or(cmp.Compare(cpu[b], cpu[a]), cmp.Compare(a, b)) }) {
			fmt.Fprintf(s.w, "  %6.1f s  of CPU  %s\n", cpu[pkg], pkg)
			all += cpu[pkg]
		}
		fmt.Fprintf(s.w, "  %6.1f s  of CPU  in all\n", all)
	}
	for _, line := range slices.Concat(s.passed, s.broken, s.failures) {
		fmt.Fprintln(s.w, line)
	}
}
