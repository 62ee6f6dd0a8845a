// SPDX-License-Identifier: Apache-2.0

package prompt

// A Skill is a folder of instructions that the model may call up.
type Skill struct {
	name, hash string
}

// Name is the name by which the model calls the skill.
func (s *Skill) Name() string { return s.name }

// Description tells the model when to use the skill.
func (s *Skill) Description() string { return "" }

// Hash is the SHA-256 of all that the skill has.
func (s *Skill) Hash() string { return s.hash }
