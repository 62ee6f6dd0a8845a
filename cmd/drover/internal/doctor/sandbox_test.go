// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/isolation"
)

// strongSandbox is a system that has everything.
func strongSandbox() sandboxFacts {
	return sandboxFacts{
		bubblewrap: toolFact{version: "0.8.0"}, socat: toolFact{version: "1.7.4.4"}, landlock: 7, byHandle: true,
		userFix: "sudo sysctl -w x=1", install: func(packages string) string { return "sudo apt-get install " + packages },
	}
}

func TestExamine_SandboxTools(t *testing.T) {
	absent, denied := errors.New("not on PATH"), errors.New("operation not permitted")
	const userFix, aptFix = "sudo sysctl -w x=1", "sudo apt-get install "
	cases := []struct {
		name   string
		change func(f *sandboxFacts)
		state  State
		detail string
		fix    []string
		part   string // of parts, that is "no"
	}{
		{"all", func(*sandboxFacts) {}, stateOK, "bubblewrap 0.8.0, namespaces tried, mounts by handle, user namespaces, seccomp, landlock 7, socat 1.7.4.4", nil, ""},
		{"no --bind-fd", func(f *sandboxFacts) { f.byHandle = false }, stateOK, "bubblewrap 0.8.0, namespaces tried, mounts by name, compared inside (no --bind-fd), user namespaces", nil, ""},
		{"unreadable version", func(f *sandboxFacts) { f.bubblewrap.version = "" }, stateOK, "bubblewrap, namespaces tried", nil, ""},
		{"no bubblewrap", func(f *sandboxFacts) { f.bubblewrap, f.namespaces = toolFact{err: absent}, absent }, stateWarning, "no bubblewrap (not on PATH); here: user namespaces", []string{aptFix + "bubblewrap"}, "bubblewrap"},
		{"no tools", func(f *sandboxFacts) {
			f.bubblewrap, f.namespaces, f.socat = toolFact{err: absent}, absent, toolFact{err: absent}
		}, stateWarning, "no bubblewrap (not on PATH), no socat (not on PATH); here: ", []string{aptFix + "bubblewrap socat"}, "socat"},
		{"forbidden", func(f *sandboxFacts) { f.namespaces, f.userNamespaces = denied, denied }, stateWarning, "bubblewrap makes no namespaces (operation not permitted), no user namespaces (operation not permitted); here: bubblewrap 0.8.0, seccomp", []string{userFix}, "namespaces"},
		{"forbidden and no socat", func(f *sandboxFacts) { f.userNamespaces, f.socat.err = denied, absent }, stateWarning, "no user namespaces", []string{aptFix + "socat && " + userFix}, "userNamespaces"},
		{"no seccomp", func(f *sandboxFacts) { f.seccomp = denied }, stateWarning, "no seccomp (operation not permitted); here: bubblewrap", nil, "seccomp"},
		{"no landlock", func(f *sandboxFacts) { f.landlock, f.landlockErr = 0, denied }, stateWarning, "no landlock (operation not permitted); here: bubblewrap", nil, "landlock"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := healthy(t)
			f := strongSandbox()
			c.change(&f)
			d.sandbox = func(context.Context) sandboxFacts { return f }
			got := d.examineSandbox(t.Context())
			if got.State != c.state || !strings.HasPrefix(got.Detail, c.detail) {
				t.Errorf("got %s %q, want %s %q", got.State, got.Detail, c.state, c.detail)
			}
			if diff := cmp.Diff(c.fix, got.Fix); diff != "" {
				t.Errorf("fixes (-want +got):\n%s", diff)
			}
			if c.part != "" && got.Parts[c.part] != "no" || len(got.Parts) != 6 {
				t.Errorf("parts are %v, want six, and %s to be no", got.Parts, c.part)
			}
		})
	}
}

// Where there is no cell the line says why, what is there instead, and both ways on.
func TestExamine_MissingCellIsReportedWithReasonAndOptions(t *testing.T) {
	absent := errors.New("not on PATH")
	cases := []struct {
		name, goos string
		level      isolation.Level
		reasons    []error
		bubblewrap error
		words      []string
		fix        []string
	}{
		{
			"no bubblewrap", "linux", isolation.LevelLandlock,
			[]error{advice.Wrap(errors.New("  cell: jail: bubblewrap (bwrap) is not on PATH"), "install it")},
			absent,
			[]string{"no cell, at most the level landlock: ", "is not on PATH"},
			[]string{"sudo apt-get install bubblewrap", `drover run --isolation landlock "prompt"   to accept weaker isolation`},
		},
		{
			"forbidden", "linux", isolation.LevelSandbox,
			[]error{advice.Wrap(errors.New("  cell: no namespaces"), "allow user namespaces"), errors.New("  landlock: never as root")},
			nil,
			[]string{"no cell, at most the level sandbox: no namespaces"},
			[]string{"allow user namespaces", `drover run --isolation sandbox "prompt"   to accept weaker isolation`},
		},
		{
			"macOS", "darwin", isolation.LevelSandbox,
			[]error{errors.New("  cell: there are no cells on darwin")},
			nil,
			[]string{"no cell, at most the level sandbox: there are no cells on darwin"},
			[]string{`drover run --isolation sandbox "prompt"   to accept weaker isolation`},
		},
		{
			"Windows", "windows", isolation.LevelHost, nil, nil,
			[]string{"no cell, at most the level host"},
			[]string{`drover run --isolation host "prompt"   to accept weaker isolation`},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := healthy(t)
			d.goos = c.goos
			d.best = func(context.Context) (isolation.Level, []error) { return c.level, c.reasons }
			d.sandbox = func(context.Context) sandboxFacts {
				f := strongSandbox()
				f.bubblewrap.err = c.bubblewrap
				return f
			}
			got := d.examineIsolation(t.Context())
			if got.State != stateMissing || got.Source != c.level.String() || !cmp.Equal(got.Fix, c.fix) {
				t.Errorf("got %s, %s with %q, want missing, %s with %q", got.State, got.Source, got.Fix, c.level, c.fix)
			}
			for _, words := range c.words {
				if !strings.Contains(got.Detail, words) {
					t.Errorf("%q does not say %q", got.Detail, words)
				}
			}
		})
	}
}

func TestExamine_SandboxIsSkippedOutsideLinux(t *testing.T) {
	d := healthy(t)
	d.goos = "darwin"
	if got := d.examineSandbox(t.Context()); got.State != stateSkipped || !strings.Contains(got.Detail, "not available on darwin") {
		t.Errorf("got %+v, want skipped", got)
	}
}

func TestExamine_SandboxIsProbedOnce(t *testing.T) {
	n := 0
	probe := probedOnce(func(context.Context) sandboxFacts { n++; return sandboxFacts{landlock: n} })
	if a, b := probe(t.Context()), probe(t.Context()); a.landlock != 1 || b.landlock != 1 {
		t.Errorf("got %d and %d, want the first answer twice", a.landlock, b.landlock)
	}
}

// What did not answer in time need not be installed.
func TestExamine_SandboxTimeoutIsNotMissingTools(t *testing.T) {
	d := healthy(t)
	d.goos = "linux"
	d.sandbox = func(context.Context) sandboxFacts {
		return sandboxFacts{bubblewrap: toolFact{err: errNoTime}, namespaces: errNoTime, install: func(string) string { return "install it" }}
	}
	if got := d.examineSandbox(t.Context()); got.State != stateWarning || len(got.Fix) != 1 || got.Fix[0] != moreTime {
		t.Errorf("got %+v, want more time as the fix", got)
	}
}
