// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/script"
)

// An environment is what the CLI finds around it: variables, a home, a model.
type environment struct {
	vars claude.Env
	// private says that nothing of the run is kept.
	private bool
	close   func() error
}

// callersEnvironment is the environment of this program. The CLI finds its endpoint and credential in
// it, as when it is started by hand.
func callersEnvironment() *environment {
	return &environment{close: func() error { return nil }}
}

// scriptedEnvironment has a scripted model on loopback, a home of its own that close removes, and
// nothing of the caller's environment but PATH.
func scriptedEnvironment(path string) (*environment, error) {
	s, err := script.Load(path)
	if err != nil {
		next := "mend it; docs/model-scripts.md says what a script may hold"
		if _, noFile := errors.AsType[*os.PathError](err); noFile {
			next = "give the path of a file with a model script"
		}
		return nil, usageError("--model-script: %w\n  next: %s", err, next)
	}
	s.KeepRequests = cmp.Or(s.KeepRequests, 1) // nobody looks at them, and a long run has many
	model, err := script.Start(s)
	if err != nil {
		return nil, fmt.Errorf("--model-script %s: %w", path, err)
	}
	dir, err := os.MkdirTemp("", "drover-run-")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("a private home for the run: %w\n  next: set TMPDIR to a folder that can be written to", err), model.Close())
	}
	remove := func() error { return errors.Join(model.Close(), os.RemoveAll(dir)) }
	vars, err := closedVariables(dir, model.URL())
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return &environment{vars: claude.ExactEnv(vars), private: true, close: remove}, nil
}

// closedVariables are all variables of a CLI that has its home in dir and talks to url alone.
func closedVariables(dir, url string) (map[string]string, error) {
	vars := map[string]string{
		"PATH":               os.Getenv("PATH"),
		"HOME":               filepath.Join(dir, "home"),
		"CLAUDE_CONFIG_DIR":  filepath.Join(dir, "config"),
		"TMPDIR":             filepath.Join(dir, "tmp"),
		"CLAUDE_CODE_TMPDIR": filepath.Join(dir, "tmp"),
		"ANTHROPIC_BASE_URL": url,
		"ANTHROPIC_API_KEY":  "sk-ant-script-opens-nothing",

		"DISABLE_AUTOUPDATER":                      "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
	}
	for _, name := range []string{"HOME", "CLAUDE_CONFIG_DIR", "TMPDIR"} {
		if err := os.MkdirAll(vars[name], 0o700); err != nil {
			return nil, fmt.Errorf("a private home for the run: %w", err)
		}
	}
	return vars, nil
}
