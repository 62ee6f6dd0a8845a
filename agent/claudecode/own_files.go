// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"encoding/json"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/drover-agents/drover/claude"
)

const fileTools = "Write|Edit|MultiEdit|NotebookEdit"

// denyOwnFiles denies file tools the files that the CLI reads its own configuration from. Hooks in its settings,
// servers of its agents and commands in its skills run without a tool call, so that no gate decides about them.
func denyOwnFiles(home func() string) claude.Hook {
	return claude.On(fileTools, func(_ context.Context, in *claude.PreToolUseInput) (*claude.PreToolUseOutput, error) {
		var input struct {
			File     string `json:"file_path"`
			Notebook string `json:"notebook_path"`
		}
		if err := json.Unmarshal(in.ToolInput, &input); err != nil {
			return nil, err // which denies
		}
		if dir := home(); dir != "" && (isOwnFile(input.File, dir) || isOwnFile(input.Notebook, dir)) {
			return claude.DenyTool(ownFileReason), nil
		}
		return nil, nil
	})
}

// isOwnFile reports whether the CLI would read its configuration from a file that a tool names: one in the home of
// the run, or the schedule in the working directory. The name of the home is random, so a link that an earlier run
// left cannot lead there. Plans and temporary files are in the home too, and are not configuration.
func isOwnFile(name, home string) bool {
	// The CLI trims a path and replaces a tilde in the same way.
	name = filepath.ToSlash(strings.TrimFunc(name, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }))
	home = filepath.ToSlash(home)
	if rest, ok := strings.CutPrefix(name, "~"); ok && (rest == "" || rest[0] == '/') {
		name = home + rest
	}
	name = strings.ToLower(path.Clean("/" + name)) // some file systems ignore case
	if strings.HasSuffix(name, "/.claude/scheduled_tasks.json") {
		return true
	}
	_, name, inHome := strings.Cut(name+"/", "/"+strings.ToLower(path.Base(home))+"/")
	if !inHome {
		return false
	}
	config, name, _ := strings.Cut(name, "/")
	if config == "tmp" {
		if config, name, _ = strings.Cut(name, "/"); !strings.HasPrefix(config, "drover-resume-") {
			return false
		}
	} else if config != ".claude" {
		return true
	}
	return !strings.HasPrefix(name, "plans/")
}
