// SPDX-License-Identifier: Apache-2.0

package cliinstall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// minProgram is more than any stub and far less than the CLI, which is some hundred megabytes.
const minProgram = 1 << 20

// npmArgs installs exactly the packages of the lock file. Scripts stay off: the only one there
// is would copy the program from the platform's package, which is where we take it from.
var npmArgs = []string{
	"ci", "--omit-lockfile-registry-resolved", "--ignore-scripts", "--no-audit", "--no-fund",
	"--no-update-notifier", "--loglevel=error",
}

// runNPM installs the packages of the lock file into dir and returns the end of npm's output.
func runNPM(ctx context.Context, dir string) (string, error) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", err
	}
	for name, data := range map[string][]byte{"package.json": packageJSON, "package-lock.json": lockJSON} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return "", err
		}
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, npm, npmArgs...)
	cmd.Dir, cmd.Env = dir, npmEnv(os.Environ())
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return tail(out.String(), 1500), err
}

// npmVariables are what npm needs of the environment to find its configuration, its certificates
// and the way out; npm_config_* comes in addition. Nothing else is passed on.
var npmVariables = []string{
	"PATH", "HOME", "TMPDIR", "LANG",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"SYSTEMROOT", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "TEMP", "TMP",
}

func npmEnv(env []string) []string {
	var picked []string
	for _, entry := range env {
		name, _, _ := strings.Cut(entry, "=")
		upper := strings.ToUpper(name)
		if strings.HasPrefix(upper, "NPM_CONFIG_") || slices.Contains(npmVariables, upper) {
			picked = append(picked, entry)
		}
	}
	return picked
}

func tail(s string, n int) string {
	s = strings.TrimSpace(s)
	if len(s) > n {
		s = "…" + strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return s
}

// repair returns the command that would fix err.
func repair(root string, err error) string {
	again := "make -C " + root + " setup"
	if errors.Is(err, exec.ErrNotFound) {
		return "install Node.js with npm (on Debian and Ubuntu: apt-get install nodejs npm), then " + again
	}
	return again + ", when npm can reach its registry (try: npm view @anthropic-ai/claude-code@" + Pinned + " version)"
}

// programs finds both programs below dir, as paths relative to it.
func programs(dir string) (pinned, oldest string, err error) {
	pinned, err = program(dir, "node_modules")
	if err != nil {
		return "", "", err
	}
	oldest, err = program(dir, filepath.Join("node_modules", "claude-code-oldest", "node_modules"))
	return pinned, oldest, err
}

// program finds the program in the package of this platform below modules.
func program(dir, modules string) (string, error) {
	names := platformPackages(runtime.GOOS, runtime.GOARCH, onMusl())
	for _, name := range names {
		path := filepath.Join(modules, "@anthropic-ai", "claude-code-"+name, "claude"+exe())
		if isProgram(filepath.Join(dir, path)) {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program for %s/%s among the installed packages (looked for %s)",
		runtime.GOOS, runtime.GOARCH, strings.Join(names, ", "))
}

// platformPackages lists the packages that may hold the program, best first. An npm that knows
// about C libraries installs only one of the two for Linux, an older one installs both.
func platformPackages(goos, goarch string, musl bool) []string {
	name := strings.NewReplacer("windows", "win32", "amd64", "x64").Replace(goos + "-" + goarch)
	switch {
	case goos != "linux":
		return []string{name}
	case musl:
		return []string{name + "-musl", name}
	default:
		return []string{name, name + "-musl"}
	}
}

func onMusl() bool {
	loaders, _ := filepath.Glob("/lib/ld-musl-*.so.1")
	return len(loaders) > 0
}

// isProgram reports whether path is the CLI and not a stub that only explains why it is missing.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() >= minProgram &&
		(runtime.GOOS == "windows" || info.Mode()&0o111 != 0)
}
