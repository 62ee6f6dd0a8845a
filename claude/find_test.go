// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/cliinstall"
	"github.com/drover-agents/drover/launch"
)

func writeFile(t *testing.T, path, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// findWorld is a small file system with an install in each place, best first.
type findWorld struct {
	project, sub, bin, home string
	places                  []string // the CLI of each place, in the order of the search
}

func newFindWorld(t *testing.T) findWorld {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs execute bits: run on Linux or macOS")
	}
	root := t.TempDir()
	w := findWorld{
		project: filepath.Join(root, "project"), sub: filepath.Join(root, "project", "a", "b"),
		bin: filepath.Join(root, "bin"), home: filepath.Join(root, "home"),
	}
	writeFile(t, filepath.Join(w.project, "go.mod"), "module x\n", 0o644)
	w.places = []string{
		filepath.Join(w.sub, ".drover", "bin", "claude"),
		filepath.Join(w.project, ".drover", "bin", "claude"),
		filepath.Join(w.bin, "claude"),
		filepath.Join(w.home, ".npm-global", "bin", "claude"),
		filepath.Join(w.home, ".local", "bin", "claude"),
	}
	for _, path := range w.places {
		writeFile(t, path, "#!/bin/sh\n", 0o755)
	}
	return w
}

func (w findWorld) find(path string, env ...string) (Found, error) {
	env = append([]string{"PATH=relative" + string(filepath.ListSeparator) + w.bin, "HOME=" + w.home}, env...)
	return Find(FindOptions{Path: path, Dir: w.sub, Env: env})
}

func TestFind_Order(t *testing.T) {
	w := newFindWorld(t)
	explicit, variable := filepath.Join(w.home, "explicit"), filepath.Join(w.home, "variable")
	writeFile(t, explicit, "", 0o755)
	writeFile(t, variable, "", 0o755)
	check := func(path string, want Found, env ...string) {
		t.Helper()
		got, err := w.find(path, env...)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("found: %v (-want +got):\n%s", err, diff)
		}
	}
	check(explicit, Found{explicit, FoundExplicit}, EnvCLI+"="+variable)
	check("claude", Found{w.places[2], FoundExplicit})
	check("", Found{variable, FoundVariable}, EnvCLI+"=/overridden", EnvCLI+"="+variable)
	sources := []string{FoundProject, FoundProject, FoundPath, FoundWellKnown, FoundWellKnown}
	for i, path := range w.places {
		check("", Found{path, sources[i]})
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFind_StopsAtTheProjectRoot(t *testing.T) {
	w := newFindWorld(t)
	above := filepath.Join(filepath.Dir(w.project), ".drover", "bin", "claude")
	writeFile(t, above, "", 0o755)
	for _, path := range w.places[:2] {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	got, err := w.find("")
	if err != nil || got.Source != FoundPath {
		t.Errorf("got %+v, %v, want the one on PATH: a CLI above the module's root is not the project's", got, err)
	}
}

func TestFind_Errors(t *testing.T) {
	w := newFindWorld(t)
	plain := filepath.Join(w.home, "plain")
	writeFile(t, plain, "", 0o644)
	missing := filepath.Join(w.home, "none")
	cases := []struct {
		name, path, env string
		want            error
		texts           []string
	}{
		{"explicit missing", missing, "", ErrCLINotFound, []string{missing, installCommand, FoundExplicit}},
		{"explicit name not on PATH", "clod", "", ErrCLINotFound, []string{"clod", installCommand}},
		{"explicit not executable", plain, "", ErrNotExecutable, []string{plain, "chmod +x"}},
		{"explicit directory", w.home, "", ErrNotExecutable, []string{w.home, "directory"}},
		{"variable missing", "", EnvCLI + "=" + missing, ErrCLINotFound, []string{missing, EnvCLI}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := w.find(c.path, c.env)
			checkLaunchError(t, err, c.want, c.texts)
		})
	}
}

func TestFind_MissingCLIIsAnError(t *testing.T) {
	if _, err := os.Stat("/usr/local/bin/claude"); err == nil {
		t.Skip("the CLI in /usr/local/bin would be found: run on a machine without it")
	}
	w := newFindWorld(t)
	for _, path := range w.places {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.find("")
	checkLaunchError(t, err, ErrCLINotFound, []string{
		"npm install --global @anthropic-ai/claude-code@" + PinnedVersion, EnvCLI, "PATH",
	})
	// One that is there but cannot run explains more than "not found".
	writeFile(t, w.places[2], "", 0o644)
	_, err = w.find("")
	checkLaunchError(t, err, ErrNotExecutable, []string{w.places[2], "chmod +x"})
}

func checkLaunchError(t *testing.T, err, want error, texts []string) {
	t.Helper()
	var failed *LaunchError
	if !errors.As(err, &failed) || !errors.Is(err, want) {
		t.Fatalf("got %v, want a LaunchError with %v", err, want)
	}
	for _, text := range texts {
		if !strings.Contains(advice.Text(err), text) {
			t.Errorf("message %q does not say %q", err, text)
		}
	}
}

// Row 56: a missing working directory is not a missing CLI.
func TestCheckDir_MissingDirectoryIsNotAMissingCLI(t *testing.T) {
	err := launch.CheckDir(filepath.Join(t.TempDir(), "gone"))
	checkLaunchError(t, err, launch.ErrWorkingDir, []string{"gone", "does not exist"})
	if errors.Is(err, ErrCLINotFound) {
		t.Error("a missing directory is reported as a missing CLI")
	}
	if err := launch.CheckDir(""); err != nil {
		t.Errorf("current directory: got %v, want nil", err)
	}
}

// Row 50: batch files are refused wherever they stand in a Windows path.
func TestCheckProgram_RefusesBatchFilesOnWindows(t *testing.T) {
	shim := filepath.Join(t.TempDir(), "claude.cmd")
	writeFile(t, shim, "", 0o755)
	checkLaunchError(t, checkProgram("windows", shim), ErrNotExecutable, []string{shim, "claude.exe"})
}

func TestProgramNames_OnWindows(t *testing.T) {
	got := map[string][]string{
		"name": programNames("windows", "claude"), "exe": programNames("windows", "claude.EXE"),
		"places": wellKnownPaths("windows", `C:\Users\x`), "no home": wellKnownPaths("windows", ""),
	}
	want := map[string][]string{
		"name": {"claude.exe", "claude.com"}, "exe": {"claude.EXE"},
		"places": {`C:\Users\x\.local\bin\claude.exe`}, "no home": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f := finder{goos: "windows", env: []string{"Path=x"}}
	if got, want := f.getenv("PATH"), "x"; got != want {
		t.Errorf("variables on Windows have no case: got %q, want %q", got, want)
	}
}

// Row 57: nothing is run to find the CLI, so that finding it costs next to nothing.
func TestFind_RunsNoProgram(t *testing.T) {
	w := newFindWorld(t)
	proof := filepath.Join(w.home, "ran")
	writeFile(t, w.places[0], "#!/bin/sh\ntouch "+proof+"\n", 0o755)
	if _, err := w.find(""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("Find ran the CLI")
	}
}

func TestCompareVersions_Order(t *testing.T) {
	cases := []struct {
		a, b string
		want int
	}{
		{"2.1.325", "2.1.197", 1},
		{"2.1.197", "2.1.325", -1},
		{"2.1.325", "2.1.325 (Claude Code)", 0},
		{"2.10.0", "2.9.9", 1},
		{"v3.0.0-beta", "2.99.99", 1},
	}
	for _, c := range cases {
		if got, err := CompareVersions(c.a, c.b); got != c.want || err != nil {
			t.Errorf("CompareVersions(%q, %q): got %d, %v, want %d", c.a, c.b, got, err, c.want)
		}
	}
	for _, bad := range []string{"", "2.1", "two", "99999999999999999999.0.0"} {
		if _, err := CompareVersions(bad, PinnedVersion); err == nil || !strings.Contains(advice.Text(err), bad) {
			t.Errorf("CompareVersions(%q): got %v, want an error that names it", bad, err)
		}
	}
}

// The CLI that a checkout installs is the one this package calls pinned.
func TestPinnedVersion_IsTheInstalledOne(t *testing.T) {
	if PinnedVersion != cliinstall.Pinned || OldestTested != cliinstall.Oldest {
		t.Errorf("versions: got %s and %s, installed are %s and %s", PinnedVersion, OldestTested, cliinstall.Pinned, cliinstall.Oldest)
	}
}

// An install in the folder in which agents work may be an agent's.
func TestFind_AvoidsFilesThatAgentsCouldReplace(t *testing.T) {
	w := newFindWorld(t)
	env := []string{"PATH=" + w.bin, "HOME=" + w.home}
	link := filepath.Join(filepath.Dir(w.project), "link")
	if err := os.Symlink(w.project, link); err != nil {
		t.Fatal(err)
	}
	for avoid, want := range map[string]string{"": w.places[0], w.sub: w.places[1], w.project: w.places[2], link: w.places[2], w.bin: w.places[0]} {
		if got, err := Find(FindOptions{Dir: w.sub, Avoid: avoid, Env: env}); err != nil || got.Path != want {
			t.Errorf("avoiding %q: found %q, %v, want %q", avoid, got.Path, err, want)
		}
	}
	_, err := Find(FindOptions{Dir: w.project, Avoid: w.project, Env: []string{"HOME=" + filepath.Dir(w.bin)}})
	checkLaunchError(t, err, ErrCLINotFound, []string{"agents could replace", w.project, "cd into"})
}
