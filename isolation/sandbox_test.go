// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
)

func TestSandbox_InvalidPathsAreRefused(t *testing.T) {
	type box = isolation.Sandbox
	tests := []struct {
		name     string
		box      *box
		level    isolation.Level
		goos     string
		field    string
		wantText string
	}{
		{"no sandbox", nil, cell, "linux", "", ""},
		{"excluded commands in a cell", &box{ExcludedCommands: []string{"docker"}, AllowUnsandboxedCommands: true}, cell, "linux", "", ""},
		{"unsandboxed without excluded commands", &box{AllowUnsandboxedCommands: true}, sandbox, "linux", "Sandbox.AllowUnsandboxedCommands", "ExcludedCommands"},
		{"disabled at the host level", &box{Disabled: true}, host, "windows", "", ""},
		{"disabled in a cell", &box{Disabled: true}, cell, "linux", "Sandbox.Disabled", "Isolation.Weakest"},
		{"disabled and nested", &box{Disabled: true, Nested: true}, host, "linux", "Sandbox.Disabled", "Nested"},
		{"nested in a cell", &box{Nested: true}, cell, "linux", "", ""},
		{"nested under Landlock", &box{Nested: true}, landlock, "linux", "Sandbox.Nested", "bubblewrap"},
		{"weaker nested in a container", &box{WeakerNested: true}, sandbox, "linux", "", ""},
		{"weaker nested on macOS", &box{WeakerNested: true}, sandbox, "darwin", "Sandbox.WeakerNested", "on darwin"},
		{"the CLI's sandbox on macOS", &box{}, sandbox, "darwin", "", ""},
		{"the CLI's sandbox on Windows", nil, sandbox, "windows", "Sandbox.Disabled", "on windows"},
		{"paths", &box{WritablePaths: []string{"cache", "/srv/x"}, ReadablePaths: []string{"../lib"}}, cell, "linux", "", ""},
		{"an empty path", &box{WritablePaths: []string{" "}}, cell, "linux", "Sandbox.WritablePaths", "is not a path"},
		{"everything to write", &box{WritablePaths: []string{"/usr/.."}}, cell, "linux", "Sandbox.WritablePaths", "everything"},
		{"everything to read", &box{ReadablePaths: []string{"/"}}, cell, "linux", "Sandbox.ReadablePaths", "everything"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkRefused(t, test.box.Validate(test.level, test.goos), test.field, test.wantText)
		})
	}
}

func TestSandbox_RelativePathsStartAtTheWorkspace(t *testing.T) {
	box := &isolation.Sandbox{WritablePaths: []string{"out", "/srv/cache/"}, ReadablePaths: []string{"../lib"}}
	if diff := cmp.Diff([]string{"/work/project/out", "/srv/cache"}, box.Writable("/work/project")); diff != "" {
		t.Errorf("Writable (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"/work/lib"}, box.Readable("/work/project")); diff != "" {
		t.Errorf("Readable (-want +got):\n%s", diff)
	}
	box = nil
	if box.Writable("/work") != nil || box.Readable("/work") != nil {
		t.Error("a nil sandbox has paths")
	}
}

func TestLimits_DefaultsAndNoLimit(t *testing.T) {
	l := isolation.Limits{Processes: 7, Memory: -1, CPUTime: time.Minute, FreeSpace: -5}.Resolved()
	if l.Processes != 7 || l.Memory != 0 || l.CPUTime != time.Minute || l.FreeSpace != 0 {
		t.Errorf("got %+v, want what was given, and 0 for no limit", l)
	}
	zero := isolation.Limits{}.Resolved()
	if zero.Memory <= 0 || zero.Processes <= 0 || zero.FileSize <= 0 || zero.CPUTime <= 0 || zero.OpenFiles <= 0 ||
		zero.TempBytes <= 0 || zero.WorkspaceBytes <= 0 || zero.WorkspaceFiles <= 0 || zero.FreeSpace <= 0 {
		t.Errorf("got %+v, want a limit in every field", zero)
	}
}

func TestIsolation_ValidateReportsAllProblems(t *testing.T) {
	i := &isolation.Isolation{
		Network: &isolation.NetworkPolicy{AllowedPorts: []int{443}},
		Sandbox: &isolation.Sandbox{AllowUnsandboxedCommands: true},
		Env:     map[string]string{"HOME": "/root", "LD_PRELOAD": "x.so"},
	}
	err := i.Validate(sandbox, "darwin")
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"Weakest", "Network.AllowedPorts", "Sandbox.AllowUnsandboxedCommands", `Env["HOME"]`, `Env["LD_PRELOAD"]`} {
		if !strings.Contains(advice.Text(err), want) {
			t.Errorf("got %v, want %s in it", err, want)
		}
	}
}

func TestIsolation_ZeroNeedsACell(t *testing.T) {
	var zero isolation.Isolation
	if err := zero.Validate(cell, "linux"); err != nil {
		t.Errorf("in a cell: %v", err)
	}
	for _, level := range []isolation.Level{landlock, sandbox, host} {
		checkRefused(t, zero.Validate(level, "linux"), "Weakest", "level cell")
	}
}
