// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/internal/safetext"
)

// The exit codes of the program.
const (
	exitError       = 1   // it failed, or could not start
	exitUsage       = 2   // the command line is wrong
	exitDenied      = 3   // the agent came to its end, but not all it wanted was allowed
	exitLimit       = 4   // turns, budget or time were used up
	exitInterrupted = 130 // stopped by a signal
)

// An ending is an error with its exit code. Without a cause nothing is printed.
type ending struct {
	code  int
	cause error
}

func (e ending) Unwrap() error { return e.cause }

func (e ending) Error() string {
	if e.cause == nil {
		return ""
	}
	return e.cause.Error()
}

func usageError(format string, args ...any) error {
	return ending{exitUsage, fmt.Errorf(format, args...)}
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return advice.Wrap(usageError("%s takes no arguments, and there is %q", cmd.CommandPath(), args[0]), "%s --help shows the flags", cmd.CommandPath())
}

// exitCode prints the error of a command, and returns the exit code of the program.
func exitCode(ctx context.Context, err error, errs io.Writer) int {
	if err == nil {
		return 0
	}
	var known ending
	switch {
	case errors.As(err, &known):
		report(errs, err)
		return known.code
	case ctx.Err() != nil:
		report(errs, errors.New("stopped"))
		return exitInterrupted
	case strings.HasPrefix(err.Error(), "unknown command"): // cobra has no type for it
		report(errs, advice.Wrap(err, "drover --help lists the commands"))
		return exitUsage
	}
	report(errs, err)
	return exitError
}

func report(errs io.Writer, err error) {
	if text := wording.Error(err); text != "" {
		fmt.Fprintln(errs, "drover:", safetext.Lines(text)) // it may have words of a model or a server
	}
}
