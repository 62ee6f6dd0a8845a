// SPDX-License-Identifier: Apache-2.0

package claudecode

import "testing"

func TestIsOwnFile(t *testing.T) {
	const home = "/tmp/claude-agent-ABC"
	for name, want := range map[string]bool{
		"/tmp/claude-agent-ABC/.claude/settings.json":             true,
		"/tmp/claude-agent-abc/.CLAUDE/settings.json":             true,
		"/tmp/x/../claude-agent-ABC/.claude/agents/evil.md":       true,
		"/work/link/claude-agent-ABC/.claude/settings.json":       true,
		"/tmp/claude-agent-ABC/.claude/plans/../settings.json":    true,
		"/tmp/claude-agent-ABC/.claude":                           true,
		"/tmp/claude-agent-ABC/.claude/plans/plan.md":             false,
		"/tmp/claude-agent-ABC/.gitconfig":                        true,
		"/tmp/claude-agent-ABC":                                   true,
		"/tmp/claude-agent-ABC/tmp/claude-resume-1/settings.json": true,
		"/tmp/claude-agent-ABC/tmp/claude-resume-1":               true,
		"/tmp/claude-agent-ABC/tmp/claude-resume-1/plans/plan.md": false,
		"/tmp/claude-agent-ABC/tmp/notes.txt":                     false,
		"/tmp/claude-agent-ABCD/.claude/settings.json":            false,
		"~/.claude/settings.json":                                 true,
		" \t~/.bashrc":                                            true,
		"\ufeff~/.claude/settings.json":                           true,
		"~":                                                       true,
		"~/tmp/notes.txt":                                         false,
		"~user/notes.txt":                                         false,
		"/work/.claude/scheduled_tasks.json":                      true,
		".claude/scheduled_tasks.json":                            true,
		"/work/.claude/settings.json":                             false, // the CLI does not read it
		"/work/scheduled_tasks.json":                              false,
		"/work/main.go":                                           false,
		"":                                                        false,
	} {
		if got := isOwnFile(name, home); got != want {
			t.Errorf("isOwnFile(%q) = %t, want %t", name, got, want)
		}
	}
}
