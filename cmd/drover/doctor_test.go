// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/cmd/drover/internal/doctor"
)

func decodedReport(t *testing.T, text string) doctor.Report {
	t.Helper()
	var report doctor.Report
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&report); err != nil || dec.More() {
		t.Fatalf("not one JSON object: %v\n%s", err, text)
	}
	return report
}

// closedOff keeps a run of the command from this machine's own credentials, proxies and home.
func closedOff(t *testing.T, cli, endpoint string) {
	t.Helper()
	for _, name := range slices.Concat([]string{"NODE_EXTRA_CA_CERTS", "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}, credentialNames, cloudNames) {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(home, "config"))
	t.Setenv(claude.EnvCLI, cli)
	t.Setenv("ANTHROPIC_BASE_URL", endpoint)
}

// The real command on this machine, with the pinned CLI and an endpoint on loopback.
func TestDoctor_ReadyMachinePasses(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t)
	closedOff(t, cli.Path, model.BaseURL())
	t.Setenv("ANTHROPIC_API_KEY", claudetest.FakeKey)
	code, stdout, stderr := drover(t.Context(), t, nil, "doctor", "--json", "--timeout", "1m")
	if code != 0 || stderr != "" {
		t.Fatalf("exit code %d, stderr %q, want 0 and nothing:\n%s", code, stderr, stdout)
	}
	report := decodedReport(t, stdout)
	var names []string
	for _, c := range report.Checks {
		names = append(names, c.Name)
		if c.State != "ok" && c.Name != "sandbox" {
			t.Errorf("%s is %s: %s", c.Name, c.State, c.Detail)
		}
		if c.Name == "isolation" && len(c.Attempts) != 12 {
			t.Errorf("isolation has %d attempts, want 12", len(c.Attempts))
		}
	}
	if want := []string{"claude", "isolation", "sandbox", "auth", "model", "disk", "temp"}; !slices.Equal(names, want) {
		t.Errorf("checks %v, want %v", names, want)
	}
	got := report.Checks[0]
	want := doctor.Check{
		Name: "claude", State: "ok", Version: claude.PinnedVersion, Path: cli.Path, Source: claude.EnvCLI,
		Tested: claude.OldestTested + " to " + claude.PinnedVersion, Detail: got.Detail,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claude (-want +got):\n%s", diff)
	}
	if strings.Contains(stdout, claudetest.FakeKey) {
		t.Errorf("the key is in the report:\n%s", stdout)
	}
}

func TestDoctor_OldestCLIIsReady(t *testing.T) {
	cli := claudetest.OldestCLI(t)
	closedOff(t, cli.Path, "")
	code, stdout, _ := drover(t.Context(), t, nil, "doctor", "--offline", "--timeout", "1m")
	if want := "claude      ok       " + claude.OldestTested + " at "; !strings.HasPrefix(stdout, want) {
		t.Errorf("got %q, want it to begin with %q", stdout, want)
	}
	if code != 3 || !strings.HasSuffix(stdout, "exit 3: one thing is missing: auth\n") {
		t.Errorf("exit code %d, want 3 for the credential:\n%s", code, stdout)
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

// The whole command with a CLI, an endpoint or a folder that is really broken.
func TestDoctor_ReportsABrokenMachine(t *testing.T) {
	good := fakeCLI(t, "#!/bin/sh\necho "+claude.PinnedVersion+"\n")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	closed := httptest.NewServer(nil)
	closed.Close()
	cases := []struct {
		name, cli, endpoint, want string
	}{
		{"good", good, server.URL, "exit 0: "},
		{"missing", "/nowhere/claude", server.URL, "claude      missing  CLI not found: /nowhere/claude"},
		{"a folder", filepath.Dir(good), server.URL, "it is a directory"},
		{"too old", fakeCLI(t, "#!/bin/sh\necho 1.0.3\n"), server.URL, " is too old, tested "},
		{"untested", fakeCLI(t, "#!/bin/sh\necho 9.0.0\n"), server.URL, "exit 0: a run can begin; one warning: claude"},
		{"fails", fakeCLI(t, "#!/bin/sh\necho it broke >&2; exit 7\n"), server.URL, "it broke"},
		{"no program", fakeCLI(t, "just words\n"), server.URL, "neither a program nor a script"},
		{"closed port", good, closed.URL, "cannot connect to 127.0.0.1"},
		{"a script for node, without node", fakeCLI(t, "#!/usr/bin/env node\n"), server.URL, "node        missing"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			closedOff(t, c.cli, c.endpoint)
			t.Setenv("ANTHROPIC_API_KEY", claudetest.FakeKey)
			if strings.Contains(c.want, "node") {
				t.Setenv("PATH", t.TempDir())
			}
			code, stdout, stderr := drover(t.Context(), t, nil, "doctor", "--timeout", "1m")
			wantCode := 3
			if strings.HasPrefix(c.want, "exit 0") {
				wantCode = 0
			}
			// Sandbox tools differ from machine to machine, and none of them matters here.
			stdout = strings.NewReplacer("2 warnings: claude, sandbox", "one warning: claude").Replace(stdout)
			if code != wantCode || stderr != "" || !strings.Contains(stdout, c.want) {
				t.Errorf("exit code %d, stderr %q, want %d, nothing and %q:\n%s", code, stderr, wantCode, c.want, stdout)
			}
		})
	}
}

// No secret is printed, whatever a program that is asked for its version or an address holds.
func TestDoctor_PrintsNoSecret(t *testing.T) {
	loud := fakeCLI(t, "#!/bin/sh\nprintf '%s ' \"$ANTHROPIC_API_KEY\" \"$ANTHROPIC_AUTH_TOKEN\" \"$CLAUDE_CODE_OAUTH_TOKEN\" loud-output >&2; exit 1\n")
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Method+" "+r.URL.Path)
		for name, values := range r.Header {
			seen = append(seen, name+": "+strings.Join(values, ","))
		}
	}))
	defer server.Close()
	// Values that no pattern of the redactor knows.
	secrets := []string{"planted-one", "planted-two", "planted-three", "planted-user", "planted-word", "planted-path", "planted-query"}
	address := strings.Replace(server.URL, "http://", "http://planted-user:planted-word@", 1) + "/planted-path?x=planted-query"
	for _, endpoint := range []string{address, "ftp" + strings.TrimPrefix(address, "http"), strings.Replace(address, "127.0.0.1", "127.0.0.1:bad", 1)} {
		for _, format := range []string{"--json=true", "--json=false"} {
			closedOff(t, loud, endpoint)
			for i, name := range credentialNames {
				t.Setenv(name, secrets[i])
			}
			_, stdout, stderr := drover(t.Context(), t, nil, "doctor", "--timeout", "1m", format)
			if !strings.Contains(stdout, "loud-output") {
				t.Errorf("the output of the CLI is not in the report: the test sees nothing\n%s", stdout)
			}
			for _, secret := range secrets {
				if strings.Contains(stdout+stderr+strings.Join(seen, "\n"), secret) {
					t.Errorf("%s is in the output or was sent:\n%s%s%s", secret, stdout, stderr, seen)
				}
			}
		}
	}
	if !slices.Contains(seen, "HEAD /") {
		t.Errorf("the endpoint got %q, want HEAD /", seen)
	}
}

func TestDoctor_RejectsWrongUsage(t *testing.T) {
	for _, args := range [][]string{{"--unknown"}, {"argument"}, {"--timeout", "0s"}, {"--timeout", "soon"}} {
		code, stdout, stderr := drover(t.Context(), t, nil, append([]string{"doctor"}, args...)...)
		if code != 2 || stdout != "" || !strings.HasPrefix(stderr, "drover: ") || strings.Count(stderr, "\n  next: ") != 1 || strings.Count(stderr, "\n") != 2 {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q; want 2 and one line on what to do", args, code, stdout, stderr)
		}
	}
}

// A brokenPipe takes nothing.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("the pipe is broken") }

func TestDoctor_FailsIfTheReportCannotBeWritten(t *testing.T) {
	for _, format := range []string{"--json=true", "--json=false"} {
		closedOff(t, "/nowhere/claude", "")
		var errs bytes.Buffer
		cmd := newCommand()
		cmd.SetArgs([]string{"doctor", "--offline", format})
		cmd.SetOut(brokenPipe{})
		cmd.SetErr(&errs)
		if code := execute(t.Context(), cmd); code != 1 || !strings.Contains(errs.String(), "writing the report: the pipe is broken") {
			t.Errorf("%s: exit code %d, stderr %q; want 1 and why", format, code, &errs)
		}
	}
}

// The context ends as it does on Ctrl-C, while the CLI and the endpoint do not answer.
func TestDoctor_InterruptEndsTheChecks(t *testing.T) {
	begun := filepath.Join(t.TempDir(), "begun")
	silent := fakeCLI(t, "#!/bin/sh\ntouch "+begun+"\nexec tail -f /dev/null\n")
	closedOff(t, silent, "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(begun); err == nil {
				cancel()
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	code, stdout, stderr := drover(ctx, t, nil, "doctor", "--offline", "--timeout", "1m")
	if code != 130 || stdout != "" || !strings.HasPrefix(stderr, "drover: stopped") {
		t.Errorf("exit code %d, stdout %q, stderr %q; want 130 and one line", code, stdout, stderr)
	}
}
