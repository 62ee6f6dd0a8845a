// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/jail"
)

// mounts are what of the host's files the CLI sees: its workspace and home, what the isolation adds, and
// the files that its options name. Everything has the same path inside.
func (c *Cell) mounts(o *claude.Options) ([]jail.Mount, error) {
	m := &mountList{dir: c.dir}
	m.add(c.dir, true, "the working directory")
	m.add(c.home.Path(), true, "the home")
	sandbox := c.isolation.sandbox()
	for _, path := range sandbox.WritablePaths {
		m.add(path, true, "Sandbox.WritablePaths")
	}
	for _, path := range sandbox.ReadablePaths {
		m.add(path, false, "Sandbox.ReadablePaths")
	}
	for _, path := range o.AddDirs {
		m.add(path, true, "Options.AddDirs")
	}
	for _, path := range c.isolation.network().UnixSockets {
		m.add(path, true, "NetworkPolicy.UnixSockets")
	}
	m.addFiles(o)
	return ordered(m.mounts), errors.Join(m.errs...)
}

// A mountList grows by what is asked for, and by what is wrong with it.
type mountList struct {
	dir    string // relative paths begin here
	mounts []jail.Mount
	errs   []error
}

func (m *mountList) add(path string, writable bool, field string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(m.dir, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err == nil && tooOpen(real, writable) {
		err = errors.New("would open too much of the machine")
	}
	if err == nil && m.leadsOut(filepath.Clean(path), real) {
		err = fmt.Errorf("is a link to %s, which the agent may have made in an earlier run", real)
	}
	if err != nil {
		m.errs = append(m.errs, fmt.Errorf("isolation: %s: %s: %w\n  next: name files and folders that there are, as narrow as can be", field, path, err))
		return
	}
	mount := jail.Mount{Source: real, Target: filepath.Clean(path), Writable: writable}
	if !covered(m.mounts, mount) {
		m.mounts = append(m.mounts, mount)
	}
}

// leadsOut reports whether a path is in a folder that agents can write, and what is there is not: an
// agent could choose by a link what the next one is shown.
func (m *mountList) leadsOut(path, real string) bool {
	return slices.ContainsFunc(m.mounts, func(in jail.Mount) bool {
		return in.Writable && within(in.Target, path) && !within(in.Source, real)
	})
}

// within reports whether a path is a folder or something in it. Both are clean.
func within(folder, path string) bool {
	below, ok := strings.CutPrefix(path, folder)
	return ok && (below == "" || strings.HasPrefix(below, "/"))
}

// tooOpen reports whether a path must not be shown to an agent, whoever asks.
func tooOpen(path string, writable bool) bool {
	always := []string{"/", "/proc", "/sys", "/dev", "/run"}
	return slices.Contains(always, path) || writable && tooWide(path)
}

// addFiles adds the files that the options name. Those that are not there the CLI complains of itself.
func (m *mountList) addFiles(o *claude.Options) {
	files := []string{o.SettingsFile, o.MCPConfig}
	if file, ok := o.SystemPrompt.(claude.PromptFile); ok {
		files = append(files, file.Path)
	}
	for _, plugin := range o.Plugins {
		files = append(files, plugin.Path)
	}
	for _, path := range files {
		if _, err := os.Stat(path); err == nil && filepath.IsAbs(path) {
			m.add(path, false, "the options of the CLI")
		}
	}
}

// covered reports whether a mount adds nothing to others.
func covered(mounts []jail.Mount, m jail.Mount) bool {
	target := cmp.Or(m.Target, m.Source)
	return slices.ContainsFunc(mounts, func(other jail.Mount) bool {
		at := cmp.Or(other.Target, other.Source)
		return within(at, target) && other.Source+strings.TrimPrefix(target, at) == m.Source && (other.Writable || !m.Writable)
	})
}

// ordered puts folders before what is in them: a later mount covers an earlier one.
func ordered(mounts []jail.Mount) []jail.Mount {
	depth := func(m jail.Mount) int { return strings.Count(cmp.Or(m.Target, m.Source), "/") }
	slices.SortStableFunc(mounts, func(a, b jail.Mount) int { return cmp.Compare(depth(a), depth(b)) })
	return mounts
}
