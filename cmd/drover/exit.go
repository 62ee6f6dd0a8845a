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

	"github.com/drover-agents/drover/internal/visible"
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
	return usageError("%s takes no arguments, and there is %q\n  next: %[1]s --help shows the flags", cmd.CommandPath(), args[0])
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
		tell(errs, errors.New("stopped"))
		return exitInterrupted
	case strings.HasPrefix(err.Error(), "unknown command"): // cobra has no type for it
		tell(errs, fmt.Errorf("%w\n  next: drover --help lists the commands", err))
		return exitUsage
	}
	tell(errs, err)
	return exitError
}

// tell writes an error for people: what went wrong, where, and what to do next.
func tell(errs io.Writer, err error) {
	if text := plainError(err); text != "" {
		fmt.Fprintln(errs, "drover:", visible.Lines(text)) // it may have words of a model or a server
	}
}

// packageNames are what errors of our packages begin with. They help programmers, not people.
var packageNames = regexp.MustCompile(`(?m)(^|: )(?:drover|claude|claudecode|agent|agentfile|prompt|gate|gateway|guard|isolation|transcript|tool|event|schema|script|workspace): `)

// forPrograms are pieces of advice that only a program can follow, and what a person can do instead.
var forPrograms = []struct {
	found *regexp.Regexp
	said  string
}{
	{regexp.MustCompile(`; Options\.[^\n;]*`), ""},
	// The CLI's own advice; the address is one inside the cell.
	{regexp.MustCompile(` This is a server-side issue, [^\n]*check your inference gateway \([^)\n]*\)\.`), ""},
	{regexp.MustCompile(`raise Options\.\w+, or `), ""},
	{regexp.MustCompile(`(?:resuming from|the conversation in) Options\.Store: .*the store has no such session`), "--resume: there is no such conversation in this folder"},
	{regexp.MustCompile(`(?:resuming from|the conversation in) Options\.Store: .*unsafe store key: [^\n]*`), "--resume: it is no token of a conversation"},
	{regexp.MustCompile(`the conversation in Options\.Store: .*the session is in use\n  next: [^\n]*`), "--resume: the conversation is in use\n  next: wait until the other run has ended"},
	{regexp.MustCompile(`the conversation in Options\.Store: .*not found: (conversation )`), "--resume: $1"},
	{regexp.MustCompile(`, or give a key with isolation\.WithAPIKey`), ""},
	{regexp.MustCompile(`set Auth\.UseStoredLogin to use`), "use --stored-login to have"},
	{regexp.MustCompile(`set Isolation\.Weakest \((drover run [^)\n]*)\)`), "use $1"},
	{regexp.MustCompile(`give one of them another MountPath`), "give one of them another path: --mount folder:path"},
	{regexp.MustCompile(`, or leave it out with Exclude`), ", or mount less"},
	{regexp.MustCompile(`\bexclude (it|what cannot be read)`), "mount less"},
	{regexp.MustCompile(`set FollowSymlinks to copy what it leads to`), "put what it leads to in its place"},
	{regexp.MustCompile(`, or set FollowSymlinks`), ""},
	{regexp.MustCompile(`leave MountPath empty for the base name`), "leave the path out for the base name"},
	{regexp.MustCompile(`raise TreeOptions\.MaxDisk, or release checkpoints`), "mount less"},
	{regexp.MustCompile(`write to another Dir, choose with Only, or set Force[^\n]*`), "bring both sides together by hand"},
	{regexp.MustCompile(`(AllowedHostRoots|its permissions), or write to another Dir`), "$1"},
	{regexp.MustCompile(`set State\b`), "set XDG_STATE_HOME"},
	{regexp.MustCompile(`set TempDir to`), "set TMPDIR to"},
	{regexp.MustCompile(`check Options\.Model: `), "check --model: "},
	{regexp.MustCompile(`send /compact or /clear, or start a new session`), "shorten the prompt or the files that it names"},
	{regexp.MustCompile(`Network\.AllowedDomains`), "--allow-domain"},
	{regexp.MustCompile(`Sandbox\.WritablePaths`), "--writable"},
	{regexp.MustCompile(`Sandbox\.ReadablePaths`), "--readable"},
	{regexp.MustCompile(`set Isolation\.TempDir to`), "set TMPDIR to"},
	{regexp.MustCompile(`, or (?:lower the floor|raise the limit on (?:bytes|files|memory|CPU time))`), ""},
	{regexp.MustCompile(`, or accept less by setting Isolation\.Weakest`), ", or accept less by --isolation"},
	{regexp.MustCompile(`\n  next: or set Isolation\.APIKey[^\n]*`), ""},
	{regexp.MustCompile(`raise the limit \(Options\.[^\n]*`), "try again when the machine is less busy; drover doctor looks for what is wrong"},
}

// plainError is the text of an error without the names of packages, and without advice for programs.
func plainError(err error) string { return plainText(cmp.Or(err, error(ending{})).Error()) }

func plainText(text string) string {
	for _, advice := range forPrograms {
		text = advice.found.ReplaceAllString(text, advice.said)
	}
	for { // matches do not overlap, but names may follow each other
		shorter := packageNames.ReplaceAllString(text, "$1")
		if shorter == text {
			return strings.TrimSpace(text)
		}
		text = shorter
	}
}
