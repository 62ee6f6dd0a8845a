// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/drover-agents/drover/launch"
)

const (
	// PinnedVersion is the CLI version that Drover is built and tested against.
	PinnedVersion = "2.1.325"
	// OldestTested is the oldest CLI version that Drover's tests still run against.
	OldestTested = "2.1.197"

	// EnvCLI names the environment variable that gives the path of the CLI.
	EnvCLI = "DROVER_CLAUDE"

	installCommand = "npm install --global @anthropic-ai/claude-code@" + PinnedVersion
)

// Sources that [Find] searches, in this order.
const (
	FoundExplicit  = "explicit path"           // FindOptions.Path
	FoundVariable  = EnvCLI                    // the environment variable
	FoundProject   = "project install"         // .drover/bin/claude
	FoundPath      = "PATH"                    // the directories of PATH
	FoundWellKnown = "usual place of installs" // ~/.local/bin and the like
)

// FindOptions configures [Find]. The zero value is ready to use.
type FindOptions struct {
	// Path is the only CLI that is looked at. A name without a directory is looked up in PATH. Default: search.
	Path string
	// Dir is where the search for a project's own install begins; it goes upward to the
	// directory that holds go.mod or .git. Default: the current directory.
	Dir string
	// Avoid is a folder in which agents work. A project's own install in it is skipped: an agent may
	// have put it there. Default: none.
	Avoid string
	// Env is the source of DROVER_CLAUDE, PATH and HOME, last entry wins. Default: the environment of this program.
	Env []string
}

// Found is a CLI that [Find] has found.
type Found struct {
	Path   string // absolute
	Source string // one of the Found constants
}

// Find searches for the CLI in FindOptions.Path, the variable DROVER_CLAUDE, the project's own install in .drover/bin, PATH,
// and the folders of its installers. If one of the first two is set, only that path is tried. Find starts no program and
// keeps no state. Its errors are [*LaunchError]s with [ErrCLINotFound] or [ErrNotExecutable].
func Find(o FindOptions) (Found, error) {
	f := finder{goos: runtime.GOOS, env: o.Env, avoid: o.Avoid}
	if f.env == nil {
		f.env = os.Environ()
	}
	named, source := o.Path, FoundExplicit
	if named == "" {
		named, source = f.getenv(EnvCLI), FoundVariable
	}
	if named != "" {
		return f.named(named, source)
	}
	return f.search(o.Dir)
}

// A finder is one search. It knows the operating system as data, so that the rules for Windows can be tested elsewhere.
type finder struct {
	goos    string
	env     []string
	avoid   string
	skipped error // why the first candidate that exists was not taken
}

func (f *finder) getenv(name string) string {
	for i := len(f.env) - 1; i >= 0; i-- {
		key, value, _ := strings.Cut(f.env[i], "=")
		if key == name || f.goos == "windows" && strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

// named returns the CLI at an explicit path, or why it cannot be used.
func (f *finder) named(path, source string) (Found, error) {
	if !strings.ContainsAny(path, `/\`) {
		for _, candidate := range f.onPath(path) {
			if f.usable(candidate) {
				return Found{candidate, source}, nil
			}
		}
	}
	abs, err := filepath.Abs(path)
	if err == nil {
		err = checkProgram(f.goos, abs)
	}
	var failed *LaunchError
	if errors.As(err, &failed) {
		failed.Hint += fmt.Sprintf(" (the path comes from: %s)", source)
	}
	if err != nil {
		return Found{}, err
	}
	return Found{abs, source}, nil
}

func (f *finder) search(dir string) (Found, error) {
	sources := []struct {
		source     string
		candidates func() []string
	}{
		{FoundProject, func() []string { return f.inProject(dir) }},
		{FoundPath, func() []string { return f.onPath("claude") }},
		{FoundWellKnown, func() []string { return wellKnownPaths(f.goos, f.home()) }},
	}
	for _, s := range sources {
		for _, path := range s.candidates() {
			if f.usable(path) && !(s.source == FoundProject && f.replaceable(path)) {
				return Found{path, s.source}, nil
			}
		}
	}
	if f.skipped != nil {
		return Found{}, f.skipped
	}
	return Found{}, &LaunchError{
		Err:  fmt.Errorf("%w in the project, on PATH or in the usual places", ErrCLINotFound),
		Hint: "run " + installCommand + " or set " + EnvCLI + " to the path of an installed one",
	}
}

// usable reports whether path can be run, and remembers the first one that is there but cannot:
// that is the better explanation if nothing else is found.
func (f *finder) usable(path string) bool {
	err := checkProgram(f.goos, path)
	if err != nil && !errors.Is(err, ErrCLINotFound) && f.skipped == nil {
		f.skipped = err
	}
	return err == nil
}

// replaceable reports whether an agent could have written the program at path, or a link on the way to
// it, and remembers that as the reason if nothing else is found.
func (f *finder) replaceable(path string) bool {
	if f.avoid == "" {
		return false
	}
	folder, err := filepath.Abs(f.avoid)
	in := func(path string) bool { return contains(folder, path) || contains(realPath(folder), path) }
	if err == nil && !in(path) && !in(realPath(path)) && !in(realPath(filepath.Dir(path))) {
		return false
	}
	f.skipped = &LaunchError{
		Path: path, Err: fmt.Errorf("%w outside of %s, where agents could replace it; in a folder below, this one is used", ErrCLINotFound, folder),
		Hint: "cd into a folder below, or run " + installCommand,
	}
	return true
}

// realPath is path without links, or path itself if the links cannot be resolved.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func contains(folder, path string) bool {
	below, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(below)
}

// inProject lists the project installs from dir upward, up to the root of the module or
// repository. Outside of any, only dir itself counts: the directories above belong to others.
func (f *finder) inProject(dir string) []string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil
	}
	name := programName(f.goos)
	start := filepath.Join(dir, ".drover", "bin", name)
	var found []string
	for {
		found = append(found, filepath.Join(dir, ".drover", "bin", name))
		if isRoot(dir) {
			return found
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return []string{start}
		}
		dir = parent
	}
}

func isRoot(dir string) bool {
	for _, mark := range []string{"go.mod", ".git"} {
		if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
			return true
		}
	}
	return false
}

// onPath lists the candidates called name in the directories of PATH. Relative directories are
// left out, as os/exec does: their content depends on the current directory.
func (f *finder) onPath(name string) []string {
	var found []string
	for _, dir := range filepath.SplitList(f.getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		for _, file := range programNames(f.goos, name) {
			found = append(found, filepath.Join(dir, file))
		}
	}
	return found
}

func (f *finder) home() string {
	if f.goos == "windows" {
		return f.getenv("USERPROFILE")
	}
	return f.getenv("HOME")
}

// checkProgram returns why the CLI at path cannot be started, or nil.
func checkProgram(goos, path string) error {
	err := launch.CheckProgram(path)
	switch {
	case errors.Is(err, launch.ErrNotFound):
		return &LaunchError{Path: path, Err: ErrCLINotFound, Hint: "correct the path, or run " + installCommand}
	case goos == "windows" && launch.IsBatchFile(path):
		return &LaunchError{
			Path: path, Err: fmt.Errorf("%w: a batch file would pass its arguments through a shell", ErrNotExecutable),
			Hint: "use claude.exe; " + installCommand + " installs it",
		}
	}
	return err
}
