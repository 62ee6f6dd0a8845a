// SPDX-License-Identifier: Apache-2.0

package claudecode_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/event"
)

func TestReady_FollowsTheVersion(t *testing.T) {
	for name, x := range map[string]struct {
		prints string
		want   agent.State
		repair bool
	}{
		"oldest tested":       {claude.OldestTested + " (Claude Code)", agent.StateReady, false},
		"newest tested":       {claude.PinnedVersion + " (Claude Code)", agent.StateReady, false},
		"in between":          {"2.1.300", agent.StateReady, false},
		"a little too old":    {"2.1.196 (Claude Code)", agent.StateUnsupported, true},
		"much too old":        {"0.2.9", agent.StateUnsupported, true},
		"newer":               {"2.1.326 (Claude Code)", agent.StateUntested, true},
		"much newer":          {"3.0.0", agent.StateUntested, true},
		"not a version":       {"hello", agent.StateUnknown, true},
		"nothing on its mind": {"", agent.StateUnknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			opts := itself(t, map[string]string{versionVariable: x.prints})
			got := newAdapter(t, opts).Ready(t.Context())
			if got.State != x.want {
				t.Fatalf("state is %q (%s), want %q", got.State, got.Detail, x.want)
			}
			if got.Path != opts.CLIPath || got.Tested != claude.OldestTested+" to "+claude.PinnedVersion {
				t.Errorf("path is %q, tested %q", got.Path, got.Tested)
			}
			if (got.Repair != "") != x.repair || (got.Detail != "") != x.repair {
				t.Errorf("detail is %q, repair %q; want both: %t", got.Detail, got.Repair, x.repair)
			}
			if x.want != agent.StateUnknown && !strings.HasPrefix(x.prints, got.Version) {
				t.Errorf("version is %q, want that of %q", got.Version, x.prints)
			}
		})
	}
}

func TestReady_RealCLI(t *testing.T) {
	for name, newCLI := range eachCLI {
		t.Run(name, func(t *testing.T) {
			cli := newCLI(t)
			opts := &claude.Options{CLIPath: cli.Path, Env: claude.ExactEnv(cli.Env("http://127.0.0.1:1"))}
			got := newAdapter(t, opts).Ready(t.Context())
			if got.State != agent.StateReady || got.Version != cli.Version || got.Err() != nil {
				t.Errorf("readiness is %+v, want ready with version %s", got, cli.Version)
			}
		})
	}
}

type wrapped struct{ claude.Spawner }

func (w wrapped) Unwrap() claude.Spawner { return w.Spawner }

type elsewhere struct{ claude.Spawner }

func TestReady_VersionIsQueriedOnlyOnTheHost(t *testing.T) {
	for name, x := range map[string]struct {
		spawner claude.Spawner
		want    agent.State
	}{
		"the host":               {claude.HostSpawner{}, agent.StateUnsupported},
		"the host, by address":   {new(claude.HostSpawner), agent.StateUnsupported},
		"what wraps the host":    {wrapped{wrapped{claude.HostSpawner{NoPIDNamespace: true}}}, agent.StateUnsupported},
		"what wraps another one": {wrapped{elsewhere{}}, agent.StateUnknown},
		"another one":            {elsewhere{}, agent.StateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			opts := itself(t, map[string]string{versionVariable: "2.1.100"})
			opts.Spawner = x.spawner
			if got := newAdapter(t, opts).Ready(t.Context()); got.State != x.want {
				t.Errorf("state is %q (%s), want %q", got.State, got.Detail, x.want)
			}
		})
	}
}

func TestReady_RepairUnsetsAWrongVariable(t *testing.T) {
	t.Setenv(claude.EnvCLI, filepath.Join(t.TempDir(), "none"))
	got := claudecode.New(nil).Ready(t.Context())
	if got.State != agent.StateMissing || !strings.HasPrefix(got.Repair, "unset "+claude.EnvCLI+" && npm install") {
		t.Errorf("state %q, repair %q; want one that does not leave the variable in the way", got.State, got.Repair)
	}
}

func TestReady_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := newAdapter(t, itself(t, map[string]string{versionVariable: "2.1.300"})).Ready(ctx)
	if got.State != agent.StateUnknown || !errors.Is(got.Cause, context.Canceled) {
		t.Errorf("readiness is %+v, want unknown because of the context", got)
	}
}

func TestReady_CLIThatCannotBeExecutedNamesTheFix(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no execute permissions on Windows: run it elsewhere")
	}
	path := filepath.Join(t.TempDir(), "claude")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := claudecode.New(&claude.Options{CLIPath: path})
	if got := a.Ready(t.Context()); got.State != agent.StateMissing || got.Repair != "chmod +x "+path {
		t.Errorf("readiness is %+v, want missing with a chmod", got)
	}
	if err := refused(t, a, agent.Request{Prompt: "go"}); !errors.Is(err, claude.ErrNotExecutable) {
		t.Errorf("Run gives %v, want ErrNotExecutable", err)
	}
}

// refused is the error of a run that must not begin.
func refused(t testing.TB, a *claudecode.Adapter, req agent.Request) error {
	t.Helper()
	var failure error
	for e, err := range a.Run(t.Context(), req) {
		if err == nil {
			t.Fatalf("the run began with %s", e.Kind)
		}
		if failure != nil {
			t.Fatalf("a second pair after the error: %v, %v", e.Kind, err)
		}
		failure = err
	}
	if failure == nil {
		t.Fatal("the run yielded nothing")
	}
	return failure
}

// A CLI that is too old is not run, however it shows: in the handshake, by its version, or because it
// ends at once.
func TestVersion_TooOldCLIIsNotRun(t *testing.T) {
	for name, base := range map[string]*claude.Options{
		"the handshake has it": claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
			s.Initialize(`{"claude_code_version":"2.1.100"}`)
			s.UntilEOF()
		}).Options(),
		"it ends": itself(t, map[string]string{versionVariable: "1.0.3 (Claude Code)"}),
	} {
		t.Run(name, func(t *testing.T) {
			err := refused(t, newAdapter(t, base), agent.Request{Prompt: "go"})
			if !errors.Is(err, agent.ErrUnavailable) || !errors.Is(err, claude.ErrTooOld) || !strings.Contains(advice.Text(err), "next: npm install") {
				t.Errorf("Run gives %v, want ErrUnavailable with the way to fix it", err)
			}
		})
	}
}

func TestVersion_UnknownVersionIsRun(t *testing.T) {
	for name, version := range map[string]string{"silent": "", "strange": "next"} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.ScriptCLI(t, func(s *claudetest.ScriptSession) {
				s.Initialize(`{"claude_code_version":"` + version + `"}`)
				s.Turn("hello")
				s.UntilEOF()
			})
			if got := run(t, cli.Options(), agent.Request{Prompt: "go"}).done(t); got.Status != event.DoneSuccess {
				t.Errorf("status is %s (%s), want success", got.Status, got.Result)
			}
		})
	}
}

// A CLI that does not send its version in the handshake is asked for it, once for each file.
func TestVersion_IsQueriedOncePerFile(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	a := newAdapter(t, itself(t, map[string]string{turnVariable: "hello", versionVariable: claude.OldestTested, countVariable: count}))
	for range 3 {
		if done := record(t, a.Run(inTime(t), agent.Request{Prompt: "go"})).done(t); done.Result != "hello" {
			t.Errorf("the run ended with %+v", done)
		}
	}
	if asked, err := os.ReadFile(count); string(asked) != "." {
		t.Errorf("it was asked %d times (%v), want once", len(asked), err)
	}
	old := newAdapter(t, itself(t, map[string]string{turnVariable: "hello", versionVariable: "2.1.196"}))
	if err := refused(t, old, agent.Request{Prompt: "go"}); !errors.Is(err, agent.ErrUnavailable) {
		t.Errorf("a run of one that is too old gives %v, want ErrUnavailable", err)
	}
}
