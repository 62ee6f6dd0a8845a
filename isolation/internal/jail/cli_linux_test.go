// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package jail_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/isolation/internal/jail"
	"github.com/drover-agents/drover/launch"
)

// A jailed CLI as package claude takes it.
type jailed struct{ *jail.Cell }

func (j jailed) Wait() launch.ExitStatus {
	status := j.Cell.Wait()
	return launch.ExitStatus{Code: status.Code, Signal: status.Signal}
}

// jailSpawner starts the CLI in a cell that has one endpoint, which is forwarded to the model.
func jailSpawner(t *testing.T, cli *claudetest.RealCLI, model *claudetest.Model, listen string, nested bool) launch.Spawner {
	return launch.SpawnerFunc(func(ctx context.Context, cmd launch.Command) (launch.Process, error) {
		program, err := filepath.EvalSymlinks(cmd.Path)
		if err != nil {
			return nil, err
		}
		cell, err := jail.Start(ctx, jail.Spec{
			Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Env: cmd.Env,
			Mounts: []jail.Mount{
				{Source: program, Target: cmd.Path},
				{Source: cli.Home, Writable: true},
				{Source: cli.Config, Writable: true},
				{Source: cli.Temp, Writable: true},
				{Source: cli.Work, Writable: true},
			},
			Listen: []netip.AddrPort{netip.MustParseAddrPort(listen)},
			Limits: jail.Limits{Processes: 256, OpenFiles: 4096},
			Nested: nested,
		})
		if err != nil {
			return nil, err
		}
		forward(t, cell.Listeners()[0], model)
		return jailed{cell}, nil
	})
}

// forward serves a listener of a cell until the end of the test.
func forward(t *testing.T, l net.Listener, model *claudetest.Model) {
	to, err := url.Parse(model.BaseURL())
	if err != nil {
		t.Error(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	server := &http.Server{Handler: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1, Transport: transport,
	}, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close(); <-done; transport.CloseIdleConnections() })
}

// cellOptions run the CLI in a cell whose endpoint is at an address.
func cellOptions(t *testing.T, cli *claudetest.RealCLI, model *claudetest.Model, listen string, extra map[string]string) *claude.Options {
	env := claude.CellEnv{
		Path: "/usr/bin:/bin", Home: cli.Home, Config: cli.Config, Temp: cli.Temp,
		Endpoint: claude.CellEndpoint{URL: "http://" + listen, Token: "cell-token"}, Extra: extra,
	}
	opts := cli.Options(model)
	opts.Env = claude.ExactEnv(env.Vars())
	opts.PermissionMode = claude.ModeBypassPermissions
	opts.Spawner = jailSpawner(t, cli, model, listen, false)
	return opts
}

// ask runs one turn and returns the answer.
func ask(t *testing.T, opts *claude.Options) string {
	t.Helper()
	var answer string
	for m, err := range claude.Query(t.Context(), "go", opts) {
		if err != nil {
			t.Fatal(err)
		}
		if r, ok := m.(*claude.ResultMessage); ok {
			answer = r.Result
		}
	}
	return answer
}

// The real CLI works in a cell: it calls the model over the listener that was handed out, runs a
// shell and writes into its workspace.
func TestCLI_WorksInACell(t *testing.T) {
	for name, c := range map[string]struct {
		listen string
		env    map[string]string
	}{
		"on 127.0.0.1": {"127.0.0.1:8080", nil},
		"on another address, beside a proxy that is not there": {"127.0.0.2:8080", map[string]string{
			"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.2",
			"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.2",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			requireCells(t)
			cli := claudetest.CLI(t)
			model := claudetest.NewModel(t,
				script.Call("Bash", script.Input{"command": "id -u; cat /proc/sys/kernel/hostname; echo made > made; ls /home /root 2>&1 | wc -l"}),
				script.Text("done"),
			).RequireAllUsed()
			opts := cellOptions(t, cli, model, c.listen, c.env)
			if got := ask(t, opts); got != "done" {
				t.Errorf("answer: got %q, want done", got)
			}
			if got, _, _ := model.ToolResult("Bash"); got != "1000\ncell\n2" {
				t.Errorf("output of the shell: got %q", got)
			}
			checkOwner(t, filepath.Join(cli.Work, "made"), cli.Work)
		})
	}
}

// In the relaxed profile the CLI's own sandbox around Bash works: it writes the workspace, and does
// not reach the cell's endpoint.
func TestCLI_OwnSandboxWorksInARelaxedCell(t *testing.T) {
	requireCells(t)
	if _, err := exec.LookPath("socat"); err != nil {
		t.Skip("the CLI's sandbox needs socat: install it")
	}
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("Bash", script.Input{"command": "echo made > made && cat made; touch $HOME/x 2>/dev/null || echo home kept; (exec 3<>/dev/tcp/127.0.0.1/8080) 2>/dev/null || echo no endpoint"}),
		script.Text("done"),
	).RequireAllUsed()
	opts := cellOptions(t, cli, model, "127.0.0.1:8080", nil)
	opts.Spawner = jailSpawner(t, cli, model, "127.0.0.1:8080", true)
	opts.Settings = json.RawMessage(`{"sandbox":{"enabled":true,"failIfUnavailable":true,"allowUnsandboxedCommands":false,"enableWeakerNestedSandbox":true}}`)
	if got := ask(t, opts); got != "done" {
		t.Errorf("answer: got %q, want done", got)
	}
	if got, _, _ := model.ToolResult("Bash"); !strings.Contains(got, "made\n") || !strings.Contains(got, "home kept") || !strings.Contains(got, "no endpoint") {
		t.Errorf("output of the shell: got %q", got)
	}
}
