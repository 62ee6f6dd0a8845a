// SPDX-License-Identifier: Apache-2.0

package bedrock_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/bedrock"
)

func TestUpstream_SignsRequests(t *testing.T) {
	decoys(t)
	fake := newFakeBedrock(t, answerOK)
	u := open(t, bedrock.Options{Lookup: planted().lookup, BaseURL: fake.URL})
	for _, tc := range []struct{ method, target, body string }{
		{http.MethodPost, "/model/us.anthropic.claude-opus-4-6-v1/invoke", `{}`},
		{http.MethodPost, "/model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/invoke-with-response-stream", `{"a":"ä"}`},
		{http.MethodPost, "/model/arn%3Aaws%3Abedrock%3Aeu-west-7%3A1%3Ainference-profile%2Fx/count-tokens", `{}`},
		{http.MethodGet, "/inference-profiles?nextToken=a%2Fb&type=SYSTEM_DEFINED", ""},
		{http.MethodGet, "/inference-profiles", ""},
		{http.MethodGet, "/foundation-models", ""},
	} {
		t.Run(tc.method+" "+tc.target, func(t *testing.T) {
			req := httptest.NewRequest(tc.method, tc.target, strings.NewReader(tc.body))
			req.Header.Set("X-Api-Key", "of the cell")
			req.Header.Set("X-Amz-Security-Token", "of the cell")
			req.Header.Set("Connection", "keep-alive")
			req.Header.Set("Content-Type", "application/json")
			if status, body := do(t, u, req); status != 200 || body != "ok" {
				t.Fatalf("got %d %s", status, body)
			}
			seen := fake.requests()[len(fake.requests())-1]
			if seen.URL.RequestURI() != tc.target || seen.Header.Get("X-Api-Key") != "" || seen.Header.Get("X-Amz-Security-Token") != "" || seen.Header.Get("Content-Type") != "application/json" {
				t.Errorf("got %s with %v", seen.URL.RequestURI(), seen.Header)
			}
			if got, _ := io.ReadAll(seen.Body); string(got) != tc.body {
				t.Errorf("got body %q, want %q", got, tc.body)
			}
		})
	}
}

// The check must be able to fail.
func TestFakeBedrock_RefusesAWrongSignature(t *testing.T) {
	decoys(t)
	fake := newFakeBedrock(t, answerOK)
	for _, tc := range []struct{ name, variable, value, want string }{
		{"another region", "AWS_REGION", "us-east-1", "region us-east-1"},
		{"another secret", "AWS_SECRET_ACCESS_KEY", "wrong", "the signature is not that of " + plantedID},
		{"another key", "AWS_ACCESS_KEY_ID", "AKIAOTHER", "the signature is not that of AKIAOTHER"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := planted()
			env[tc.variable] = tc.value
			status, body := invoke(t, open(t, bedrock.Options{Lookup: env.lookup, BaseURL: fake.URL}))
			if status != http.StatusForbidden || !strings.Contains(body, tc.want) {
				t.Errorf("got %d %s, want 403 and %s", status, body, tc.want)
			}
		})
	}
}

// An agent that reaches the gateway must not get a signature for anything that the credential allows.
func TestUpstream_SignsOnlyModelCalls(t *testing.T) {
	decoys(t)
	fake := newFakeBedrock(t, answerOK)
	u := open(t, bedrock.Options{Lookup: planted().lookup, BaseURL: fake.URL})
	for _, tc := range []struct{ method, target string }{
		{http.MethodDelete, "/inference-profiles/x"},
		{http.MethodPost, "/inference-profiles"},
		{http.MethodGet, "/model/x/invoke"},
		{http.MethodPost, "/model/x/async-invoke"},
		{http.MethodPost, "/model/../invoke"},
		{http.MethodPost, "/guardrails"},
		{http.MethodGet, "/"},
		{http.MethodGet, "/inference-profiles/.."},
		{http.MethodGet, "/foundation-models/a/b"},
	} {
		if status, body := do(t, u, httptest.NewRequest(tc.method, tc.target, nil)); status != http.StatusForbidden || !strings.Contains(body, "is not a model call") {
			t.Errorf("%s %s: got %d %s", tc.method, tc.target, status, body)
		}
	}
	if n := len(fake.requests()); n != 0 {
		t.Errorf("%d requests went out", n)
	}
}

// A roundTrip is a transport that goes nowhere.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestUpstream_HostsByRegion(t *testing.T) {
	decoys(t)
	for _, tc := range []struct{ region, method, target, want string }{
		{"us-east-1", http.MethodPost, "/model/x/invoke", "https://bedrock-runtime.us-east-1.amazonaws.com/model/x/invoke"},
		{"us-east-1", http.MethodGet, "/inference-profiles?type=A", "https://bedrock.us-east-1.amazonaws.com/inference-profiles?type=A"},
		{"cn-north-1", http.MethodPost, "/model/x/invoke", "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/x/invoke"},
	} {
		got := ""
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return nil, errors.New("nowhere")
		})}
		u, err := bedrock.New(t.Context(), bedrock.Options{Region: tc.region, Lookup: planted().lookup, HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.RoundTrip(httptest.NewRequest(tc.method, tc.target, nil)); err == nil || got != tc.want {
			t.Errorf("got %s (%v), want %s", got, err, tc.want)
		}
		if u.Name() != "bedrock "+tc.region || u.Wire() != gateway.WireBedrock {
			t.Errorf("got name %q, wire %q", u.Name(), u.Wire().Name)
		}
	}
}

func TestUpstream_ResponsesAreUnbuffered(t *testing.T) {
	decoys(t)
	seen := make(chan struct{})
	fake := newFakeBedrock(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "frame %d\n", i) // a digit could begin the signature, and would wait for the next byte
			w.(http.Flusher).Flush()
			<-seen
		}
	})
	u := open(t, bedrock.Options{Lookup: planted().lookup, BaseURL: fake.URL})
	resp, err := u.RoundTrip(httptest.NewRequest(http.MethodPost, "/model/x/invoke-with-response-stream", strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i := range 3 {
		got := make([]byte, len("frame 0\n"))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != fmt.Sprintf("frame %d\n", i) {
			t.Fatalf("got %q (%v)", got, err)
		}
		seen <- struct{}{}
	}
}

func TestUpstream_DoesNotFollowRedirects(t *testing.T) {
	decoys(t)
	fake := newFakeBedrock(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) })
	if status, _ := invoke(t, open(t, bedrock.Options{Lookup: planted().lookup, BaseURL: fake.URL})); status != http.StatusFound || len(fake.requests()) != 1 {
		t.Errorf("got %d after %d requests, want the redirect itself", status, len(fake.requests()))
	}
}

// Where a company looks into TLS, the AWS tools find its certificate with AWS_CA_BUNDLE.
func TestUpstream_UsesTheCABundleOfTheEnvironment(t *testing.T) {
	decoys(t)
	fake := newFakeBedrock(t, answerOK)
	server := httptest.NewTLSServer(fake)
	defer server.Close()
	bundle := filepath.Join(t.TempDir(), "bundle.pem")
	writeFile(t, bundle, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	env := planted()
	env["AWS_CA_BUNDLE"] = bundle
	if status, body := invoke(t, open(t, bedrock.Options{Lookup: env.lookup, BaseURL: server.URL})); status != 200 {
		t.Errorf("got %d %s", status, body)
	}
	u := open(t, bedrock.Options{Lookup: planted().lookup, BaseURL: server.URL})
	if _, err := u.RoundTrip(httptest.NewRequest(http.MethodGet, "/inference-profiles", nil)); err == nil {
		t.Error("a certificate that is not trusted: got no error")
	}
}

func TestUpstream_ImportRegistersIt(t *testing.T) {
	decoys(t)
	fake := newFakeBedrock(t, answerOK)
	up, err := gateway.OpenUpstream(t.Context(), "bedrock", gateway.UpstreamConfig{Region: region, Lookup: planted().lookup, BaseURL: fake.URL})
	if err != nil {
		t.Fatal(err)
	}
	u := up.(*bedrock.Upstream)
	defer u.CloseIdleConnections()
	if status, _ := invoke(t, u); status != 200 {
		t.Errorf("got %d", status)
	}
}

// A server that repeats what it was sent gives back neither a token nor a signature.
func TestUpstream_EchoHasNoCredential(t *testing.T) {
	decoys(t)
	const token = "session-token-0123456789"
	var signature string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, signature, _ = strings.Cut(r.Header.Get("Authorization"), "Signature=")
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		fmt.Fprintf(w, "sent: %v", r.Header)
	}))
	defer s.Close()
	session, bearer := planted(), planted()
	session["AWS_SESSION_TOKEN"], bearer["AWS_BEARER_TOKEN_BEDROCK"] = token, token
	for name, env := range map[string]environment{"session": session, "bearer": bearer} {
		t.Run(name, func(t *testing.T) {
			resp, err := open(t, bedrock.Options{Lookup: env.lookup, BaseURL: s.URL}).RoundTrip(
				httptest.NewRequest(http.MethodPost, "/model/x/invoke", strings.NewReader(`{}`)))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			all := fmt.Sprint(resp.Header, string(body))
			if strings.Contains(all, token) || signature != "" && strings.Contains(all, signature) || !strings.Contains(all, "sent: map") {
				t.Errorf("got %s", all)
			}
		})
	}
}
