// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// skillRule is the rule by which the model reads skills without a question. The CLI would ask about those that bring tools.
func skillRule(skills []agent.Skill) []string {
	if len(skills) == 0 {
		return nil
	}
	return []string{catalogue.Tools().SkillTool}
}

// checkSkills refuses skills that cannot be stored.
func (a *Adapter) checkSkills(skills []agent.Skill) error {
	if len(skills) > 0 && a.isolation == nil && a.base.Spawner != nil {
		return advice.Wrap(refusal("Skills", "the CLI is started by a Spawner of the caller's, whose home is not ours to write to"),
			"put the skills there before the run, or leave the Spawner out")
	}
	seen := map[string]bool{}
	for _, s := range skills {
		switch name := s.Name(); {
		case name == "" || name == "." || filepath.Base(name) != name || !filepath.IsLocal(name):
			return refusal("Skills", "%q is not the name of a folder", name)
		case seen[name]:
			return advice.Wrap(refusal("Skills", "there are two skills %q", name), "rename one of them")
		default:
			seen[name] = true
		}
	}
	return nil
}

// withSkills is the isolation of a run with skills: they are in its home before the CLI starts.
func withSkills(i *isolation.Isolation, skills []agent.Skill) *isolation.Isolation {
	if len(skills) == 0 {
		return i
	}
	own := orZero(i)
	before := own.Populate
	own.Populate = func(h *isolation.Home) error {
		if before != nil {
			if err := before(h); err != nil {
				return err
			}
		}
		return writeSkills(h, skills)
	}
	return &own
}

// writeSkills writes skills into a home. It follows no link out of it: an agent at work there can replace folders by links.
func writeSkills(h *isolation.Home, skills []agent.Skill) error {
	dir, err := skillsDir(h)
	if err != nil {
		return fmt.Errorf("claudecode: the folder of the skills: %w", err)
	}
	defer dir.Close()
	for _, s := range skills {
		if err := s.WriteIn(dir); err != nil {
			return fmt.Errorf("claudecode: the skill %s: %w", s.Name(), err)
		}
	}
	return nil
}

func skillsDir(h *isolation.Home) (*os.Root, error) {
	home, err := os.OpenRoot(h.Path())
	if err != nil {
		return nil, err
	}
	defer home.Close()
	name, err := filepath.Rel(h.Path(), claudecell.SkillsDir(h))
	if err != nil {
		return nil, err
	}
	if err := home.MkdirAll(name, 0o700); err != nil {
		return nil, err
	}
	return home.OpenRoot(name)
}

var _ agent.Learner = (*run)(nil)

// AddSkills implements [agent.Learner]. It may be called by a tool of the agent, in the midst of a turn.
func (r *run) AddSkills(ctx context.Context, skills []agent.Skill) error {
	if err := r.adapter.checkSkills(skills); err != nil || len(skills) == 0 {
		return err
	}
	if r.conversation == nil || !r.conversation.isUp() || r.life.Err() != nil {
		return errClosed
	}
	if err := writeSkills(r.cell.Home(), skills); err != nil {
		return err
	}
	known, err := r.conversation.client.Load().ReloadSkills(ctx) // the model knows them in its next request
	if err != nil {
		return fmt.Errorf("claudecode: the skills are there, but the CLI did not read them: %w", err)
	}
	for _, s := range skills {
		if !slices.ContainsFunc(known, func(c claude.SlashCommand) bool { return c.Name == s.Name() }) {
			return advice.Wrap(fmt.Errorf("claudecode: the CLI does not take the skill %s", s.Name()),
				"see that its SKILL.md has a name and a description")
		}
	}
	return nil
}
