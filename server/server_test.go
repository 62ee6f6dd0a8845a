// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
)

// children are what this program does instead of tests where a variable is set.
var children = map[string]func(value string) error{}

func TestMain(m *testing.M) {
	for name, child := range children {
		if value := os.Getenv(name); value != "" {
			if err := child(value); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(browserMain{m})
}

const secret = "hunter2-of-winter"

func openStore(t testing.TB) *record.Store {
	t.Helper()
	s, err := record.Open(filepath.Join(t.TempDir(), "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A site is a server on loopback.
type site struct {
	*server.Server
	t    testing.TB
	base string
}

func serve(t testing.TB, o server.Options) *site {
	t.Helper()
	s, err := server.New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-served, s.Close()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return &site{s, t, "http://" + l.Addr().String()}
}

// request makes a request with headers as "Name: value". Without an Authorization among them it has the owner's token.
func (s *site) request(method, path, body string, headers ...string) (*http.Response, string) {
	s.t.Helper()
	resp := s.open(s.t.Context(), method, path, body, headers...)
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if strings.HasPrefix(path, "/v1/") && path != "/v1/openapi.json" && resp.StatusCode != 404 && resp.StatusCode != 405 { // those may be of other paths
		d, err := described()
		if err == nil {
			err = d.check(resp.Request, body, resp, text)
		}
		if err != nil {
			s.t.Errorf("%s %s: %d %.300s is not as described: %v", method, path, resp.StatusCode, text, err)
		}
	}
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode >= 400 && kind != "application/problem+json" {
		s.t.Errorf("%s %s: status %d is %s, not a problem document: %s", method, path, resp.StatusCode, kind, text)
	}
	return resp, string(text)
}

func (s *site) open(ctx context.Context, method, path, body string, headers ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Token())
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Del(name)
		switch {
		case name == "Host":
			r.Host = value
		case value != "":
			r.Header.Add(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp
}

func (s *site) get(path string, into any) {
	s.t.Helper()
	resp, text := s.request("GET", path, "")
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("GET %s: %d %s", path, resp.StatusCode, text)
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		s.t.Fatal(err)
	}
}

// A message is a server-sent event.
type message struct{ id, name, data string }

// follow reads the events of a run behind a position until f returns false, or the stream ends.
func (s *site) follow(ctx context.Context, run string, after int64, f func(message) bool) {
	s.t.Helper()
	resp := s.open(ctx, "GET", "/v1/runs/"+run+"/events", "", "Accept: text/event-stream", "Last-Event-ID: "+strconv.FormatInt(after, 10))
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		s.t.Fatalf("the events of %s: status %d", run, resp.StatusCode)
	}
	var next message
	for in := bufio.NewReader(resp.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch name {
		case "id":
			next.id = value
		case "event":
			next.name = value
		case "data":
			next.data = value
		case "":
			if next.name != "" && !f(next) {
				return
			}
			next = message{}
		}
	}
}

// A liveRun is a run of a scripted agent that can be controlled.
type liveRun struct {
	id   string
	live *server.Live
	done <-chan struct{} // closed when the run is over
	err  error           // of the run that is over
}

// start begins a run, and returns when it is kept.
func start(t testing.TB, store *record.Store, o *drover.Options, lo server.LiveOptions, steps ...agenttest.Step) *liveRun {
	t.Helper()
	return startOn(t, store, o, lo, agenttest.New(steps...))
}

func startOn(t testing.TB, store *record.Store, o *drover.Options, lo server.LiveOptions, adapter agent.Adapter) *liveRun {
	t.Helper()
	p, err := prompt.FromText[string]("Look at the shop.")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	if lo.Stop == nil {
		lo.Stop = func() { cancel(errors.New("stopped from elsewhere")) }
	}
	live := server.NewLive(record.NewRecorder(store, &record.RecorderOptions{Name: "reviewer", Secrets: []string{secret}}), &lo)
	own := drover.Options{}
	if o != nil {
		own = *o
	}
	own.Recorder, own.RunContext.RunID = live, fmt.Sprintf("00000000-0000-4000-8000-%012d", time.Now().UnixNano()%1e12)
	if own.Approver == nil && own.Permissions != nil {
		own.Approver = live
	}
	done := make(chan struct{})
	r := &liveRun{id: own.RunContext.RunID, live: live, done: done}
	t.Cleanup(func() {
		cancel(nil)
		<-done
	})
	go func() {
		defer close(done)
		run := drover.Stream(ctx, adapter, p, &own)
		for e, err := range run.Events() {
			if err == nil {
				live.Show(e)
			}
		}
		_, r.err = run.Response()
		if err := live.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 500 {
		if _, err := store.Find(r.id); err == nil {
			return r
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the run was not kept in 5 s")
	return nil
}

func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	for range 500 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: not within 5 s", what)
}

func (s *site) run(id string) (run server.Run) {
	s.t.Helper()
	s.get("/v1/runs/"+id, &run)
	return run
}

// command is a call that has to be approved.
var command = event.ToolCall{ID: "call-1", Name: "perform", Input: json.RawMessage(`{"line":"login ` + secret + `"}`)}

// asking are options with which commands have to be approved.
func asking() *drover.Options {
	return &drover.Options{Settings: agent.Settings{Permissions: &gate.Permissions{}}, Policies: []gate.Policy{gate.KnowsAgent(agenttest.Tools())}}
}

// A reader that loses its connection at any event, and comes back with the last id, has each event once.
func TestEvents_ReconnectLosesAndRepeatsNothing(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	const texts = 300
	more := make(chan struct{})
	steps := []agenttest.Step{}
	for i := range texts {
		steps = append(steps, agenttest.Emit(event.Text{Content: strconv.Itoa(i)}))
		if i == texts/2 {
			steps = append(steps, func(*agenttest.Run) { <-more })
		}
	}
	r := start(t, store, nil, server.LiveOptions{}, append(steps, agenttest.Done("token-1"))...)
	var got []int64
	ended := false
	for cut := int64(1); !ended; cut = cut*3/2 + 1 {
		last := int64(0)
		if len(got) > 0 {
			last = got[len(got)-1]
		}
		seen := int64(0)
		s.follow(t.Context(), r.id, last, func(m message) bool {
			switch m.name {
			case "entry":
				pos, err := strconv.ParseInt(m.id, 10, 64)
				if err != nil || !strings.HasPrefix(m.data, `{"position":"`+m.id+`",`) {
					t.Fatalf("the event %+v", m)
				}
				got = append(got, pos)
				if seen++; len(got) == texts/4 {
					close(more)
				}
			case "end":
				ended = true
				if !strings.Contains(m.data, `"status":"success"`) {
					t.Errorf("the end is %s", m.data)
				}
			case "failed":
				t.Fatal(m.data)
			}
			return seen < cut
		})
	}
	for i, pos := range got {
		if pos != int64(i+1) {
			t.Fatalf("event %d has the position %d", i+1, pos)
		}
	}
	resp, text := s.request("GET", "/v1/runs/"+r.id+"/events?after=5", "", "Accept: application/jsonl")
	if lines := strings.Count(text, "\n"); resp.StatusCode != 200 || lines != len(got)-5 || len(got) < texts {
		t.Errorf("%d of %d events as lines behind the fifth, status %d", lines, len(got), resp.StatusCode)
	}
}

// Of many answers at the same time one counts, and is what the call gets; the others are refused.
func TestQuestion_OneAnswerCounts(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, asking(), server.LiveOptions{}, agenttest.UseTool(command, "done"), agenttest.Done("token-1"))
	waitFor(t, "the question", func() bool { return len(s.run(r.id).Questions) == 1 })
	q := s.run(r.id).Questions[0]
	if q.Call != command.ID || q.Tool != command.Name || !strings.Contains(q.Reason, "shellExecute") || q.Run != r.id || strings.Contains(string(q.Input), secret) {
		t.Errorf("the question is %+v with %s", q, q.Input)
	}
	var mu sync.Mutex
	statuses := map[int]int{}
	var askers sync.WaitGroup
	for i := range 8 {
		askers.Go(func() {
			verdict := []string{"allow", "deny"}[i%2]
			resp, _ := s.request("POST", "/v1/runs/"+r.id+"/questions/"+q.ID, `{"verdict":"`+verdict+`","reason":"not today"}`)
			mu.Lock()
			statuses[resp.StatusCode]++
			mu.Unlock()
		})
	}
	askers.Wait()
	<-r.done
	if statuses[204] != 1 || statuses[409] != 7 {
		t.Errorf("the answers got %v", statuses)
	}
	run, err := store.Find(r.id)
	if err != nil {
		t.Fatal(err)
	}
	d, err := run.Details()
	if err != nil {
		t.Fatal(err)
	}
	decided := 0
	for _, call := range d.Calls {
		decided += len(call.Decisions)
	}
	if decided > 1 {
		t.Errorf("the call has %d decisions", decided)
	}
}

func TestQuestion_AnswerWithReason(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, asking(), server.LiveOptions{}, agenttest.UseTool(command, "done"), agenttest.Done("token-1"))
	waitFor(t, "the question", func() bool { return len(s.run(r.id).Questions) == 1 })
	q := s.run(r.id).Questions[0]
	path := "/v1/runs/" + r.id + "/questions/"
	for body, status := range map[string]int{
		`{"verdict":"maybe"}`: 400, `{"verdict":"ask"}`: 422, `{"verdict":"allow","remember":"for ever"}`: 422, `{"verdict":"allow","other":1}`: 400, `{`: 400, `[]`: 400,
	} {
		if resp, text := s.request("POST", path+q.ID, body); resp.StatusCode != status {
			t.Errorf("%s: %d, want %d: %s", body, resp.StatusCode, status, text)
		}
	}
	if resp, text := s.request("POST", path+"other", `{"verdict":"allow"}`); resp.StatusCode != 409 {
		t.Errorf("another question: %d %s", resp.StatusCode, text)
	}
	if resp, text := s.request("POST", path+q.ID, `{"verdict":"deny","reason":"the shop is closed"}`); resp.StatusCode != 204 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	<-r.done
	_, text := s.request("GET", "/v1/runs/"+r.id+"/events", "")
	if !strings.Contains(text, "the shop is closed") || !strings.Contains(text, `"asked":true`) {
		t.Errorf("the decision is not in the log: %s", text)
	}
	if run := s.run(r.id); run.Denied != 1 {
		t.Errorf("%d calls were denied, want 1", run.Denied)
	}
}

// Another approver is asked at the same time, and is told who has answered.
func TestLive_OtherApproverHearsWhoAnswered(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	heard := make(chan error, 1)
	local := gate.ApproverFunc(func(ctx context.Context, _ gate.Question) (gate.Answer, error) {
		<-ctx.Done()
		heard <- context.Cause(ctx)
		return gate.Answer{}, context.Cause(ctx)
	})
	r := start(t, store, asking(), server.LiveOptions{Approver: local}, agenttest.UseTool(command, "done"), agenttest.Done("token-1"))
	waitFor(t, "the question", func() bool { return len(s.run(r.id).Questions) == 1 })
	q := s.run(r.id).Questions[0]
	s.request("POST", "/v1/runs/"+r.id+"/questions/"+q.ID, `{"verdict":"allow"}`)
	if how, ok := errors.AsType[gate.AnsweredElsewhere](<-heard); !ok || how.Where != "on the page" || how.Verdict != event.Allow {
		t.Errorf("the other approver heard %+v", how)
	}
	<-r.done
}

func TestStop_EndsTheRun(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Block())
	waitFor(t, "control", func() bool { return s.run(r.id).Controllable })
	if resp, text := s.request("POST", "/v1/runs/"+r.id+"/interrupt", ""); resp.StatusCode != 409 {
		t.Errorf("interrupt of a run without turns: %d %s", resp.StatusCode, text)
	}
	if resp, text := s.request("POST", "/v1/runs/"+r.id+"/stop", ""); resp.StatusCode != 202 {
		t.Fatalf("stop: %d %s", resp.StatusCode, text)
	}
	<-r.done
	waitFor(t, "the end", func() bool { return s.run(r.id).State == record.Ended })
	if run := s.run(r.id); run.Status != event.DoneInterrupted || run.Controllable {
		t.Errorf("the run is %s, controllable %t", run.Status, run.Controllable)
	}
	for _, path := range []string{"stop", "interrupt"} {
		if resp, text := s.request("POST", "/v1/runs/"+r.id+"/"+path, ""); resp.StatusCode != 409 {
			t.Errorf("%s of a run that is over: %d %s", path, resp.StatusCode, text)
		}
	}
	if resp, text := s.request("POST", "/v1/runs/"+r.id+"/messages", `{"text":"go on"}`); resp.StatusCode != 403 {
		t.Errorf("a message where nothing can be started: %d %s", resp.StatusCode, text)
	}
	waitFor(t, "the socket is gone", func() bool {
		files, err := filepath.Glob(filepath.Join(store.Dir(), "*", r.id, "control.*"))
		return err == nil && len(files) == 0
	})
}

// Parts of texts come while they are written, in whole words, without the secrets of the run.
func TestParts_ComeWithoutSecrets(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	watched, said := make(chan struct{}), make(chan struct{})
	steps := []agenttest.Step{agenttest.Emit(event.Text{Content: "First."}), func(*agenttest.Run) { <-watched }}
	for part := range slices.Chunk([]byte("My key is "+secret+" and no other one."), 3) {
		steps = append(steps, agenttest.Emit(event.TextDelta{Delta: string(part)}))
	}
	steps = append(steps, func(*agenttest.Run) { <-said }, agenttest.Emit(event.Text{Content: "My key is " + secret + " and no other one."}), agenttest.Done("token-1"))
	r := start(t, store, &drover.Options{Settings: agent.Settings{PartialText: true}}, server.LiveOptions{}, steps...)
	text := ""
	s.follow(t.Context(), r.id, 0, func(m message) bool {
		if strings.Contains(m.data, secret) {
			t.Errorf("a secret is served: %s", m.data)
		}
		switch m.name {
		case "state":
			if strings.Contains(m.data, `"controllable":true`) && text == "" {
				select {
				case <-watched:
				default:
					close(watched)
				}
			}
		case "part":
			var e event.Event
			if err := json.Unmarshal([]byte(m.data), &e); err != nil {
				t.Fatal(err)
			}
			if text += e.Payload.(event.TextDelta).Delta; strings.HasSuffix(text, "other ") {
				close(said)
			}
		}
		return true
	})
	if want := "My key is [redacted] and no other "; text != want {
		t.Errorf("the parts are %q, want %q", text, want)
	}
}

// A cookie alone is what other servers of the host receive from the browser. It opens nothing.
func TestAccess_EachRequestNeedsItsSecret(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store, Hosts: []string{"drover.example"}})
	origin := "Origin: " + s.base
	trade := func(token string, headers ...string) (cookie, secret string, status int) {
		resp, text := s.request("POST", "/v1/session", `{"token":"`+token+`"}`, append([]string{"Authorization: "}, headers...)...)
		var got struct{ Secret string }
		_ = json.Unmarshal([]byte(text), &got)
		for _, c := range resp.Cookies() {
			cookie = c.Name + "=" + c.Value
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode {
				t.Errorf("the cookie is %s", c)
			}
		}
		return cookie, got.Secret, resp.StatusCode
	}
	cookie, key, status := trade(s.Token(), origin)
	if cookie == "" || key == "" || status != 200 {
		t.Fatalf("the trade gave %q, %q, %d", cookie, key, status)
	}
	if c, k, _ := trade(s.Token(), origin, "Cookie: "+cookie); c != cookie || k != key {
		t.Error("a second trade of the same browser locks its other tabs out")
	}
	viewCookie, viewKey, _ := trade(s.ViewerToken(), origin)
	for name, test := range map[string]struct {
		method, path string
		headers      []string
		status       int
	}{
		"no token":                       {"GET", "/v1/runs", []string{"Authorization: "}, 401},
		"wrong token":                    {"GET", "/v1/runs", []string{"Authorization: Bearer x"}, 401},
		"token in the address":           {"GET", "/v1/runs?token=" + s.Token(), []string{"Authorization: "}, 401},
		"owner's token":                  {"GET", "/v1/runs", nil, 200},
		"cookie alone":                   {"GET", "/v1/runs", []string{"Authorization: ", "Cookie: " + cookie}, 401},
		"secret alone":                   {"GET", "/v1/runs", []string{"Authorization: ", "Drover-Secret: " + key}, 401},
		"cookie and secret":              {"GET", "/v1/runs", []string{"Authorization: ", "Cookie: " + cookie, "Drover-Secret: " + key}, 200},
		"cookie and another's secret":    {"GET", "/v1/runs", []string{"Authorization: ", "Cookie: " + cookie, "Drover-Secret: " + viewKey}, 401},
		"events by the cookie alone":     {"GET", "/v1/events", []string{"Authorization: ", "Cookie: " + cookie}, 401},
		"change by the cookie alone":     {"POST", "/v1/runs", []string{"Authorization: ", "Cookie: " + cookie, origin}, 401},
		"viewer reads":                   {"GET", "/v1/runs", []string{"Authorization: Bearer " + s.ViewerToken()}, 200},
		"viewer changes":                 {"POST", "/v1/runs", []string{"Authorization: Bearer " + s.ViewerToken()}, 403},
		"viewer changes from the page":   {"POST", "/v1/bundles", []string{"Authorization: ", "Cookie: " + viewCookie, "Drover-Secret: " + viewKey}, 403},
		"page of another site":           {"GET", "/v1/runs", []string{"Origin: https://evil.example"}, 403},
		"page of another port":           {"GET", "/v1/runs", []string{"Origin: http://127.0.0.1:1"}, 403},
		"page of no site":                {"GET", "/v1/runs", []string{"Origin: null"}, 403},
		"request of another site":        {"GET", "/v1/runs", []string{"Sec-Fetch-Site: cross-site"}, 403},
		"request of another port":        {"GET", "/v1/runs", []string{"Sec-Fetch-Site: same-site"}, 403},
		"name that leads here":           {"GET", "/v1/runs", []string{"Host: evil.example"}, 421},
		"page by a name that leads here": {"GET", "/", []string{"Host: evil.example:80"}, 421},
		"name that was given":            {"GET", "/v1/runs", []string{"Host: drover.example"}, 200},
		"the page needs nothing":         {"GET", "/", []string{"Authorization: "}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			resp, text := s.request(test.method, test.path, "", test.headers...)
			if resp.StatusCode != test.status {
				t.Errorf("%s %s: %d, want %d: %s", test.method, test.path, resp.StatusCode, test.status, text)
			}
		})
	}
	if _, _, status := trade(s.Token()); status != 403 {
		t.Errorf("a trade that is not of the page: %d", status)
	}
	if _, _, status := trade("wrong", origin); status != 401 {
		t.Errorf("a trade of a wrong token: %d", status)
	}
	for range 40 {
		_, _, status = trade("wrong", origin)
	}
	if _, _, right := trade(s.Token(), origin); status != 429 || right != 200 {
		t.Errorf("after many wrong tokens: %d for another, %d for the right one", status, right)
	}
}

// Each route of the API is refused without a token, and each that changes something with a viewer's.
func TestAccess_EachRouteIsGuarded(t *testing.T) {
	s := serve(t, server.Options{Store: openStore(t)})
	for _, pattern := range server.Patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		if path == "/v1/session" {
			continue
		}
		path = strings.NewReplacer("{run}", "last", "{question}", "q").Replace(path)
		if resp, _ := s.request(method, path, "", "Authorization: "); resp.StatusCode != 401 {
			t.Errorf("%s without a token: %d", pattern, resp.StatusCode)
		}
		if resp, _ := s.request("DELETE", path, ""); resp.StatusCode != 405 {
			t.Errorf("DELETE %s: %d", path, resp.StatusCode)
		}
		if method == "POST" {
			if resp, _ := s.request(method, path, "", "Authorization: Bearer "+s.ViewerToken()); resp.StatusCode != 403 {
				t.Errorf("%s with a viewer's token: %d", pattern, resp.StatusCode)
			}
		}
	}
	for path, status := range map[string]int{
		"/v1/other": 404, "/other": 404, "/static/": 404, "/static/../server.go": 404, "/v1/runs/%2e%2e": 404, "/v1/runs/nothing": 404, "/v1/runs?limit=0": 400,
		"/v1/runs?since=x": 400, "/v1/runs?x=1": 400, "/v1/runs?state=odd": 400, "/v1/runs/" + strings.Repeat("x", 8000): 400, "//v1/runs": 404, "/v1//runs": 404,
	} {
		if resp, text := s.request("GET", path, ""); resp.StatusCode != status && !(status == 404 && resp.StatusCode == 400) {
			t.Errorf("%.40s: %d, want %d: %.200s", path, resp.StatusCode, status, text)
		}
	}
}

// Whatever is asked for, a request has to name this server, come from its own page or a program, and have its secret.
func TestAccess_EachRouteChecksWhoAsks(t *testing.T) {
	s := serve(t, server.Options{Store: openStore(t)})
	resp, text := s.request("POST", "/v1/session", `{"token":"`+s.Token()+`"}`, "Authorization: ", "Origin: "+s.base)
	var page struct{ Secret string }
	if err := json.Unmarshal([]byte(text), &page); err != nil || len(resp.Cookies()) != 1 {
		t.Fatalf("the trade: %s", text)
	}
	cookie := "Cookie: " + resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
	patterns := append(server.Patterns(), "GET /v1/openapi.json", "GET /", "GET /static/app.js", "GET /r/last", "GET /v1/nothing", "GET /nothing", "HEAD /", "PUT /v1/runs")
	for _, pattern := range patterns {
		method, path, _ := strings.Cut(pattern, " ")
		path = strings.NewReplacer("{run}", "last", "{question}", "q").Replace(path)
		api := strings.HasPrefix(path, "/v1/")
		open := !slices.Contains(server.Patterns(), pattern) || path == "/v1/session" // needs no secret
		for name, c := range map[string]struct {
			headers []string
			status  int
			applies bool
		}{
			"another name":              {[]string{"Host: evil.example"}, 421, true},
			"another name with a port":  {[]string{"Host: evil.example:80"}, 421, true},
			"a name that begins right":  {[]string{"Host: localhost.evil.example"}, 421, true},
			"another site":              {[]string{"Origin: https://evil.example"}, 403, true},
			"another port":              {[]string{"Origin: http://127.0.0.1:1"}, 403, true},
			"no site":                   {[]string{"Origin: null"}, 403, true},
			"another scheme":            {[]string{"Origin: " + strings.Replace(s.base, "http:", "https:", 1)}, 403, true},
			"a request of another site": {[]string{"Sec-Fetch-Site: cross-site"}, 403, api},
			"a request of another port": {[]string{"Sec-Fetch-Site: same-site"}, 403, api},
			"a typed address":           {[]string{"Sec-Fetch-Site: none"}, 403, api},
			"nothing":                   {[]string{"Authorization: "}, 401, !open},
			"the cookie alone":          {[]string{"Authorization: ", cookie}, 401, !open},
			"the secret alone":          {[]string{"Authorization: ", "Drover-Secret: " + page.Secret}, 401, !open},
			"a wrong secret":            {[]string{"Authorization: ", cookie, "Drover-Secret: x"}, 401, !open},
			"a wrong cookie":            {[]string{"Authorization: ", cookie + "x", "Drover-Secret: " + page.Secret}, 401, !open},
			"the secret in the address": {[]string{"Authorization: ", cookie, "Referer: " + s.base + "/#" + page.Secret}, 401, !open},
			"another scheme of access":  {[]string{"Authorization: Basic " + s.Token()}, 401, !open},
			"a viewer":                  {[]string{"Authorization: Bearer " + s.ViewerToken()}, 403, !open && method == "POST"},
		} {
			if !c.applies {
				continue
			}
			resp := s.open(t.Context(), method, path, "", c.headers...)
			text, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != c.status || method != "HEAD" && !strings.Contains(string(text), `"next":`) {
				t.Errorf("%s by %s: %d, want %d: %.200s %v", pattern, name, resp.StatusCode, c.status, text, err)
			}
		}
	}
}

// A socket is for its owner, and its requests need the key that is beside it.
func TestLive_SocketNeedsTheKey(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Block())
	waitFor(t, "control", func() bool { return s.run(r.id).Controllable })
	run, err := store.Find(r.id)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(run.Path, "control.sock")
	for _, name := range []string{path, filepath.Join(run.Path, "control.key")} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	dir, err := os.Open(run.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/control.sock", dir.Fd())) // the path may be too long for a socket
	}}}
	for _, key := range []string{"", "Bearer wrong"} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://run/stop", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", key)
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != 401 {
			t.Errorf("with the key %q: %d", key, resp.StatusCode)
		}
	}
}

func TestBundle_IsOpenedToBeRead(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Emit(event.Text{Content: "All is well."}), agenttest.Done("token-1"))
	<-r.done
	resp, bundle := s.request("GET", "/v1/runs/"+r.id+"/bundle", "")
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/zip" {
		t.Fatalf("the bundle: %d", resp.StatusCode)
	}
	resp, text := s.request("POST", "/v1/bundles", bundle, "Content-Type: application/zip")
	var run server.Run
	if err := json.Unmarshal([]byte(text), &run); err != nil || resp.StatusCode != 201 || run.Resumable || run.Status != event.DoneSuccess {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	_, want := s.request("GET", "/v1/runs/"+r.id+"/events", "")
	if _, got := s.request("GET", resp.Header.Get("Location")+"/events", ""); got != want {
		t.Errorf("the events of the bundle are\n%s\nwant\n%s", got, want)
	}
	ended := false
	s.follow(t.Context(), run.ID, 0, func(m message) bool { ended = ended || m.name == "end"; return true })
	if !ended {
		t.Error("the stream of a bundle has no end")
	}
	for _, bad := range []string{"", "no zip", bundle[:len(bundle)/3]} {
		if resp, text := s.request("POST", "/v1/bundles", bad); resp.StatusCode != 422 {
			t.Errorf("a file of %d bytes: %d %s", len(bad), resp.StatusCode, text)
		}
	}
	var c server.Comparison
	if s.get("/v1/compare?a="+r.id+"&b="+run.ID, &c); c.Same != 0 || c.Answer != "" || c.Prompt != "" || c.A.ID != r.id || c.B.ID != run.ID {
		t.Errorf("the comparison of a run with its bundle is %+v", c)
	}
}

func TestSession_IsThatOfAPosition(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	r := start(t, store, nil, server.LiveOptions{}, agenttest.Emit(event.Text{Content: "All is well."}), agenttest.Done("token-1"))
	<-r.done
	var all, first server.SessionState
	s.get("/v1/runs/"+r.id+"/session", &all)
	s.get("/v1/runs/"+r.id+"/session?at=1", &first)
	if first.At != 1 || all.At <= 1 {
		t.Errorf("the positions are %d and %d", first.At, all.At)
	}
	if resp, text := s.request("GET", "/v1/runs/"+r.id+"/session?at=x", ""); resp.StatusCode != 400 {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// The stream of all runs has a message when one begins and when one ends, and notices have the same.
func TestChanges_AreReported(t *testing.T) {
	store := openStore(t)
	var mu sync.Mutex
	var notices []string
	s := serve(t, server.Options{Store: store, Notify: func(n server.Notice) {
		mu.Lock()
		defer mu.Unlock()
		notices = append(notices, n.Event+" "+string(n.Run.State))
	}})
	ctx, stop := context.WithCancel(t.Context())
	resp := s.open(ctx, "GET", "/v1/events", "")
	defer func() { stop(); _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	changed := func() {
		t.Helper()
		for lines.Scan() {
			if lines.Text() == "event: runs" {
				return
			}
		}
		t.Fatal("the stream ended")
	}
	changed() // at once, for a reader that comes back
	r := start(t, store, asking(), server.LiveOptions{}, agenttest.UseTool(command, "done"), agenttest.Done("token-1"))
	changed()
	waitFor(t, "the question", func() bool { return len(s.run(r.id).Questions) == 1 })
	waitFor(t, "the notice of the question", func() bool { mu.Lock(); defer mu.Unlock(); return len(notices) > 0 })
	s.request("POST", "/v1/runs/"+r.id+"/questions/"+s.run(r.id).Questions[0].ID, `{"verdict":"deny"}`)
	<-r.done
	changed()
	waitFor(t, "the notice of the end", func() bool { mu.Lock(); defer mu.Unlock(); return len(notices) > 1 })
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"question running", "end ended"}; !slices.Equal(notices, want) {
		t.Errorf("the notices are %q, want %q", notices, want)
	}
}

// A run that ends while a request is answered is one that is over, with its end.
func TestRuns_EndsWhileItIsDescribed(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	goOn := make(chan struct{})
	r := start(t, store, nil, server.LiveOptions{}, func(*agenttest.Run) { <-goOn }, agenttest.Done("token-1"))
	opened, err := store.Find(r.id)
	if err != nil || opened.State != record.Running {
		t.Fatalf("the run is %+v, %v", opened, err)
	}
	close(goOn)
	<-r.done
	if got, err := s.Describe(t.Context(), opened); err != nil || got.State != record.Ended || got.End == nil {
		t.Errorf("the run is %s with the end %v, %v", got.State, got.End, err)
	}
}

// The index reads the logs of runs under way from their beginning, and so not at each request: only when a run begins or ends, and
// otherwise for a part of the time.
func TestRuns_IndexIsNotReadAgainForEachRequest(t *testing.T) {
	store := openStore(t)
	s := serve(t, server.Options{Store: store})
	goOn, on := make(chan struct{}), make(chan struct{})
	r := start(t, store, nil, server.LiveOptions{},
		agenttest.Emit(event.Init{Model: "first"}), func(*agenttest.Run) { <-goOn },
		agenttest.Emit(event.Init{Model: "second"}), func(*agenttest.Run) { <-on }, agenttest.Done("token-1"))
	waitFor(t, "the first model", func() bool { return s.run(r.id).Model == "first" })
	server.HoldIndex(s.Server)
	close(goOn)
	s.follow(t.Context(), r.id, 0, func(m message) bool { return !strings.Contains(m.data, "second") })
	if model := s.run(r.id).Model; model != "first" {
		t.Errorf("the log is read again for a request: the model is %q", model)
	}
	start(t, store, nil, server.LiveOptions{}, agenttest.Done("token-1"))
	if model := s.run(r.id).Model; model != "second" {
		t.Errorf("after another run has begun the model is %q", model)
	}
	close(on)
	<-r.done
	server.HoldIndex(s.Server)
	if run := s.run(r.id); run.State != record.Ended || run.Status != event.DoneSuccess {
		t.Errorf("the run is %s, %s", run.State, run.Status)
	}
}
