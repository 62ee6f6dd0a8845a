// SPDX-License-Identifier: Apache-2.0

package claude_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
)

func init() {
	// A CLI that reports its environment as the output style.
	processScripts["option-environ"] = func(s *claudetest.ScriptSession) {
		f := s.Await("control_request")
		dir, _ := os.Getwd()
		s.Answer(f, map[string]any{"claude_code_version": claude.PinnedVersion, "available_output_styles": append(os.Environ(), "cwd="+dir)})
		s.UntilEOF()
	}
}

// What a process that is started by the default spawner really has.
func TestEnvironment_OfTheProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows adds variables of its own: run on Linux or macOS")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"CLAUDECODE": "1", "NODE_OPTIONS": "--x", "TRACEPARENT": "old", "TRACESTATE": "old", "OF_THE_HOST": "yes", "CLAUDE_CODE_ENTRYPOINT": "cli"} {
		t.Setenv(name, value)
	}
	own := []string{"CLAUDE_AGENT_SDK_VERSION=" + claude.Version, "CLAUDE_CODE_ENTRYPOINT=sdk-go", "CLAUDE_CODE_SDK_READS_SESSION_STATE=1", scriptVariable + "=option-environ", "PWD=" + dir, "cwd=" + dir}
	run := func(t *testing.T, o claude.Options) []string {
		t.Helper()
		o.CLIPath, o.Dir = self, dir
		c := claudetest.Connect(t, &o)
		return slices.Sorted(slices.Values(c.Initialized().AvailableOutputStyles))
	}
	for _, plain := range []bool{false, true} {
		spawner := claude.HostSpawner{NoPIDNamespace: plain}
		exact := run(t, claude.Options{Spawner: spawner, TraceParent: "new", Env: claude.ExactEnv(map[string]string{scriptVariable: "option-environ", "CLAUDECODE": "1", "A": "two\nlines = $x"})})
		if diff := cmp.Diff(slices.Sorted(slices.Values(append(own, "A=two\nlines = $x", "TRACEPARENT=new"))), exact); diff != "" {
			t.Errorf("exact environment (-want +got):\n%s", diff)
		}
		merged := run(t, claude.Options{Spawner: spawner, TraceParent: "new", TraceState: "s", Env: claude.InheritEnv(map[string]string{scriptVariable: "option-environ"})})
		for _, want := range append(own, "OF_THE_HOST=yes", "TRACEPARENT=new", "TRACESTATE=s", "PATH="+os.Getenv("PATH")) {
			if !slices.Contains(merged, want) {
				t.Errorf("the merged environment lacks %q", want)
			}
		}
		for _, entry := range merged {
			if name, _, _ := strings.Cut(entry, "="); name == "CLAUDECODE" || name == "NODE_OPTIONS" {
				t.Errorf("%s was inherited", entry)
			}
		}
	}
}
