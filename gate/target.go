// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// FindTarget looks for the file that a call names, and follows all links on the way to it. It is for
// those who fill in [Facts], and look at the same files as the agent: the rules for paths then judge
// where a path leads, not only how it is spelled. Relative paths belong to dir.
//
// Where nothing is named the Target is empty. Where several fields name different files, or a path can be
// understood in different ways, it is Unresolved. The files of a patch are each a Target.
func FindTarget(c Call, dir string) Target {
	in, fields := new(input), c.agent.Fields(c.Tool)
	in.read(c.Input, fields)
	if in.bad {
		return Target{Unresolved: true}
	}
	var all []Target
	for _, name := range in.paths {
		target := follow(name, dir)
		if target.Unresolved || len(all) > 0 && fields.Scan == nil && target.Path != all[0].Path {
			return Target{Unresolved: true} // two fields name different files
		}
		all = append(all, target)
	}
	if len(all) == 0 {
		return Target{}
	}
	found := all[0]
	if fields.Scan != nil {
		found.More = all[1:]
	}
	return found
}

func follow(name, dir string) Target {
	if !filepath.IsAbs(name) {
		if dir == "" {
			return Target{Unresolved: true}
		}
		name = dir + string(filepath.Separator) + name
	}
	if leavesLink(name) {
		return Target{Unresolved: true}
	}
	return resolve(filepath.Clean(name))
}

// leavesLink reports whether a path goes up from a link. The agent then means the directory that the link
// is in, and a program that just opens the path means the one above where the link leads.
func leavesLink(name string) bool {
	if !strings.Contains(name, "..") {
		return false
	}
	volume := filepath.VolumeName(name)
	at := volume + string(filepath.Separator)
	for _, segment := range strings.FieldsFunc(name[len(volume):], func(r rune) bool { return r < utf8.RuneSelf && os.IsPathSeparator(uint8(r)) }) {
		if segment == ".." {
			if info, err := os.Lstat(at); err == nil && info.Mode()&fs.ModeSymlink != 0 {
				return true
			}
		}
		at = filepath.Join(at, segment)
	}
	return false
}

// maxLinks bounds how many links lead to nothing before one gives up; Linux does the same.
const maxLinks = 40

// resolve follows links. Of a path that does not exist it follows those of the part that does, and
// links to what does not exist yet: who writes there makes it.
func resolve(name string) Target {
	rest := ""
	for links := 0; links < maxLinks; {
		found, err := filepath.EvalSymlinks(name)
		if err == nil {
			return Target{Path: filepath.Join(found, rest), Missing: rest != ""}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break // a loop, or what may not be looked at
		}
		if to, err := os.Readlink(name); err == nil {
			links++
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(name), to)
			}
			name = to
			continue
		}
		parent := filepath.Dir(name)
		if parent == name {
			break
		}
		name, rest = parent, filepath.Join(filepath.Base(name), rest)
	}
	return Target{Unresolved: true}
}
