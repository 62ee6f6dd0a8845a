// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
)

const planted = "sk-ant-planted-secret-0123456789"

func TestCredential_NeverPrintsItsSecret(t *testing.T) {
	credentials := map[string]gateway.Credential{
		"key": gateway.APIKey(planted), "bearer": gateway.BearerToken(planted), "oauth": gateway.OAuthToken(planted),
		"command": gateway.KeyCommand("echo " + planted),
		"helper":  gateway.KeyFrom(func(context.Context) (string, error) { return planted, nil }),
	}
	for name, c := range credentials {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			slog.New(slog.NewTextHandler(&log, nil)).Info("x", "credential", c, "inside", struct{ C gateway.Credential }{c})
			data, err := json.Marshal(map[string]any{"credential": c, "pointer": &c})
			if err != nil {
				t.Fatal(err)
			}
			texts := []string{log.String(), string(data), c.String()}
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
				texts = append(texts, fmt.Sprintf(verb, c), fmt.Sprintf(verb, &c), fmt.Sprintf(verb, struct{ C gateway.Credential }{c}))
			}
			for _, text := range texts {
				if strings.Contains(text, "planted") || strings.Contains(text, fmt.Sprintf("%x", planted)) {
					t.Errorf("the secret is in %q", text)
				}
			}
		})
	}
}

func TestCredential_SetsTheRightHeaders(t *testing.T) {
	cases := []struct {
		name       string
		credential gateway.Credential
		beta       string
		want       map[string]string
	}{
		{"a key", gateway.APIKey(planted), "a", map[string]string{"X-Api-Key": planted, "Authorization": "", "Anthropic-Beta": "a"}},
		{"a bearer token", gateway.BearerToken(planted), "", map[string]string{"X-Api-Key": "", "Authorization": "Bearer " + planted, "Anthropic-Beta": ""}},
		{"an OAuth token", gateway.OAuthToken(planted), "a,b", map[string]string{"X-Api-Key": "", "Authorization": "Bearer " + planted, "Anthropic-Beta": "a,b,oauth-2025-04-20"}},
		{"an OAuth token of who knows", gateway.OAuthToken(planted), "oauth-2025-04-20, b", map[string]string{"Anthropic-Beta": "oauth-2025-04-20, b"}},
		{"an OAuth token alone", gateway.OAuthToken(planted), "", map[string]string{"Anthropic-Beta": "oauth-2025-04-20"}},
		{"a helper", gateway.KeyFrom(func(context.Context) (string, error) { return " " + planted + "\n", nil }), "", map[string]string{"X-Api-Key": planted, "Authorization": "Bearer " + planted}},
		{"none", gateway.Credential{}, "", map[string]string{"X-Api-Key": "", "Authorization": ""}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var got http.Header
			s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
			defer s.Close()
			upstream, err := gateway.Endpoint(s.URL+"/base/", tc.credential)
			if err != nil {
				t.Fatal(err)
			}
			run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream})
			req := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(question))
			req.Header.Set("X-Api-Key", run.Token())
			if tc.beta != "" {
				req.Header.Set("Anthropic-Beta", tc.beta)
			}
			run.ServeHTTP(httptest.NewRecorder(), req)
			for name, want := range tc.want {
				if got.Get(name) != want {
					t.Errorf("%s is %q, want %q", name, got.Get(name), want)
				}
			}
		})
	}
}

// counting is a helper whose keys have numbers.
func counting(n *int) gateway.Credential {
	return gateway.KeyFrom(func(context.Context) (string, error) {
		*n++
		return fmt.Sprintf("key-%d", *n), nil
	})
}

func TestKeyFrom_RefusedKeyIsRequestedAgain(t *testing.T) {
	var asked int
	var bodies []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if r.Header.Get("X-Api-Key") != "key-2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, message)
	}))
	defer s.Close()
	upstream, err := gateway.Endpoint(s.URL, counting(&asked))
	if err != nil {
		t.Fatal(err)
	}
	run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream})
	if w := post(run, question); w.Code != http.StatusOK || len(bodies) != 2 || bodies[1] != question {
		t.Errorf("got status %d after %q", w.Code, bodies)
	}
}

func TestKeyCommand_OutputIsTheKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the command is one of a Unix shell")
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(planted+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, command string
		want          int
	}{
		{"that prints a key", "cat '" + file + "'", http.StatusOK},
		{"that fails", "echo " + planted + "; echo " + planted + " >&2; exit 3", http.StatusBadGateway},
		{"that prints nothing", "true", http.StatusBadGateway},
		{"that prints two lines", "echo " + planted + "; echo x", http.StatusBadGateway},
		{"that does not exist", "/does/not/exist/" + planted, http.StatusBadGateway},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var log bytes.Buffer
			var events recorder
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Api-Key") != planted {
					w.WriteHeader(http.StatusTeapot)
				}
				io.WriteString(w, message)
			}))
			defer s.Close()
			upstream, err := gateway.Endpoint(s.URL, gateway.KeyCommand(tc.command))
			if err != nil {
				t.Fatal(err)
			}
			g := gateway.New(&gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			run := open(t, g, gateway.RunOptions{Upstream: upstream, Emit: events.emit})
			w := post(run, question)
			if w.Code != tc.want {
				t.Errorf("got status %d, want %d", w.Code, tc.want)
			}
			emitted, _ := json.Marshal(events.all)
			for what, text := range map[string]string{"answer": w.Body.String(), "log": log.String(), "events": string(emitted)} {
				if strings.Contains(text, "planted") {
					t.Errorf("the key is in the %s: %s", what, text)
				}
			}
		})
	}
}

// An upstream that fails in every way it can does not reveal the key.
func TestCredential_NoErrorContainsTheKey(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	failing := &upstreamFunc{gateway.WireAnthropic, func(*http.Request) (*http.Response, error) {
		return nil, errors.New("x-api-key: " + planted + " was refused")
	}}
	closedUpstream, err := gateway.Endpoint(closed.URL, gateway.APIKey(planted))
	if err != nil {
		t.Fatal(err)
	}
	for name, upstream := range map[string]gateway.Upstream{"no server listens": closedUpstream, "the error has it": failing} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			var events recorder
			g := gateway.New(&gateway.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			run := open(t, g, gateway.RunOptions{Upstream: upstream, Emit: events.emit})
			w := post(run, question)
			emitted, _ := json.Marshal(events.all)
			for what, text := range map[string]string{"answer": w.Body.String(), "log": log.String(), "events": string(emitted)} {
				if strings.Contains(text, "planted") || strings.Contains(text, run.Token()) {
					t.Errorf("a secret is in the %s: %s", what, text)
				}
			}
			if calls := eventsOf[gateway.ModelCall](&events); w.Code != http.StatusBadGateway || len(calls) != 1 || calls[0].Error == "" {
				t.Errorf("got status %d and the events %+v", w.Code, calls)
			}
		})
	}
}

func TestEndpoint_Addresses(t *testing.T) {
	cases := []struct{ address, name string }{
		{"https://example.test", "https://example.test"},
		{"https://example.test/anthropic/", "https://example.test/anthropic"},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"ftp://example.test", ""},
		{"example.test", ""},
		{"https://", ""},
		{"https://user:" + planted + "@example.test", ""},
		{"https://example.test?key=" + planted, ""},
		{"https://example.test/%zz" + planted, ""},
		{"", ""},
	}
	for _, tc := range cases {
		u, err := gateway.Endpoint(tc.address, gateway.Credential{})
		switch {
		case tc.name == "" && (err == nil || !strings.Contains(advice.Text(err), "next:") || strings.Contains(advice.Text(err), "planted")):
			t.Errorf("%s: got the error %v", tc.address, err)
		case tc.name != "" && (err != nil || u.Name() != tc.name || u.Wire() != gateway.WireAnthropic):
			t.Errorf("%s: got %v, %v, want the name %s", tc.address, u, err, tc.name)
		}
	}
	if got := gateway.Anthropic(gateway.APIKey(planted)).Name(); got != "anthropic" {
		t.Errorf("Anthropic is called %s", got)
	}
}

// An upstream that repeats what it was sent, as servers do that report errors, does not give the credential to
// the cell.
func TestCredential_EchoingUpstreamDoesNotLeakIt(t *testing.T) {
	for name, c := range map[string]gateway.Credential{
		"key": gateway.APIKey(planted), "bearer": gateway.BearerToken(planted), "oauth": gateway.OAuthToken(planted),
		"helper": gateway.KeyFrom(func(context.Context) (string, error) { return planted, nil }),
	} {
		t.Run(name, func(t *testing.T) {
			status := 0
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				sent, _ := httputil.DumpRequest(r, false)
				w.Header().Set("X-Echo", strings.Join(append(r.Header["Authorization"], r.Header["X-Api-Key"]...), " "))
				w.Header().Set("Content-Type", streamType)
				w.WriteHeader(status)
				echoed, _ := json.Marshal(string(sent))
				text := sse(`{"type":"x","sent":` + string(echoed) + `,"base64":"` + base64.StdEncoding.EncodeToString(sent) + `"}`)
				for n := 0; n < len(text); n += 5 {
					io.WriteString(w, text[n:min(n+5, len(text))])
					w.(http.Flusher).Flush()
				}
			}))
			defer s.Close()
			upstream, err := gateway.Endpoint(s.URL, c)
			if err != nil {
				t.Fatal(err)
			}
			run := open(t, gateway.New(nil), gateway.RunOptions{Upstream: upstream})
			for _, status = range []int{http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized} {
				w := post(run, question)
				all := fmt.Sprint(w.Header(), w.Body)
				if strings.Contains(all, planted[8:]) || strings.Contains(all, base64.StdEncoding.EncodeToString([]byte(planted))[4:20]) || !strings.Contains(all, "POST /v1/messages") {
					t.Errorf("status %d: the cell reads %s", status, all)
				}
			}
		})
	}
}
