// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/prompt"
)

// Skills that load are skills to the CLI too: the model receives the description of each, and gets
// the body when it calls for it.
func TestMountSkills_RealCLIFindsMountedSkills(t *testing.T) {
	fsys := fstest.MapFS{
		"rich/SKILL.md": {Data: []byte("---\nname: rich\ndescription: SAYS rich\nlicense: MIT\ncompatibility: any\nallowed-tools: Read, Bash(git:*)\n" +
			"metadata:\n  author: drover\nwhatever: [1, 2]\n---\nBODY rich in ${CLAUDE_SKILL_DIR}.\n")},
		"rich/doc/more.md": {Data: []byte("more")},
		"crlf.md":          {Data: []byte("\ufeff---\r\ndescription: SAYS crlf\r\n---\r\nBODY crlf\r\n")},
		"folded.md":        {Data: []byte("---\nname: folded\ndescription: >-\n  SAYS\n  folded\n---\nBODY folded\n")},
	}
	names := []string{"rich", "crlf", "folded"}
	skills := []*prompt.Skill{load(t, fsys, "rich"), load(t, fsys, "crlf.md"), load(t, fsys, "folded.md")}

	cli := claudetest.CLI(t)
	var turns []script.Turn
	for _, name := range names {
		turns = append(turns, script.Call("Skill", script.Input{"skill": name}))
	}
	model := claudetest.NewModel(t, append(turns, script.Text("Done."))...).RequireAllUsed()
	opts := cli.Options(model)
	opts.SettingSources = []string{"user"} // the CLI reads no skills of the configuration otherwise
	opts.Skills = &claude.Skills{Names: names}
	if err := prompt.MountSkills(filepath.Join(cli.Config, "skills"), skills...); err != nil {
		t.Fatal(err)
	}
	for _, err := range claude.Query(t.Context(), "Hello.", opts) {
		if err != nil {
			t.Fatal(err)
		}
	}

	first, last := model.Requests()[0], model.LastRequest()
	for _, s := range skills {
		if announced := "- " + s.Name() + ": " + s.FrontMatter().Description; !first.SawText(announced) {
			t.Errorf("the model did not receive %q", announced)
		}
		if first.SawText("BODY " + s.Name()) {
			t.Errorf("the model saw the body of %s before it asked", s.Name())
		}
		if !last.SawText("BODY " + s.Name()) {
			t.Errorf("the model did not get the body of %s", s.Name())
		}
	}
	for _, result := range last.ToolResults("Skill") {
		if result.IsError {
			t.Errorf("a skill was refused: %s", result.Text)
		}
	}
	if place := filepath.Join(cli.Config, "skills", "rich"); !last.SawText("BODY rich in " + place + ".") {
		t.Errorf("the skill does not lie in %s: %s", place, strings.Join(names, " "))
	}
}
