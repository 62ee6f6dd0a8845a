// SPDX-License-Identifier: Apache-2.0

//go:build unix

package isolation_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/launch"
)

// The process that is started has the variables of the isolation and the token of its run. That token
// opens the gateway, which pays with the key that was given; the key itself is in no variable.
func TestOpen_ProcessHasItsVariablesAndTheTokenOfItsRun(t *testing.T) {
	var paid []string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paid = append(paid, r.Header.Get("X-Api-Key"))
		w.WriteHeader(http.StatusTeapot)
	}))
	defer upstream.Close()
	tracker := guard.NewTracker(guard.Budget{MaxRequests: 10})
	i := &isolation.Isolation{
		Trackers: []*guard.Tracker{tracker}, APIKey: planted, Env: map[string]string{"PROJECT": "gemini"}, Weakest: host, Strongest: host, TempDir: shortFolder(t),
		Host: hostWith("ANTHROPIC_BASE_URL="+upstream.URL, "PATH=/usr/bin:/bin", "ANTHROPIC_API_KEY=sk-ant-of-the-host"),
	}
	o := &claude.Options{Dir: t.TempDir()}
	cell, err := claudecell.Open(t.Context(), i, o, isolation.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer cell.Close()
	p, err := o.Spawner.Spawn(t.Context(), launch.Command{Path: "/usr/bin/env", Dir: o.Dir, Env: o.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Stdin().Close()
	output, err := io.ReadAll(p.Stdout())
	if err != nil {
		t.Fatal(err)
	}
	p.Wait()
	vars := map[string]string{}
	for line := range strings.Lines(string(output)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		vars[name] = value
	}
	if vars["HOME"] != cell.Home().Path() || vars["CLAUDE_CONFIG_DIR"] != cell.Home().ConfigDir() {
		t.Errorf("the process has the home %q and the configuration %q", vars["HOME"], vars["CLAUDE_CONFIG_DIR"])
	}
	token := vars["ANTHROPIC_API_KEY"] + vars["ANTHROPIC_AUTH_TOKEN"]
	if vars["PROJECT"] != "gemini" || token == "" || strings.Contains(string(output), planted) || strings.Contains(string(output), "sk-ant-of-the-host") {
		t.Fatalf("the process has the variables\n%s", output)
	}
	for _, key := range []string{"wrong", token} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, vars["ANTHROPIC_BASE_URL"]+"/v1/messages", strings.NewReader(`{"model":"claude-sonnet-4-5","max_tokens":1,"messages":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", key)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	if len(paid) != 1 || paid[0] != planted {
		t.Errorf("the upstream was paid with %q, want once with the key that was given", paid)
	}
	if n := tracker.Consumed().Requests; n != 1 {
		t.Errorf("the tracker has counted %d requests, want 1", n)
	}
}

// Without Host.Environ a run finds its credentials in the environment of the CLI's options.
func TestOpen_HostEnvironIsThatOfTheOptions(t *testing.T) {
	upstream := ""
	emit := func(p event.Payload) {
		if protection, ok := p.(isolation.Protection); ok {
			upstream = protection.Upstream
		}
	}
	i := &isolation.Isolation{Weakest: host, Strongest: host, TempDir: shortFolder(t), Host: isolation.Host{Home: t.TempDir()}}
	o := &claude.Options{Dir: t.TempDir(), Env: claude.ExactEnv(map[string]string{"ANTHROPIC_API_KEY": planted, "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/of-the-options"})}
	cell, err := claudecell.Open(t.Context(), i, o, isolation.OpenOptions{Emit: emit})
	if err != nil {
		t.Fatal(err)
	}
	defer cell.Close()
	if !strings.Contains(upstream, "127.0.0.1:9") {
		t.Errorf("the upstream is %q, want that of the options", upstream)
	}
}
