// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// Without a target make only says which there are. No target can do anything here: there is no Go.
func TestMake_AlonePrintsWhatTheTargetsDo(t *testing.T) {
	cmd := exec.Command("make", "--no-print-directory", "GO=false")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	_, phony, _ := strings.Cut(read(t, "Makefile"), "\n.PHONY: ")
	phony, _, _ = strings.Cut(phony, "\n")
	targets := strings.Fields(phony)
	for _, name := range targets {
		if !regexp.MustCompile(`(?m)^make ` + name + ` +\S+ \S+`).Match(out) {
			t.Errorf("make does not say what make %s does:\n%s", name, out)
		}
	}
	if lines := strings.Count(string(out), "\n"); len(targets) < 10 || lines != len(targets) {
		t.Errorf("%d targets, and make prints %d lines:\n%s", len(targets), lines, out)
	}
}

// The check of each change names its target, since make alone checks nothing.
func TestMake_CheckOfChangesNamesItsTarget(t *testing.T) {
	if !strings.Contains(read(t, ".ci/run"), "\nexec make test\n") {
		t.Error(".ci/run does not run make test")
	}
}

// The version that the code reports is the newest one that the changelog has.
func TestVersions_ChangelogHasThatOfTheCode(t *testing.T) {
	code := regexp.MustCompile(`(?m)^const Version = "([0-9.]+)"$`).FindStringSubmatch(read(t, "claude/environ.go"))
	log := regexp.MustCompile(`(?m)^## ([0-9.]+)$`).FindStringSubmatch(read(t, "CHANGELOG.md"))
	if code == nil || log == nil || code[1] != log[1] {
		t.Errorf("claude.Version is %q, and the newest version in CHANGELOG.md %q", code, log)
	}
}

// The command is built in one way wherever it is built apart from a run of its own tests: as a release, from which the go command has
// its packages then. SQLite alone takes a minute to compile.
func TestBuilds_OfTheCommandShareTheCacheOfReleases(t *testing.T) {
	build := regexp.MustCompile(`go build .*\./cmd/drover|"go", "build".*"\./cmd/drover"|"build".*"\./cmd/drover"`)
	found := 0
	for _, name := range []string{"action.yml", "tools/newcomer/newcomer_test.go", "tools/release/main.go"} {
		text := read(t, name)
		for line := range strings.Lines(text) {
			if !build.MatchString(line) {
				continue
			}
			found++
			if !strings.Contains(line, "-trimpath") || !strings.Contains(text, "CGO_ENABLED=0") {
				t.Errorf("%s: build with CGO_ENABLED=0 and -trimpath, as a release: %s", name, strings.TrimSpace(line))
			}
		}
	}
	if found != 3 {
		t.Errorf("%d builds found, want 3: the rule sees too little", found)
	}
}
