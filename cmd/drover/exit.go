// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of the program.
const (
	exitError       = 1   // it failed, or could not start
	exitUsage       = 2   // the command line is wrong
	exitDenied      = 3   // the agent came to its end, but not all it wanted was allowed
	exitLimit       = 4   // turns, budget or time were used up
	exitInterrupted = 130 // stopped by a signal
)

// An ending is an error that knows the exit code it leads to. Without a cause there is nothing left to
// say.
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

// usageError is an ending for a command line that is wrong.
func usageError(format string, args ...any) error {
	return ending{exitUsage, fmt.Errorf(format, args...)}
}

// noArguments refuses arguments.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError("%s takes no arguments, and there is %q%s", cmd.CommandPath(), args[0], nextHelp(cmd, nil))
}

// nextHelp is the third part of an error about the command line, unless that has one.
func nextHelp(cmd *cobra.Command, err error) string {
	if err != nil && strings.Contains(err.Error(), "\n  next: ") {
		return ""
	}
	return "\n  next: " + cmd.CommandPath() + " --help shows the flags"
}

// exitCode tells the user about the error of a command, and returns the exit code of the program.
func exitCode(ctx context.Context, err error, errs io.Writer) int {
	if err == nil {
		return 0
	}
	var known ending
	switch {
	case errors.As(err, &known):
		tell(errs, err)
		return known.code
	case ctx.Err() != nil:
		tell(errs, errStopped)
		return exitInterrupted
	case strings.HasPrefix(err.Error(), "unknown command"): // cobra has no type for it
		tell(errs, fmt.Errorf("%w\n  next: drover --help lists the commands", err))
		return exitUsage
	}
	tell(errs, err)
	return exitError
}

// errStopped promises no more than holds without a PID namespace, where commands may have cut loose.
var errStopped = errors.New("stopped; the CLI is gone")

// tell writes an error for people: what went wrong, where, and what to do next.
func tell(errs io.Writer, err error) {
	if text := plainError(err); text != "" {
		fmt.Fprintln(errs, "drover:", text)
	}
}

// packageNames are what errors of our packages begin with. They help programmers, not people.
var packageNames = regexp.MustCompile(`(?m)(^|: )(?:claude|claudecode|agent|gate|tool|event|schema|script): `)

// plainError is the text of an error without the names of packages.
func plainError(err error) string {
	text := cmp.Or(err, error(ending{})).Error()
	for { // matches do not overlap, but names may follow each other
		shorter := packageNames.ReplaceAllString(text, "$1")
		if shorter == text {
			return strings.TrimSpace(text)
		}
		text = shorter
	}
}
