// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
)

const realKey = "sk-ant-the-real-key-0123456789"

// A recorder keeps the events of a run.
type recorder struct {
	mu  sync.Mutex
	all []event.Payload
}

func (r *recorder) emit(p event.Payload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, p)
}

// eventsOf are the recorded events of one type.
func eventsOf[T event.Payload](r *recorder) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []T
	for _, p := range r.all {
		if e, ok := p.(T); ok {
			out = append(out, e)
		}
	}
	return out
}

// endpoint is an upstream that leads to a scripted model.
func endpoint(t testing.TB, url string) gateway.Upstream {
	t.Helper()
	u, err := gateway.Endpoint(url, gateway.APIKey(realKey))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// serve opens a run on a loopback port until the end of the test.
func serve(t testing.TB, g *gateway.Gateway, o gateway.RunOptions) (run *gateway.Run, url string) {
	t.Helper()
	run, err := g.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- run.Serve(l) }()
	t.Cleanup(func() {
		if err := run.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-done; err != gateway.ErrClosed {
			t.Errorf("Serve: %v", err)
		}
	})
	return run, "http://" + l.Addr().String()
}

// through are options for a CLI that knows the gateway and its token only.
func through(cli *claudetest.RealCLI, run *gateway.Run, url string, vars map[string]string) *claude.Options {
	env := cli.Env(url)
	env["ANTHROPIC_API_KEY"] = run.Token()
	for name, value := range vars {
		env[name] = value
	}
	return &claude.Options{CLIPath: cli.Path, Dir: cli.Work, Env: claude.ExactEnv(env), SettingSources: []string{}, StrictMCP: true}
}

func TestTheCLIWorksThroughTheGateway(t *testing.T) {
	cli := claudetest.CLI(t)
	model := claudetest.NewModel(t,
		script.Call("Bash", map[string]any{"command": "echo through", "description": "say it"}).Metered(script.Usage{Input: 100, Output: 20, CacheRead: 7}),
		script.Text("done").Chunked(1, 0).Metered(script.Usage{Input: 150, Output: 30, CacheCreation: 5}))
	var events recorder
	run, url := serve(t, gateway.New(nil), gateway.RunOptions{Upstream: endpoint(t, model.URL()), Emit: events.emit})
	opts := through(cli, run, url, nil)
	opts.PermissionMode = claude.ModeBypassPermissions

	answer := ask(t, opts)
	if answer.Result != "done" {
		t.Errorf("the CLI says %q", answer.Result)
	}
	for _, r := range model.Requests() {
		if got := r.Header.Get("X-Api-Key"); got != realKey {
			t.Errorf("the model got the key %q", got)
		}
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding is %q", got)
		}
	}
	t.Logf("%+v", run.Usage())
	t.Logf("%+v", events.all)
}

// ask runs the CLI with one prompt and returns the result that counts.
func ask(t *testing.T, opts *claude.Options) *claude.ResultMessage {
	t.Helper()
	for m, err := range claude.Query(context.Background(), "go", opts) {
		if err != nil {
			t.Logf("the CLI ends with %v", err)
		}
		if end, ok := m.(*claude.TurnEnd); ok {
			return end.Answer
		}
	}
	t.Fatal("no answer of the CLI")
	return nil
}
