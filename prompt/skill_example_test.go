// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"fmt"
	"os"
	"testing/fstest"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/prompt"
)

// Programs that carry their skills with them use an embed.FS in the same way.
func ExampleLoadSkillFS() {
	files := fstest.MapFS{
		"skills/release-notes/SKILL.md": {Data: []byte(`---
name: release-notes
description: Writes release notes. Use it when a version is tagged.
---
Read template.md and fill it in.
`)},
		"skills/release-notes/template.md": {Data: []byte("# Version\n")},
	}
	skill, err := prompt.LoadSkillFS(files, "skills/release-notes")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(skill.Name(), skill.Files())

	_, err = prompt.LoadSkillFS(fstest.MapFS{"Notes.md": {Data: []byte("---\ndescription: ''\nlicense: 2\n---\n")}}, "Notes.md")
	fmt.Println(advice.Text(err))
	// Output:
	// release-notes [SKILL.md template.md]
	// prompt: Notes.md: skill is not valid
	//   Notes.md:2:14: description has 0 characters: it must have 1 to 1024, and not only blanks
	//   Notes.md:3:10: license must be one text: put it in quotes
	//   the folder or file is named "Notes": a skill's name must be 1 to 64 lower-case letters and digits, with single hyphens between them
	//   next: correct what is listed, and load the skill again
}

func ExampleMountSkills() {
	skill, err := prompt.LoadSkillFS(fstest.MapFS{"notes.md": {Data: []byte("---\ndescription: Takes notes.\n---\nWrite it down.\n")}}, "notes.md")
	if err != nil {
		fmt.Println(err)
		return
	}
	skills, err := os.MkdirTemp("", "skills-") // the skills folder of an agent's configuration
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(skills)
	if err := prompt.MountSkills(skills, skill); err != nil {
		fmt.Println(advice.Text(err))
	}
	fmt.Println(prompt.MountSkills(skills, skill)) // again, in the midst of a run
	entries, _ := os.ReadDir(skills + "/notes")
	fmt.Println(entries[0].Name())
	// Output:
	// <nil>
	// SKILL.md
}
