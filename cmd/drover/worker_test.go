// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

const reviewerFile = `version: 1
args:
  what: {doc: what to review}
  count: {type: int, default: 3}
sections:
  - {key: task, title: Task, text: 'Review ${what}, ${count} times.'}
`

// writeNamed writes an agent file into a folder of its own.
func writeNamed(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A workplace is a worker in this process, on a fleet of its own, with an agent that follows a script.
type workplace struct {
	*fleet.Fleet
	starter   *starter
	out, errs bytes.Buffer // of the worker, which is stopped first
	stop      func()
}

func newWorkplace(t *testing.T, a *agenttest.Adapter, flags ...string) *workplace {
	t.Helper()
	a.Tools = catalogue.Tools()
	w := &workplace{starter: serving(t, flags...)}
	w.starter.o.run.agent = a.Agent()
	w.starter.o.run.agents = func(*claude.Options, *isolation.Isolation) (*agent.Registry, error) { return agent.NewRegistry(a) }
	var err error
	if w.Fleet, err = fleet.Open(t.Context(), &fleet.Options{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	runner := &fleetRunner{starter: w.starter, fleet: w.Fleet, worker: "here", out: &w.out, errs: &w.errs}
	agents, err := runner.agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	working.Go(func() {
		worker := fleet.Worker{Fleet: w.Fleet, Agents: agents, Drain: time.Millisecond, Backoff: func(int) time.Duration { return time.Millisecond }}
		if err := worker.Run(ctx); err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	w.stop = sync.OnceFunc(func() {
		cancel()
		working.Wait()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

// run submits a request as JSON, and waits for its end as drover submit does.
func (w *workplace) run(t *testing.T, request string) (result *fleet.Result, last attemptEnded) {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	r, err := w.Submit(ctx, "reviewer", json.RawMessage(request), nil)
	if err == nil {
		result, err = r.Wait(ctx)
	}
	if err == nil {
		last, err = lastAttempt(ctx, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return result, last
}

// A request has arguments and nothing else. Any other is refused at once, and its texts are neither files nor flags.
func TestWorker_RequestHasArgumentsAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	a := agenttest.New(agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: "Fine."}))
	w := newWorkplace(t, a, writeNamed(t, "reviewer", reviewerFile))
	for request, want := range map[string]string{
		`[]`:                                   "a JSON object",
		`"what"`:                               "a JSON object",
		`{"what": ["a"]}`:                      "must be a string",
		`{"what": {"a": "b"}}`:                 "must be a string",
		`{"what": null}`:                       "must be a string",
		`{"what": "\u0000"}`:                   "a NUL byte",
		`{}`:                                   "what",
		`{"what": "a", "count": "x"}`:          "count",
		`{"what": "a", "isolation": "host"}`:   "isolation",
		`{"what": "a", "--isolation": "host"}`: "--isolation",
		`{"what": "a", "what=b": "c"}`:         "what",
		`{"what": "a", "": "c"}`:               "",
	} {
		if result, _ := w.run(t, request); result.State != fleet.Dead || result.Attempts != 1 || !strings.Contains(result.Reason, want) {
			t.Errorf("%s: %+v, want it dead after one attempt with %q", request, result, want)
		}
	}
	if n := len(a.Requests()); n != 0 {
		t.Fatalf("the agent was asked %d times", n)
	}
	for request, want := range map[string]string{
		`{"what": "@/etc/passwd"}`:              "Review @/etc/passwd, 3 times.",
		`{"what": "@@a"}`:                       "Review @@a, 3 times.",
		`{"what": "@-"}`:                        "Review @-, 3 times.",
		`{"what": "--isolation=host\nb"}`:       "Review --isolation=host\nb, 3 times.",
		`{"what": "a=b=c", "count": 7}`:         "Review a=b=c, 7 times.",
		`{"what": "${count}", "count": "1"}`:    "Review ${count}, 1 times.",
		`{"what": "<stdin>\u2028", "count": 1}`: "Review <stdin>\u2028, 1 times.",
	} {
		result, last := w.run(t, request)
		var text string
		if err := result.Decode(&text); err != nil || text != "Fine." || last.Exit != 0 {
			t.Errorf("%s: %+v, %v, exit code %d", request, result, err, last.Exit)
		}
		asked := a.Requests()
		if got := asked[len(asked)-1].Prompt; !strings.Contains(got, want) {
			t.Errorf("%s: the prompt is %q, want %q in it", request, got, want)
		}
	}
}

// Each run has the bounds of the worker's flags and of its agent file.
func TestWorker_FlagsBoundEachRun(t *testing.T) {
	dir := mustResolve(t, t.TempDir())
	t.Chdir(dir)
	call := func(id, name string) event.ToolCall {
		return event.ToolCall{ID: event.CallID(id), Name: name, Input: json.RawMessage(`{"command":"ls","file_path":"` + dir + `/a","content":"b","url":"https://a.example","prompt":"x"}`)}
	}
	verdicts := map[string]event.Verdict{}
	decide := func(name string) agenttest.Step {
		return func(r *agenttest.Run) { verdicts[name] = r.Request.Host.Decide(r.Context, call(name, name)).Verdict }
	}
	a := agenttest.New(decide("Bash"), decide("Write"), decide("WebFetch"), decide("Glob"), agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: "Fine."}))
	w := newWorkplace(t, a, writeNamed(t, "reviewer", reviewerFile+"limits: {turns: 4, usd: 9}\npolicy: {networkAccess: deny}\n"),
		"--max-usd=2", "--max-turns=10", "--max-tokens=1000", "--timeout=1h", "--model=big", "--allow=shellExecute", "--tools=Bash,Write,WebFetch")
	if result, last := w.run(t, `{"what": "it"}`); result.State != fleet.Succeeded || last.Exit != exitDenied {
		t.Fatalf("%+v, exit code %d, want %d", result, last.Exit, exitDenied)
	}
	asked := a.Requests()[0]
	if b := asked.Budget; asked.Model != "big" || asked.MaxTurns != 4 || b == nil || b.MaxCostUSD != 2 || b.MaxTotalTokens != 1000 || asked.Dir != dir {
		t.Errorf("the agent was asked for %+v, budget %+v", asked.Settings, asked.Budget)
	}
	if !slices.Equal(asked.Tools, []string{"Bash", "Write", "WebFetch", "mcp__drover"}) {
		t.Errorf("it has the tools %q", asked.Tools)
	}
	for name, want := range map[string]event.Verdict{"Bash": event.Allow, "Write": event.Deny, "WebFetch": event.Deny, "Glob": event.Deny} {
		if verdicts[name] != want {
			t.Errorf("%s: %s, want %s", name, verdicts[name], want)
		}
	}
}

// Each attempt is kept among the runs of the worker's user, with the command line that starts such a run again.
func TestWorker_KeepsEachRun(t *testing.T) {
	t.Chdir(t.TempDir())
	file := writeNamed(t, "reviewer", reviewerFile)
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-the-key-of-the-worker")
	a := agenttest.New(agenttest.Fail(errors.New("no: sk-ant-the-key-of-the-worker")))
	w := newWorkplace(t, a, file, "--max-usd=2")
	result, last := w.run(t, `{"what": "it"}`)
	if result.State != fleet.Dead || result.Attempts != 1 || last.Exit != exitError || last.Worker != "here" {
		t.Errorf("%+v, %+v", result, last)
	}
	w.stop()
	if all := result.Reason + w.out.String() + w.errs.String(); strings.Contains(all, "sk-ant-the-key") {
		t.Errorf("a secret is shown: %s", all)
	}
	kept, err := w.starter.store.Find(last.Run)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = kept.Close() }()
	if kept.State != record.Ended || kept.End == nil || kept.End.Status == event.DoneSuccess {
		t.Errorf("the run is kept as %s, %+v", kept.State, kept.End)
	}
	if again := w.starter.Again(kept); again == nil || again.Agent != "reviewer" || again.Args["what"] != "it" || again.Limits.USD != 2 {
		t.Errorf("it was made by %q, which is %+v", kept.Command, again)
	}
}

// The exit code is that of drover run, and what another attempt would not change is not tried again.
func TestWorker_EndsAreThoseOfRun(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, c := range map[string]struct {
		step     agenttest.Step
		state    fleet.State
		code     int
		attempts int64
	}{
		"success": {agenttest.Emit(event.Done{Status: event.DoneSuccess}), fleet.Succeeded, 0, 1},
		"turns":   {agenttest.Emit(event.Done{Status: event.DoneMaxTurns}), fleet.Dead, exitLimit, 1},
		"budget":  {agenttest.Emit(event.Done{Status: event.DoneMaxBudget}), fleet.Dead, exitLimit, 1},
		"time":    {agenttest.Block(), fleet.Dead, exitLimit, 1},
		"error":   {agenttest.Emit(event.Done{Status: event.DoneError, Result: "no"}), fleet.Dead, exitError, 1},
		"denied": {func(r *agenttest.Run) {
			agenttest.Decide(event.ToolCall{ID: "a", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)})(r)
			agenttest.Emit(event.Done{Status: event.DoneSuccess})(r)
		}, fleet.Succeeded, exitDenied, 1},
		"no result": {agenttest.Emit(event.Text{Content: "Hm."}), fleet.Dead, exitError, 5},
	} {
		t.Run(name, func(t *testing.T) {
			limit := "1h"
			if name == "time" {
				limit = "300ms"
			}
			w := newWorkplace(t, agenttest.New(c.step), writeNamed(t, "reviewer", reviewerFile), "--timeout="+limit)
			result, last := w.run(t, `{"what": "it"}`)
			if result.State != c.state || last.Exit != c.code || result.Attempts != c.attempts {
				t.Errorf("%+v, exit code %d; want %s after %d attempts, exit code %d", result, last.Exit, c.state, c.attempts, c.code)
			}
		})
	}
}

// The dollars of a run are those of all its attempts together.
func TestWorker_BudgetIsThatOfTheRun(t *testing.T) {
	t.Chdir(t.TempDir())
	a := agenttest.New(agenttest.Emit(gateway.ModelCall{Operation: "messages", Model: "m", CostUSD: 0.9, Tokens: gateway.Tokens{Input: 10, Output: 5}})) // and no result
	w := newWorkplace(t, a, writeNamed(t, "reviewer", reviewerFile), "--max-usd=2", "--max-tokens=1000")
	result, last := w.run(t, `{"what": "it"}`)
	if result.State != fleet.Dead || result.Attempts != 4 || last.Exit != exitLimit || len(a.Requests()) != 3 {
		t.Errorf("%+v, exit code %d after %d evaluations; want it dead when the budget is spent, after 3", result, last.Exit, len(a.Requests()))
	}
	if left := a.Requests()[2].Trackers[0].Budget(); math.Abs(left.MaxCostUSD-0.2) > 1e-9 || left.MaxTotalTokens != 970 {
		t.Errorf("the third attempt begins with %v", left)
	}
}

// Changes are written back if the agent came to its end, and not otherwise.
func TestWorker_WritesBack(t *testing.T) {
	for _, status := range []event.DoneStatus{event.DoneSuccess, event.DoneError} {
		t.Run(string(status), func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir()) // the workspace of a run that failed stays
			dir := mustResolve(t, t.TempDir())
			t.Chdir(dir)
			if err := os.MkdirAll("src", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile("src/a.txt", []byte("old\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			write := func(r *agenttest.Run) {
				if err := os.WriteFile(filepath.Join(r.Request.Workspace.Root(), "src/a.txt"), []byte("new\n"), 0o600); err != nil {
					t.Error(err)
				}
			}
			a := agenttest.New(write, agenttest.Emit(event.Done{Status: status}))
			w := newWorkplace(t, a, writeNamed(t, "reviewer", reviewerFile), "--mount=src", "--write-back")
			result, _ := w.run(t, `{"what": "it"}`)
			w.stop()
			want := "old\n"
			if status == event.DoneSuccess {
				want = "new\n"
			}
			if got := readFile(t, "src/a.txt"); got != want {
				t.Errorf("the file is %q, want %q; %+v; %s", got, want, result, &w.errs)
			}
		})
	}
}

// Changes that cannot be written back, or are lost with the worker that has them, are the end of the run, with the reason.
func TestWorker_ChangesAreNotLostSilently(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // the workspace stays
	dir := mustResolve(t, t.TempDir())
	t.Chdir(dir)
	if err := os.WriteFile("a.txt", []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	a := agenttest.New(func(r *agenttest.Run) {
		write(filepath.Join(r.Request.Workspace.Root(), "a.txt"), "new\n")
		write(filepath.Join(dir, "a.txt"), "of another\n")
	}, agenttest.Emit(event.Done{Status: event.DoneSuccess}))
	w := newWorkplace(t, a, writeNamed(t, "reviewer", reviewerFile), "--mount=a.txt", "--write-back", "--allow=fileWrite")
	result, last := w.run(t, `{"what": "it"}`)
	if result.State != fleet.Dead || result.Attempts != 1 || last.Exit != exitError || !strings.Contains(result.Reason, "--write-back") {
		t.Errorf("%+v, exit code %d; want it dead with the conflict", result, last.Exit)
	}
	if got := readFile(t, "a.txt"); got != "of another\n" {
		t.Errorf("the file of another is %q", got)
	}
	a.Steps = []agenttest.Step{agenttest.UseTool(event.ToolCall{ID: "a", Name: "Write", Input: json.RawMessage(`{"file_path":"a.txt","content":"new"}`)}, "done")} // and no result
	if result, _ = w.run(t, `{"what": "another"}`); result.State != fleet.Dead || result.Attempts != 2 || !strings.Contains(result.Reason, "copies that are lost") {
		t.Errorf("%+v; want it dead in the second attempt, which has not the copies of the first", result)
	}
	r := &fleetRunner{starter: w.starter, out: new(bytes.Buffer), errs: new(bytes.Buffer)}
	start := queuedStart{Start: server.Start{Agent: "reviewer", Args: map[string]string{"what": "it"}}}
	attempt, err := r.open(t.Context(), "reviewer.other", start)
	if err != nil {
		t.Fatal(err)
	}
	if err := attempt.end(nil); !errors.Is(err, errChangesLost) { // the answer is of an earlier attempt
		t.Errorf("the end of an attempt without the changes = %v", err)
	}
}

// Only a file that its user alone can reach has a token.
func TestFindServer_FileMustBePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	dir := filepath.Join(state, "drover", "serve")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	asked := false
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = true
		_, _ = w.Write([]byte("{}"))
	}))
	defer web.Close()
	file := filepath.Join(dir, "1.json")
	text := `{"url":"` + web.URL + `","token":"secret"}`
	find := func() error {
		_, err := findServer(t.Context(), web.Client())
		return err
	}
	if err := find(); !errors.Is(err, errNoServer) {
		t.Errorf("without a file: %v", err)
	}
	for _, mode := range []os.FileMode{0o644, 0o660, 0o602} {
		if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
		if err := find(); err == nil || !strings.Contains(err.Error(), "others can reach it") || asked {
			t.Errorf("mode %o: %v, asked %t", mode, err, asked)
		}
	}
	if err := errors.Join(os.Rename(file, file+".real"), os.Chmod(file+".real", 0o600), os.Symlink(file+".real", file)); err != nil {
		t.Fatal(err)
	}
	if err := find(); err == nil || asked {
		t.Errorf("a link: %v, asked %t", err, asked)
	}
	if err := errors.Join(os.Remove(file), os.Rename(file+".real", file)); err != nil {
		t.Fatal(err)
	}
	if err := find(); err != nil || !asked {
		t.Errorf("a private file: %v, asked %t", err, asked)
	}
	web.Close() // as a server that was killed
	if err := find(); !errors.Is(err, errNoServer) {
		t.Errorf("a server that is gone: %v", err)
	}
}

// Agents that could not run are an error at the start.
func TestWorker_ChecksItsAgents(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, c := range map[string]struct {
		file  string
		flags []string
		want  string
	}{
		"name":   {reviewerFile + "name: 'code review'\n", nil, "cannot be called"},
		"mounts": {reviewerFile + "mounts: [{path: /etc}]\n", nil, "/etc"},
		"denied": {reviewerFile + "policy: {fileWrite: deny}\n", []string{"--allow=fileWrite"}, "denies fileWrite"},
		"level":  {reviewerFile + "isolation: {level: host}\n", nil, "weaker than a cell"},
	} {
		t.Run(name, func(t *testing.T) {
			st := serving(t, append(c.flags, writeNamed(t, "reviewer", c.file))...)
			_, err := (&fleetRunner{starter: st, errs: new(bytes.Buffer)}).agents(t.Context())
			if known, ok := errors.AsType[ending](err); !ok || known.code != exitUsage || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want a usage error with %q", err, c.want)
			}
		})
	}
}

func TestWorker_FlagsAreChecked(t *testing.T) {
	file := writeNamed(t, "reviewer", reviewerFile)
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"worker", file}, []string{"--nats nats://host:4222", "drover serve"}},
		{[]string{"worker", "--nats=nats://127.0.0.1:1"}, []string{"needs agents"}},
		{[]string{"worker", file, "--nats=localhost"}, []string{"not the address of a NATS server"}},
		{[]string{"worker", file, "--nats=nats://127.0.0.1:1", "--concurrency=0"}, []string{"below one"}},
		{[]string{"worker", file, "--nats=nats://127.0.0.1:1", "--replicas=2"}, []string{"--replicas"}},
		{[]string{"worker", file, "--nats=nats://127.0.0.1:1", "--tls-cert=a"}, []string{"belong together"}},
		{[]string{"worker", file, "--nats=nats://127.0.0.1:1", "--tls-ca=/nothing"}, []string{"--tls-ca"}},
		{[]string{"worker", file, "--nats=nats://127.0.0.1:1", "--drain=0s"}, []string{"--drain"}},
		{[]string{"worker", file, "--nats=nats://127.0.0.1:1", "--max-usd=x"}, []string{"--max-usd"}},
		{[]string{"worker", file, "--nats=nats://127.0.0.1:1", "--concurency=2"}, []string{"write --concurrency"}},
		{[]string{"worker", file, "--nats=nats://127.0.0.1:1", "--isolation=host", "--allow-domain=a.example"}, []string{"no meaning"}},
		{[]string{"worker", file, "--nats=nats://127.0.0.1:1", "--json"}, []string{"unknown flag"}},
		{[]string{"worker", "/nothing.yaml", "--nats=nats://127.0.0.1:1"}, []string{"no such file"}},
		{[]string{"submit"}, []string{"one agent"}},
		{[]string{"submit", "a", "b"}, []string{"one agent"}},
		{[]string{"submit", "a.b", "--nats=nats://127.0.0.1:1"}, []string{"cannot be the name"}},
		{[]string{"submit", "reviewer"}, []string{"no drover serve is running", "start drover serve", "--nats"}},
		{[]string{"runs", "cancel", "a.b"}, []string{"no drover serve is running", "--nats"}},
		{[]string{"runs", "retry"}, []string{"takes one RUN"}},
		{[]string{"runs", "--queued"}, []string{"no drover serve is running", "drover serve --queue"}},
		{[]string{"runs", "--nats=nats://127.0.0.1:1", "--folder=."}, []string{"have no folder"}},
		{[]string{"runs", "cancle", "a.b"}, []string{"did you mean cancel"}},
		{[]string{"submit", "reviewer", "--input=/nothing"}, []string{"--input"}},
		{[]string{"submit", "reviewer", "--input=" + file}, []string{"is not JSON"}},
		{[]string{"submit", "reviewer", "--input=-", "--arg=a=b"}, []string{"exclude each other"}},
		{[]string{"submit", "reviewer", "--arg=a"}, []string{"--arg"}},
		{[]string{"submit", "reviewer", "--wiat"}, []string{"write --wait"}},
	} {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
		code, _, errs := drover(t.Context(), t, nil, c.args...)
		for _, want := range c.want {
			if code != exitUsage || !strings.Contains(errs, want) {
				t.Errorf("%q: exit code %d, want %d with %q: %s", c.args, code, exitUsage, want, errs)
			}
		}
	}
	// A cluster that is not there is no mistake of the command line, and its password is not shown.
	code, _, errs := drover(t.Context(), t, nil, "submit", "reviewer", "--nats=nats://me:hunter22@127.0.0.1:1")
	if code != exitError || strings.Contains(errs, "hunter22") || !strings.Contains(errs, "the servers of --nats") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
