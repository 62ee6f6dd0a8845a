// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"fmt"
	"path/filepath"
	"strings"
)

// A Sandbox configures how the agent is isolated, and what it may use beyond the workspace. The zero value is
// on: the cell, with the workspace and a private home in it.
type Sandbox struct {
	// Disabled runs the agent without isolation ([LevelHost]). [Isolation.Weakest] must allow that.
	Disabled bool
	// WritablePaths and ReadablePaths are further files and folders for the agent. Relative ones start at the workspace.
	WritablePaths, ReadablePaths []string
	// ExcludedCommands run outside of the CLI's own sandbox ("docker"). They never leave a cell. Where
	// the CLI's own sandbox is the only isolation, each is a hole in it.
	ExcludedCommands []string
	// AllowUnsandboxedCommands lets the model ask for a command to run outside of the CLI's own
	// sandbox. It needs ExcludedCommands. It, too, never leaves a cell.
	AllowUnsandboxedCommands bool
	// AskBeforeBash makes commands of the Bash tool ask like any other tool. By default they do not,
	// since they are isolated; that is safe as long as the network policy is closed.
	AskBeforeBash bool
	// Nested runs the CLI's own sandbox for the Bash tool inside of the cell, whose filter of system calls is relaxed then.
	Nested bool
	// WeakerNested lets the CLI's own sandbox lack a /proc, as in a container without privileges. Nested implies it.
	WeakerNested bool
	// IgnoreFileViolations (paths) and IgnoreNetworkViolations (hosts) are refusals of the CLI's own
	// sandbox that are not reported to the model. They are refused all the same.
	IgnoreFileViolations, IgnoreNetworkViolations []string
}

// Validate refuses what cannot be had at this level on this operating system (a GOOS), with the
// reason. A nil Sandbox is the zero one.
func (s *Sandbox) Validate(level Level, goos string) error {
	if s == nil {
		s = &Sandbox{}
	}
	for _, rule := range sandboxRules {
		if rule.broken(s, level, goos) {
			return &RefusedError{Field: "Sandbox." + rule.field, Reason: rule.reason, Level: level, GOOS: goos, Next: rule.next}
		}
	}
	return s.validatePaths()
}

// sandboxRules are the settings that cannot be had somewhere.
var sandboxRules = []struct {
	field  string
	broken func(s *Sandbox, level Level, goos string) bool
	reason string
	next   string
}{
	{
		field: "AllowUnsandboxedCommands",
		broken: func(s *Sandbox, _ Level, _ string) bool {
			return s.AllowUnsandboxedCommands && len(s.ExcludedCommands) == 0
		},
		reason: "it has no meaning without ExcludedCommands",
		next:   "name the commands in Sandbox.ExcludedCommands",
	},
	{
		field:  "Disabled",
		broken: func(s *Sandbox, level Level, _ string) bool { return s.Disabled && level != LevelHost },
		reason: "this level isolates the agent",
		next:   "set Isolation.Weakest to LevelHost to run without isolation",
	},
	{
		field:  "Disabled",
		broken: func(s *Sandbox, _ Level, _ string) bool { return s.Disabled && s.Nested },
		reason: "Nested asks for a sandbox",
		next:   "choose one of Disabled and Nested",
	},
	{
		field:  "Nested",
		broken: func(s *Sandbox, level Level, _ string) bool { return s.Nested && level == LevelLandlock },
		reason: "the CLI's own sandbox cannot mount anything under Landlock",
		next:   "install bubblewrap, or leave Nested out",
	},
	{
		field: "WeakerNested",
		broken: func(s *Sandbox, level Level, goos string) bool {
			return s.WeakerNested && level == LevelSandbox && goos != "linux"
		},
		reason: "it is about bubblewrap in containers",
		next:   "set it on Linux only",
	},
	{
		field: "Disabled",
		broken: func(s *Sandbox, level Level, goos string) bool {
			return !s.Disabled && level == LevelSandbox && goos != "linux" && goos != "darwin"
		},
		reason: "it is false, and the CLI has no sandbox on this system",
		next:   "set Sandbox.Disabled and Isolation.Weakest to LevelHost to run without isolation",
	},
}

func (s *Sandbox) validatePaths() error {
	for field, paths := range map[string][]string{"WritablePaths": s.WritablePaths, "ReadablePaths": s.ReadablePaths} {
		for _, path := range paths {
			if strings.TrimSpace(path) == "" || strings.ContainsRune(path, 0) {
				return &RefusedError{Field: "Sandbox." + field, Reason: fmt.Sprintf("%q is not a path", path), Next: "give a file or a folder"}
			}
			if filepath.Clean(path) == string(filepath.Separator) {
				return &RefusedError{Field: "Sandbox." + field, Reason: "the root of the file system is everything", Next: "give the folders that are needed"}
			}
		}
	}
	return nil
}

// Writable and Readable are the paths as absolute ones; relative ones are meant from the workspace.
func (s *Sandbox) Writable(workspace string) []string {
	if s == nil {
		return nil
	}
	return resolvePaths(workspace, s.WritablePaths)
}

// Readable is like [Sandbox.Writable], for what may only be read.
func (s *Sandbox) Readable(workspace string) []string {
	if s == nil {
		return nil
	}
	return resolvePaths(workspace, s.ReadablePaths)
}

func resolvePaths(workspace string, paths []string) []string {
	var resolved []string
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(workspace, path)
		}
		resolved = append(resolved, filepath.Clean(path))
	}
	return resolved
}

// A RefusedError is a setting that is not available, the reason, and the level and system.
type RefusedError struct {
	// Field is the setting, as it is written in Go: "Network.AllowedPorts".
	Field string
	// Reason is why.
	Reason string
	// Level and GOOS are where it is so. GOOS is empty when it is so everywhere.
	Level Level
	GOOS  string
	// Next is what to do about it.
	Next string
}

func (e *RefusedError) Error() string {
	where := ""
	if e.GOOS != "" {
		where = fmt.Sprintf(" (isolation level %s on %s)", e.Level, e.GOOS)
	}
	return fmt.Sprintf("isolation: %s: %s%s", e.Field, e.Reason, where)
}

// Advice implements [advice.Adviser].
func (e *RefusedError) Advice() string { return e.Next }

func (i *Isolation) sandbox() Sandbox {
	if i.Sandbox == nil {
		return Sandbox{}
	}
	return *i.Sandbox
}
