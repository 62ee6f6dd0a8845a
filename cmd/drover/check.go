// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/internal/safetext"
)

func newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check file...",
		Short: "Check agent files and model scripts without a run",
		Long: `Check reads agent files (drover run -f), model scripts (--model-script) and project files (.drover.yaml),
and starts nothing. Each problem is one line on standard error, file:line:column: message, as compilers print them, with advice below it.

Exit code: 0 if all files are valid, 2 if one has a problem or cannot be read.`,
		Example: `  drover check review.yaml
  drover check agents/*.yaml scripts/*.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return advice.Wrap(usageError("there is no file to check"), "drover check review.yaml")
			}
			return nil
		},
		ValidArgsFunction: completeFiles("yaml", "yml", "json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return checkAll(cmd.Context(), args, streams{out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()})
		},
		DisableFlagsInUseLine: true,
	}
}

// checkAll reports every problem of every file.
func checkAll(ctx context.Context, paths []string, s streams) error {
	var failed error
	for _, path := range paths {
		var kind string
		err := promptly(ctx, func() (err error) {
			kind, err = checkFile(path)
			return err
		})
		if ctx.Err() != nil {
			return stoppedEarly(ctx)
		}
		if err == nil {
			if _, err := fmt.Fprintf(s.out, "%s: ok, %s\n", safetext.Line(path), kind); err != nil {
				return err
			}
			continue
		}
		failed = ending{code: exitUsage}
		for text, next := range advice.All(err) {
			fmt.Fprintln(s.errs, safetext.Lines(advice.Render(wording.Text(text), wording.Flags(next))))
		}
	}
	return failed
}

// checkFile returns the kind of a file, and what is wrong with it. A file with turns is a model script, and one of the name
// .drover.yaml a project file.
func checkFile(path string) (kind string, err error) {
	if filepath.Base(path) == agentfile.ProjectFile {
		p, err := agentfile.LoadProject(filepath.Dir(path))
		if p == nil && err == nil {
			err = advice.Wrap(fmt.Errorf("%s: %w", safetext.Line(path), syscall.ENOENT), "give the path of a file that is there")
		}
		return "a project file", err
	}
	s, notScript := script.Load(path)
	if notScript == nil && len(s.Turns) > 0 {
		return "a model script", nil
	}
	if cannot, ok := errors.AsType[*fs.PathError](notScript); ok {
		return "", advice.Wrap(fmt.Errorf("%s: %w", safetext.Line(path), cannot.Err), "give the path of an agent file or a model script")
	}
	if notScript == nil {
		notScript = advice.Wrap(fmt.Errorf("%s: the script has no turn", safetext.Line(path)), "add one under turns")
	}
	f, err := agentfile.Load(path)
	if err == nil {
		_, err = f.Workspace()
	}
	if hasTurns(err) {
		return "", notScript
	}
	return "an agent file", err
}

// hasTurns reports whether the problems of a file as an agent include the key of scripts.
func hasTurns(err error) bool {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range many.Unwrap() {
			if hasTurns(one) {
				return true
			}
		}
		return false
	}
	p, ok := errors.AsType[*agentfile.Problem](err)
	return ok && p.Key == "turns"
}
