// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/gateway"
)

var updateRecording = flag.Bool("update-recording", false, "rewrite testdata/recording.v1.jsonl")

const goldenRecording = "testdata/recording.v1.jsonl"

var (
	timesOf = regexp.MustCompile(`"ms":\d+`)
	runOf   = regexp.MustCompile(`"(at_ms)":\d+|"(date)":"[^"]*"|"(drover)":"[^"]*"`)
)

// goldenRequests are what the golden recording holds the answers of.
func goldenRequests(dir string) []*http.Request {
	hello := httptest.NewRequest(http.MethodHead, "/api/hello", nil)
	ask := httptest.NewRequest(http.MethodPost, "/v1/messages?beta=true", strings.NewReader(`{"messages":[{"role":"user","content":"list `+dir+`"}],"stream":true}`))
	ask.Header.Set("X-Claude-Code-Session-Id", "0ef2f4fe-3bd4-4e51-a854-2fe38e8820e0")
	return []*http.Request{hello, ask}
}

// goldenAnswer is how an upstream answers them.
func goldenAnswer(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodHead {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: http.NoBody}, nil
	}
	return says("text/event-stream", deltas("text", "In /home/ann", "/work is an ä."))(req)
}

// The writer must keep to the format. Version 1 wrote the golden file. After a change of the writer, this
// package must still read it, or the version rises.
func TestRecorder_FormatIsStable(t *testing.T) {
	r, path := recordTo(t, answerFunc(goldenAnswer), gateway.RecordOptions{Folders: gateway.Folders{Dir: "/home/ann/work", Home: "/home/ann"}})
	for _, req := range goldenRequests("/home/ann/work") {
		exchangeWith(t, r, req)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := runOf.ReplaceAllStringFunc(timesOf.ReplaceAllString(string(b), `"ms":1`), func(s string) string {
		return map[byte]string{'a': `"at_ms":1`, 'd': `"date":"2026-11-16T00:00:00Z"`}[s[1]]
	})
	got = strings.Replace(got, `"date":"2026-11-16T00:00:00Z","date":"2026-11-16T00:00:00Z"`, `"date":"2026-11-16T00:00:00Z","drover":"0.1.0"`, 1)
	lines := strings.SplitAfter(got, "\n")
	if len(lines) == 4 && strings.HasPrefix(lines[1], `{"seq":2`) { // they end in any order
		lines[1], lines[2] = lines[2], lines[1]
	}
	got = strings.Join(lines, "")
	if *updateRecording {
		if err := os.WriteFile(filepath.FromSlash(goldenRecording), []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenRecording)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("what is written (-want +got):\n%s", diff)
	}
}

func TestReplay_GoldenRecording(t *testing.T) {
	p := replayFrom(t, goldenRecording, gateway.ReplayOptions{Folders: gateway.Folders{Dir: "/srv/x"}})
	requests := goldenRequests("/srv/x")
	if got := exchangeWith(t, p, requests[0]); got != "" {
		t.Errorf("HEAD: got body %q", got)
	}
	resp, err := p.RoundTrip(requests[1])
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(resp.Body)
	if want := deltas("text", "In /srv/x", " is an ä."); err != nil || sameEvents(t, string(got)) != sameEvents(t, want) {
		t.Errorf("got %s (%v)\nwant %s", got, err, want)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || p.Err() != nil || p.Note() != "" || p.Wire() != gateway.WireAnthropic || p.Name() != "replay" {
		t.Errorf("got %v, header %v, error %v, note %q", resp.Status, resp.Header, p.Err(), p.Note())
	}
}
