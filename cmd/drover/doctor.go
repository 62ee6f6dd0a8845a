// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

const (
	// doctorWait bounds all checks together: nobody waits longer for a diagnosis.
	doctorWait = 5 * time.Second
	// doctorGrace is how long a check may take to give up after that, or after Ctrl-C.
	doctorGrace = time.Second
)

// exitIll is the exit code of a doctor who has found something that a run needs missing or broken.
const exitIll = 3

// doctorOptions are the flags.
type doctorOptions struct {
	json, offline bool
	timeout       time.Duration
}

func newDoctorCommand() *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what a run needs, and say how to mend what is wrong",
		Long: `Doctor looks at everything a run needs: the CLI, walls, sandbox tools, a credential, the model's
endpoint, disk and temporary space. It prints one line for each, and below what is wrong the
command that mends it. The walls are tried from inside, by attempts to get out of a cell. It starts no model, costs nothing, and neither sends nor prints a secret.

Exit code: 0 if a run can begin (there may be warnings), 3 if something it needs is missing or
broken, 1 if doctor itself failed, 2 for wrong usage, 130 if it was stopped.`,
		Example: `  drover doctor
  drover doctor --offline
  drover doctor --json | jq '.checks[] | select(.state != "ok")'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.timeout <= 0 {
				return usageError("--timeout is %v\n  next: give a time above zero, like 5s", o.timeout)
			}
			return newDoctor(o).run(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object and nothing else")
	cmd.Flags().BoolVar(&o.offline, "offline", false, "do not try to reach the model")
	cmd.Flags().DurationVar(&o.timeout, "timeout", doctorWait, "how long all checks together may take")
	return cmd
}

// A doctor is what the checks need of the machine. Tests replace single parts.
type doctor struct {
	options doctorOptions
	environ func() []string
	home    string                  // of the user; empty if it is not known
	stat    func(path string) error // whether there is a file; it is never opened
	adapter interface {
		Ready(ctx context.Context) agent.Readiness
	}
	find    func() (claude.Found, error)
	node    func(ctx context.Context) (version string, err error)
	best    func(ctx context.Context) (isolation.Level, []error)
	probe   func(ctx context.Context, level isolation.Level) (isolation.Report, error)
	sandbox func(ctx context.Context) sandboxFacts
	dial    modelDial
	workDir func() (string, error)
	tempDir func() string
	free    func(dir string) (uint64, error)
	goos    string
}

// newDoctor looks at the real machine.
func newDoctor(o doctorOptions) *doctor {
	home, _ := os.UserHomeDir() // without one there are no settings and no login
	work, _ := workFolder()     // one that cannot be used is a finding of the disk
	return &doctor{
		options: o,
		environ: os.Environ,
		home:    home,
		stat:    func(path string) error { _, err := os.Stat(path); return err },
		adapter: claudecode.New(&claude.Options{Dir: work}),
		find:    func() (claude.Found, error) { return claude.Find(claude.FindOptions{Avoid: work}) },
		node:    nodeVersion,
		best:    isolation.Best,
		probe:   probeLevel,
		sandbox: probedOnce(probeSandbox),
		dial:    modelDial{proxy: http.ProxyFromEnvironment, wait: modelWait},
		workDir: workFolder,
		tempDir: os.TempDir,
		free:    freeSpace,
		goos:    runtime.GOOS,
	}
}

// getenv is the value of a variable.
func (d *doctor) getenv(name string) string {
	value := ""
	for _, entry := range d.environ() {
		if v, is := strings.CutPrefix(entry, name+"="); is {
			value = v
		}
	}
	return value
}

// run examines and reports. Its error is that of the context, of the output, or an ending.
func (d *doctor) run(ctx context.Context, out io.Writer) error {
	checks, err := examine(ctx, d.options.timeout, d.exams())
	if err != nil {
		return err
	}
	report := newDoctorReport(d.withoutSecrets(checks))
	if d.options.json {
		err = report.writeJSON(out)
	} else {
		err = report.writeText(out, foldingWidth(out))
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if report.Exit != 0 {
		return ending{code: report.Exit}
	}
	return nil
}
