// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/drover-agents/drover/tool"
)

// ListedTools are the Tools of a request, with the one that the agent needs for its skills.
func ListedTools(req Request, of *tool.Catalogue) []string {
	if len(req.Skills) == 0 {
		return req.Tools
	}
	return WithSkillTool(req.Tools, of)
}

// WithSkillTool is a list of allowed tools with the one that the agent needs to read skills, if it needs one.
func WithSkillTool(list []string, of *tool.Catalogue) []string {
	if of == nil || of.SkillTool == "" {
		return list
	}
	named := func(name string) bool { return name == of.SkillTool || strings.HasPrefix(name, of.SkillTool+"(") }
	if slices.ContainsFunc(list, named) {
		return list
	}
	return append(slices.Clone(list), of.SkillTool)
}

// A Skill is a folder of instructions, as a [prompt.Skill] is.
type Skill interface {
	// Name is the name of the folder, and the one that the agent knows the skill by.
	Name() string
	// WriteIn writes the folder NAME into root, and nothing outside of it: an agent that works already may have
	// put links there. An existing skill with the same content is not an error.
	WriteIn(root *os.Root) error
}

// A Learner is a [Conversation] to which skills can be added while the agent works.
type Learner interface {
	// AddSkills adds skills. When it returns the agent knows them from its next step on: a tool that adds
	// them before it returns can mention them in its result.
	AddSkills(ctx context.Context, skills []Skill) error
}
