// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/drover-agents/drover/advice"
)

// A mutation is one change that breaks a promise, and the test that notices it.
type mutation struct {
	at     string   // file and line of its block
	name   string   // short, unique
	shows  []string // the promises that it breaks: rows of spec/seed-map.md, rows of pages
	file   string   // the file that is changed, relative to the root
	folder string   // the package of the test, as go test takes it
	test   string   // the top-level test that must fail
	before string
	after  string
}

// load reads every file of mutations below root, in the order of their names. All problems of all
// files are reported together.
func load(root string) ([]mutation, error) {
	files, err := filepath.Glob(filepath.Join(root, "tools/mutate/mutations/*.txt"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file matches %s", filepath.Join(root, "tools/mutate/mutations/*.txt"))
	}
	var all []mutation
	var problems []error
	seen := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := parse(filepath.Base(file), string(text))
		problems = append(problems, err)
		for _, m := range found {
			if first, dup := seen[m.name]; dup {
				problems = append(problems, fmt.Errorf("%s: mutation %q exists already at %s", m.at, m.name, first))
			}
			seen[m.name] = m.at
		}
		all = append(all, found...)
	}
	return all, errors.Join(problems...)
}

// parse reads the blocks of one file. Lines between blocks are blank or begin with #.
func parse(name, text string) ([]mutation, error) {
	var all []mutation
	var m mutation
	var into *string // where lines of text go
	inBlock := false
	fail := func(n int, format string, args ...any) error {
		return fmt.Errorf("%s:%d: %s", name, n+1, fmt.Sprintf(format, args...))
	}
	for n, line := range strings.Split(text, "\n") {
		switch {
		case line == "--- old" && into == nil && inBlock:
			into = &m.before
		case line == "--- new" && into == &m.before:
			into = &m.after
		case line == "--- end" && into == &m.after:
			if err := m.complete(); err != nil {
				return all, fail(n, "%v", err)
			}
			all = append(all, m)
			m, into, inBlock = mutation{}, nil, false
		case into != nil:
			*into += line + "\n"
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		default:
			key, value, ok := strings.Cut(line, ":")
			value = strings.TrimSpace(value)
			if !ok || value == "" {
				return all, fail(n, "%q is neither a field nor a mark", line)
			}
			if key == "mutation" {
				if inBlock {
					return all, fail(n, "mutation %q has no end", m.name)
				}
				m, inBlock = mutation{at: fmt.Sprintf("%s:%d", name, n+1)}, true
			}
			if !inBlock {
				return all, fail(n, "%s is outside of a block: a block begins with \"mutation:\"", key)
			}
			if !m.set(key, value) {
				return all, fail(n, "unknown or repeated field %q, or a value that does not fit: %s", key, value)
			}
		}
	}
	if inBlock {
		return all, fail(strings.Count(text, "\n"), "mutation %q has no end", m.name)
	}
	return all, nil
}

func (m *mutation) set(key, value string) bool {
	once := func(field *string) bool {
		unset := *field == ""
		*field = value
		return unset
	}
	switch key {
	case "mutation":
		return once(&m.name)
	case "shows":
		for show := range strings.SplitSeq(value, ",") {
			m.shows = append(m.shows, strings.TrimSpace(show))
		}
		return true
	case "file":
		return once(&m.file) && filepath.IsLocal(value) && !strings.HasSuffix(value, "_test.go")
	case "test":
		words := strings.Fields(value)
		if len(words) != 2 || m.test != "" || words[0] != "." && !strings.HasPrefix(words[0], "./") {
			return false
		}
		m.folder, m.test = words[0], words[1]
		return strings.HasPrefix(m.test, "Test") || strings.HasPrefix(m.test, "Example") || strings.HasPrefix(m.test, "Fuzz")
	}
	return false
}

func (m *mutation) complete() error {
	switch {
	case len(m.shows) == 0, m.file == "", m.test == "":
		return fmt.Errorf("mutation %q needs the fields shows, file and test", m.name)
	case strings.TrimSpace(m.before) == "":
		return fmt.Errorf("mutation %q has no text to replace", m.name)
	case m.before == m.after:
		return fmt.Errorf("mutation %q changes nothing", m.name)
	}
	return nil
}

func (m *mutation) apply(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", fmt.Errorf("%s: mutation %q no longer applies: %w", m.at, m.name, err)
	}
	lines := "\n" + string(text) // so that the first line begins like every other
	first, last := strings.Index(lines, "\n"+m.before), strings.LastIndex(lines, "\n"+m.before)
	if first < 0 || first != last {
		return "", advice.Wrap(fmt.Errorf("%s: mutation %q no longer applies: its text must occur exactly once in %s", m.at, m.name, m.file),
			"write the block for the code as it is now")
	}
	return strings.Replace(lines, "\n"+m.before, "\n"+m.after, 1)[1:], nil
}

func (m *mutation) declared(root string) error {
	files, err := filepath.Glob(filepath.Join(root, m.folder, "*_test.go"))
	if err != nil {
		return err
	}
	function := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(m.test) + `\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if function.Match(text) {
			return nil
		}
	}
	return fmt.Errorf("%s: mutation %q: package %s has no test %s", m.at, m.name, m.folder, m.test)
}
