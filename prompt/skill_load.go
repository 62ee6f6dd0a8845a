// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainfile"
)

// LoadSkill reads a skill of the host: a folder with SKILL.md, or a single .md file. Its name is that
// of the folder, or of the file without .md.
//
// A file may have 1 MiB, all files together 10 MiB, and there may be 1000 files, folders and links.
// Symbolic links in the folder are skipped, see [Skill.Skipped]; devices, sockets and pipes are
// refused. The error is an [ErrSkillNotFound], or an [*InvalidSkillError] with all that is wrong.
func LoadSkill(path string) (*Skill, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, skillReadError(path, err)
	}
	if !info.IsDir() {
		return loadSkillFile(path, filepath.Base(path), info, func() (fs.File, error) { return plainfile.Open(path) })
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, skillReadError(path, err)
	}
	// A root does not follow links out of the folder, whatever is changed while we read.
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, skillReadError(path, err)
	}
	defer root.Close()
	return loadSkillFolder(root.FS(), path, filepath.Base(full))
}

// LoadSkillFS is [LoadSkill] for a file system such as an embed.FS. If name is ".", the skill is the
// file system itself, and its front matter must give its name.
func LoadSkillFS(fsys fs.FS, name string) (*Skill, error) {
	if !fs.ValidPath(name) {
		return nil, skillNotFound(name, "a path in a file system has slashes, and neither ./ nor ../")
	}
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, skillReadError(name, err)
	}
	if !info.IsDir() {
		return loadSkillFile(name, path.Base(name), info, func() (fs.File, error) { return fsys.Open(name) })
	}
	sub, err := fs.Sub(fsys, name)
	if err != nil {
		return nil, skillReadError(name, err)
	}
	folder := path.Base(name)
	if folder == "." {
		folder = ""
	}
	return loadSkillFolder(sub, name, folder)
}

func skillReadError(source string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return skillNotFound(source, "there is nothing at this path")
	}
	return fmt.Errorf("prompt: reading skill %s: %w", source, err)
}

func skillNotFound(source, reason string) error {
	return advice.Wrap(fmt.Errorf("prompt: %s: %w: %s", source, ErrSkillNotFound, reason),
		"give the path of a folder with %s, or of a single .md file", skillFile)
}

func loadSkillFile(source, base string, info fs.FileInfo, open func() (fs.File, error)) (*Skill, error) {
	stem, isMarkdown := strings.CutSuffix(base, ".md")
	switch {
	case !isMarkdown:
		return nil, skillNotFound(source, "the file does not end in .md")
	case !info.Mode().IsRegular():
		return nil, skillNotFound(source, "it is neither a folder nor a regular file")
	}
	content, violation, err := readSkillFile(open)
	if err != nil {
		return nil, skillReadError(source, err)
	}
	t := &skillTree{files: map[string]skillContent{}}
	if violation != "" {
		t.add(base, violation)
	} else {
		t.files[skillFile] = skillContent{data: content.data}
	}
	return newSkill(source, stem, base, t)
}

func loadSkillFolder(fsys fs.FS, source, folder string) (*Skill, error) {
	if _, err := fs.Stat(fsys, skillFile); errors.Is(err, fs.ErrNotExist) {
		return nil, skillNotFound(source, "the folder has no "+skillFile)
	}
	t, err := readSkillTree(fsys)
	if err != nil {
		return nil, skillReadError(source, err)
	}
	if slices.Contains(t.skipped, skillFile) {
		return nil, skillNotFound(source, skillFile+" is a symbolic link, which is not followed")
	}
	return newSkill(source, folder, skillFile, t)
}

// newSkill checks a skill. folder is the name of its folder, or of its file without .md; file is that of SKILL.md.
func newSkill(source, folder, file string, t *skillTree) (*Skill, error) {
	s := &Skill{source: source, name: folder, files: t.files, skipped: t.skipped}
	if main, ok := t.files[skillFile]; ok {
		main.data = bytes.TrimPrefix(main.data, []byte("\ufeff")) // means nothing in UTF-8
		t.files[skillFile] = main
		var found []SkillViolation
		s.matter, s.body, found = parseSkill(main.data)
		for _, v := range found {
			v.File = file
			t.violations = append(t.violations, v)
		}
	}
	s.takeName(folder, file, t)
	if t.violations != nil {
		return nil, &InvalidSkillError{Source: source, Violations: t.violations}
	}
	s.hash = hashSkill(s.name, s.files)
	return s, nil
}

// takeName sets the name. The front matter and the folder must not contradict each other.
func (s *Skill) takeName(folder, file string, t *skillTree) {
	switch given := s.matter.Name; {
	case given != "" && folder == "":
		s.name = given
	case given != "" && given != folder:
		t.add(file, fmt.Sprintf("name is %q but the folder or file is named %q: make them equal", given, folder))
	case given == "" && folder == "":
		t.add(file, "name is missing, and the root of a file system has none: add it to the front matter")
	case given == "" && !validSkillName(folder):
		t.add("", fmt.Sprintf("the folder or file is named %q: a skill's name must be %s", folder, skillNameRule))
	}
}

type skillTree struct {
	files      map[string]skillContent
	skipped    []string
	violations []SkillViolation
	entries    int
	size       int
}

func (t *skillTree) add(file, reason string) {
	t.violations = append(t.violations, SkillViolation{File: file, Reason: reason})
}

// readSkillTree reads a folder within the limits. A broken rule becomes a violation; an error is one of the file system.
func readSkillTree(fsys fs.FS) (*skillTree, error) {
	t := &skillTree{files: map[string]skillContent{}}
	err := fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		return t.visit(fsys, name, entry)
	})
	return t, err
}

func (t *skillTree) visit(fsys fs.FS, name string, entry fs.DirEntry) error {
	if t.entries++; t.entries > maxSkillFiles {
		t.add("", fmt.Sprintf("there are more than %d files, folders and links", maxSkillFiles))
		return fs.SkipAll
	}
	switch kind := entry.Type(); {
	case kind&fs.ModeSymlink != 0:
		t.skipped = append(t.skipped, name)
	case !fs.ValidPath(name):
		t.add(fmt.Sprintf("%q", name), "the name is not UTF-8")
	case kind.IsDir():
	case !kind.IsRegular():
		t.add(name, "it is neither a regular file nor a folder: remove it")
	default:
		return t.take(fsys, name)
	}
	return nil
}

func (t *skillTree) take(fsys fs.FS, name string) error {
	content, violation, err := readSkillFile(func() (fs.File, error) { return fsys.Open(name) })
	switch {
	case err != nil:
		return err
	case violation != "":
		t.add(name, violation)
		return nil
	}
	if t.size += len(content.data); t.size > maxSkillSize {
		t.add("", fmt.Sprintf("the files have more than %d MiB together", maxSkillSize>>20))
		return fs.SkipAll
	}
	t.files[name] = content
	return nil
}

// readSkillFile checks the opened file, not its path: the path may lead to another file by then.
func readSkillFile(open func() (fs.File, error)) (content skillContent, violation string, err error) {
	f, err := open()
	if err != nil {
		return skillContent{}, "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return skillContent{}, "", err
	}
	if !info.Mode().IsRegular() {
		return skillContent{}, "it is not a regular file", nil
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSkillFile+1))
	if len(data) > maxSkillFile {
		return skillContent{}, fmt.Sprintf("the file has more than %d MiB", maxSkillFile>>20), err
	}
	return skillContent{data: data, executable: info.Mode()&0o111 != 0}, "", err
}
