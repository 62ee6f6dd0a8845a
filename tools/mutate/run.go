// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// perTest is how long one test may take. A test that a mutation makes wait for ever has noticed it.
const perTest = 4 * time.Minute

// run checks that the tests pass without the mutations, then applies them one at a time.
func run(ctx context.Context, all []mutation, jobs int) error {
	if err := unbroken(ctx, all); err != nil {
		return err
	}
	var (
		mu      sync.Mutex
		missed  []error
		workers sync.WaitGroup
		next    = make(chan mutation)
	)
	for range jobs {
		workers.Go(func() {
			for m := range next {
				start := time.Now()
				err := m.noticed(ctx)
				mu.Lock()
				word := "noticed"
				if err != nil {
					word, missed = "MISSED", append(missed, err)
				}
				fmt.Printf("%-8s %-44s %s %s (%.1f s)\n", word, m.name, m.folder, m.test, time.Since(start).Seconds())
				mu.Unlock()
			}
		})
	}
	for _, m := range all {
		if ctx.Err() != nil {
			break
		}
		next <- m
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("stopped before the end: %w", context.Cause(ctx))
	}
	promises := map[string]bool{}
	for _, m := range all {
		for _, show := range m.shows {
			promises[show] = true
		}
	}
	fmt.Printf("%d mutations of %d promises, %d noticed\n", len(all), len(promises), len(all)-len(missed))
	return errors.Join(missed...)
}

// unbroken runs the named tests on the code as it is.
func unbroken(ctx context.Context, all []mutation) error {
	tests := map[string][]string{}
	for _, m := range all {
		if !slices.Contains(tests[m.folder], m.test) {
			tests[m.folder] = append(tests[m.folder], m.test)
		}
	}
	var problems []error
	for _, folder := range slices.Sorted(maps.Keys(tests)) {
		start := time.Now()
		result, err := goTest(ctx, folder, tests[folder], "")
		if err != nil {
			return err
		}
		word := "passed"
		for _, test := range tests[folder] {
			if result.tests[test] != "pass" {
				word = "failed"
				problems = append(problems, fmt.Errorf("%s %s: without a mutation: %s\n%s", folder, test, result.verdict(test), result.output))
			}
		}
		fmt.Printf("%-8s %s, %d tests without a mutation (%.1f s)\n", word, folder, len(tests[folder]), time.Since(start).Seconds())
	}
	return errors.Join(problems...)
}

// noticed applies the mutation and returns nil if its test fails.
func (m *mutation) noticed(ctx context.Context) error {
	text, err := m.apply(".")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "drover-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(dir, text)
	if err != nil {
		return err
	}
	result, err := goTest(ctx, m.folder, []string{m.test}, overlay)
	if err != nil {
		return err
	}
	if result.tests[m.test] == "fail" {
		return nil
	}
	return fmt.Errorf("%s: mutation %q of %v: %s %s: %s\n%s", m.at, m.name, m.shows, m.folder, m.test, result.verdict(m.test), result.output)
}

// overlay writes the mutated file and the description that go build takes, and returns its path.
func (m *mutation) overlay(dir, text string) (string, error) {
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	mutated := filepath.Join(dir, filepath.Base(m.file))
	if err := os.WriteFile(mutated, []byte(text), 0o644); err != nil {
		return "", err
	}
	description, err := json.Marshal(map[string]any{"Replace": map[string]string{original: mutated}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, description, 0o644)
}

type result struct {
	tests  map[string]string // how each top-level test ended
	built  bool
	output string // its last lines
}

func (r *result) verdict(test string) string {
	switch how := r.tests[test]; {
	case !r.built:
		return "does not build"
	case how == "":
		return "the test did not run to its end"
	default:
		return "the test ended with: " + how
	}
}

// goTest runs tests of one package. The overlay is passed in GOFLAGS, so that programs which tests build have it too. With one,
// the first failure ends the test: it has noticed the mutation.
func goTest(ctx context.Context, folder string, tests []string, overlay string) (*result, error) {
	limit := perTest * time.Duration(len(tests))
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-vet=off", "-ldflags=-s -w", "-count=1", fmt.Sprintf("-failfast=%t", overlay != ""),
		"-timeout="+limit.String(), "-run=^("+strings.Join(tests, "|")+")$", folder)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if overlay != "" {
		cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("go test: %w", err)
	}
	return readResult(stdout.Bytes(), stderr.String()), nil
}

func readResult(stdout []byte, stderr string) *result {
	r := &result{tests: map[string]string{}, built: true}
	output := strings.Builder{}
	output.WriteString(stderr)
	for line := range bytes.Lines(stdout) {
		var e struct{ Action, Test, Output, FailedBuild string }
		if json.Unmarshal(line, &e) != nil {
			output.Write(line)
			continue
		}
		output.WriteString(e.Output)
		if e.FailedBuild != "" || e.Action == "build-fail" {
			r.built = false
		}
		if e.Test != "" && !strings.Contains(e.Test, "/") && slices.Contains([]string{"pass", "fail", "skip"}, e.Action) {
			r.tests[e.Test] = e.Action
		}
	}
	lines := strings.Split(strings.TrimRight(output.String(), "\n"), "\n")
	r.output = "    " + strings.Join(lines[max(0, len(lines)-12):], "\n    ")
	return r
}
