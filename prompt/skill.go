// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
)

// Limits of a skill, which the comment of LoadSkill promises: bytes of a file, bytes of all files,
// and how many files, folders and links there may be.
const (
	maxSkillFile  = 1 << 20
	maxSkillSize  = 10 << 20
	maxSkillFiles = 1000
)

const skillFile = "SKILL.md"

// A Skill is a folder of instructions that the model may call up: SKILL.md, which begins with front
// matter in YAML, and whatever files it speaks of. [LoadSkill] and [LoadSkillFS] make one.
//
// A Skill was checked and read into memory when it was loaded, and cannot change: later changes of its
// source do not reach the mounted copy. It is safe for concurrent use.
type Skill struct {
	source  string
	name    string
	matter  SkillFrontMatter
	body    string
	files   map[string]skillContent // by slash-separated path; has skillFile
	skipped []string
	hash    string
}

type skillContent struct {
	data       []byte
	executable bool
}

// SkillFrontMatter is the metadata at the head of SKILL.md.
type SkillFrontMatter struct {
	// Name is 1 to 64 lower-case letters, digits and single hyphens. It may be left out; if it is
	// given it must be the name of the folder, or of the single file without .md.
	Name string
	// Description states for the model when to use the skill: 1 to 1024 characters.
	Description string
	License     string
	// Compatibility lists the requirements of the skill; at most 500 characters.
	Compatibility string
	// AllowedTools are the tools that the skill may use unasked, in one text.
	AllowedTools string
	Metadata     map[string]string
	// Unknown are the other keys in file order. They stay in the mounted file, where an agent may give them a meaning.
	Unknown []string
}

// Name is the name by which the model calls the skill, and that of its mounted folder.
func (s *Skill) Name() string { return s.name }

// FrontMatter is the head of SKILL.md. The caller may change what is returned.
func (s *Skill) FrontMatter() SkillFrontMatter {
	m := s.matter
	m.Metadata, m.Unknown = maps.Clone(m.Metadata), slices.Clone(m.Unknown)
	return m
}

// Body is the text of SKILL.md after the front matter, byte for byte.
func (s *Skill) Body() string { return s.body }

// Files are the paths of the mounted files, relative to the folder, slash-separated and sorted. The
// file of a skill that is a single file is SKILL.md.
func (s *Skill) Files() []string { return slices.Sorted(maps.Keys(s.files)) }

// Skipped are the symbolic links of the source, sorted: they are not followed and not mounted.
func (s *Skill) Skipped() []string { return slices.Clone(s.skipped) }

// Hash is the SHA-256 of the name and of all paths and contents, in hexadecimal. It is the same on
// every machine, and for a skill and its mounted copy.
func (s *Skill) Hash() string { return s.hash }

// hashSkill puts a length before each part, so that no two skills give the same bytes.
func hashSkill(name string, files map[string]skillContent) string {
	h := sha256.New()
	part := func(data []byte) {
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(data)))) // a hash never fails
		_, _ = h.Write(data)
	}
	part([]byte(name))
	for _, path := range slices.Sorted(maps.Keys(files)) {
		part([]byte(path))
		part(files[path].data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func checkSkillNames(skills []*Skill) error {
	seen := make(map[string]*Skill, len(skills))
	for _, s := range skills {
		if first, ok := seen[s.name]; ok {
			return &DuplicateSkillError{Name: s.name, First: first.source, Second: s.source}
		}
		seen[s.name] = s
	}
	return nil
}
