// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/fleet/fleettest"
	"github.com/drover-agents/drover/record"
)

// A fleetModel answers the agents of a fleet. A request with "slow" has them run a command, and waits then while it is held.
type fleetModel struct {
	*script.Server
	begun chan struct{} // takes a value for each request that waits

	mu   sync.Mutex
	held chan struct{} // nil while requests do not wait
}

func newFleetModel(t *testing.T) *fleetModel {
	t.Helper()
	m := &fleetModel{begun: make(chan struct{}, 100)}
	m.hold()
	effect := script.Call("Bash", script.Input{"command": "echo done >> effects; echo it was done", "description": "Work"})
	var err error
	m.Server, err = script.Start(script.New(script.Func(func(r *script.Request) script.Turn {
		switch {
		case !r.SawText("slow"):
			return script.Text("Fine.")
		case !r.SawText("it was done"):
			return effect
		}
		m.mu.Lock()
		held := m.held
		m.mu.Unlock()
		if held != nil {
			m.begun <- struct{}{}
			<-held
		}
		return script.Text("Finished.")
	}).Always()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// stop answers what waits, and closes the model: before the end of the test looks for goroutines.
func (m *fleetModel) stop() {
	m.free()
	_ = m.Close() // it cannot matter any more
}

func (m *fleetModel) hold() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = make(chan struct{})
}

func (m *fleetModel) free() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held != nil {
		close(m.held)
	}
	m.held = nil
}

// asCluster is the variable that makes this test program a cluster of three, with its data in the folder that it names. It is a
// process of its own: the kit of the CLI looks for goroutines that a test leaves.
const asCluster = "DROVER_TEST_AS_CLUSTER"

func init() {
	dir := os.Getenv(asCluster)
	if dir == "" {
		return
	}
	c, err := fleettest.StartCluster(dir, 3)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(strings.Join(c.URLs(), ","))
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test is over
	c.Close()
	os.Exit(0)
}

// aCluster starts a cluster, and returns the addresses of its servers.
func aCluster(t *testing.T) (urls string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), asCluster+"="+t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	urls, err = bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(urls, "nats://") {
		t.Fatalf("no cluster: %s%v", urls, err)
	}
	return strings.TrimSpace(urls)
}

// newWorker is a program whose folder has the agent "reviewer", and its arguments.
func newWorker(t *testing.T, m *fleetModel, name, nats string, flags ...string) (p *program, args []string) {
	t.Helper()
	p = newProgram(t, m.URL())
	p.grace = 20 * time.Second
	for file, text := range map[string]string{"reviewer.yaml": reviewerFile, "secret.txt": "the word is Xyzzy"} {
		if err := os.WriteFile(filepath.Join(p.cli.Work, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p, append([]string{"worker", "reviewer.yaml", nats, "--name=" + name, "--lease=2s", "--allow=shellExecute"}, flags...)
}

// Requests wait for a worker, are answered once, go on elsewhere when their worker is killed, and finish when it is stopped.
func TestFleet_WorkersOnACluster(t *testing.T) {
	urls := aCluster(t)
	nats := "--nats=" + urls
	model := newFleetModel(t)
	defer model.stop()
	client := newProgram(t, model.URL())
	submit := func(want int, args ...string) string {
		t.Helper()
		got := client.run(append([]string{"submit", "reviewer", nats}, args...)...)
		if got.code != want {
			t.Fatalf("submit %q: exit code %d, want %d: %s%s", args, got.code, want, got.out, got.errors)
		}
		return strings.TrimSpace(got.out)
	}
	f, err := fleet.Open(t.Context(), &fleet.Options{URLs: strings.Split(urls, ",")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	effects := func(all ...*program) (n int) {
		for _, p := range all {
			text, _ := os.ReadFile(filepath.Join(p.cli.Work, "effects")) // a worker may have none
			n += strings.Count(string(text), "done\n")
		}
		return n
	}

	first := client.run("submit", "reviewer", nats, "--key=k", "--arg=what=@@secret.txt") // there is no worker yet
	if first.code != 0 || !strings.HasPrefix(first.out, "reviewer.") || !strings.Contains(first.errors, "no worker has served") {
		t.Fatalf("exit code %d: %s%s", first.code, first.out, first.errors)
	}
	a, args := newWorker(t, model, "a", nats)
	a.leaves = true // it is killed
	worker := a.start(args...)
	worker.awaitLine("serves reviewer")
	client.stdin = `{"what": "@secret.txt"}`
	if out := submit(0, "--input=-", "--key=k", "--wait"); out != "Fine." {
		t.Errorf("the answer is %q", out)
	}
	var end submitted
	lines := strings.Split(submit(0, "--input=-", "--key=k", "--wait", "--json"), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &end); err != nil || len(lines) != 2 || end.ID != strings.TrimSpace(first.out) ||
		end.State != "succeeded" || string(end.Output) != `"Fine."` || end.Exit == nil || *end.Exit != 0 || end.Worker != "a" {
		t.Errorf("%q: %v", lines, err)
	}
	if !model.SawText("@secret.txt") || model.SawText("Xyzzy") {
		t.Errorf("an argument had the CLI read a file of the worker, or was not sent")
	}
	if n := len(model.Requests()); n > 2 { // one may be a title
		t.Errorf("the same request asked the model %d times", n)
	}
	if kept, err := record.Open(filepath.Join(a.env["HOME"], ".local/state/drover/runs")); err != nil {
		t.Error(err)
	} else if run, err := kept.Find(end.Run); err != nil || run.State != record.Ended {
		t.Errorf("the run %s is not kept by its worker: %v", end.Run, err)
	}
	submit(exitError, "--arg=what=another", "--key=k")

	slow := submit(0, "--arg=what=slow") // it goes on elsewhere
	<-model.begun
	if err := worker.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.cmd.Wait()
	a.checkNothingLeft()
	model.free()
	b, args := newWorker(t, model, "b", nats, "--drain=1m")
	worker = b.start(args...)
	run, err := f.Run(t.Context(), slow)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := run.Wait(t.Context()); err != nil || result.State != fleet.Succeeded || string(result.Output) != `"Finished."` {
		t.Fatalf("the run of the killed worker ended with %+v, %v", result, err)
	}
	if n := effects(a, b); n != 1 {
		t.Errorf("its call was executed %d times, want once", n)
	}

	model.hold() // a worker that is stopped finishes its run
	slow = submit(0, "--arg=what=slow, too")
	<-model.begun
	worker.signal(syscall.SIGTERM)
	worker.awaitLine("is stopping")
	model.free()
	if got := worker.wait(); got.code != 0 || !strings.Contains(got.out, "b has stopped") {
		t.Errorf("the worker ended with %d: %s%s", got.code, got.out, got.errors)
	}
	if run, err = f.Run(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	if state, err := run.State(t.Context()); state != fleet.Succeeded || err != nil {
		t.Errorf("its run is %s, %v", state, err)
	}

	model.hold() // a second signal does not wait
	slow = submit(0, "--arg=what=slow again")
	d, args := newWorker(t, model, "d", nats, "--drain=1m")
	d.leaves = true
	worker = d.start(args...)
	<-model.begun
	worker.signal(os.Interrupt)
	worker.awaitLine("is stopping")
	began := time.Now()
	worker.signal(os.Interrupt)
	if got := worker.wait(); got.code != exitInterrupted || time.Since(began) > 10*time.Second {
		t.Errorf("the worker ended with %d after %s: %s", got.code, time.Since(began), got.errors)
	}
	if _, err := f.Run(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	waiting := client.start("submit", "reviewer", nats, "--arg=what=slow again", "--wait", "--json")
	waiting.awaitLine("queued")
	waiting.signal(os.Interrupt)
	if got := waiting.wait(); got.code != exitInterrupted {
		t.Errorf("the interrupted wait ended with %d: %s", got.code, got.errors)
	}
	var all []string
	for line := range strings.Lines(client.run("runs", nats, "--json").out) {
		var row fleetRow
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Submitted.IsZero() {
			t.Errorf("%s: %v", line, err)
		}
		all = append(all, string(row.State))
	}
	if want := []string{"queued", "running", "succeeded", "succeeded", "succeeded"}; !slices.Equal(all, want) && all[1] != "queued" { // the lease may be over
		t.Errorf("the runs are %q, want %q", all, want)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"runs", "cancel", slow}, 0, ""},
		{[]string{"runs", "cancel", "reviewer.none"}, exitUsage, "no such run"},
		{[]string{"runs", "cancel", strings.TrimSpace(first.out)}, 0, ""}, // it has ended
		{[]string{"runs", "retry", strings.TrimSpace(first.out)}, exitError, "it has succeeded"},
		{[]string{"runs", "--failed", "reviewer"}, 0, ""},
	} {
		if got := client.run(append(c.args, nats)...); got.code != c.code || !strings.Contains(got.errors, c.want) {
			t.Errorf("%q: exit code %d, want %d with %q: %s%s", c.args, got.code, c.code, c.want, got.out, got.errors)
		}
	}
}
