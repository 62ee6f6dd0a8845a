// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var ownVariables = []string{"CLAUDE_AGENT_SDK_VERSION=" + Version, "CLAUDE_CODE_ENTRYPOINT=sdk-go", "CLAUDE_CODE_SDK_READS_SESSION_STATE=1"}

func TestEnvironment_OfTheOptions(t *testing.T) {
	host := []string{"PATH=/bin", "EMPTY=", "CLAUDECODE=1", "NODE_OPTIONS=--inspect", "CLAUDE_CODE_ENTRYPOINT=cli", "CLAUDE_AGENT_SDK_VERSION=9", "TRACEPARENT=old", "TRACESTATE=old", "=C:=x", "broken", "PATH=/last"}
	inherited := []string{"PATH=/last", "EMPTY=", "TRACEPARENT=old", "TRACESTATE=old"}
	for _, c := range []struct {
		name    string
		options Options
		want    []string // beside our own
	}{
		{"inherited", Options{}, inherited},
		{"exact", Options{Env: ExactEnv(map[string]string{"A": "1"})}, []string{"A=1"}},
		{"exact and empty", Options{Env: ExactEnv(nil)}, nil},
		{"exact, with more", Options{Env: ExactEnv(map[string]string{"A": "1", "B": "1"}).With("B", "2")}, []string{"A=1", "B=2"}},
		{"empty, with more", Options{Env: ExactEnv(nil).With("B", "2")}, []string{"B=2"}},
		{"merged by name", Options{Env: InheritEnv(map[string]string{"PATH": "/mine", "B": "2"})}, []string{"PATH=/mine", "B=2", "EMPTY=", "TRACEPARENT=old", "TRACESTATE=old"}},
		{"nested by wish is not possible", Options{Env: ExactEnv(map[string]string{"CLAUDECODE": "1"})}, nil},
		{"node options by wish", Options{Env: ExactEnv(map[string]string{"NODE_OPTIONS": "--x"})}, []string{"NODE_OPTIONS=--x"}},
		{"fresh trace drops both", Options{TraceParent: "new"}, []string{"PATH=/last", "EMPTY=", "TRACEPARENT=new"}},
		{"fresh pair", Options{TraceParent: "new", TraceState: "s"}, []string{"PATH=/last", "EMPTY=", "TRACEPARENT=new", "TRACESTATE=s"}},
		{"trace of Env replaces the inherited pair", Options{Env: InheritEnv(map[string]string{"TRACEPARENT": "env"})}, []string{"PATH=/last", "EMPTY=", "TRACEPARENT=env"}},
		{"trace of Env replaces that of the options", Options{TraceParent: "new", TraceState: "s", Env: ExactEnv(map[string]string{"TRACEPARENT": "env"})}, []string{"TRACEPARENT=env"}},
		{"working directory", Options{Dir: "/a/../b", Env: ExactEnv(nil)}, []string{"PWD=/b"}},
		{"Env wins over options", Options{Dir: "/b", QuestionPreview: "html", Env: ExactEnv(map[string]string{"PWD": "/c", "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT": "markdown"})}, []string{"PWD=/c", "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT=markdown"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := slices.Sorted(slices.Values(slices.Concat(ownVariables, c.want)))
			if diff := cmp.Diff(want, c.options.environmentOn("linux", host)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The entry point can be named by the caller, the version of this library cannot.
func TestEnvironment_EntryPointCanBeSetAndVersionCannot(t *testing.T) {
	o := Options{Env: ExactEnv(map[string]string{"CLAUDE_CODE_ENTRYPOINT": "mine", "CLAUDE_AGENT_SDK_VERSION": "9"})}
	want := []string{"CLAUDE_AGENT_SDK_VERSION=" + Version, "CLAUDE_CODE_ENTRYPOINT=mine", "CLAUDE_CODE_SDK_READS_SESSION_STATE=1"}
	if diff := cmp.Diff(want, o.environmentOn("linux", nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// On Windows a name in capitals and one in small letters are the same variable.
func TestEnvironment_NamesIgnoreCaseOnWindows(t *testing.T) {
	o := Options{Env: InheritEnv(map[string]string{"PATH": `C:\mine`})}
	got := o.environmentOn("windows", []string{`Path=C:\theirs`, "ClaudeCode=1", "Node_Options=--x", "claude_code_entrypoint=cli", `=C:=C:\`})
	want := slices.Sorted(slices.Values(append([]string{`PATH=C:\mine`}, ownVariables...)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestValidateWindowsIDs_ReportsAllFaultsTogether(t *testing.T) {
	v := &validator{}
	v.windowsIDs(&Options{Resume: `a"b`, ResumeAt: "a%b", ResumeDropsTurn: new("a&b")})
	if len(v.errs) != 3 {
		t.Errorf("got %v, want one error each", v.errs)
	}
	v = &validator{}
	v.windowsIDs(&Options{Resume: "a title of words", ResumeAt: "0b7c1d1e-5f8e-4c33-9a55-0d7a3c1f0001"})
	if len(v.errs) != 0 {
		t.Errorf("plain ids are refused: %v", v.errs)
	}
}

func TestLacks_ComparesVersions(t *testing.T) {
	for _, c := range []struct {
		version, since string
		want           bool
	}{
		{"", PinnedVersion, true},
		{"", "2.1.248", true},
		{OldestTested, PinnedVersion, true},
		{"2.1.0", PinnedVersion, true},
		{"2.1.247", "2.1.248", true},
		{"2.1.248", "2.1.248", false},
		{"2.1.250", PinnedVersion, false},
		{PinnedVersion, PinnedVersion, false},
		{"3.0.0", "2.1.248", false},
	} {
		if got := lacks(c.version, c.since); got != c.want {
			t.Errorf("lacks(%q, %q) = %v, want %v", c.version, c.since, got, c.want)
		}
	}
}
