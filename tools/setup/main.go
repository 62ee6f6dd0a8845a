// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"

	"github.com/drover-agents/drover/internal/cliinstall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	s := setup{out: os.Stdout, euid: os.Geteuid(), goos: runtime.GOOS, look: exec.LookPath, run: run, ensure: cliinstall.Ensure}
	if err := s.all(ctx, root); err != nil {
		fmt.Fprintln(os.Stderr, "setup:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// setup is one run, with what it needs of the machine as functions.
type setup struct {
	out    io.Writer
	goos   string
	euid   int
	look   func(string) (string, error)
	run    func(ctx context.Context, name string, args ...string) (string, error)
	ensure func(ctx context.Context, root string) (cliinstall.Install, error)
}

// all sets everything up and prints one line about it, with a line more for each thing missing.
func (s setup) all(ctx context.Context, root string) error {
	in, err := s.ensure(ctx, root)
	if err != nil {
		return err
	}
	line := []string{"claude " + cliinstall.Pinned + " (pinned)  " + state(in.Fresh)}
	var missing []string
	for _, tool := range tools {
		text, fix := s.tool(ctx, tool)
		line = append(line, text)
		if fix != "" {
			missing = append(missing, fmt.Sprintf("          fix       %s: %s", tool.name, fix))
		}
	}
	_, err = fmt.Fprintln(s.out, strings.Join(append([]string{"set-up    " + strings.Join(line, "    ")}, missing...), "\n"))
	return err
}

func state(fresh bool) string {
	if fresh {
		return "installed"
	}
	return "ok"
}
