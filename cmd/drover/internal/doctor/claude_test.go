// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
)

func TestExamine_CLI(t *testing.T) {
	const path, tested, npm = "/usr/bin/claude", "2.1.197 to 2.1.325", "npm install claude"
	const prefer = npm + ` && export DROVER_CLAUDE="$(npm prefix --global)/bin/claude"`
	cases := []struct {
		name     string
		ready    agent.Readiness
		variable string // DROVER_CLAUDE
		want     Check
	}{
		{
			"ready",
			agent.Readiness{State: agent.StateReady, Version: "2.1.300", Path: path, Tested: tested},
			"",
			Check{State: stateOK, Version: "2.1.300", Path: path, Tested: tested, Source: claude.FoundPath, Detail: "2.1.300 at /usr/bin/claude (PATH), tested 2.1.197 to 2.1.325"},
		},
		{
			"ready, in the working folder",
			agent.Readiness{State: agent.StateReady, Version: "2.1.300", Path: "/shop/bin/claude", Tested: tested},
			"",
			Check{State: stateOK, Version: "2.1.300", Path: "/shop/bin/claude", Tested: tested, Detail: "2.1.300 at ./bin/claude, tested 2.1.197 to 2.1.325"},
		},
		{
			"untested",
			agent.Readiness{State: agent.StateUntested, Version: "3.0.0", Path: path, Tested: tested, Repair: npm},
			"",
			Check{State: stateWarning, Version: "3.0.0", Path: path, Tested: tested, Source: claude.FoundPath, Fix: []string{npm}, Detail: "3.0.0 at /usr/bin/claude (PATH) is newer than those that were tested, 2.1.197 to 2.1.325"},
		},
		{
			"too old",
			agent.Readiness{State: agent.StateUnsupported, Version: "1.0.0", Path: path, Tested: tested, Repair: npm, Detail: "old"},
			"",
			Check{State: stateBroken, Version: "1.0.0", Path: path, Tested: tested, Source: claude.FoundPath, Fix: []string{npm}, Detail: "1.0.0 at /usr/bin/claude (PATH) is too old, tested 2.1.197 to 2.1.325"},
		},
		{
			"too old, by the variable",
			agent.Readiness{State: agent.StateUnsupported, Version: "1.0.0", Path: path, Tested: tested, Repair: npm},
			path,
			Check{State: stateBroken, Version: "1.0.0", Path: path, Tested: tested, Source: claude.FoundPath, Fix: []string{prefer}, Detail: "1.0.0 at /usr/bin/claude (PATH) is too old, tested 2.1.197 to 2.1.325"},
		},
		{
			"missing",
			agent.Readiness{State: agent.StateMissing, Tested: tested, Repair: npm, Detail: "claude: CLI not found"},
			"",
			Check{State: stateMissing, Tested: tested, Fix: []string{npm}, Detail: "CLI not found"},
		},
		{
			"not executable",
			agent.Readiness{State: agent.StateMissing, Tested: tested, Repair: "chmod +x /x", Detail: "no execute permission"},
			"/x",
			Check{State: stateMissing, Tested: tested, Fix: []string{"chmod +x /x"}, Detail: "no execute permission"},
		},
		{
			"unreadable",
			agent.Readiness{State: agent.StateUnknown, Path: path, Tested: tested, Repair: npm, Detail: "it said \"what?\": /usr/bin/claude"},
			"",
			Check{State: stateBroken, Path: path, Tested: tested, Source: claude.FoundPath, Fix: []string{npm}, Detail: `its version cannot be read, at /usr/bin/claude (PATH): it said "what?"`},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := healthy(t)
			d.adapter = readyAdapter(c.ready)
			d.find = func() (claude.Found, error) { return claude.Found{Path: path, Source: claude.FoundPath}, nil }
			d.setenv(claude.EnvCLI, c.variable)
			if diff := cmp.Diff(&c.want, d.examineClaude(t.Context())); diff != "" {
				t.Errorf("check (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExamine_CLITimeoutIsReported(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	d := healthy(t)
	d.adapter = readyAdapter{State: agent.StateUnknown, Repair: "npm install"}
	if got := d.examineClaude(ctx).Fix; len(got) == 0 || got[0] != moreTime {
		t.Errorf("fixes %q, want first %q", got, moreTime)
	}
}

func TestExamine_NodeIsCheckedOnlyIfTheCLINeedsIt(t *testing.T) {
	const script = "#!/usr/bin/env node\n"
	cases := []struct {
		name, text, version string
		err                 error
		want                State // empty for no check
		detail              string
	}{
		{"a program", "\x7fELF", "", exec.ErrNotFound, "", ""},
		{"a shell script", "#!/bin/sh\nexec node\n", "", exec.ErrNotFound, "", ""},
		{"an empty file", "", "", exec.ErrNotFound, "", ""},
		{"an interpreter without a name", "#!\n", "", exec.ErrNotFound, "", ""},
		{"env without a program", "#!/usr/bin/env -S\n", "", exec.ErrNotFound, "", ""},
		{"node is there", script, "v22.0.0", nil, stateOK, "v22.0.0"},
		{"node by its path", "#!/usr/local/bin/node --flag\n", "v24.1.0", nil, stateOK, "v24.1.0"},
		{"node with flags of env", "#!/usr/bin/env -S NO_COLOR=1 node --flag\n", "v24.1.0", nil, stateOK, "v24.1.0"},
		{"no node", script, "", exec.ErrNotFound, stateMissing, "not on PATH"},
		{"old node", script, "v20.9.0", nil, stateBroken, "needs 22 or newer"},
		{"strange node", script, "node?", nil, stateBroken, "needs 22 or newer"},
		{"broken node", script, "", errors.New("it broke"), stateBroken, "it broke"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := healthy(t)
			path := fakeCLI(t, c.text)
			d.find = func() (claude.Found, error) { return claude.Found{Path: path}, nil }
			d.node = func(context.Context) (string, error) { return c.version, c.err }
			got := d.examineNode(t.Context())
			if (got == nil) != (c.want == "") {
				t.Fatalf("got %+v, want state %q", got, c.want)
			}
			if got == nil {
				return
			}
			if got.State != c.want || !strings.Contains(got.Detail, c.detail) || got.State.bad() != (len(got.Fix) > 0) {
				t.Errorf("got %+v, want %s with %q", got, c.want, c.detail)
			}
		})
	}
}

func TestExamine_NodeIsNotCheckedWithoutACLI(t *testing.T) {
	d := healthy(t)
	d.find = func() (claude.Found, error) { return claude.Found{}, claude.ErrCLINotFound }
	if got := d.examineNode(t.Context()); got != nil {
		t.Errorf("got %+v, want nothing", got)
	}
}

// fakeCLI is a script that replaces the CLI.
func fakeCLI(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs scripts with a #! line: run on Linux or macOS")
	}
	path := filepath.Join(t.TempDir(), "claude")
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
