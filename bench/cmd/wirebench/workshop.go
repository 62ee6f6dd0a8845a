// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A workshop builds what takes part.
type workshop struct {
	root string // of the module
	dir  string // for what is built; ignored by git
	// profiling builds clients that can write profiles.
	profiling bool
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/drover-agents/drover").Output()
	if err != nil {
		return "", fmt.Errorf("this is not a checkout of Drover; run from its root: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (w *workshop) cli() string { return filepath.Join(w.dir, "fakecli") }

// build makes the fake CLI and all clients. A peer that cannot be built takes no part, and the table
// says why; the rest must build.
func (w *workshop) build() ([]*participant, error) {
	for _, name := range []string{"fakecli", "cmd/droverclient", "cmd/limitclient"} {
		if err := w.goBuild(filepath.Join(w.root, "bench"), name); err != nil {
			return nil, err
		}
	}
	peers := filepath.Join(w.root, "bench", "peers")
	all := participants(w)
	for _, p := range all {
		switch {
		case p.goPeer != "":
			p.absent = w.goBuild(peers, p.goPeer)
		case p.npmPeer != "":
			p.absent = npmInstall(filepath.Join(peers, p.npmPeer))
		}
	}
	return all, nil
}

func (w *workshop) goBuild(module, pkg string) error {
	args := []string{"build", "-o", filepath.Join(w.dir, filepath.Base(pkg))}
	if w.profiling {
		args = append(args, "-tags=wirebench_profile")
	}
	cmd := exec.Command("go", append(args, "./"+pkg)...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // a C library would count in the memory of those that can use one
	return runQuietly(cmd)
}

// npmInstall installs what the lock file says, once for each lock file.
func npmInstall(dir string) error {
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return err
	}
	stamp := filepath.Join(dir, "node_modules", ".wirebench-lock")
	if done, err := os.ReadFile(stamp); err == nil && bytes.Equal(done, lock) {
		return nil
	}
	fmt.Fprintln(os.Stderr, "installing the TypeScript SDK ...")
	cmd := exec.Command("npm", "ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if err := runQuietly(cmd); err != nil {
		return err
	}
	return os.WriteFile(stamp, lock, 0o600)
}

// runQuietly runs cmd; its output is part of the error.
func runQuietly(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(string(out))
	if len(text) > 400 {
		text = "... " + text[len(text)-400:]
	}
	return errors.Join(fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err), errors.New(text))
}

// commit names the commit that the figures belong to.
func (w *workshop) commit() string {
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-C", w.root}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	hash := git("rev-parse", "--short=12", "HEAD")
	if hash == "" {
		return "an unknown commit"
	}
	if git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/performance.md") != "" {
		return hash + " with changes that are not committed"
	}
	return hash
}
