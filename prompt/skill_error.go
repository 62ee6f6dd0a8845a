// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrSkillNotFound is returned by [LoadSkill] and [LoadSkillFS] where there is no skill: nothing
	// at the path, a folder without SKILL.md, or a file that does not end in .md.
	ErrSkillNotFound = errors.New("skill not found")
	// ErrSkillInvalid is returned by [LoadSkill] and [LoadSkillFS] for a skill that breaks a rule.
	// The error is an [*InvalidSkillError].
	ErrSkillInvalid = errors.New("skill is not valid")
	// ErrSkillMount is returned by [Skill.WriteTo] and [MountSkills] for a failed write, or a folder with other content.
	ErrSkillMount = errors.New("skill cannot be mounted")
)

// An InvalidSkillError lists everything that is wrong with a skill. It is an [ErrSkillInvalid].
type InvalidSkillError struct {
	// Source is the path that the skill was loaded from.
	Source     string
	Violations []SkillViolation
}

func (e *InvalidSkillError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "prompt: %s: %v", e.Source, ErrSkillInvalid)
	for _, v := range e.Violations {
		b.WriteString("\n  " + v.String())
	}
	return b.String()
}

// Advice implements [advice.Adviser].
func (e *InvalidSkillError) Advice() string {
	return "correct what is listed, and load the skill again"
}

// Unwrap makes the error an [ErrSkillInvalid].
func (e *InvalidSkillError) Unwrap() error { return ErrSkillInvalid }

// A SkillViolation is one rule that a skill breaks.
type SkillViolation struct {
	// File is relative to the folder of the skill. It is empty for the skill as a whole.
	File string
	// Line and Column count from 1; they are 0 where the position is unknown.
	Line, Column int
	Reason       string
}

func (v SkillViolation) String() string {
	switch {
	case v.File == "":
		return v.Reason
	case v.Line == 0:
		return v.File + ": " + v.Reason
	}
	return fmt.Sprintf("%s:%d:%d: %s", v.File, v.Line, v.Column, v.Reason)
}

// A DuplicateSkillError reports that two skills have one name, and so would be one folder. Equal content is an error too.
type DuplicateSkillError struct {
	Name string
	// First and Second are the paths that the two were loaded from.
	First, Second string
}

func (e *DuplicateSkillError) Error() string {
	return fmt.Sprintf("two skills are named %q: %s and %s", e.Name, e.First, e.Second)
}

// Advice implements [advice.Adviser].
func (e *DuplicateSkillError) Advice() string {
	return "leave one out, or rename one in its folder's name and in its front matter"
}
