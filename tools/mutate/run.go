// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// perTest is how long one test may take. A test that a mutation makes wait for ever has noticed it.
const perTest = 4 * time.Minute

// run checks that the tests pass without the mutations, then applies them one at a time.
func run(ctx context.Context, all []mutation, jobs int) error {
	dir, err := os.MkdirTemp("", "drover-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	programs, err := build(ctx, dir, all)
	if err != nil {
		return err
	}
	if err := unbroken(ctx, all, programs); err != nil {
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
				err := m.noticed(ctx, programs[m.folder])
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

// A program has the tests of a folder, and mutations within functions of which a run chooses one.
type program struct {
	path     string
	embedded map[string]bool // the names of its mutations
}

// build builds the program of each folder. Those that do not build are missing: a mutation of theirs has a build of its own,
// which says why.
func build(ctx context.Context, dir string, all []mutation) (map[string]*program, error) {
	byFolder := map[string][]mutation{}
	for _, m := range all {
		byFolder[m.folder] = append(byFolder[m.folder], m)
	}
	programs := map[string]*program{}
	for n, folder := range slices.Sorted(maps.Keys(byFolder)) {
		start := time.Now()
		files, names, err := embed(".", byFolder[folder])
		if err != nil {
			return nil, err
		}
		at := filepath.Join(dir, strconv.Itoa(n))
		overlay, err := writeOverlay(at, files)
		if err != nil {
			return nil, err
		}
		p := &program{filepath.Join(at, "tests"), names}
		text, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o", p.path, folder).CombinedOutput()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			fmt.Printf("%-8s %s: %v\n%s", "alone", folder, err, text)
			continue
		}
		programs[folder] = p
		fmt.Printf("%-8s %s, %d of %d mutations in one program (%.1f s)\n", "built", folder, len(names), len(byFolder[folder]), time.Since(start).Seconds())
	}
	return programs, nil
}

// test runs tests of the program, with a mutation unless its name is empty.
func (p *program) test(ctx context.Context, folder string, tests []string, mutation string) (*result, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"tool", "test2json", "-t", p.path, "-test.v=test2json"}, testFlags("-test.", tests, mutation != "")...)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), environment+"="+cmp.Or(mutation, "none"))
	return runTests(ctx, cmd)
}

// unbroken runs the named tests on the code as it is.
func unbroken(ctx context.Context, all []mutation, programs map[string]*program) error {
	tests := map[string][]string{}
	for _, m := range all {
		if !slices.Contains(tests[m.folder], m.test) {
			tests[m.folder] = append(tests[m.folder], m.test)
		}
	}
	var problems []error
	for _, folder := range slices.Sorted(maps.Keys(tests)) {
		start := time.Now()
		var result *result
		var err error
		if p := programs[folder]; p != nil {
			result, err = p.test(ctx, folder, tests[folder], "")
		} else {
			result, err = goTest(ctx, folder, tests[folder], "")
		}
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

// noticed applies the mutation and returns nil if its test fails. A test that does not notice the mutation in the program may
// use it where the program's environment does not reach: the mutation then has a build of its own, also for what the test builds.
func (m *mutation) noticed(ctx context.Context, p *program) error {
	if p != nil && p.embedded[m.name] {
		if result, err := p.test(ctx, m.folder, []string{m.test}, m.name); err != nil || result.tests[m.test] == "fail" {
			return err
		}
	}
	text, err := m.apply(".")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "drover-mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(dir, map[string]string{m.file: text})
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

// writeOverlay writes files below dir, and the description by which go build takes them for those of these names. It returns its path.
func writeOverlay(dir string, files map[string]string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range files {
		original, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		replace[original] = filepath.Join(dir, strconv.Itoa(len(replace))+"-"+filepath.Base(file))
		if err := os.WriteFile(replace[original], []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	description, err := json.Marshal(map[string]any{"Replace": replace})
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
	args := append([]string{"test", "-json", "-vet=off", "-ldflags=-s -w"}, testFlags("-", tests, overlay != "")...)
	cmd := exec.CommandContext(ctx, "go", append(args, folder)...)
	if overlay != "" {
		cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	}
	return runTests(ctx, cmd)
}

func testFlags(prefix string, tests []string, failFast bool) []string {
	limit := perTest * time.Duration(len(tests))
	return []string{
		prefix + "count=1", fmt.Sprintf("%sfailfast=%t", prefix, failFast), prefix + "timeout=" + limit.String(),
		prefix + "run=^(" + strings.Join(tests, "|") + ")$",
	}
}

func runTests(ctx context.Context, cmd *exec.Cmd) (*result, error) {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args[:2], " "), err)
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
