// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// newQueue is drover serve with a queue, which has one run at a time.
func newQueue(t *testing.T, m *fleetModel, flags ...string) *service {
	t.Helper()
	s := &service{state: t.TempDir()}
	s.program = newProgram(t, m.URL()).setEnv(map[string]string{"XDG_STATE_HOME": s.state, asCommand: "all"})
	s.leaves, s.grace = true, 20*time.Second
	if err := os.WriteFile(filepath.Join(s.cli.Work, "reviewer.yaml"), []byte(reviewerFile), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = append([]string{"serve", "--listen=127.0.0.1:0", "-n1", "--prompts", "--allow=shellExecute", "--queue=" + filepath.Join(s.cli.Root, "queue"), "reviewer.yaml"}, flags...)
	return s
}

// A queue is for its user alone, has the runs of the current folder, and needs kept runs.
func TestServe_QueueIsChecked(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.Mkdir("open", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		keep string
		args []string
		want string
	}{
		{"", []string{"--queue=open"}, "other users can reach open"},
		{"", []string{"--queue=queue", "--folder=" + t.TempDir()}, "current folder"},
		{"no", []string{"--queue=queue"}, "DROVER_KEEP keeps none"},
		{"", []string{"--queue="}, "--queue"},
		{"", []string{"--quue=a"}, "write --queue"},
	} {
		t.Setenv(envKeep, c.keep)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second) // for a server that begins all the same
		defer stop()
		code, _, errs := drover(ctx, t, nil, append([]string{"serve", "--listen=127.0.0.1:0"}, c.args...)...)
		if code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%q: exit code %d, want %d with %q: %s", c.args, code, exitUsage, c.want, errs)
		}
	}
	if _, err := os.Stat("queue"); err == nil {
		t.Error("a queue was made")
	}
}

// Starts beyond -n wait. Those that wait or run when the server is killed are continued by the next one, each once.
func TestServe_QueueSurvivesAKill(t *testing.T) {
	model := newFleetModel(t)
	defer model.stop()
	s := newQueue(t, model)
	first, c := s.open()
	start := func(want int, start server.Start) (run server.Run) {
		t.Helper()
		if status := c.do("POST", "/v1/runs", start, &run); status != want {
			t.Fatalf("the start: %d, want %d", status, want)
		}
		return run
	}
	slow := start(201, server.Start{Prompt: "slow"})
	<-model.begun
	if run := c.await(slow.ID, "its begin", func(r server.Run) bool { return r.State == record.Running }); run.ID != slow.ID || !run.Controllable {
		t.Errorf("the run is %+v", run.Summary)
	}
	var waiting []server.Run
	for _, prompt := range []string{"quick one", "quick two"} {
		waiting = append(waiting, start(201, server.Start{Prompt: prompt, Key: prompt}))
	}
	stopped := start(201, server.Start{Agent: "reviewer", Args: map[string]string{"what": "quick three"}})
	if again := start(201, server.Start{Prompt: "quick one", Key: "quick one"}); again.ID != waiting[0].ID || again.State != server.Queued {
		t.Errorf("the same start is the run %s, %s; want %s, queued", again.ID, again.State, waiting[0].ID)
	}
	start(409, server.Start{Prompt: "another", Key: "quick one"})
	start(422, server.Start{Prompt: "a\x00b"})
	start(422, server.Start{Agent: "reviewer", Args: map[string]string{"where": "x"}})
	start(422, server.Start{Agent: "another"})
	var list server.RunList
	if status := c.do("GET", "/v1/runs?state=queued&q=quick", nil, &list); status != 200 || len(list.Runs) != 3 || list.Runs[2].ID != waiting[0].ID || list.Runs[0].Name != "reviewer" {
		t.Errorf("%d: the queue is %+v", status, list.Runs)
	}
	if status := c.do("POST", "/v1/runs/"+stopped.ID+"/stop", nil, nil); status != 202 {
		t.Errorf("the stop: %d", status)
	}
	if run := c.await(stopped.ID, "its end", func(r server.Run) bool { return r.State == record.Ended }); run.Status != event.DoneInterrupted {
		t.Errorf("the run that was stopped in the queue is %+v", run.Summary)
	}
	if status := c.do("POST", "/v1/runs/"+waiting[0].ID+"/messages", server.Message{Text: "And?"}, nil); status != 409 {
		t.Errorf("a message to a run that waits: %d", status)
	}
	if lines := c.events(waiting[0].ID); len(lines) != 0 {
		t.Errorf("a run that waits has the events %q", lines)
	}
	second := newProgram(t, model.URL()).setEnv(map[string]string{"XDG_STATE_HOME": s.state})
	if got := second.run("serve", "--listen=127.0.0.1:0", s.args[5]); got.code != exitError || !strings.Contains(got.errors, "in use: "+filepath.Join(s.cli.Root, "queue")) {
		t.Errorf("a second server of the queue ended with %d: %s", got.code, got.errors)
	}
	s.kill(first)
	s.checkNothingLeft()
	model.free()

	next, found := s.open()
	c = found
	for _, run := range append([]server.Run{slow}, waiting...) {
		got := c.await(run.ID, "its answer", func(r server.Run) bool { return r.State == record.Ended })
		if got.Status != event.DoneSuccess || got.End == nil {
			t.Errorf("the run %s ended as %+v", run.ID, got.Summary)
		}
	}
	if text, err := os.ReadFile(filepath.Join(s.cli.Work, "effects")); err != nil || strings.Count(string(text), "done\n") != 1 {
		t.Errorf("the call was executed %d times, want once; %v", strings.Count(string(text), "done\n"), err)
	}
	for _, prompt := range []string{"quick one", "quick two"} {
		asked := 0
		for _, r := range model.Requests() {
			if strings.Contains(r.LastUserText(), prompt) && len(r.Tools) > 0 {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("%q was asked %d times, want once", prompt, asked)
		}
	}
	if model.SawText("quick three") {
		t.Error("the run that was stopped in the queue has run")
	}
	if c.do("GET", "/v1/runs?state=queued", nil, &list); len(list.Runs) != 0 {
		t.Errorf("the queue is %+v", list.Runs)
	}
	if status := c.do("POST", "/v1/runs/"+stopped.ID+"/retry", nil, nil); status != 201 {
		t.Errorf("the retry: %d", status)
	}
	if run := c.await(stopped.ID, "its answer", func(r server.Run) bool { return r.State == record.Ended && r.Status != event.DoneInterrupted }); run.Status != event.DoneSuccess {
		t.Errorf("the run that was retried is %+v", run.Summary)
	}
	if status := c.do("POST", "/v1/runs/"+stopped.ID+"/retry", nil, nil); status != 409 {
		t.Errorf("the retry of a run with an answer: %d", status)
	}
	var more server.Run
	if status := c.do("POST", "/v1/runs/"+waiting[0].ID+"/messages", server.Message{Text: "And quickly now?"}, &more); status != 201 {
		t.Errorf("a message to a run that is over: %d", status)
	}
	if got := c.await(more.ID, "its answer", func(r server.Run) bool { return r.State == record.Ended }); got.Status != event.DoneSuccess || got.Resumes == "" {
		t.Errorf("the run that continues it is %+v", got.Summary)
	}
	client := newProgram(t, model.URL()).setEnv(map[string]string{"XDG_STATE_HOME": s.state})
	for range 2 {
		if got := client.run("submit", "reviewer", "--arg=what=quick four", "--key=four", "--wait"); got.code != 0 || got.out != "Fine.\n" {
			t.Errorf("submit ended with %d: %s%s", got.code, got.out, got.errors)
		}
	}
	if got := client.run("submit", "another"); got.code != exitUsage || !strings.Contains(got.errors, `there is no agent "another"`) {
		t.Errorf("submit ended with %d: %s", got.code, got.errors)
	}
	next.signal(os.Interrupt)
	if got := next.wait(); got.code != 0 {
		t.Errorf("the server ended with %d: %s", got.code, got.errors)
	}
}
