// SPDX-License-Identifier: Apache-2.0

//go:build unix

package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// A run that ends between the look at it and the request to its program is over: its socket is gone, or takes the request and answers
// nothing. Each is forced here.
func TestControl_RunThatHasJustEnded(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	goOn := make(chan struct{})
	r := start(t, store, nil, server.LiveOptions{}, func(*agenttest.Run) { <-goOn }, agenttest.Done("token-1"))
	waitFor(t, "control", func() bool { return s.run(r.id).Controllable })
	opened, err := store.Find(r.id)
	if err != nil || opened.State != record.Running {
		t.Fatalf("the run is %+v, %v", opened, err)
	}
	t.Chdir(opened.Path)
	if err := os.Remove("control.sock"); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "control.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := os.Chmod("control.sock", 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		close(goOn)
		<-r.done
		_ = c.Close()
	}()
	for _, moment := range []string{"its program answers nothing", "its socket is gone"} {
		err := s.Pass(t.Context(), opened, "/questions/x", server.Answer{Verdict: event.Allow})
		if p, ok := err.(*server.Problem); !ok || p.Status != http.StatusConflict || p.Detail != "the run is over" {
			t.Errorf("%s: %v, want 409: the run is over", moment, err)
		}
	}
}

// The id of a question is a name, whatever it has: it leads to no other request of the program.
func TestControl_QuestionOfAnyName(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Block())
	waitFor(t, "control", func() bool { return s.run(r.id).Controllable })
	for id, want := range map[string]string{
		"a%2Fb": "the question is not open", "a%3Fb": "the question is not open", "%00": "the question is not open", "%0d%0a": "the question is not open",
		"a%20b": "the question is not open", "%25": "the question is not open", "%ff": "the question is not open", "stop": "the question is not open",
		"%2e%2e": "there is nothing at", "%2e%2e%2fstop": "there is nothing at", "..%2F..%2Fstop": "there is nothing at",
	} {
		resp := s.open(t.Context(), "POST", "/v1/runs/"+r.id+"/questions/"+id, `{"verdict":"allow"}`)
		var p server.Problem
		err := json.NewDecoder(resp.Body).Decode(&p)
		if _ = resp.Body.Close(); err != nil || p.Status != resp.StatusCode || p.Status != 409 && p.Status != 404 || !strings.Contains(p.Detail, want) || p.Next == "" {
			t.Errorf("the question %s: %d %+v, %v; want a refusal with %q", id, resp.StatusCode, p, err, want)
		}
	}
	if run := s.run(r.id); run.State != record.Running {
		t.Errorf("the run is %s", run.State)
	}
}

// What a program does not have is refused with a problem document, as the API does.
func TestControl_ProgramRefusesWithProblems(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Block())
	waitFor(t, "control", func() bool { return s.run(r.id).Controllable })
	opened, err := store.Find(r.id)
	if err != nil {
		t.Fatal(err)
	}
	for path, status := range map[string]int{"/nothing": 404, "/": 404, "/state": 404, "/messages": 409, "/questions/x": 409} { // all by POST
		err := s.Pass(t.Context(), opened, path, map[string]string{})
		if p, ok := err.(*server.Problem); !ok || p.Status != status || p.Detail == "" || p.Next == "" {
			t.Errorf("%s: %+v, want the problem document of %d, with what to do", path, err, status)
		}
	}
}

func TestControl_InterruptReachesTheProgram(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	interrupted := make(chan struct{}, 2)
	r := start(t, store, nil, server.LiveOptions{Interrupt: func() bool { interrupted <- struct{}{}; return true }}, agenttest.Block())
	waitFor(t, "control", func() bool { return s.run(r.id).Controllable })
	if resp, text := s.request("POST", "/v1/runs/"+r.id+"/interrupt", ""); resp.StatusCode != 202 || len(interrupted) != 1 {
		t.Errorf("%d %s, and %d interruptions", resp.StatusCode, text, len(interrupted))
	}
}

// A message to a run under way is sent after its answer, and the response names the run that has it. One that comes too late is refused.
func TestControl_MessageToARunUnderWay(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	p, err := prompt.FromText[string]("Look at the shop.")
	if err != nil {
		t.Fatal(err)
	}
	goOn, begun := make(chan struct{}), make(chan struct{}, 2)
	adapter := agenttest.New(func(*agenttest.Run) { begun <- struct{}{}; <-goOn }, agenttest.Emit(event.Text{Content: "Yes."}), agenttest.Done("token-1"))
	live := server.NewLive(record.NewRecorder(store, nil), &server.LiveOptions{Messages: true})
	const id = "00000000-0000-4000-8000-000000000001"
	over := make(chan struct{})
	go func() {
		defer close(over)
		c := drover.Converse(adapter, p, &drover.Options{Recorder: live, RunContext: guard.RunContext{RunID: id}})
		for text, more := "", true; more; text, more = live.Next() {
			for _, err := range c.Stream(context.Background(), text).Events() {
				if err != nil {
					t.Error(err)
				}
			}
		}
		if c.Close() != nil || live.Close() != nil {
			t.Error("the conversation was not closed")
		}
	}()
	<-begun
	waitFor(t, "control", func() bool { return s.run(id).Controllable })
	if resp, text := s.request("POST", "/v1/runs/"+id+"/messages", `{"text":" "}`); resp.StatusCode != 422 {
		t.Errorf("an empty message: %d %s", resp.StatusCode, text)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		resp, text := s.request("POST", "/v1/runs/"+id+"/messages", `{"text":"And now?"}`)
		var next server.Run
		if err := json.Unmarshal([]byte(text), &next); err != nil || resp.StatusCode != 201 || next.ID == id || resp.Header.Get("Location") != "/v1/runs/"+next.ID {
			t.Errorf("the message: %d %s", resp.StatusCode, text)
		}
	}()
	waitFor(t, "the message waits", func() bool { return server.Waiting(live) == 1 })
	close(goOn)
	<-answered
	<-over
	if asked := adapter.Requests(); len(asked) != 2 || !strings.Contains(fmt.Sprintf("%+v", asked[1]), "And now?") {
		t.Errorf("the agent was asked %+v", asked)
	}
	var list server.RunList
	if s.get("/v1/runs", &list); len(list.Runs) != 2 {
		t.Errorf("%d runs, want one for each message", len(list.Runs))
	}
}

// A full starter is refused with a time to try again.
type full struct{ pretender }

func (full) Start(context.Context, server.Start) (string, error) {
	return "", fmt.Errorf("%w: 2", server.ErrBusy)
}

func TestStart_TooManyRunsSaysWhenToTryAgain(t *testing.T) {
	s := serve(t, server.Options{Store: openStore(t), Starter: full{}})
	if resp, text := s.request("POST", "/v1/runs", `{"prompt":"Go."}`); resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "5" || !strings.Contains(text, `"next":`) {
		t.Errorf("%d, Retry-After %q: %s", resp.StatusCode, resp.Header.Get("Retry-After"), text)
	}
}

// The list has what the programs of watched runs have said, and asks none of them again: here the program could not be asked.
func TestList_WatchedRunsAreNotAskedAgain(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store, Notify: func(server.Notice) {}})
	r := start(t, store, asking(), server.LiveOptions{}, agenttest.UseTool(command, "done"), agenttest.Done("token-1"))
	list := func() (run server.Summary) {
		var all server.RunList
		if s.get("/v1/runs", &all); len(all.Runs) != 1 {
			t.Fatalf("%d runs", len(all.Runs))
		}
		return all.Runs[0]
	}
	run, err := store.Find(r.id)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the question is known", func() bool { return server.Known(s.Server, run.Path) == 1 })
	key := filepath.Join(run.Path, "control.key")
	if err := os.Rename(key, key+".moved"); err != nil {
		t.Fatal(err)
	}
	if sum := list(); !sum.Controllable || len(sum.Questions) != 1 {
		t.Errorf("the list has the run with %d questions, controllable %t", len(sum.Questions), sum.Controllable)
	}
	if s.run(r.id).Controllable {
		t.Error("a run whose program cannot be asked counts as controllable")
	}
	if err := os.Rename(key+".moved", key); err != nil {
		t.Fatal(err)
	}
	q := s.run(r.id).Questions[0].ID
	if resp, text := s.request("POST", "/v1/runs/"+r.id+"/questions/"+q, `{"verdict":"deny"}`); resp.StatusCode != 204 {
		t.Fatalf("the answer: %d %s", resp.StatusCode, text)
	}
	<-r.done
	if sum := list(); sum.State != record.Ended || len(sum.Questions) > 0 || sum.Controllable {
		t.Errorf("the run that is over is %s with %d questions, controllable %t", sum.State, len(sum.Questions), sum.Controllable)
	}
	waitFor(t, "it is forgotten", func() bool { return server.Known(s.Server, run.Path) == -1 })
}
