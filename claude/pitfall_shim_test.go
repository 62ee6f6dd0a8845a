// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// On Windows a batch file hands its arguments to a command interpreter, which acts on characters in
// them. A CLI that is one, by its own name or that of a folder, must not be started, and ids that
// go on the command line must not hold such characters.
func TestPitfall50_BatchFilesAreRefusedOnWindows(t *testing.T) {
	for _, name := range []string{"claude.cmd", "claude.BAT", "claude.cmd. ", filepath.Join("claude.cmd", "claude.exe")} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := checkProgram("windows", path); !errors.Is(err, ErrNotExecutable) {
			t.Errorf("%s: %v, want ErrNotExecutable", name, err)
		}
	}
	if err := validateWindowsArgument("Resume", "a & calc.exe"); err == nil {
		t.Errorf("an id with a command in it was accepted")
	}
}
