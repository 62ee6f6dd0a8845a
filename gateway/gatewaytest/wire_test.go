// SPDX-License-Identifier: Apache-2.0

package gatewaytest_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/gatewaytest"
	"github.com/drover-agents/drover/guard"
	_ "github.com/drover-agents/drover/internal/testkit"
)

// upstream is the scripted model over HTTP.
func upstream(t *testing.T, answers ...gatewaytest.Answer) gateway.Upstream {
	t.Helper()
	server := httptest.NewServer(gatewaytest.Model(answers...))
	t.Cleanup(server.Close)
	up, err := gateway.NewEndpoint(gatewaytest.Wire(), server.URL, gateway.BearerToken("the real key"))
	if err != nil {
		t.Fatal(err)
	}
	return up
}

// A served run is one on loopback, and its events.
type served struct {
	*gateway.Run
	url string

	mu     sync.Mutex
	events []event.Payload
}

func serve(t *testing.T, o gateway.RunOptions) *served {
	t.Helper()
	s := &served{}
	o.Emit = func(p event.Payload) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, p)
	}
	run, err := gateway.New(&gateway.Options{MaxWait: time.Millisecond}).Open(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Run = run
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "http://" + l.Addr().String()
	ended := make(chan error, 1)
	go func() { ended <- run.Serve(l) }()
	t.Cleanup(func() {
		if err := errors.Join(run.Close(), <-ended); !errors.Is(err, gateway.ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

func (s *served) ask(t *testing.T, q gatewaytest.Question) (string, error) {
	t.Helper()
	return gatewaytest.Ask(t.Context(), s.url, s.Token(), q)
}

// calls are the calls that were reported.
func (s *served) calls() (calls []gateway.ModelCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.events {
		if call, ok := p.(gateway.ModelCall); ok {
			calls = append(calls, call)
		}
	}
	return calls
}

// wantError compares an error with one of the invented API.
func wantError(t *testing.T, err error, status int, name, why string) {
	t.Helper()
	got, ok := errors.AsType[*gatewaytest.Error](err)
	if !ok || got.Status != status || got.Name != name || !strings.Contains(got.Why, why) {
		t.Errorf("got %v, want %s about %q with status %d", err, name, why, status)
	}
}

var seven = gatewaytest.Answer{Words: []string{"Seven ", "gates."}, Input: 1000, Output: 200}

func TestWire_Metered(t *testing.T) {
	run := serve(t, gateway.RunOptions{Upstream: upstream(t, seven, seven, gatewaytest.Answer{Model: "pythia", Words: []string{"?"}, Input: 1, Output: 1})})
	for _, q := range []gatewaytest.Question{
		{Model: "Delphi-2@2026", Stream: true, Text: "How many gates?"},
		{Model: "delphi-2", Text: "How many gates?", Agent: "acolyte"},
	} {
		if got, err := run.ask(t, q); err != nil || got != "Seven gates." {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if _, err := run.ask(t, gatewaytest.Question{Model: "pythia", Stream: true}); err != nil {
		t.Error(err)
	}
	tokens := gateway.Tokens{Input: 1000, Output: 200}
	one := gateway.Count{Requests: 1, Tokens: tokens, USD: 0.004} // 1000 at 2 and 200 at 10 dollars for a million
	other := gateway.Count{Requests: 1, Tokens: gateway.Tokens{Input: 1, Output: 1}}
	want := gateway.Usage{
		Total: gateway.Count{Requests: 3, Tokens: gateway.Tokens{Input: 2001, Output: 401}, USD: 0.008},
		ByModel: map[string]gateway.Count{
			"delphi-2": {Requests: 2, Tokens: gateway.Tokens{Input: 2000, Output: 400}, USD: 0.008}, "pythia": other,
		},
		ByAgent: map[string]gateway.Count{
			"acolyte": one, gateway.MainAgent: {Requests: 2, Tokens: gateway.Tokens{Input: 1001, Output: 201}, USD: 0.004},
		},
		Unpriced: []string{"pythia"},
	}
	if diff := cmp.Diff(want, run.Usage()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	first := run.calls()[0]
	if first.Operation != "ask" || first.Model != "delphi-2" || !first.Streamed || first.StopReason != "all is said" || first.Tokens != tokens || first.Error != "" {
		t.Errorf("got %+v", first)
	}
}

func TestWire_Routes(t *testing.T) {
	run := serve(t, gateway.RunOptions{Upstream: upstream(t)})
	for _, tc := range []struct {
		method, path, token, body string
		status                    int
		want                      string
	}{
		{"GET", "/knock", "", "", 200, "come in"},
		{"GET", "/oracles", run.Token(), "", 200, "delphi-2"},
		{"POST", "/weigh", run.Token(), "oracle: delphi-2\n\n", 200, "18"},
		{"POST", "/ask", run.Token(), "no text", 400, "unclear: "},
		{"POST", "/ask", "another", "", 403, "forbidden: "},
		{"POST", "/knock", run.Token(), "", 403, "forbidden: "},
		{"POST", "/v1/messages", run.Token(), "{}", 403, "forbidden: "},
		{"GET", "/api/hello", "", "", 403, "forbidden: "},
	} {
		t.Run(tc.method+tc.path, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tc.method, run.url+tc.path, strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Oracle "+tc.token)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tc.status || !strings.HasPrefix(string(body), tc.want) {
				t.Errorf("got %d %q, %v, want %d %q", resp.StatusCode, body, err, tc.status, tc.want)
			}
			if final := resp.Header.Get("Oracle-Again") == "false"; final != (tc.status != 200) {
				t.Errorf("whether to try again: got headers %v", resp.Header)
			}
		})
	}
	if got := run.Usage().Total; got != (gateway.Count{}) {
		t.Errorf("what is free cost %+v", got)
	}
}

func TestWire_BudgetRefuses(t *testing.T) {
	tracker := guard.NewTracker(guard.Budget{MaxCostUSD: 0.004})
	run := serve(t, gateway.RunOptions{
		Upstream: upstream(t, seven, seven), Trackers: []*guard.Tracker{tracker}, Remote: &gateway.Remote{},
	})
	_, err := run.ask(t, gatewaytest.Question{Model: "pythia"})
	wantError(t, err, 403, "forbidden", `"pythia" has no price`)
	_, err = run.ask(t, gatewaytest.Question{Model: "delphi-2", Fields: []string{"tripod: gold"}})
	wantError(t, err, 403, "forbidden", "the field tripod")
	_, err = run.ask(t, gatewaytest.Question{Model: "delphi-2", URL: "https://example.org/bird"})
	wantError(t, err, 403, "forbidden", "a thing to behold elsewhere")
	if _, err := run.ask(t, gatewaytest.Question{Model: "delphi-2", Stream: true}); err != nil {
		t.Errorf("an answer whose end the model has reported must come to its end: %v", err)
	}
	_, err = run.ask(t, gatewaytest.Question{Model: "delphi-2", Stream: true})
	wantError(t, err, 402, "purse_empty", "budget")
	if !errors.Is(run.Stopped(), guard.ErrBudgetExhausted) {
		t.Errorf("got %v", run.Stopped())
	}
	if got := run.Usage().Total; got.Requests != 1 || got.USD != 0.004 {
		t.Errorf("got %+v", got)
	}
}

// The run is over while the model waits to send more: the agent reads that in the API's own form.
func TestWire_LimitEndsAnAnswerInTheMiddle(t *testing.T) {
	released := make(chan struct{})
	answer := gatewaytest.Answer{Words: []string{"One, ", "two, ", "three."}, Input: 10, Output: 30, After: func(n int) {
		if n == 2 {
			<-released
		}
	}}
	defer close(released)
	tracker := guard.NewTracker(guard.Budget{MaxOutputTokens: 20})
	run := serve(t, gateway.RunOptions{Upstream: upstream(t, answer), Trackers: []*guard.Tracker{tracker}})
	words, err := run.ask(t, gatewaytest.Question{Model: "delphi-2", Stream: true, MaxTokens: 25})
	wantError(t, err, 0, "purse_empty", "budget")
	if words != "One, two, " {
		t.Errorf("got %q", words)
	}
	calls := run.calls()
	if len(calls) != 1 || calls[0].Error != "the run was stopped" || calls[0].Tokens.Input != 10 || calls[0].Tokens.Output < 20 {
		t.Errorf("got %+v", calls)
	}
}

func TestWire_BusyUpstream(t *testing.T) {
	run := serve(t, gateway.RunOptions{Upstream: upstream(t, gatewaytest.Answer{Status: gatewaytest.StatusOverloaded, Words: []string{"too many"}})})
	_, err := run.ask(t, gatewaytest.Question{Model: "delphi-2", Stream: true})
	wantError(t, err, gatewaytest.StatusOverloaded, "crowded", "too many")
	if calls := run.calls(); len(calls) != 1 || calls[0].Error != "crowded" || calls[0].Tokens != (gateway.Tokens{}) {
		t.Errorf("got %+v", calls)
	}
}

func TestWire_Turns(t *testing.T) {
	run := serve(t, gateway.RunOptions{Upstream: upstream(t, seven, seven, seven), MaxTurns: 2})
	tools := []string{"inscribe"}
	for i, q := range []gatewaytest.Question{{Tools: tools}, {Tools: tools, Result: "call-1"}, {Agent: "acolyte"}} {
		q.Model = "delphi-2"
		if _, err := run.ask(t, q); err != nil {
			t.Errorf("question %d: %v", i, err)
		}
	}
	_, err := run.ask(t, gatewaytest.Question{Model: "delphi-2", Tools: tools, Result: "call-2"})
	wantError(t, err, 402, "purse_empty", "the main conversation has made 2")
}

func TestWire_WarmUp(t *testing.T) {
	run := serve(t, gateway.RunOptions{Upstream: upstream(t, seven)})
	end, ok := run.WarmUp()
	if _, err := run.ask(t, gatewaytest.Question{Model: "delphi-2", Stream: true}); !ok || err != nil {
		t.Errorf("got %v, %v", ok, err)
	}
	end()
	if got, err := run.ask(t, gatewaytest.Question{Model: "delphi-2", Stream: true}); err != nil || got != "Seven gates." {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestWire_RecordAndReplay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	answer := gatewaytest.Answer{Words: []string{"The ", "hid", "den word, in /then/work, at sitting-1."}, Input: 10, Output: 3}
	recorder, err := gateway.Record(upstream(t, answer, seven), path, gateway.RecordOptions{
		Secrets: []string{"hidden word"}, Folders: gateway.Folders{Dir: "/then/work"},
	})
	if err != nil {
		t.Fatal(err)
	}
	question := func(session, rite, moon, dir string) gatewaytest.Question {
		return gatewaytest.Question{
			Model: "delphi-2", Stream: true, Session: session, Text: "In " + dir + ", at rite " + rite + ", what is it? The moon is " + moon + ".",
		}
	}
	run := serve(t, gateway.RunOptions{Upstream: recorder})
	if got, err := run.ask(t, question("sitting-1", "abcdef", "full", "/then/work")); err != nil || got != "The hidden word, in /then/work, at sitting-1." {
		t.Fatalf("got %q, %v", got, err)
	}
	if _, err := run.ask(t, gatewaytest.Question{Model: "delphi-2", Text: "How many?"}); err != nil {
		t.Fatal(err)
	}
	if err := recorder.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "hid") || strings.Contains(string(text), run.Token()) || !strings.Contains(string(text), `"wire":"oracle"`) {
		t.Errorf("got %s, %v", text, err)
	}

	player, err := gateway.Replay(path, gateway.ReplayOptions{Wire: gatewaytest.Wire(), Folders: gateway.Folders{Dir: "/now"}})
	if err != nil {
		t.Fatal(err)
	}
	again := serve(t, gateway.RunOptions{Upstream: player})
	got, err := again.ask(t, question("sitting-2", "ghijkl", "new", "/now"))
	if want := "The [redacted], in /now, at sitting-2."; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if usage := again.Usage().Total; usage.Tokens != (gateway.Tokens{Input: 10, Output: 3}) {
		t.Errorf("got %+v", usage)
	}
	_, err = again.ask(t, gatewaytest.Question{Model: "delphi-2", Text: "How few?"})
	wantError(t, err, 402, "unclear", "is not in the recording")
	if _, ok := errors.AsType[*gateway.MismatchError](player.Err()); !ok {
		t.Errorf("got %v", player.Err())
	}
}

// A wire without what is optional works; one without what is required is refused before the run.
func TestWire_RequiredFields(t *testing.T) {
	full := gatewaytest.Wire()
	bare := gateway.Wire{
		Name: full.Name, Authorize: full.Authorize, Route: full.Route, ReadRequest: full.ReadRequest,
		ReadAnswer: full.ReadAnswer, Error: full.Error, ErrorName: full.ErrorName,
	}
	server := httptest.NewServer(gatewaytest.Model(seven, gatewaytest.Answer{Status: gatewaytest.StatusOverloaded}))
	defer server.Close()
	up, err := gateway.NewEndpoint(&bare, server.URL, gateway.Credential{})
	if err != nil {
		t.Fatal(err)
	}
	run := serve(t, gateway.RunOptions{Upstream: up})
	if got, err := run.ask(t, gatewaytest.Question{Model: "Delphi-2", Agent: "acolyte"}); err != nil || got != "Seven gates." {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = run.ask(t, gatewaytest.Question{Model: "Delphi-2"})
	wantError(t, err, gatewaytest.StatusOverloaded, "crowded", "")
	if _, ok := run.WarmUp(); ok {
		t.Error("there is nothing to warm up with")
	}
	want := gateway.Count{Requests: 2, Tokens: gateway.Tokens{Input: 1000, Output: 200}}
	if got := run.Usage(); got.ByAgent[gateway.MainAgent] != want || got.Unpriced[0] != "delphi-2" {
		t.Errorf("got %+v", got)
	}

	for name, spoil := range map[string]func(w *gateway.Wire){
		"Name":              func(w *gateway.Wire) { w.Name = "" },
		"Authorize":         func(w *gateway.Wire) { w.Authorize = nil },
		"Route":             func(w *gateway.Wire) { w.Route = nil },
		"ReadRequest":       func(w *gateway.Wire) { w.ReadRequest = nil },
		"ReadAnswer":        func(w *gateway.Wire) { w.ReadAnswer = nil },
		"Error":             func(w *gateway.Wire) { w.Error = nil },
		"ErrorName":         func(w *gateway.Wire) { w.ErrorName = nil },
		"Stream.NewMeter":   func(w *gateway.Wire) { w.Stream.NewMeter = nil },
		"Stream.ErrorEvent": func(w *gateway.Wire) { w.Stream.ErrorEvent = nil },
		"Stream.Cut":        func(w *gateway.Wire) { w.Stream.Cut = nil },
		"Stream.Open":       func(w *gateway.Wire) { w.Stream.Open = nil },
	} {
		spoiled, stream := *full, *full.Stream
		spoiled.Stream = &stream
		spoil(&spoiled)
		up, err := gateway.NewEndpoint(&spoiled, server.URL, gateway.Credential{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := gateway.Shared().Open(gateway.RunOptions{Upstream: up}); err == nil || !strings.Contains(advice.Text(err), "cannot be used") {
			t.Errorf("without %s: got %v", name, err)
		}
		if _, err := gateway.Record(up, filepath.Join(t.TempDir(), "r"), gateway.RecordOptions{}); err == nil || !strings.Contains(advice.Text(err), "cannot be used") {
			t.Errorf("recording without %s: got %v", name, err)
		}
	}
}

func TestWire_ReplayNeedsTheWire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	if err := os.WriteFile(path, []byte(`{"drover_recording":1,"wire":"oracle"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		wire *gateway.Wire
		want string
	}{
		"none":    {nil, `unknown wire, "oracle"`},
		"another": {&gateway.Wire{Name: "sphinx"}, `of the wire "oracle", not of "sphinx"`},
		"half":    {&gateway.Wire{Name: "oracle"}, "is missing"},
	} {
		if _, err := gateway.Replay(path, gateway.ReplayOptions{Wire: tc.wire}); err == nil || !strings.Contains(advice.Text(err), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}
