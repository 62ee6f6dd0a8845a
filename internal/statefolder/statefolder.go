// SPDX-License-Identifier: Apache-2.0

// Package statefolder knows where programs of ours keep what must outlive them.
package statefolder

import (
	"os"
	"path/filepath"
	"runtime"
)

// Path is below XDG_STATE_HOME, or where the system has it.
func Path() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "drover"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return in(home, runtime.GOOS, os.Getenv("LOCALAPPDATA")), nil
}

func in(home, goos, localAppData string) string {
	switch {
	case goos == "darwin":
		return filepath.Join(home, "Library", "Application Support", "drover")
	case goos == "windows" && localAppData != "":
		return filepath.Join(localAppData, "drover")
	}
	return filepath.Join(home, ".local", "state", "drover")
}
