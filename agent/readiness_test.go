// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
)

func TestReadiness_ErrorHasTheDetailAndTheRepair(t *testing.T) {
	cases := []struct {
		name string
		r    agent.Readiness
		want string // empty means that it may be run
	}{
		{"ready", agent.Readiness{State: agent.StateReady}, ""},
		{"untested", agent.Readiness{State: agent.StateUntested, Detail: "it is newer than 2.1"}, ""},
		{"unknown", agent.Readiness{State: agent.StateUnknown, Detail: "it reports no state"}, ""},
		{"not set", agent.Readiness{}, ""},
		{"missing", agent.Readiness{State: agent.StateMissing}, "agent: the agent cannot be run: it is missing"},
		{
			"missing with all fields",
			agent.Readiness{State: agent.StateMissing, Detail: "there is no claude in PATH", Repair: "make setup", Cause: fs.ErrNotExist},
			"agent: the agent cannot be run: it is missing: there is no claude in PATH\n  next: make setup",
		},
		{
			"unsupported",
			agent.Readiness{State: agent.StateUnsupported, Detail: "it is 1.0", Repair: "claude update"},
			"agent: the agent cannot be run: it is unsupported: it is 1.0\n  next: claude update",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.r.Err()
			if c.r.Available() != (c.want == "") || (err == nil) != (c.want == "") {
				t.Fatalf("Available %v, Err %v", c.r.Available(), err)
			}
			if err == nil {
				return
			}
			if advice.Text(err) != c.want {
				t.Errorf("got %q, want %q", err, c.want)
			}
			if !errors.Is(err, agent.ErrUnavailable) || c.r.Cause != nil && !errors.Is(err, c.r.Cause) {
				t.Errorf("%v wraps neither ErrUnavailable nor its cause", err)
			}
		})
	}
}

func TestReadiness_String(t *testing.T) {
	for want, r := range map[string]agent.Readiness{
		"ready: 2.1.325 at /bin/claude":          {State: agent.StateReady, Version: "2.1.325", Path: "/bin/claude", Tested: "2.1.197 to 2.1.325"},
		"missing: there is no claude in PATH":    {State: agent.StateMissing, Detail: "there is no claude in PATH"},
		"unknown: at /bin/claude: it is a shell": {State: agent.StateUnknown, Path: "/bin/claude", Detail: "it is a shell"},
	} {
		if got := r.String(); got != want {
			t.Errorf("it is printed as %q, want %q", got, want)
		}
	}
}
