// SPDX-License-Identifier: Apache-2.0

package guard_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/guard"
)

func finds(done guard.Completion, err error) guard.Checker {
	return guard.CheckerFunc(func(context.Context, guard.Attempt) (guard.Completion, error) { return done, err })
}

var (
	isDone   = finds(guard.Complete(), nil)
	lacksA   = finds(guard.Incomplete("a is missing"), nil)
	lacksB   = finds(guard.Incomplete("b is missing"), nil)
	fails    = finds(guard.Completion{}, errors.New("cannot look"))
	explodes = guard.CheckerFunc(func(context.Context, guard.Attempt) (guard.Completion, error) { panic("boom") })
)

func exits(code int, output string) guard.Exec {
	return func(context.Context, []string) (guard.Executed, error) {
		return guard.Executed{ExitCode: code, Output: []byte(output)}, nil
	}
}

func TestChecker_Results(t *testing.T) {
	dir := t.TempDir()
	touch(t, filepath.Join(dir, "there"))
	if err := os.Symlink("/", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	here := guard.Attempt{Files: guard.Dir(dir)}
	cases := []struct {
		name    string
		checker guard.Checker
		attempt guard.Attempt
		done    bool
		want    string // part of the feedback
		err     string // part of the error
	}{
		{"no checker", nil, here, true, "", ""},
		{"the file is there", guard.FilesExist("there"), here, true, "", ""},
		{"by its absolute path", guard.FilesExist(filepath.Join(dir, "there")), here, true, "", ""},
		{"a file is missing", guard.FilesExist("there", "gone"), here, false, "<blocker>\nYou are not done. Create these missing files: gone\n</blocker>", ""},
		{"many files are missing", guard.FilesExist("a", "b", "c", "d", "e"), here, false, "a, b, c and 2 more", ""},
		{"a file is in the way of a directory", guard.FilesExist("there/gone"), here, false, "missing files: there/gone", ""},
		{"nowhere to look", guard.FilesExist("there"), guard.Attempt{}, false, "", "set Attempt.Files"},
		{"a link leads out", guard.FilesExist("out/etc/passwd"), here, false, "", "out/etc/passwd"},
		{"dots lead out", guard.FilesExist("../x"), here, false, "", "../x"},
		{"an absolute path outside", guard.FilesExist("/etc/passwd"), here, false, "", "is outside of"},
		{"the command succeeds", guard.CommandSucceeds("go", "test"), guard.Attempt{Exec: exits(0, "ok")}, true, "", ""},
		{"the command fails", guard.CommandSucceeds("go", "test"), guard.Attempt{Exec: exits(1, "FAIL: x")}, false, "`go test` ended with exit code 1. Fix the cause. The output ends with:\nFAIL: x", ""},
		{"only the end of a long output is reported", guard.CommandSucceeds("x"), guard.Attempt{Exec: exits(1, strings.Repeat("y", 9000)+"END")}, false, "yEND", ""},
		{"commands never run without Exec", guard.CommandSucceeds("touch", "/tmp/x"), guard.Attempt{}, false, "", "set Attempt.Exec"},
		{"no command", guard.CommandSucceeds(), guard.Attempt{Exec: exits(0, "")}, false, "", "needs a command"},
		{"not done, and no word why", finds(guard.Completion{}, nil), here, false, "You are not done. Continue with the task.", ""},
		{"not any, and no word why", guard.AnyOf(finds(guard.Completion{}, nil)), here, false, "You are not done. Continue with the task.", ""},
		{"all of them", guard.AllOf(isDone, isDone), here, true, "", ""},
		{"all of none", guard.AllOf(), here, true, "", ""},
		{"done, and yet it fails", finds(guard.Complete(), errors.New("cannot look")), here, false, "", "cannot look"},
		{"all but one", guard.AllOf(isDone, lacksA, explodes), here, false, "a is missing", ""},
		{"all, and one fails", guard.AllOf(isDone, fails, lacksA), here, false, "", "cannot look"},
		{"any of them", guard.AnyOf(lacksA, fails, isDone, explodes), here, true, "", ""},
		{"any of none", guard.AnyOf(), here, true, "", ""},
		{"not any", guard.AnyOf(lacksA, lacksB), here, false, "a is missing\n\nb is missing", ""},
		{"not any, and one fails", guard.AnyOf(lacksA, fails), here, false, "a is missing", "cannot look"},
		{"it panics", explodes, here, false, "", "panicked: boom"},
		{"one of several panics", guard.AnyOf(explodes), here, false, "", "panicked: boom"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := guard.CheckCompletion(t.Context(), c.checker, c.attempt, guard.Deadline{}, nil)
			if got.Done != c.done || !strings.Contains(got.Feedback, c.want) {
				t.Errorf("found %+v, want done %v with feedback %q", got, c.done, c.want)
			}
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(advice.Text(err), c.err) {
				t.Errorf("the error is %v, want %q", err, c.err)
			}
		})
	}
}

func TestCheckCompletion_IsSkippedAfterTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spent := guard.NewTracker(guard.Budget{MaxTotalTokens: 10})
		spent.Record(guard.Usage{InputTokens: 10})
		soon := guard.FromNow(time.Second)
		time.Sleep(time.Second)
		for name, run := range map[string]func() (guard.Completion, error){
			"deadline": func() (guard.Completion, error) {
				return guard.CheckCompletion(t.Context(), lacksA, guard.Attempt{}, soon, nil)
			},
			"budget": func() (guard.Completion, error) {
				return guard.CheckCompletion(t.Context(), lacksA, guard.Attempt{}, guard.Deadline{}, spent)
			},
		} {
			got, err := run()
			if want := (guard.Completion{Done: true, Skipped: true}); got != want || err != nil {
				t.Errorf("%s: found %+v, %v; want %+v", name, got, err, want)
			}
		}
	})
}

// A command of a checker may hang; the agent could not go on when the limits are spent.
func TestCheckCompletion_HangingCheckEndsWithTheLimits(t *testing.T) {
	hangs := guard.CheckerFunc(func(ctx context.Context, _ guard.Attempt) (guard.Completion, error) {
		<-ctx.Done()
		return guard.Completion{}, context.Cause(ctx)
	})
	for _, name := range []string{"deadline", "deadline of the budget", "tokens"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var deadline guard.Deadline
				budget := guard.Budget{MaxTotalTokens: 10}
				switch name {
				case "deadline":
					deadline = guard.FromNow(time.Second)
				case "deadline of the budget":
					budget.Deadline = guard.FromNow(time.Second)
				}
				tracker := guard.NewTracker(budget)
				if name == "tokens" {
					time.AfterFunc(time.Second, func() { tracker.Record(guard.Usage{InputTokens: 10}) })
				}
				got, err := guard.CheckCompletion(t.Context(), hangs, guard.Attempt{}, deadline, tracker)
				if want := (guard.Completion{Done: true, Skipped: true}); got != want || err != nil {
					t.Errorf("found %+v, %v; want %+v", got, err, want)
				}
			})
		})
	}
}

func ExampleCheckCompletion() {
	checker := guard.AllOf(
		guard.FilesExist("report.md"),
		guard.CommandSucceeds("go", "test", "./..."),
	)
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	found, err := guard.CheckCompletion(context.Background(), checker, guard.Attempt{Files: guard.Dir(dir)}, guard.Deadline{}, nil)
	fmt.Println(found.Done, err)
	fmt.Println(found.Feedback)
	// Output:
	// false <nil>
	// <blocker>
	// You are not done. Create these missing files: report.md
	// </blocker>
}
