// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// versionWait bounds a run of "--version": it takes 0.1 s, on a busy machine some seconds.
const versionWait = 10 * time.Second

var versionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*v?(\d+)\.(\d+)\.(\d+)`) })

// CLIVersion runs the CLI at path with --version and returns the number it prints, "2.1.325". Env
// is the whole environment of that run. It takes at most 10 seconds and leaves nothing running.
func CLIVersion(ctx context.Context, path string, env []string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionWait)
	defer cancel()
	p, err := HostSpawner{}.Spawn(ctx, versionCommand(path, env))
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	defer stop()
	_ = p.Stdin().Close()
	out, errs := readBoth(p)
	status := p.Wait()
	if ctx.Err() != nil {
		return "", versionError(path, fmt.Errorf("no answer to --version: %w", ctx.Err()))
	}
	match := versionPattern().FindString(string(out))
	if status != (ExitStatus{}) || match == "" {
		text := strings.TrimSpace(string(bytes.Join([][]byte{out, errs}, []byte(" "))))
		return "", versionError(path, fmt.Errorf("--version gave no version number (%s): %.200q", status, text))
	}
	return strings.TrimPrefix(strings.TrimSpace(match), "v"), nil
}

// versionCommand does not depend on the working directory, which may be gone, unless the path does.
func versionCommand(path string, env []string) Command {
	cmd := Command{Path: path, Args: []string{"--version"}, Env: env}
	if filepath.IsAbs(path) {
		cmd.Dir = filepath.VolumeName(path) + string(filepath.Separator)
	}
	return cmd
}

func versionError(path string, err error) error {
	return &LaunchError{Path: path, Err: err, Hint: "check that this is the Claude Code CLI, or run " + installCommand}
}

// readBoth reads the beginning of both outputs and drains the rest.
func readBoth(p Process) (out, errs []byte) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		errs = readBeginning(p.Stderr())
	}()
	out = readBeginning(p.Stdout())
	<-done
	return out, errs
}

func readBeginning(r io.Reader) []byte {
	begin, _ := io.ReadAll(io.LimitReader(r, 4096))
	_, _ = io.Copy(io.Discard, r)
	return begin
}

// CompareVersions compares two CLI versions number by number: -1 if a is older, 0 if they are the
// same release, 1 if a is newer. Text after the third number is ignored.
func CompareVersions(a, b string) (int, error) {
	x, errA := versionNumbers(a)
	y, errB := versionNumbers(b)
	if err := errors.Join(errA, errB); err != nil {
		return 0, err
	}
	for i := range x {
		if c := cmp.Compare(x[i], y[i]); c != 0 {
			return c, nil
		}
	}
	return 0, nil
}

func versionNumbers(s string) ([3]int, error) {
	var numbers [3]int
	match := versionPattern().FindStringSubmatch(s)
	if match == nil {
		return numbers, fmt.Errorf("claude: %q is not a CLI version like %s", s, PinnedVersion)
	}
	for i := range numbers {
		n, err := strconv.Atoi(match[i+1])
		if err != nil {
			return numbers, fmt.Errorf("claude: %q is not a CLI version like %s: %w", s, PinnedVersion, err)
		}
		numbers[i] = n
	}
	return numbers, nil
}
