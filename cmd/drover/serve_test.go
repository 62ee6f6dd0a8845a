// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/server"
)

// serving parses a command line of drover serve, and returns its starter.
func serving(t *testing.T, args ...string) *starter {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	o := &serveOptions{}
	cmd := o.command()
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	o.agents, o.words = cmd.Flags().Args(), serveWords(cmd)
	st, err := newStarter(o)
	if err != nil {
		t.Fatal(err)
	}
	st.program = filepath.Join(st.folders[0], "none") // without a variable, this program would run all tests again
	return st
}

// A request narrows what the flags of the server allow. What would widen it is refused.
func TestServe_RequestsOnlyNarrow(t *testing.T) {
	dir := mustResolve(t, t.TempDir())
	t.Chdir(dir)
	other := mustResolve(t, t.TempDir())
	agent := filepath.Join(t.TempDir(), "reviewer.yaml")
	text := "version: 1\nargs:\n  what: {doc: what to review}\nsections:\n  - {key: task, title: Task, text: 'Review ${what}.'}\n"
	if err := os.WriteFile(agent, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	base := []string{"--max-usd=1", "--max-turns=10", "--allow=fileWrite", "--tools=Read,Write,Bash", "--isolation=landlock"}
	for name, c := range map[string]struct {
		flags   []string
		start   server.Start
		want    []string // words of the command line
		not     []string
		refused string
	}{
		"as it is":             {base, server.Start{Prompt: "Go."}, append(base, "--tools=Read,Write,Bash"), nil, ""},
		"lower limit":          {base, server.Start{Prompt: "Go.", Limits: server.Limits{USD: 0.25, Turns: 3}}, []string{"--max-usd=0.25", "--max-turns=3"}, []string{"--max-usd=1"}, ""},
		"higher limit":         {base, server.Start{Prompt: "Go.", Limits: server.Limits{USD: 100, Tokens: 5, Seconds: 1.5}}, []string{"--max-usd=1", "--max-tokens=5", "--timeout=1.5s"}, []string{"--max-usd=100"}, ""},
		"negative limit":       {base, server.Start{Prompt: "Go.", Limits: server.Limits{USD: -1}}, nil, nil, "below zero"},
		"denied":               {base, server.Start{Prompt: "Go.", Deny: []string{"fileWrite"}}, []string{"--deny=fileWrite"}, []string{"--allow=fileWrite"}, ""},
		"denied unknown":       {base, server.Start{Prompt: "Go.", Deny: []string{"everything"}}, nil, nil, "there is no capability"},
		"read only":            {base, server.Start{Prompt: "Go.", ReadOnly: true}, []string{"--read-only", "--deny=fileWrite", "--deny=shellExecute"}, []string{"--allow=fileWrite"}, ""},
		"fewer tools":          {base, server.Start{Prompt: "Go.", Tools: []string{"Read"}}, []string{"--tools=Read"}, []string{"--tools=Read,Write,Bash"}, ""},
		"no tools":             {base, server.Start{Prompt: "Go.", Tools: []string{}}, []string{"--tools="}, []string{"--tools=Read,Write,Bash"}, ""},
		"another tool":         {base, server.Start{Prompt: "Go.", Tools: []string{"Read", "WebFetch"}}, nil, nil, "WebFetch is not among"},
		"tools in one name":    {nil, server.Start{Prompt: "Go.", Tools: []string{"Read,Bash"}}, nil, nil, "not the name of a tool"},
		"model":                {nil, server.Start{Prompt: "Go.", Model: "small"}, []string{"--model=small"}, nil, ""},
		"another model":        {[]string{"--model=big"}, server.Start{Prompt: "Go.", Model: "small"}, nil, nil, "the model is big"},
		"model as flag":        {nil, server.Start{Prompt: "Go.", Model: "--isolation=host"}, nil, nil, "not the name of a model"},
		"folder":               {nil, server.Start{Prompt: "Go.", Folder: other}, nil, nil, "no run may be started in the folder"},
		"folder above":         {nil, server.Start{Prompt: "Go.", Folder: dir + "/.."}, nil, nil, "no run may be started in the folder"},
		"folder that is named": {[]string{"--folder=" + other}, server.Start{Prompt: "Go.", Folder: other}, nil, nil, ""},
		"agent":                {[]string{agent}, server.Start{Agent: "reviewer", Args: map[string]string{"what": "@/etc/passwd"}}, []string{"--file=" + agent, "--arg=what=@@/etc/passwd"}, nil, ""},
		"another agent":        {[]string{agent}, server.Start{Agent: "/etc/passwd"}, nil, nil, "there is no agent"},
		"prompt beside agents": {[]string{agent}, server.Start{Prompt: "Go."}, nil, nil, "not prompts"},
		"prompt that may be":   {[]string{agent, "--prompts"}, server.Start{Prompt: "Go."}, nil, nil, ""},
		"both":                 {[]string{agent}, server.Start{Agent: "reviewer", Prompt: "Go."}, nil, nil, "has its own prompt"},
		"neither":              {nil, server.Start{Prompt: " "}, nil, nil, "neither"},
		"args of a prompt":     {nil, server.Start{Prompt: "Go.", Args: map[string]string{"a": "b"}}, nil, nil, "arguments are for an agent"},
	} {
		t.Run(name, func(t *testing.T) {
			st := serving(t, c.flags...)
			args, prompt, _, err := st.command(c.start)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%q, %v; want a refusal with %q", args, err, c.refused)
				}
				return
			}
			if err != nil || prompt != c.start.Prompt {
				t.Fatalf("prompt %q, %v", prompt, err)
			}
			for _, word := range c.want {
				if !slices.Contains(args, word) {
					t.Errorf("%q lacks %s", args, word)
				}
			}
			for _, word := range c.not {
				if slices.Contains(args, word) {
					t.Errorf("%q has %s", args, word)
				}
			}
			if _, err := parseRunFlags(args); err != nil {
				t.Errorf("drover run refuses %q: %v", args, err)
			}
		})
	}
}

func TestServe_FlagsAreChecked(t *testing.T) {
	for flags, want := range map[string]string{
		"--listen=0.0.0.0:0":                        "can be reached from other machines",
		"--listen=:0":                               "can be reached from other machines",
		"--listen=nothing":                          "--listen",
		"--tls-cert=a.pem":                          "belong together",
		"--tls-client-ca=a.pem":                     "is for a server with TLS",
		"--listen=0.0.0.0:0 --tls-client-ca=a.pem":  "is for a server with TLS",
		"--tls-cert=/no/a.pem --tls-key=/no/b.pem":  "--tls-cert, --tls-key",
		"--runs=0":                                  "below one",
		"--webhook=https://example.com":             "there is no key",
		"--webhook=example.com":                     "not a URL",
		"--webhook-secret=X":                        "is for --webhook",
		"--read-only --allow=fileWrite":             "--read-only refuses",
		"--folder=/nothing/here":                    "not a folder",
		"--max-usd=x":                               "--max-usd",
		"--json":                                    "unknown flag",
		"--tools=Raed":                              "Raed",
		"/nothing/here.yaml":                        "no such file",
		"--isolation=host --allow-domain=a.example": "no meaning",
	} {
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second) // of a server that is not refused
		code, _, errs := drover(ctx, t, nil, append([]string{"serve"}, strings.Fields(flags)...)...)
		stop()
		if code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, want %d with %q: %s", flags, code, exitUsage, want, errs)
		}
	}
}

// A client of a server that is a process of its own.
type apiClient struct {
	t          *testing.T
	URL, Token string
}

func connect(t *testing.T, state string) *apiClient {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "drover", "serve", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no file with a token: %v", err)
	}
	slices.SortFunc(files, func(a, b string) int { return modified(t, b).Compare(modified(t, a)) })
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v", files[0], err)
	}
	text, err := os.ReadFile(files[0])
	c := &apiClient{t: t}
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func modified(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func (c *apiClient) do(method, path string, body, into any) int {
	c.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.URL+path, bytes.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	defer http.DefaultClient.CloseIdleConnections()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	if into != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(answer, into); err != nil {
			c.t.Fatal(err)
		}
	} else if resp.StatusCode >= 300 {
		c.t.Logf("%s %s: %d %s", method, path, resp.StatusCode, answer)
	}
	return resp.StatusCode
}

// await asks for a run until it is as wanted.
func (c *apiClient) await(id, what string, is func(server.Run) bool) (run server.Run) {
	c.t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
		run = server.Run{}
		if c.do("GET", "/v1/runs/"+id, nil, &run) == 200 && is(run) {
			return run
		}
	}
	c.t.Fatalf("the run never came to: %s; it is %+v", what, run.Summary)
	return run
}
