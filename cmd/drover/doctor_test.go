// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/isolation"
)

// A readyAdapter is an agent of which only the readiness is known.
type readyAdapter agent.Readiness

func (r readyAdapter) Ready(context.Context) agent.Readiness { return agent.Readiness(r) }

// healthy is a doctor for a machine on which all is well. Nothing of it is real but the endpoint.
func healthy(t *testing.T) *doctor {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	temp := t.TempDir()
	env := []string{"ANTHROPIC_API_KEY=sk-ant-planted", "ANTHROPIC_BASE_URL=" + server.URL}
	return &doctor{
		options: doctorOptions{timeout: time.Minute},
		environ: func() []string { return env },
		home:    t.TempDir(),
		stat:    func(string) error { return fs.ErrNotExist },
		adapter: readyAdapter{State: agent.StateReady, Version: "2.1.325", Path: "/shop/.drover/bin/claude", Tested: "2.1.197 to 2.1.325"},
		find: func() (claude.Found, error) {
			return claude.Found{Path: "/shop/.drover/bin/claude", Source: claude.FoundProject}, nil
		},
		node:    func(context.Context) (string, error) { return "v22.1.0", nil },
		best:    func(context.Context) (isolation.Level, []error) { return isolation.LevelCell, nil },
		probe:   func(context.Context, isolation.Level) (isolation.Report, error) { return tightWalls(), nil },
		sandbox: func(context.Context) sandboxFacts { return strongSandbox() },
		dial:    modelDial{proxy: noProxy, wait: 30 * time.Second},
		workDir: func() (string, error) { return "/shop", nil },
		tempDir: func() string { return temp },
		free:    func(string) (uint64, error) { return 80_123_456_789, nil },
		goos:    "linux",
	}
}

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// tightWalls are walls that hold.
func tightWalls() isolation.Report {
	return isolation.Report{Attempts: []isolation.Attempt{
		{Name: "read a file of the host", Held: true, Detail: "it is not there"},
		{Name: "reach a server of the host", Held: true, Detail: "loopback is the cell's own"},
	}}
}

// setenv changes one variable of a doctor's environment.
func (d *doctor) setenv(name, value string) {
	before := d.environ
	d.environ = func() []string { return append(slices.Clone(before()), name+"="+value) }
}

// diagnosed runs a doctor and returns its code and words.
func diagnosed(t *testing.T, d *doctor) (code int, text string) {
	t.Helper()
	var out bytes.Buffer
	err := d.run(t.Context(), &out)
	if exit, ok := errors.AsType[ending](err); ok {
		return exit.code, out.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0, out.String()
}

// ill has something wrong in most places.
func ill(t *testing.T) *doctor {
	t.Helper()
	d := healthy(t)
	d.adapter = readyAdapter{State: agent.StateUntested, Version: "2.9.0", Path: "/usr/bin/claude", Tested: "2.1.197 to 2.1.325", Repair: "npm install claude"}
	d.sandbox = func(context.Context) sandboxFacts {
		f := strongSandbox()
		f.bubblewrap, f.socat = toolFact{err: errors.New("not on PATH")}, toolFact{err: errors.New("not on PATH")}
		return f
	}
	d.best = func(context.Context) (isolation.Level, []error) {
		return isolation.LevelSandbox, []error{errors.New("  cell: bubblewrap (bwrap) is not on PATH\n  next: install bubblewrap")}
	}
	d.probe = func(context.Context, isolation.Level) (isolation.Report, error) {
		report := tightWalls()
		report.Attempts[0] = isolation.Attempt{Name: "read a file of the host", Detail: "it is there"}
		return report, nil
	}
	d.setenv("ANTHROPIC_API_KEY", "")
	d.setenv("ANTHROPIC_BASE_URL", "ftp://somebody:secret@host/path")
	d.free = func(string) (uint64, error) { return 40_000_000, nil }
	return d
}

func TestDoctorGoldenReports(t *testing.T) {
	for name, machine := range map[string]func(*testing.T) *doctor{"well": healthy, "ill": ill} {
		for _, format := range []string{"txt", "json"} {
			t.Run(name+"."+format, func(t *testing.T) {
				d := machine(t)
				d.options.json = format == "json"
				_, text := diagnosed(t, d)
				base := d.getenv("ANTHROPIC_BASE_URL")
				text = strings.NewReplacer(d.tempDir(), "/tmp", base, "http://127.0.0.1:1234").Replace(text)
				golden(t, filepath.Join("testdata", "doctor-"+name+"."+format), text)
			})
		}
	}
}

// Whatever a run needs is missing or broken in turn: doctor names it, says what mends it, and exits 3.
func TestDoctorNamesWhatIsWrong(t *testing.T) {
	cases := []struct {
		name  string
		ruin  func(d *doctor)
		check string
		state doctorState
	}{
		{"no CLI", func(d *doctor) {
			d.adapter = readyAdapter{State: agent.StateMissing, Detail: "CLI not found", Repair: "npm install"}
		}, "claude", doctorMissing},
		{"old CLI", func(d *doctor) {
			d.adapter = readyAdapter{State: agent.StateUnsupported, Version: "1.0.0", Repair: "npm install"}
		}, "claude", doctorBroken},
		{"unreadable CLI", func(d *doctor) { d.adapter = readyAdapter{State: agent.StateUnknown, Repair: "npm install"} }, "claude", doctorBroken},
		{"no cell", func(d *doctor) {
			d.best = func(context.Context) (isolation.Level, []error) {
				return isolation.LevelHost, []error{errors.New("no")}
			}
		}, "isolation", doctorMissing},
		{"a hole in the walls", func(d *doctor) {
			d.probe = func(context.Context, isolation.Level) (isolation.Report, error) {
				return isolation.Report{Attempts: []isolation.Attempt{{Name: "be root"}}}, nil
			}
		}, "isolation", doctorBroken},
		{"walls that cannot be tried", func(d *doctor) {
			d.probe = func(context.Context, isolation.Level) (isolation.Report, error) {
				return isolation.Report{}, errors.New("no bash")
			}
		}, "isolation", doctorBroken},
		{"walls that take too long", func(d *doctor) {
			d.probe = func(context.Context, isolation.Level) (isolation.Report, error) {
				return isolation.Report{}, context.DeadlineExceeded
			}
		}, "isolation", doctorBroken},
		{"no credential", func(d *doctor) { d.setenv("ANTHROPIC_API_KEY", "") }, "auth", doctorMissing},
		{"a credential that is none", func(d *doctor) { d.setenv("ANTHROPIC_API_KEY", " x") }, "auth", doctorBroken},
		{"closed port", func(d *doctor) { d.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1") }, "model", doctorBroken},
		{"no working folder", func(d *doctor) { d.workDir = func() (string, error) { return "", fs.ErrNotExist } }, "disk", doctorBroken},
		{"full disk", func(d *doctor) { freeIn(d, "/shop", 99_999_999) }, "disk", doctorBroken},
		{"full temp", func(d *doctor) { freeIn(d, d.tempDir(), 0) }, "temp", doctorBroken},
		{"no temp", func(d *doctor) { d.tempDir = func() string { return "/nowhere/at/all" } }, "temp", doctorBroken},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := healthy(t)
			c.ruin(d)
			d.options.json = true
			code, text := diagnosed(t, d)
			report := decodedReport(t, text)
			if code != 3 || report.Exit != 3 || !strings.HasSuffix(report.Summary, ": "+c.check) {
				t.Errorf("exit code %d, in the report %d, summary %q; want 3 and %s", code, report.Exit, report.Summary, c.check)
			}
			for _, got := range report.Checks {
				switch {
				case got.Name == c.check && (got.State != c.state || len(got.Fix) == 0):
					t.Errorf("%s is %s with the fix %q, want %s and a fix", got.Name, got.State, got.Fix, c.state)
				case got.Name != c.check && got.State != doctorOK:
					t.Errorf("%s is %s (%s), want ok: it is not what is wrong", got.Name, got.State, got.Detail)
				}
			}
		})
	}
}

// A run finds the address when it looks for the credential, so both are wrong.
func TestDoctorNamesABadAddress(t *testing.T) {
	d := healthy(t)
	d.setenv("ANTHROPIC_BASE_URL", "localhost:1")
	code, text := diagnosed(t, d)
	if code != 3 || !strings.HasSuffix(text, "exit 3: 2 things are broken: auth, model\n") || !strings.Contains(text, "ANTHROPIC_BASE_URL") {
		t.Errorf("exit code %d, want 3 for auth and model:\n%s", code, text)
	}
}

// freeIn sets the free space of one folder.
func freeIn(d *doctor, dir string, bytes uint64) {
	before := d.free
	d.free = func(asked string) (uint64, error) {
		if asked == dir {
			return bytes, nil
		}
		return before(asked)
	}
}

func decodedReport(t *testing.T, text string) doctorReport {
	t.Helper()
	var report doctorReport
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
	for _, name := range slices.Concat([]string{extraCertificates, "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}, credentialNames, cloudNames) {
		t.Setenv(name, "")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(home, "config"))
	t.Setenv(claude.EnvCLI, cli)
	t.Setenv("ANTHROPIC_BASE_URL", endpoint)
}

// The real command on this machine, with the pinned CLI and an endpoint on loopback.
func TestDoctorSaysAllIsWell(t *testing.T) {
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
		if c.State != doctorOK && c.Name != "sandbox" {
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
	want := doctorCheck{
		Name: "claude", State: doctorOK, Version: claude.PinnedVersion, Path: cli.Path, Source: claude.EnvCLI,
		Tested: claude.OldestTested + " to " + claude.PinnedVersion, Detail: got.Detail,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("claude (-want +got):\n%s", diff)
	}
	if strings.Contains(stdout, claudetest.FakeKey) {
		t.Errorf("the key is in the report:\n%s", stdout)
	}
}

func TestDoctorFindsTheOldestCLIReady(t *testing.T) {
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

// fakeCLI is a script that stands in for the CLI.
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
func TestDoctorOnABrokenMachine(t *testing.T) {
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
func TestDoctorPrintsNoSecret(t *testing.T) {
	loud := fakeCLI(t, "#!/bin/sh\nprintf '%s ' \"$ANTHROPIC_API_KEY\" \"$ANTHROPIC_AUTH_TOKEN\" \"$CLAUDE_CODE_OAUTH_TOKEN\" heard >&2; exit 1\n")
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
			if !strings.Contains(stdout, "heard") {
				t.Errorf("what the CLI said is not in the report: the test sees nothing\n%s", stdout)
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

func TestDoctorRefusesWrongUsage(t *testing.T) {
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

func TestDoctorThatCannotReportFails(t *testing.T) {
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
func TestDoctorStopped(t *testing.T) {
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
