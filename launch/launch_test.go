// SPDX-License-Identifier: Apache-2.0

package launch_test

import (
	"testing"

	"github.com/drover-agents/drover/launch"
)

// A batch file is found wherever it is in a Windows path.
func TestIsBatchFile_AnywhereInAWindowsPath(t *testing.T) {
	cases := map[string]bool{
		`C:\Users\x\AppData\npm\claude.cmd`:  true,
		`C:\x\CLAUDE.CMD`:                    true,
		`C:\x\claude.bat. . `:                true,
		`C:\x\claude.cmd\..\claude.exe`:      true,
		`C:/x/claude.bat/y`:                  true,
		`C:\x\claude.cmd:stream`:             true,
		`C:\x\claude.exe`:                    false,
		`C:\x\command\batch\claude.exe`:      false,
		`C:\x\claude.cmd.exe`:                false,
		`/usr/local/bin/claude`:              false,
		`C:\program files\claude code\a.exe`: false,
	}
	for path, want := range cases {
		if got := launch.IsBatchFile(path); got != want {
			t.Errorf("IsBatchFile(%q): got %v, want %v", path, got, want)
		}
	}
}
