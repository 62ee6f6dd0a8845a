// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/internal/testkit"
)

func TestDoctor_RunsAsOrdinaryUser(t *testing.T) {
	testkit.RerunAsUser(t, claudetest.CLI(t).Path, "^(TestDoctor_ReadyMachinePasses|TestDoctor_ReportsABrokenMachine)$")
}

// The report in a real terminal is folded at its width; in a file it is not.
func TestDoctor_FoldsTheReportInARealTerminal(t *testing.T) {
	closedOff(t, "/nowhere/claude", "")
	t.Setenv("TMPDIR", "/tmp") // short names: words are not broken
	t.Chdir("/")
	for _, width := range []int{80, 200} {
		keyboard, screen := openTerminal(t, width)
		cmd := newCommand()
		cmd.SetArgs([]string{"doctor", "--offline", "--timeout", "1m"})
		cmd.SetOut(screen)
		if code := execute(t.Context(), cmd); code != 3 {
			t.Fatalf("exit code %d, want 3", code)
		}
		fmt.Fprintln(screen, "THE END")
		widest := 0
		lines := bufio.NewScanner(keyboard)
		for lines.Scan() && lines.Text() != "THE END" {
			widest = max(widest, utf8.RuneCountInString(lines.Text()))
		}
		if widest > width || widest < 70 {
			t.Errorf("the widest line has %d characters at width %d", widest, width)
		}
	}
}

// openTerminal makes a terminal with a number of columns; what is written to screen is read from
// keyboard.
func openTerminal(t *testing.T, width int) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: mount -t devpts devpts /dev/pts")
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	fd := int(keyboard.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)})
	}
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	return keyboard, screen
}

// That the folder is gone is no fault of the CLI.
func TestDoctor_RemovedWorkingDirIsNoFaultOfTheCLI(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	closedOff(t, claudetest.CLI(t).Path, "")
	t.Chdir(dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	_, stdout, _ := drover(t.Context(), t, nil, "doctor", "--offline", "--json", "--timeout", "1m")
	for _, got := range decodedReport(t, stdout).Checks {
		switch {
		case got.Name == "claude" && got.State != "ok":
			t.Errorf("claude: %+v, want ok", got)
		case got.Name == "disk" && (got.State != "broken" || got.Detail != "the working folder cannot be used: no such file or directory"):
			t.Errorf("disk: %+v, want broken, and why", got)
		}
	}
}
