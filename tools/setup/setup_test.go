// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/internal/cliinstall"
)

// machine is a pretended one.
type machine struct {
	programs map[string]bool
	lists    bool // the package lists are there
	offline  bool
	calls    []string
}

func (m *machine) look(name string) (string, error) {
	if m.programs[name] {
		return "/bin/" + name, nil
	}
	return "", exec.ErrNotFound
}

func (m *machine) run(_ context.Context, name string, args ...string) (string, error) {
	call := strings.TrimPrefix(name, "/bin/") + " " + strings.Join(args, " ")
	if !strings.HasPrefix(call, "apt-get") {
		return "something version 0.8.0 and more", nil
	}
	m.calls = append(m.calls, call)
	switch {
	case m.offline:
		return "", errors.New("offline")
	case args[0] == "update":
		m.lists = true
	case !m.lists:
		return "", errors.New("unable to locate package")
	default:
		m.programs[map[string]string{"bubblewrap": "bwrap", "socat": "socat", "tmux": "tmux", "chromium": "chromium"}[args[len(args)-1]]] = true
	}
	return "", nil
}

func TestSetup_InstallsMissingPrograms(t *testing.T) {
	const install = "apt-get install --yes --no-install-recommends "
	cases := []struct {
		name    string
		machine machine
		euid    int
		fresh   bool
		want    string
		calls   []string
	}{
		{
			name:    "all there",
			machine: machine{programs: map[string]bool{"bwrap": true, "socat": true, "tmux": true, "chromium": true, "apt-get": true}},
			want:    "set-up    claude 2.1.325 (pinned)  ok    bubblewrap 0.8.0  ok    socat 0.8.0  ok    tmux 0.8.0  ok    chromium 0.8.0  ok\n",
		},
		{
			name:    "installed without fetching lists",
			machine: machine{programs: map[string]bool{"socat": true, "tmux": true, "chromium": true, "apt-get": true}, lists: true},
			fresh:   true,
			want:    "set-up    claude 2.1.325 (pinned)  installed    bubblewrap 0.8.0  installed    socat 0.8.0  ok    tmux 0.8.0  ok    chromium 0.8.0  ok\n",
			calls:   []string{install + "bubblewrap"},
		},
		{
			name:    "lists fetched once",
			machine: machine{programs: map[string]bool{"apt-get": true}},
			want:    "set-up    claude 2.1.325 (pinned)  ok    bubblewrap 0.8.0  installed    socat 0.8.0  installed    tmux 0.8.0  installed    chromium 0.8.0  installed\n",
			calls:   []string{install + "bubblewrap", "apt-get update", install + "bubblewrap", install + "socat", install + "tmux", install + "chromium"},
		},
		{
			name:    "ordinary user",
			machine: machine{programs: map[string]bool{"socat": true, "tmux": true, "chromium": true, "apt-get": true}},
			euid:    1000,
			want: "set-up    claude 2.1.325 (pinned)  ok    bubblewrap  missing    socat 0.8.0  ok    tmux 0.8.0  ok    chromium 0.8.0  ok\n" +
				"          fix       bubblewrap: sudo apt-get install --no-install-recommends bubblewrap (without it, what the CLI starts may outlive it)\n",
		},
		{
			name:    "no network",
			machine: machine{programs: map[string]bool{"socat": true, "tmux": true, "chromium": true, "apt-get": true}, offline: true},
			want: "set-up    claude 2.1.325 (pinned)  ok    bubblewrap  missing    socat 0.8.0  ok    tmux 0.8.0  ok    chromium 0.8.0  ok\n" +
				"          fix       bubblewrap: apt-get update && apt-get install bubblewrap (without it, what the CLI starts may outlive it)\n",
			calls: []string{install + "bubblewrap", "apt-get update"},
		},
		{
			name:    "another distribution",
			machine: machine{programs: map[string]bool{"bwrap": true, "tmux": true, "chromium": true}},
			want: "set-up    claude 2.1.325 (pinned)  ok    bubblewrap 0.8.0  ok    socat  missing    tmux 0.8.0  ok    chromium 0.8.0  ok\n" +
				"          fix       socat: install the package socat of your distribution (without it, the CLI's own Bash sandbox cannot reach the network)\n",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			s := setup{
				out: &out, goos: "linux", euid: c.euid, look: c.machine.look, run: c.machine.run,
				ensure: func(context.Context, string) (cliinstall.Install, error) {
					return cliinstall.Install{Fresh: c.fresh}, nil
				},
			}
			if err := s.all(t.Context(), "."); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.calls, c.machine.calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetup_FailsWithoutTheCLI(t *testing.T) {
	want := &cliinstall.Error{Err: exec.ErrNotFound, Repair: "install npm"}
	s := setup{ensure: func(context.Context, string) (cliinstall.Install, error) { return cliinstall.Install{}, want }}
	if err := s.all(t.Context(), "."); !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
