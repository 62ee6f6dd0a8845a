// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"

	"github.com/drover-agents/drover/advice"
)

// WriteTo mounts the skill: it writes the folder dir/NAME, which appears at once and complete, or not
// at all. Folders are for the owner alone, and so are files; what was executable stays so.
//
// An equal folder is not changed, so that a skill can be mounted again during a run. A folder with
// other content is an [ErrSkillMount] and is not changed. Links in dir do not lead writes out of it.
func (s *Skill) WriteTo(dir string) error {
	_, err := s.mount(dir)
	return err
}

// WriteIn is [Skill.WriteTo] for a folder that is open, because its path may come to lead elsewhere.
func (s *Skill) WriteIn(root *os.Root) error {
	_, err := s.mountIn(root)
	return err
}

// MountSkills mounts all skills in dir, or none: where one cannot be mounted, those that this call wrote are removed. Two
// skills of one name are a [*DuplicateSkillError]. Every error is an [ErrSkillMount].
func MountSkills(dir string, skills ...*Skill) error {
	for _, s := range skills {
		if err := s.checkLoaded(); err != nil {
			return err
		}
	}
	if err := checkSkillNames(skills); err != nil {
		return fmt.Errorf("prompt: %w: %w", ErrSkillMount, err)
	}
	var written []string
	for _, s := range skills {
		wrote, err := s.mount(dir)
		if err != nil {
			return errors.Join(err, removeSkills(dir, written))
		}
		if wrote {
			written = append(written, s.name)
		}
	}
	return nil
}

func removeSkills(dir string, names []string) error {
	if names == nil {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var errs []error
	for _, name := range names {
		errs = append(errs, root.RemoveAll(name))
	}
	return errors.Join(errs...)
}

func (s *Skill) mount(dir string) (wrote bool, err error) {
	if err := s.checkLoaded(); err != nil {
		return false, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, s.mountError(dir, err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false, s.mountError(dir, err)
	}
	defer root.Close()
	return s.mountIn(root)
}

func (s *Skill) mountIn(root *os.Root) (wrote bool, err error) {
	if err := s.checkLoaded(); err != nil {
		return false, err
	}
	if isThere(root, s.name) {
		return false, s.compare(root)
	}
	switch err := s.write(root); {
	case err == nil:
		return true, nil
	case isThere(root, s.name): // another process mounted it while we wrote
		return false, s.compare(root)
	default:
		return false, s.mountError(root.Name(), err)
	}
}

// checkLoaded refuses nil and a zero Skill.
func (s *Skill) checkLoaded() error {
	if s == nil || s.hash == "" {
		return advice.Wrap(fmt.Errorf("prompt: %w: it was not loaded", ErrSkillMount), "make skills with LoadSkill or LoadSkillFS")
	}
	return nil
}

func isThere(root *os.Root, name string) bool {
	_, err := root.Lstat(name)
	return err == nil
}

func (s *Skill) mountError(dir string, err error) error {
	return advice.Wrap(fmt.Errorf("prompt: %w: %s in %s: %w", ErrSkillMount, s.name, dir, err),
		"give a folder that this program may write")
}

// write makes the folder in another one, where the CLI does not look for skills, and moves it when it is complete.
func (s *Skill) write(root *os.Root) (err error) {
	stage := ".mount-" + rand.Text()
	if err := root.Mkdir(stage, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.RemoveAll(stage)) }()
	folder := path.Join(stage, s.name)
	for _, name := range s.Files() {
		to := path.Join(folder, name)
		if err := root.MkdirAll(path.Dir(to), 0o700); err != nil {
			return err
		}
		if err := writeSkillFile(root, to, s.files[name]); err != nil {
			return err
		}
	}
	return root.Rename(folder, s.name)
}

// writeSkillFile refuses a file that is there already: to a file system without upper and lower case, two names may be one.
func writeSkillFile(root *os.Root, name string, content skillContent) error {
	mode := fs.FileMode(0o600)
	if content.executable {
		mode = 0o700
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content.data)
	return errors.Join(err, f.Close())
}

func (s *Skill) compare(root *os.Root) error {
	difference, err := s.difference(root)
	switch {
	case err != nil:
		return s.mountError(root.Name(), err)
	case difference != "":
		return advice.Wrap(fmt.Errorf("prompt: %w: %s already has other content: %s", ErrSkillMount, filepath.Join(root.Name(), s.name), difference),
			"remove it, or mount into an empty folder")
	}
	return nil
}

// difference names the first thing in which the mounted folder is not the skill, or is "".
func (s *Skill) difference(root *os.Root) (string, error) {
	if info, err := root.Lstat(s.name); err != nil || !info.IsDir() {
		return "it is not a folder", err
	}
	folder, err := root.OpenRoot(s.name)
	if err != nil {
		return "", err
	}
	defer folder.Close()
	t, err := readSkillTree(folder.FS())
	if err != nil {
		return "", err
	}
	if len(t.violations) > 0 {
		return t.violations[0].String(), nil
	}
	if len(t.skipped) > 0 {
		return t.skipped[0] + " is a symbolic link", nil
	}
	return s.differentFile(t.files), nil
}

func (s *Skill) differentFile(mounted map[string]skillContent) string {
	for _, name := range s.Files() {
		want, got := s.files[name], mounted[name]
		_, there := mounted[name]
		switch {
		case !there:
			return name + " is missing"
		case !bytes.Equal(want.data, got.data):
			return name + " differs"
		case want.executable != got.executable && runtime.GOOS != "windows": // which has no such bit
			return name + " differs in being executable"
		}
	}
	for name := range mounted {
		if _, ok := s.files[name]; !ok {
			return name + " is not in the skill"
		}
	}
	return ""
}
