// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/tool"
)

// canonicalPaths gives writable paths in the one form in which they are compared: with slashes, no
// ".", none twice. Nil stays nil. The error names every entry that is wrong.
func canonicalPaths(paths []string) ([]string, error) {
	if paths == nil {
		return nil, nil
	}
	canonical := make([]string, 0, len(paths))
	var errs []error
	for i, text := range paths {
		p, err := canonicalPath(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("WritablePaths[%d] is %q: %w", i, text, err))
		} else if !slices.Contains(canonical, p) {
			canonical = append(canonical, p)
		}
	}
	return canonical, errors.Join(errs...)
}

// notInPaths are characters with a meaning for shells or patterns. An author who writes one expects more than a path.
const notInPaths = "*?[]{}$`'\"~;&|<>()"

func canonicalPath(text string) (string, error) {
	slashes := strings.ReplaceAll(text, `\`, "/")
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl):
		return "", errors.New("it has control characters, or is not UTF-8")
	case strings.ContainsAny(text, notInPaths):
		return "", fmt.Errorf("it is a plain path, without any of %s", notInPaths)
	case strings.HasPrefix(slashes, "/"):
		return "", errAbsolute
	}
	joined, err := joinSegments(strings.TrimSuffix(slashes, "/"))
	if err == nil && isWindows(joined) {
		return "", errAbsolute
	}
	return joined, err
}

var errAbsolute = errors.New("it is absolute; write it relative to the workspace")

// joinSegments checks the parts of a relative path, and drops those that mean nothing.
func joinSegments(relative string) (string, error) {
	var parts []string
	for segment := range strings.SplitSeq(relative, "/") {
		switch segment {
		case "", ".":
			continue
		case "..":
			return "", errors.New(`it leaves the workspace with ".."`)
		}
		parts = append(parts, segment)
	}
	if len(parts) == 0 {
		return "", errors.New("it names nothing in the workspace; leave WritablePaths nil to mean all of it")
	}
	return strings.Join(parts, "/"), nil
}

// enforceable reports what would make writable paths an empty word.
func (p *Permissions) enforceable() error {
	switch {
	case p.WritablePaths == nil:
		return nil
	case p.Mode.SetsLevelsAside():
		return advice.Wrap(fmt.Errorf("WritablePaths do not hold with Mode %q, which sets them aside", p.Mode),
			"use Mode %q, or leave the paths out", ModeAsk)
	case p.Level(tool.ShellExecute) == LevelAllow:
		return advice.Wrap(errors.New("WritablePaths do not hold with ShellExecute allowed: a command writes anywhere"), "ask about commands, or deny them")
	}
	return nil
}

func (p *Permissions) writable(c *Call, f *Facts) bool {
	root, at := c.workspace(f), c.paths(f, "")
	if root == "" || at.unknown || len(at.list) == 0 {
		return false
	}
	for _, file := range at.list {
		if !p.holds(root, file) {
			return false
		}
	}
	return true
}

func (p *Permissions) holds(root, file string) bool {
	rest, inside := below(root, file)
	if !inside {
		return false
	}
	for _, dir := range p.WritablePaths {
		if isBelow(rest, dir) {
			return true
		}
	}
	return false
}

func (p *Permissions) unwritable(c *Call, f *Facts) string {
	root, at := c.workspace(f), c.paths(f, "")
	switch {
	case len(p.WritablePaths) == 0:
		return fmt.Sprintf(nothingWritable, c.Name)
	case root == "":
		return fmt.Sprintf(workspaceUnknown, c.Name)
	}
	paths := strings.Join(p.WritablePaths, ", ")
	if at.unknown || len(at.list) == 0 {
		return fmt.Sprintf(writesUnknown, c.Name, paths, root)
	}
	for _, file := range at.list {
		if !p.holds(root, file) {
			return fmt.Sprintf(notWritable, c.Name, file, paths, root)
		}
	}
	return ""
}
