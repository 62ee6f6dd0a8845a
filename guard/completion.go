// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/session"
)

// A Checker reports whether an agent that wants to stop has done its task. It returns when its context ends.
type Checker interface {
	Check(ctx context.Context, a Attempt) (Completion, error)
}

// A CheckerFunc is a function as a [Checker].
type CheckerFunc func(ctx context.Context, a Attempt) (Completion, error)

// Check implements [Checker].
func (f CheckerFunc) Check(ctx context.Context, a Attempt) (Completion, error) { return f(ctx, a) }

// An Attempt is what a checker may look at.
type Attempt struct {
	Session *session.Session
	// Output is the structured answer that the agent wants to give, or nil.
	Output json.RawMessage
	// StopReason is why it stops.
	StopReason string
	// Files is where the agent worked. Nil knows no file.
	Files Files
	// Exec runs commands where the agent worked. Nil runs none: what an agent wrote is not trusted code,
	// so nothing of it is run on the host unless the caller sets Exec.
	Exec Exec
}

// A Completion is the result of a checker. The zero value is an incomplete task.
type Completion struct {
	Done bool
	// Feedback is the text for the agent, if it is not done.
	Feedback string
	// Skipped is set if the check did not finish because the limits are spent.
	Skipped bool
}

// Complete is the result for a task that is done.
func Complete() Completion { return Completion{Done: true} }

// Incomplete is the result for a task that is not done, with the feedback for the agent.
func Incomplete(feedback string) Completion { return Completion{Feedback: feedback} }

func blocked(text string) Completion { return Incomplete(fmt.Sprintf(blocker, text)) }

// CheckCompletion asks a checker, unless deadline or budget are spent: then the agent could not go on
// anyway, and the task counts as done. The same holds if they are spent while the checker looks: its
// context ends then. A checker that panics has failed, and one that fails has found nothing done. One that does not
// say what is missing gets a feedback that says so much. A nil checker finds every task done.
func CheckCompletion(ctx context.Context, c Checker, a Attempt, deadline Deadline, tracker *Tracker) (Completion, error) {
	if c == nil {
		return Complete(), nil
	}
	spent := func() bool { return deadline.Expired() || tracker.Check() != nil }
	if spent() {
		return Completion{Done: true, Skipped: true}, nil
	}
	ctx, cancel := deadline.Context(ctx)
	defer cancel()
	ctx, release := tracker.Context(ctx)
	defer release()
	done, err := check(ctx, c, a)
	if err != nil && spent() {
		return Completion{Done: true, Skipped: true}, nil
	}
	if err == nil {
		done = done.explained()
	}
	return done, err
}

func check(ctx context.Context, c Checker, a Attempt) (done Completion, err error) {
	defer func() {
		if v := recover(); v != nil {
			done, err = Completion{}, fmt.Errorf("guard: a completion checker panicked: %v", v)
		}
	}()
	done, err = c.Check(ctx, a)
	done.Done = done.Done && err == nil
	return done, err
}

func (c Completion) explained() Completion {
	if !c.Done && c.Feedback == "" {
		c.Feedback = notDone
	}
	return c
}

const shownFiles = 3

// FilesExist is a checker: all files must be there.
func FilesExist(paths ...string) Checker {
	return CheckerFunc(func(ctx context.Context, a Attempt) (Completion, error) {
		if a.Files == nil {
			return Completion{}, advice.Wrap(errors.New("guard: FilesExist has nowhere to look"), "set Attempt.Files")
		}
		var missing []string
		for _, path := range paths {
			there, err := a.Files.Exists(ctx, path)
			if err != nil {
				return Completion{}, fmt.Errorf("guard: looking for %s: %w", path, err)
			}
			if !there {
				missing = append(missing, path)
			}
		}
		if len(missing) == 0 {
			return Complete(), nil
		}
		return blocked(fmt.Sprintf(filesMissing, listed(missing))), nil
	})
}

func listed(paths []string) string {
	if more := len(paths) - shownFiles; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:shownFiles], ", "), more)
	}
	return strings.Join(paths, ", ")
}

// CommandSucceeds is a checker: a command must end with exit code 0. It runs through [Attempt.Exec].
func CommandSucceeds(argv ...string) Checker {
	return CheckerFunc(func(ctx context.Context, a Attempt) (Completion, error) {
		if len(argv) == 0 {
			return Completion{}, advice.Wrap(errors.New("guard: CommandSucceeds needs a command"), "give the program and its arguments")
		}
		if a.Exec == nil {
			return Completion{}, advice.Wrap(fmt.Errorf("guard: %q was not run: its folder is not set", strings.Join(argv, " ")),
				"set Attempt.Exec, best to something that runs in the agent's own cell")
		}
		ran, err := a.Exec(ctx, argv)
		if err != nil {
			return Completion{}, fmt.Errorf("guard: running %q: %w", strings.Join(argv, " "), err)
		}
		if ran.ExitCode == 0 {
			return Complete(), nil
		}
		return blocked(fmt.Sprintf(commandFailed, strings.Join(argv, " "), ran.ExitCode, tail(ran.Output))), nil
	})
}

// shownOutput is how much of a command's output the agent reads: its end, where the errors are.
const shownOutput = 2000

func tail(output []byte) string {
	if len(output) > shownOutput {
		return "..." + strings.ToValidUTF8(string(output[len(output)-shownOutput:]), "")
	}
	return strings.ToValidUTF8(string(output), "\uFFFD")
}

// AllOf is a checker: all others must find the task done. It stops at the first that does not.
func AllOf(checkers ...Checker) Checker {
	return CheckerFunc(func(ctx context.Context, a Attempt) (Completion, error) {
		for _, c := range checkers {
			if done, err := check(ctx, c, a); err != nil || !done.Done {
				return done, err
			}
		}
		return Complete(), nil
	})
}

// AnyOf is a checker: one other must find the task done. It stops at the first that does. Without any
// other the task is done. What failed counts only if none finds it done.
func AnyOf(checkers ...Checker) Checker {
	return CheckerFunc(func(ctx context.Context, a Attempt) (Completion, error) {
		var texts []string
		var errs []error
		for _, c := range checkers {
			done, err := check(ctx, c, a)
			if err == nil && done.Done {
				return done, nil
			}
			errs = append(errs, err)
			if done.Feedback != "" {
				texts = append(texts, done.Feedback)
			}
		}
		if len(checkers) == 0 {
			return Complete(), nil
		}
		return Incomplete(strings.Join(texts, "\n\n")), errors.Join(errs...)
	})
}
