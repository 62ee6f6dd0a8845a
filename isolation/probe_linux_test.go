// SPDX-License-Identifier: Apache-2.0

package isolation_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/isolation"
)

func needCell(t *testing.T) {
	t.Helper()
	if best, reasons := isolation.Best(t.Context()); best != isolation.LevelCell {
		t.Skipf("needs a cell: %v", reasons)
	}
}

// The isolation of a cell holds with other settings of variables and network too.
func TestProbe_FindsNoHoleInACell(t *testing.T) {
	needCell(t)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for name, i := range map[string]*isolation.Isolation{
		"default":              nil,
		"the host's variables": {IncludeHostEnv: true},
		"open network":         {Network: &isolation.NetworkPolicy{AllowedDomains: []string{"*"}, AllowLocalhost: true}},
	} {
		t.Run(name, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			report, err := isolation.Probe(t.Context(), i, claudecell.Program(&claude.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			if report.Level != isolation.LevelCell || len(report.Attempts) != 12 || report.Err() != nil {
				t.Errorf("got %+v, want 12 blocked attempts on a cell", report)
			}
			if left, _ := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 {
				t.Errorf("files are left: %v", left)
			}
		})
	}
}

func TestProbes_AsOrdinaryUser(t *testing.T) {
	needCell(t)
	testkit.RerunAsUser(t, "/bin/true", "^TestProbe_(Finds|Reports)")
}

// Without isolation the probe reaches its targets and reports that. Processes may still be isolated by a PID
// namespace, which ends them with the run.
func TestProbe_ReportsMissingIsolation(t *testing.T) {
	report, err := isolation.Probe(t.Context(), &isolation.Isolation{Weakest: isolation.LevelHost, Sandbox: &isolation.Sandbox{Disabled: true}}, claudecell.Program(&claude.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, a := range report.Attempts {
		held[a.Name] = a.Blocked
	}
	want := map[string]bool{
		"read a file of the host": false, "write outside of the workspace": false, "reach a server of the host": false,
		"read the key in the environment": true, "read the key in files": true, // home and environment stay private
	}
	if os.Geteuid() == 0 {
		want["be root"], want["have capabilities"] = false, false
	}
	for name, want := range want {
		if got, tried := held[name]; got != want || !tried {
			t.Errorf("%s: held %v (tried %v), want %v", name, got, tried, want)
		}
	}
	if err := report.Err(); err == nil || !strings.Contains(advice.Text(err), "at level host an agent can: read a file of the host") || !strings.Contains(advice.Text(err), "\n  next: ") {
		t.Errorf("got error %v, want one that names what is open", err)
	}
}

// Landlock keeps files and servers apart, and leaves processes to be seen.
func TestProbe_ReportsTheGapsOfLandlock(t *testing.T) {
	i := &isolation.Isolation{Weakest: isolation.LevelLandlock, Strongest: isolation.LevelLandlock}
	report, err := isolation.Probe(t.Context(), i, claudecell.Program(&claude.Options{}))
	if _, weak := errors.AsType[*isolation.WeakError](err); weak {
		t.Skip("no Landlock for this user: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, a := range report.Attempts {
		held[a.Name] = a.Blocked
	}
	for name, want := range map[string]bool{
		"read a file of the host": true, "write outside of the workspace": true, "reach a server of the host": true,
		"read the key in the environment": true, "read the key in files": true, "be root": true, "gain privileges": true, "make every system call": true,
		"see a process of the host": false,
	} {
		if held[name] != want {
			t.Errorf("%s: held %v, want %v", name, held[name], want)
		}
	}
}

func TestProbe_RefusesAnUnavailableLevel(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // no bubblewrap
	_, err := isolation.Probe(t.Context(), nil, claudecell.Program(&claude.Options{}))
	if err == nil || !strings.Contains(advice.Text(err), "isolation: probing: ") {
		t.Errorf("got %v, want the reason why there is no cell", err)
	}
}

func TestReport_WithoutHolesIsNoError(t *testing.T) {
	report := isolation.Report{Attempts: []isolation.Attempt{{Name: "read", Blocked: true}}}
	if diff := cmp.Diff(nil, report.Err()); diff != "" {
		t.Error(diff)
	}
}
