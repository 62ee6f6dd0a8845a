// SPDX-License-Identifier: Apache-2.0

package claudetest_test

import (
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
)

func TestLeakCheck_CLILeftRunningFailsTheTest(t *testing.T) {
	ft := &fakeTest{TB: t}
	cli := claudetest.CLI(ft)
	model := claudetest.NewModel(t)
	c, err := claude.Connect(t.Context(), cli.Options(model))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ft.end()
	if len(ft.errors) == 0 || !strings.Contains(strings.Join(ft.errors, "\n"), "is left behind: "+cli.Path) {
		t.Errorf("a client that was not closed gave %q, want the CLI by name", ft.errors)
	}
	for _, err := range c.Messages() { // ends because the check has killed the CLI
		if err == nil {
			t.Error("the conversation went on after the check")
		}
	}
	if _, err := os.Stat(cli.Root); !os.IsNotExist(err) {
		t.Errorf("the private folder is still there: %v", err)
	}
}

// A process that has cut all ties to the CLI is found by the variable that it inherited.
func TestLeakCheck_GrandchildLeftRunningFailsTheTest(t *testing.T) {
	ft := &fakeTest{TB: t}
	cli := claudetest.CLI(ft)
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	parent := exec.Command("sh", "-c", "tail -f /dev/null & exit 0")
	parent.Env = environ(cli.Env("http://127.0.0.1:1"))
	parent.ExtraFiles = []*os.File{held}
	parent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := parent.Run(); err != nil {
		t.Fatal(err)
	}
	_ = held.Close()
	ft.end()
	ft.wantOnly(t, "claudetest: process ", "is left behind: tail -f /dev/null")
	if _, err := io.ReadAll(alive); err != nil { // ends when the last holder of the pipe does
		t.Errorf("waiting for the end of the grandchild: %v", err)
	}
}

func environ(vars map[string]string) []string {
	var list []string
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	return list
}

func TestLeakCheck_GoroutineLeftRunningFailsTheTest(t *testing.T) {
	ft := &fakeTest{TB: t}
	claudetest.CLI(ft)
	release := make(chan struct{})
	go leftBehind(release)
	ft.end()
	close(release)
	ft.wantOnly(t, "leftBehind")
}

func leftBehind(release chan struct{}) { <-release }

// Goroutines that were there before the call, and a client that is closed, are no leak.
func TestLeakCheck_CleanTestPasses(t *testing.T) {
	before := make(chan struct{})
	defer close(before)
	go leftBehind(before)
	ft := &fakeTest{TB: t}
	cli := claudetest.CLI(ft)
	model := claudetest.NewModel(ft, script.Text("Done."))
	for _, err := range claude.Query(t.Context(), "go", cli.Options(model)) {
		if err != nil {
			t.Fatal(err)
		}
	}
	ft.end()
	if len(ft.errors) > 0 {
		t.Errorf("a clean test failed with %q", ft.errors)
	}
}
