// SPDX-License-Identifier: Apache-2.0

package claude

import "strings"

func programName(goos string) string {
	if goos == "windows" {
		return "claude.exe"
	}
	return "claude"
}

// programNames lists the file names to try for a program called name. On Windows only real
// programs count: the shell scripts that npm puts beside them cannot be started safely.
func programNames(goos, name string) []string {
	if goos != "windows" || isRealProgram(name) {
		return []string{name}
	}
	return []string{name + ".exe", name + ".com"}
}

// isRealProgram reports whether a Windows file name ends like a program. Windows ignores trailing dots and spaces.
func isRealProgram(name string) bool {
	name = strings.ToLower(strings.TrimRight(name, ". "))
	return strings.HasSuffix(name, ".exe") || strings.HasSuffix(name, ".com")
}

// wellKnownPaths lists the paths that the CLI's installers use. On Windows only the home directory
// is probed: any user who may write to the root of the current drive can plant a path without a drive.
func wellKnownPaths(goos, home string) []string {
	if goos == "windows" {
		if home == "" {
			return nil
		}
		return []string{home + `\.local\bin\claude.exe`}
	}
	if home == "" {
		return []string{"/usr/local/bin/claude"}
	}
	return []string{
		home + "/.npm-global/bin/claude",
		"/usr/local/bin/claude",
		home + "/.local/bin/claude",
		home + "/node_modules/.bin/claude",
		home + "/.yarn/bin/claude",
		home + "/.claude/local/claude",
	}
}
