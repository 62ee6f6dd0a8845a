// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/ident"
)

const (
	childURLs    = "FLEET_TEST_URLS" // of the cluster; empty means embedded
	childName    = "FLEET_TEST_NAME"
	childEffects = "FLEET_TEST_EFFECTS"
	chaosRuns    = 100
	chaosCalls   = 3
)

// chaosWorker is a worker whose agent appends a line to a file in each of its calls.
func chaosWorker(f *fleet.Fleet) fleet.Worker {
	effects, err := os.OpenFile(os.Getenv(childEffects), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	effect := func(text string, n int) {
		name := text[strings.LastIndexByte(text, '\n')+1:] // the last line is the request; others name the working directory of the attempt
		fmt.Fprintf(effects, "%s %d\n", name, n)
	}
	call := func(n int) agenttest.Step {
		return func(r *agenttest.Run) {
			text := r.Request.Prompt
			input, _ := json.Marshal(map[string]string{"command": fmt.Sprintf("%s %d", text, n)})
			c := event.ToolCall{ID: event.CallID(ident.NewUUID()), Name: "Bash", Input: input}
			r.Yield(event.Event{Payload: c}, nil)
			r.Request.Trackers[0].Record(guard.Usage{OutputTokens: 2})
			d := r.Request.Host.Decide(r.Context, c)
			result := event.ToolResult{ID: c.ID, Name: c.Name, Status: event.ToolDenied, Failure: &event.ToolFailure{Message: d.Reason}}
			if d.Verdict == event.Allow {
				effect(text, n)
				result.Status, result.Failure, result.Output = event.ToolSuccess, nil, json.RawMessage(`"done"`)
			}
			r.Yield(event.Event{Payload: result}, nil)
		}
	}
	var steps []agenttest.Step
	for n := range chaosCalls {
		steps = append(steps, call(n))
	}
	goesOn := keeps("keeps", &keeper{calls: chaosCalls, do: func(task, _ string, n int) string {
		effect(task, n)
		return "done"
	}})
	return fleet.Worker{
		Fleet: f, Agents: []fleet.Agent{asks(nil, append(steps, answers("ok"))...), goesOn},
		Concurrency: 4, Lease: time.Second, Backoff: quick, Attempts: 50,
	}
}

// Workers are killed at random moments, on the embedded server with the server in them. Half of the agents begin again, and
// half of them go on where they were. Every run ends once, no finished call is executed again, and no call without being recorded.
func TestChaos_KilledWorkers(t *testing.T) {
	for _, kind := range []string{"embedded", "cluster"} {
		t.Run(kind, func(t *testing.T) {
			if kind == "cluster" && testing.Short() {
				t.Skip("-short: no cluster")
			}
			chaos(t, kind)
		})
	}
}

func chaos(t *testing.T, kind string) {
	began := time.Now()
	seed := uint64(began.UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir, name := t.TempDir(), "t"+ident.NewUUID()
	effects := filepath.Join(dir, "effects")
	if err := os.WriteFile(effects, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{childRole + "=work", childDir + "=" + filepath.Join(dir, "fleet"), childName + "=" + name, childEffects + "=" + effects}
	open := func() *fleet.Fleet {
		f, err := fleet.Open(t.Context(), &fleet.Options{Dir: filepath.Join(dir, "fleet"), Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	workers := 1
	if kind == "cluster" {
		servers, err := cluster()
		if err != nil {
			t.Fatal(err)
		}
		workers, env = 2, append(env, childURLs+"="+strings.Join(servers.URLs(), ","))
		open = func() *fleet.Fleet { return openOn(t, kind, name) }
	}
	f := open()
	if err := f.SetLimit(t.Context(), "asks", fleet.Limit{Runs: 6, TokensPerDay: 1e6, TokensPerAttempt: 10}); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range chaosRuns {
		r, err := f.Submit(t.Context(), []string{"asks", "keeps"}[i%2], question{fmt.Sprintf("run-%03d", i)}, &fleet.SubmitOptions{Key: fmt.Sprint(i)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID())
	}
	if kind == "embedded" {
		f.Close()
	}
	running := make([]*exec.Cmd, workers)
	start := func(i int) {
		running[i] = exec.Command(os.Args[0])
		running[i].Env = env
		if err := running[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	kill := func(i int) {
		_ = running[i].Process.Kill()
		_ = running[i].Wait()
	}
	for i := range running {
		start(i)
	}
	for range 6 {
		time.Sleep(time.Duration(100+random.IntN(300)) * time.Millisecond)
		i := random.IntN(workers)
		kill(i)
		start(i)
	}
	if kind == "embedded" { // the rest runs here
		kill(0)
		f = open()
		t.Cleanup(func() { f.Close() })
		t.Setenv(childEffects, effects)
		work(t, chaosWorker(f))
	}
	for _, id := range ids {
		r, err := f.Run(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if result := wait(t, r); result.State != fleet.Succeeded {
			t.Errorf("%s ended with %+v", id, result)
		}
	}
	settled(t, f)
	if kind == "cluster" {
		for i := range running {
			kill(i)
		}
	}
	problems, unknown, err := fleet.CheckInvariants(t.Context(), f, ids)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
	checkEffects(t, effects, unknown)
	checkSpent(t, f, ids, began)
}

// checkSpent compares what was spent with what attempts consumed: those of dead workers keep their reservation.
func checkSpent(t *testing.T, f *fleet.Fleet, ids []string, began time.Time) {
	t.Helper()
	least := int64(0)
	for _, id := range ids {
		if strings.HasPrefix(id, "asks.") { // it has the limit
			least += 2 * chaosCalls
		}
	}
	total := spent(t, f, "asks", began)
	if now := time.Now(); now.UTC().Day() != began.UTC().Day() {
		more := spent(t, f, "asks", now)
		total.Tokens += more.Tokens
		total.ReservedTokens += more.ReservedTokens
	}
	t.Logf("%d tokens spent, %d reserved by attempts of dead workers", total.Tokens, total.ReservedTokens)
	if total.Tokens+total.ReservedTokens < least || total.ReservedTokens%10 != 0 {
		t.Errorf("%d tokens were spent and %d are reserved, want %d at least", total.Tokens, total.ReservedTokens, least)
	}
}

// checkEffects counts the calls that were executed: none twice, and as many missing as have an unknown outcome at most.
func checkEffects(t *testing.T, file string, unknown int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if count[line]++; count[line] == 2 {
			t.Errorf("the call %q was executed twice", line)
		}
	}
	if missing := chaosRuns*chaosCalls - len(count); missing > unknown {
		t.Errorf("%d calls were not executed, and %d have an unknown outcome", missing, unknown)
	}
	t.Logf("%d calls executed, %d of unknown outcome", len(count), unknown)
}
