// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// A service is drover serve as a process of its own, with a model that asks for ls again and again.
type service struct {
	*program
	state string
	args  []string
}

var listFiles = script.Call("Bash", script.Input{"command": "ls", "description": "List files"})

func newService(t *testing.T, turns ...script.Turn) *service {
	t.Helper()
	model, err := script.Start(script.New(turns...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = model.Close() })
	s := &service{state: t.TempDir(), args: []string{"serve", "--listen=127.0.0.1:0", "-n1", "--permission-mode=ask"}}
	s.program = newProgram(t, model.URL()).setEnv(map[string]string{"XDG_STATE_HOME": s.state, asCommand: "all"})
	s.leaves, s.grace = true, 20*time.Second
	return s
}

func (s *service) open() (*running, *apiClient) {
	s.t.Helper()
	r := s.start(s.args...)
	r.awaitLine("API")
	return r, connect(s.t.(*testing.T), s.state)
}

// kill kills the server, and waits until its runs are gone with their cells.
func (s *service) kill(r *running) {
	s.t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = r.cmd.Wait() // its state is that of a killed process
	s.t.Cleanup(func() { _ = r.closeStdout() })
}

// awaitConversation waits until a conversation is stored, which can be continued then.
func (s *service) awaitConversation() {
	s.t.Helper()
	pattern := filepath.Join(s.state, "drover", "conversations", "*", "*.jsonl")
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return
		}
		if time.Since(began) > time.Minute {
			s.t.Fatalf("nothing was stored as %s", pattern)
		}
	}
}

// events are those of a run, each as it is served.
func (c *apiClient) events(id string) (lines []string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), "GET", c.URL+"/v1/runs/"+id+"/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Token)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close(); http.DefaultClient.CloseIdleConnections() }()
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		lines = append(lines, in.Text())
	}
	for i, line := range lines {
		var e struct {
			Position int64 `json:"position,string"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Position != int64(i+1) {
			c.t.Errorf("event %d of %s is %s (%v)", i+1, id, line, err)
		}
	}
	return lines
}

func asksOnce(r server.Run) bool { return len(r.Questions) == 1 }
func hasEnded(r server.Run) bool { return r.State != record.Running }

// The runs of a server that is killed end with it, cells included. The next one shows them as lost, with each event that they had,
// and continues them.
func TestServe_RunsEndWithTheServer(t *testing.T) {
	s := newService(t, listFiles, script.Text("Nothing has changed."), script.Text("That is all."), listFiles, script.Text("Done.").Times(script.Forever))
	first, c := s.open()
	var run server.Run
	if status := c.do("POST", "/v1/runs", server.Start{Prompt: "What is here?"}, &run); status != 201 {
		t.Fatalf("the start: %d", status)
	}
	c.await(run.ID, "a question", asksOnce)
	if status := c.do("POST", "/v1/runs", server.Start{Prompt: "Another one."}, nil); status != 429 {
		t.Errorf("a start beyond -n: %d, want 429", status)
	}
	s.awaitConversation() // the CLI writes it down a moment after it has asked
	before := c.events(run.ID)
	if len(workingBelow(s.cli.Root)) < 2 {
		t.Error("the run has no processes, so nothing can be seen of their end")
	}
	s.kill(first)
	s.checkNothingLeft()

	second, c := s.open()
	lost := c.await(run.ID, "its end", hasEnded)
	if lost.State != record.Lost || !lost.Resumable || len(lost.Questions) > 0 {
		t.Errorf("the run is %s, resumable %t, with %d questions", lost.State, lost.Resumable, len(lost.Questions))
	}
	if after := c.events(run.ID); len(after) < len(before) || !slices.Equal(before, after[:len(before)]) { // one may have come before the kill
		t.Errorf("there were %d events, and are %d: %q", len(before), len(after), after)
	}
	var next server.Run
	if status := c.do("POST", "/v1/runs/"+run.ID+"/messages", server.Message{Text: "And now?"}, &next); status != 201 {
		t.Fatalf("the message: %d", status)
	}
	if got := c.await(next.ID, "its end", hasEnded); got.Status != event.DoneSuccess || got.Resumes == "" || got.End == nil {
		t.Errorf("the run that continues it ended as %s: %+v", got.Status, got.End)
	}
	var last server.Run
	status := 429 // until the process of the run before has ended
	for began := time.Now(); status == 429 && time.Since(began) < time.Minute; time.Sleep(100 * time.Millisecond) {
		status = c.do("POST", "/v1/runs", server.Start{Prompt: "Once more."}, &last)
	}
	if status != 201 {
		t.Fatalf("another start: %d", status)
	}
	second.signal(os.Interrupt) // it stops what it has started
	if got := second.wait(); got.code != 0 {
		t.Errorf("the server ended with %d: %s", got.code, got.errors)
	}
	if left, _ := filepath.Glob(filepath.Join(s.state, "drover", "serve", "*.json")); len(left) != 1 { // that of the server that was killed
		t.Errorf("files with tokens: %v", left)
	}
	runs, err := record.Open(filepath.Join(s.state, "drover", "runs"))
	if err != nil {
		t.Fatal(err)
	}
	if stopped, err := runs.Find(last.ID); err != nil || stopped.State != record.Ended {
		t.Errorf("the run that was stopped with the server is %+v, %v", stopped, err)
	}
}

// A server is killed at several moments of a start. No process is left, each run that was acknowledged is there, and none twice.
func TestServe_KilledAtAnyMoment(t *testing.T) {
	s := newService(t, script.Text("Done.").Times(script.Forever))
	begun := map[string]bool{}
	for _, after := range []time.Duration{30, 120, 300, 700} {
		r, c := s.open()
		answered := make(chan string, 1)
		go func() {
			body := strings.NewReader(`{"prompt":"What is here?"}`)
			req, err := http.NewRequest("POST", c.URL+"/v1/runs", body)
			if err != nil {
				t.Error(err)
			}
			req.Header.Set("Authorization", "Bearer "+c.Token)
			req.Header.Set("Content-Type", "application/json")
			var run server.Run
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				_ = json.NewDecoder(resp.Body).Decode(&run) // the server may be killed while it answers
				_ = resp.Body.Close()
			}
			answered <- run.ID
		}()
		time.Sleep(after * time.Millisecond) // the moments are not the same on each machine; what is checked is true of all
		s.kill(r)
		if id := <-answered; id != "" {
			begun[id] = true
		}
		s.checkNothingLeft()
	}
	http.DefaultClient.CloseIdleConnections()
	r, c := s.open()
	var list server.RunList
	if status := c.do("GET", "/v1/runs", nil, &list); status != 200 {
		t.Fatalf("the list: %d", status)
	}
	seen := map[string]bool{}
	for _, run := range list.Runs {
		if seen[run.ID] || run.State != record.Lost && run.State != record.Ended {
			t.Errorf("the run %s is %s, seen before: %t", run.ID, run.State, seen[run.ID])
		}
		seen[run.ID] = true
		c.events(run.ID)
	}
	for id := range begun {
		if !seen[id] {
			t.Errorf("the run %s was acknowledged, and is gone", id)
		}
	}
	if len(seen) == 0 {
		t.Error("no run had begun")
	}
	r.signal(os.Interrupt)
	r.wait()
}

// Runs of other processes are followed, answered and stopped, also by a server that is started after another one was killed.
func TestServe_RunsOfOtherProcesses(t *testing.T) {
	s := newService(t, listFiles, script.Text("There is nothing."), listFiles)
	first, c := s.open()
	other := func() (*running, string) {
		r := s.start("run", "--watch", "--permission-mode=ask", "What is here?")
		var id string
		for began := time.Now(); id == "" && time.Since(began) < time.Minute; time.Sleep(50 * time.Millisecond) {
			var list server.RunList
			c.do("GET", "/v1/runs?state=running", nil, &list)
			for _, run := range list.Runs {
				id = run.ID
			}
		}
		if id == "" {
			t.Fatal("the run does not appear")
		}
		return r, id
	}
	run, id := other()
	c.await(id, "a question", asksOnce)
	s.kill(first)
	var second *running
	second, c = s.open()
	asked := c.await(id, "its question, in another server", func(r server.Run) bool { return asksOnce(r) && r.State == record.Running && r.Controllable })
	if status := c.do("POST", fmt.Sprintf("/v1/runs/%s/questions/%s", id, asked.Questions[0].ID), server.Answer{Verdict: event.Allow}, nil); status != 204 {
		t.Fatalf("the answer: %d", status)
	}
	if over := c.await(id, "its end", hasEnded); over.Status != event.DoneSuccess || over.End.Text != "There is nothing." {
		t.Errorf("the run ended as %s: %+v", over.Status, over.End)
	}
	c.events(id)
	if err := run.cmd.Wait(); err != nil {
		t.Errorf("the other process: %v: %s", err, &run.stderr)
	}
	run, id = other()
	c.await(id, "a question", asksOnce)
	if status := c.do("POST", "/v1/runs/"+id+"/stop", nil, nil); status != 202 {
		t.Errorf("the stop: %d", status)
	}
	if over := c.await(id, "its end", hasEnded); over.State != record.Ended || over.Status != event.DoneInterrupted {
		t.Errorf("the run that was stopped is %s, %s", over.State, over.Status)
	}
	_ = run.cmd.Wait() // with the exit code of a run that was stopped
	second.signal(os.Interrupt)
	second.wait()
}

// A message to a run that waits for an answer is sent when its turn is over, and an interruption ends a turn alone: the message that
// waits is sent then.
func TestServe_MessagesAndInterruptions(t *testing.T) {
	s := newService(t, listFiles, script.Text("There is nothing."), listFiles, script.Text("Still nothing."))
	r, c := s.open()
	var run server.Run
	if status := c.do("POST", "/v1/runs", server.Start{Prompt: "What is here?"}, &run); status != 201 {
		t.Fatalf("the start: %d", status)
	}
	send := func(to, text string) <-chan server.Run {
		next := make(chan server.Run, 1)
		go func() {
			var got server.Run
			status := 409 // if the turn was over first: the message then continues the run
			for began := time.Now(); (status == 409 || status == 429) && time.Since(began) < time.Minute; {
				status = c.do("POST", "/v1/runs/"+to+"/messages", server.Message{Text: text}, &got)
			}
			if status != 201 {
				t.Errorf("the message %s: %d", text, status)
			}
			next <- got
		}()
		return next
	}
	asked := c.await(run.ID, "a question", asksOnce)
	next := send(run.ID, "And now?")
	if status := c.do("POST", "/v1/runs/"+run.ID+"/questions/"+asked.Questions[0].ID, server.Answer{Verdict: event.Allow}, nil); status != 204 {
		t.Fatalf("the answer: %d", status)
	}
	second := <-next
	if over := c.await(run.ID, "its end", hasEnded); over.Status != event.DoneSuccess || over.End.Text != "There is nothing." || second.ID == run.ID {
		t.Errorf("the run ended as %s: %+v; the message has the run %s", over.Status, over.End, second.ID)
	}
	c.await(second.ID, "a question", asksOnce)
	next = send(second.ID, "Go on.")
	if status := c.do("POST", "/v1/runs/"+second.ID+"/interrupt", nil, nil); status != 202 {
		t.Errorf("the interruption: %d", status)
	}
	if over := c.await(second.ID, "its end", hasEnded); over.Status != event.DoneInterrupted {
		t.Errorf("the run that was interrupted ended as %s", over.Status)
	}
	third := <-next
	if over := c.await(third.ID, "its end", hasEnded); over.Status != event.DoneSuccess || over.End.Text != "Still nothing." {
		t.Errorf("the run of the last message ended as %s: %+v", over.Status, over.End)
	}
	r.signal(os.Interrupt)
	r.wait()
}
