// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/isolation"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { claudetest.Main(m) }

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		writeFile(t, path, []byte(got))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update rewrites it:\n%s", path, diff)
	}
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A readyAdapter is an agent of which only the readiness is known.
type readyAdapter agent.Readiness

func (r readyAdapter) Ready(context.Context) agent.Readiness { return agent.Readiness(r) }

// healthy is a machine on which all is well. Nothing of it is real but the endpoint.
func healthy(t *testing.T) *machine {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	temp := t.TempDir()
	env := []string{"ANTHROPIC_API_KEY=sk-ant-planted", "ANTHROPIC_BASE_URL=" + server.URL}
	return &machine{
		options: Options{
			Timeout: time.Minute, WorkDir: func() (string, error) { return "/shop", nil },
			Credentials: []string{"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"},
			Clouds:      []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"},
		},
		environ: func() []string { return env },
		home:    t.TempDir(),
		stat:    func(string) error { return fs.ErrNotExist },
		adapter: readyAdapter{State: agent.StateReady, Version: "2.1.325", Path: "/shop/.drover/bin/claude", Tested: "2.1.197 to 2.1.325"},
		find: func() (claude.Found, error) {
			return claude.Found{Path: "/shop/.drover/bin/claude", Source: claude.FoundProject}, nil
		},
		node:    func(context.Context) (string, error) { return "v22.1.0", nil },
		best:    func(context.Context) (isolation.Level, []error) { return isolation.LevelCell, nil },
		probe:   func(context.Context, isolation.Level) (isolation.Report, error) { return tightIsolation(), nil },
		sandbox: func(context.Context) sandboxFacts { return strongSandbox() },
		dial:    modelDial{proxy: noProxy, wait: 30 * time.Second},
		tempDir: func() string { return temp },
		free:    func(string) (uint64, error) { return 80_123_456_789, nil },
		goos:    "linux",
	}
}

func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// tightIsolation is the report of an isolation that blocks every attempt.
func tightIsolation() isolation.Report {
	return isolation.Report{Attempts: []isolation.Attempt{
		{Name: "read a file of the host", Blocked: true, Detail: "it is not there"},
		{Name: "reach a server of the host", Blocked: true, Detail: "loopback is the cell's own"},
	}}
}

// setenv changes one variable of a machine's environment.
func (d *machine) setenv(name, value string) {
	before := d.environ
	d.environ = func() []string { return append(slices.Clone(before()), name+"="+value) }
}

func reportOn(t *testing.T, d *machine) Report {
	t.Helper()
	report, err := d.report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// diagnosed is the exit code and the text of a report.
func diagnosed(t *testing.T, d *machine) (code int, text string) {
	t.Helper()
	var out bytes.Buffer
	report := reportOn(t, d)
	if err := report.WriteText(&out, 0); err != nil {
		t.Fatal(err)
	}
	return report.Exit, out.String()
}

// ill has something wrong in most places.
func ill(t *testing.T) *machine {
	t.Helper()
	d := healthy(t)
	d.adapter = readyAdapter{State: agent.StateUntested, Version: "2.9.0", Path: "/usr/bin/claude", Tested: "2.1.197 to 2.1.325", Repair: "npm install claude"}
	d.sandbox = func(context.Context) sandboxFacts {
		f := strongSandbox()
		f.bubblewrap, f.socat = toolFact{err: errors.New("not on PATH")}, toolFact{err: errors.New("not on PATH")}
		return f
	}
	d.best = func(context.Context) (isolation.Level, []error) {
		return isolation.LevelSandbox, []error{advice.Wrap(errors.New("  cell: bubblewrap (bwrap) is not on PATH"), "install bubblewrap")}
	}
	d.probe = func(context.Context, isolation.Level) (isolation.Report, error) {
		report := tightIsolation()
		report.Attempts[0] = isolation.Attempt{Name: "read a file of the host", Detail: "it is there"}
		return report, nil
	}
	d.setenv("ANTHROPIC_API_KEY", "")
	d.setenv("ANTHROPIC_BASE_URL", "ftp://somebody:secret@host/path")
	d.free = func(string) (uint64, error) { return 40_000_000, nil }
	return d
}

func TestReport_Golden(t *testing.T) {
	for name, machineOf := range map[string]func(*testing.T) *machine{"well": healthy, "ill": ill} {
		d := machineOf(t)
		report := reportOn(t, d)
		for format, write := range map[string]func(io.Writer) error{
			"txt":  func(w io.Writer) error { return report.WriteText(w, 0) },
			"json": report.WriteJSON,
		} {
			t.Run(name+"."+format, func(t *testing.T) {
				var out bytes.Buffer
				if err := write(&out); err != nil {
					t.Fatal(err)
				}
				base := d.getenv("ANTHROPIC_BASE_URL")
				text := strings.NewReplacer(d.tempDir(), "/tmp", base, "http://127.0.0.1:1234").Replace(out.String())
				golden(t, filepath.Join("testdata", name+"."+format), text)
			})
		}
	}
}

// Whatever a run needs is missing or broken in turn: doctor names it, prints the fix, and exits 3.
func TestReport_EveryFaultIsNamedWithItsFix(t *testing.T) {
	cases := []struct {
		name  string
		ruin  func(d *machine)
		check string
		state State
	}{
		{"no CLI", func(d *machine) {
			d.adapter = readyAdapter{State: agent.StateMissing, Detail: "CLI not found", Repair: "npm install"}
		}, "claude", stateMissing},
		{"old CLI", func(d *machine) {
			d.adapter = readyAdapter{State: agent.StateUnsupported, Version: "1.0.0", Repair: "npm install"}
		}, "claude", stateBroken},
		{"unreadable CLI", func(d *machine) { d.adapter = readyAdapter{State: agent.StateUnknown, Repair: "npm install"} }, "claude", stateBroken},
		{"no cell", func(d *machine) {
			d.best = func(context.Context) (isolation.Level, []error) {
				return isolation.LevelHost, []error{errors.New("no")}
			}
		}, "isolation", stateMissing},
		{"a hole in the isolation", func(d *machine) {
			d.probe = func(context.Context, isolation.Level) (isolation.Report, error) {
				return isolation.Report{Attempts: []isolation.Attempt{{Name: "be root"}}}, nil
			}
		}, "isolation", stateBroken},
		{"isolation that cannot be tested", func(d *machine) {
			d.probe = func(context.Context, isolation.Level) (isolation.Report, error) {
				return isolation.Report{}, errors.New("no bash")
			}
		}, "isolation", stateBroken},
		{"isolation that takes too long", func(d *machine) {
			d.probe = func(context.Context, isolation.Level) (isolation.Report, error) {
				return isolation.Report{}, context.DeadlineExceeded
			}
		}, "isolation", stateBroken},
		{"no credential", func(d *machine) { d.setenv("ANTHROPIC_API_KEY", "") }, "auth", stateMissing},
		{"an invalid credential", func(d *machine) { d.setenv("ANTHROPIC_API_KEY", " x") }, "auth", stateBroken},
		{"closed port", func(d *machine) { d.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1") }, "model", stateBroken},
		{"no working folder", func(d *machine) { d.options.WorkDir = func() (string, error) { return "", fs.ErrNotExist } }, "disk", stateBroken},
		{"full disk", func(d *machine) { freeIn(d, "/shop", 99_999_999) }, "disk", stateBroken},
		{"full temp", func(d *machine) { freeIn(d, d.tempDir(), 0) }, "temp", stateBroken},
		{"no temp", func(d *machine) { d.tempDir = func() string { return "/nowhere/at/all" } }, "temp", stateBroken},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d := healthy(t)
			c.ruin(d)
			report := reportOn(t, d)
			if report.Exit != 3 || !strings.HasSuffix(report.Summary, ": "+c.check) {
				t.Errorf("exit code %d, summary %q; want 3 and %s", report.Exit, report.Summary, c.check)
			}
			for _, got := range report.Checks {
				switch {
				case got.Name == c.check && (got.State != c.state || len(got.Fix) == 0):
					t.Errorf("%s is %s with the fix %q, want %s and a fix", got.Name, got.State, got.Fix, c.state)
				case got.Name != c.check && got.State != stateOK:
					t.Errorf("%s is %s (%s), want ok: it is not what is wrong", got.Name, got.State, got.Detail)
				}
			}
		})
	}
}

// A run finds the address when it looks for the credential, so both are wrong.
func TestReport_InvalidAddressFailsCredentialAndEndpoint(t *testing.T) {
	d := healthy(t)
	d.setenv("ANTHROPIC_BASE_URL", "localhost:1")
	code, text := diagnosed(t, d)
	if code != 3 || !strings.HasSuffix(text, "exit 3: 2 things are broken: auth, model\n") || !strings.Contains(text, "ANTHROPIC_BASE_URL") {
		t.Errorf("exit code %d, want 3 for auth and model:\n%s", code, text)
	}
}

// freeIn sets the free space of one folder.
func freeIn(d *machine, dir string, bytes uint64) {
	before := d.free
	d.free = func(asked string) (uint64, error) {
		if asked == dir {
			return bytes, nil
		}
		return before(asked)
	}
}
