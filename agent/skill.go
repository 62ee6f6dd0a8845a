// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"os"
	"slices"
	"strings"
)

// SkillTool is the tool with which an agent reads skills.
const SkillTool = "Skill"

// AllowedTools are the allowed tools of a request, with the one that its skills need.
func AllowedTools(req Request) []string {
	named := func(name string) bool { return name == SkillTool || strings.HasPrefix(name, SkillTool+"(") }
	if len(req.Skills) == 0 || slices.ContainsFunc(req.AllowedTools, named) {
		return req.AllowedTools
	}
	return append(slices.Clone(req.AllowedTools), SkillTool)
}

// A Skill is a folder of instructions, as a [prompt.Skill] is.
type Skill interface {
	// Name is the name of the folder, and the one that the agent knows the skill by.
	Name() string
	// WriteIn writes the folder NAME into root, and nothing outside of it: an agent that works already may have
	// put links there. One that is there with the same content is no error.
	WriteIn(root *os.Root) error
}

// A Learner is a [Conversation] to which skills can be added while the agent works.
type Learner interface {
	// AddSkills adds skills. When it returns the agent knows them from its next step on: a tool that adds
	// them before it returns can speak of them in its result.
	AddSkills(ctx context.Context, skills []Skill) error
}
