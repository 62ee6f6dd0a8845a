// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/drover-agents/drover/advice"
)

// A module is one that a binary links, with its licences. The standard library is one too.
type module struct {
	path, version, sum string
	licences           []string // by their SPDX names
	texts              []text
}

// A text is a file with a licence or a notice.
type text struct {
	name    string // below the module
	content string
}

// standard is the path of the module of the standard library.
const standard = "std"

// linked lists the modules in a binary, by what the linker wrote into it. The licences are those beside their source.
func (r *release) linked(ctx context.Context, p platform, binary string) ([]module, error) {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	if !r.uncommitted && !slices.Contains(info.Settings, debug.BuildSetting{Key: "vcs.revision", Value: r.commit}) {
		return nil, advice.Wrap(errors.New("the binary does not name its commit"), "build in a clone: Go writes no commit in a worktree of git")
	}
	folders, err := r.folders(ctx, p)
	if err != nil {
		return nil, err
	}
	modules := []module{{path: standard, version: info.GoVersion}}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s, which no reader of its version has", dep.Path, dep.Replace.Path)
		}
		modules = append(modules, module{path: dep.Path, version: dep.Version, sum: dep.Sum})
	}
	for i := range modules {
		if err := modules[i].readLicences(folders[modules[i].path]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(modules, func(a, b module) int { return cmp.Compare(a.path, b.path) })
	return modules, nil
}

// A source is where a module is, with the folders of its linked packages.
type source struct {
	root     string
	packages []string
}

func (r *release) folders(ctx context.Context, p platform) (map[string]source, error) {
	out, err := r.goTool(ctx, p, "list", "-deps", "-json=Dir,Standard,Module", "./cmd/drover")
	if err != nil {
		return nil, err
	}
	goRoot, err := r.goTool(ctx, p, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	found := map[string]source{standard: {root: goRoot}}
	for dec := json.NewDecoder(strings.NewReader(out)); ; {
		var pkg struct {
			Dir      string
			Standard bool
			Module   *struct{ Path, Dir string }
		}
		if err := dec.Decode(&pkg); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, err
		}
		if pkg.Module != nil {
			s := found[pkg.Module.Path]
			s.root, s.packages = pkg.Module.Dir, append(s.packages, pkg.Dir)
			found[pkg.Module.Path] = s
		}
	}
}

// readLicences finds the texts in the folders from the linked packages up to the root of the module.
func (m *module) readLicences(from source) error {
	if from.root == "" {
		return fmt.Errorf("the source of %s %s was not found", m.path, m.version)
	}
	var folders []string
	for _, dir := range append(from.packages, from.root) {
		for ; strings.HasPrefix(dir, from.root) && !slices.Contains(folders, dir); dir = filepath.Dir(dir) {
			folders = append(folders, dir)
		}
	}
	slices.Sort(folders)
	for _, dir := range folders {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if !entry.Type().IsRegular() || !isLicence(entry.Name()) {
				continue
			}
			content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			if err != nil {
				return err
			}
			name, _ := filepath.Rel(from.root, filepath.Join(dir, entry.Name()))
			m.texts = append(m.texts, text{filepath.ToSlash(name), string(content)})
			for _, licence := range licencesIn(string(content)) {
				if !slices.Contains(m.licences, licence) {
					m.licences = append(m.licences, licence)
				}
			}
		}
	}
	slices.Sort(m.licences)
	if len(m.licences) == 0 {
		return advice.Wrap(fmt.Errorf("no known licence is beside the source of %s %s", m.path, m.version), "look at it, and teach licencesIn its text")
	}
	return nil
}

func isLicence(name string) bool {
	base, extension, _ := strings.Cut(strings.ToUpper(name), ".")
	known := slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}, func(w string) bool { return strings.HasPrefix(base, w) })
	return known && extension != "GO"
}

// licenceMarks are texts that only one licence has.
var licenceMarks = []struct{ name, text string }{
	{"Apache-2.0", "Apache License Version 2.0, January 2004"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"BSD-3-Clause", "used to endorse or promote products derived from this software"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce the above copyright notice"},
}

// licencesIn returns the SPDX names of the licences in a text.
func licencesIn(content string) (names []string) {
	content = strings.Join(strings.Fields(content), " ")
	for _, mark := range licenceMarks {
		if mark.name == "BSD-2-Clause" && slices.Contains(names, "BSD-3-Clause") {
			continue // the longer one has its text
		}
		if strings.Contains(content, mark.text) {
			names = append(names, mark.name)
		}
	}
	return names
}

// licenceText is the list of the modules with their licences, and then the texts.
func licenceText(modules []module) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "The drover command links these modules.\n\n")
	for _, m := range modules {
		fmt.Fprintf(&out, "%s %s: %s\n", m.path, m.version, strings.Join(m.licences, ", "))
	}
	for _, m := range modules {
		for _, t := range m.texts {
			fmt.Fprintf(&out, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("-", 78), m.path, m.version, t.name, strings.TrimRight(t.content, "\n"))
		}
	}
	return out.Bytes()
}
