// SPDX-License-Identifier: Apache-2.0

package leftover

import (
	"os"
	"path/filepath"
	"runtime"
)

// StateFolder is where programs of ours keep what must outlive them: below XDG_STATE_HOME, or where the system has it.
func StateFolder() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "drover"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return stateFolderIn(home, runtime.GOOS, os.Getenv("LOCALAPPDATA")), nil
}

func stateFolderIn(home, goos, localAppData string) string {
	switch {
	case goos == "darwin":
		return filepath.Join(home, "Library", "Application Support", "drover")
	case goos == "windows" && localAppData != "":
		return filepath.Join(localAppData, "drover")
	}
	return filepath.Join(home, ".local", "state", "drover")
}
