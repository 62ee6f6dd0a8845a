// SPDX-License-Identifier: Apache-2.0

package claudecode

import "testing"

func TestIsOwnFile_Paths(t *testing.T) {
	const home = "/tmp/drover-home-ABC"
	for name, want := range map[string]bool{
		"/tmp/drover-home-ABC/.claude/settings.json":             true,
		"/tmp/drover-home-abc/.CLAUDE/settings.json":             true,
		"/tmp/x/../drover-home-ABC/.claude/agents/evil.md":       true,
		"/work/link/drover-home-ABC/.claude/settings.json":       true,
		"/tmp/drover-home-ABC/.claude/plans/../settings.json":    true,
		"/tmp/drover-home-ABC/.claude":                           true,
		"/tmp/drover-home-ABC/.claude/plans/plan.md":             false,
		"/tmp/drover-home-ABC/.gitconfig":                        true,
		"/tmp/drover-home-ABC":                                   true,
		"/tmp/drover-home-ABC/tmp/drover-resume-1/settings.json": true,
		"/tmp/drover-home-ABC/tmp/drover-resume-1":               true,
		"/tmp/drover-home-ABC/tmp/drover-resume-1/plans/plan.md": false,
		"/tmp/drover-home-ABC/tmp/notes.txt":                     false,
		"/tmp/drover-home-ABCD/.claude/settings.json":            false,
		"~/.claude/settings.json":                                true,
		" \t~/.bashrc":                                           true,
		"\ufeff~/.claude/settings.json":                          true,
		"~":                                                      true,
		"~/tmp/notes.txt":                                        false,
		"~user/notes.txt":                                        false,
		"/work/.claude/scheduled_tasks.json":                     true,
		".claude/scheduled_tasks.json":                           true,
		"/work/.claude/settings.json":                            false, // the CLI does not read it
		"/work/scheduled_tasks.json":                             false,
		"/work/main.go":                                          false,
		"":                                                       false,
	} {
		if got := isOwnFile(name, home); got != want {
			t.Errorf("isOwnFile(%q) = %t, want %t", name, got, want)
		}
	}
}
