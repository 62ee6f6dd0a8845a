// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
	_ "github.com/drover-agents/drover/internal/testkit"
)

// sameEvents is a stream with the JSON of its events in one spelling.
func sameEvents(t testing.TB, stream string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var v any
			if err := json.Unmarshal([]byte(data), &v); err != nil {
				t.Fatalf("%v in %q", err, line)
			}
			out, _ := json.Marshal(v)
			line = "data: " + string(out) + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// recordingOf records the answers of up to each body, in order.
func recordingOf(t testing.TB, up gateway.Upstream, folders gateway.Folders, bodies ...string) string {
	t.Helper()
	r, path := recordTo(t, up, gateway.RecordOptions{Folders: folders})
	for _, b := range bodies {
		exchangeWith(t, r, messageRequest(t, b))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// numbered answers with the number of the request.
func numbered() answerFunc {
	n := 0
	return func(r *http.Request) (*http.Response, error) {
		n++
		return says("text/plain", fmt.Sprint("answer ", n))(r)
	}
}

func TestReplay_ParallelCallsInAnotherOrder(t *testing.T) {
	p := replayFrom(t, recordingOf(t, numbered(), gateway.Folders{}, `{"a":1}`, `{"b":1}`, `{"a":1}`), gateway.ReplayOptions{})
	for _, step := range []struct{ body, want string }{
		{`{"b": 1}`, "answer 2"},
		{`{"a": 1}`, "answer 1"},
		{`{"a": 1}`, "answer 3"}, // a second try gets what the second try got
	} {
		if got := exchangeWith(t, p, messageRequest(t, step.body)); got != step.want {
			t.Errorf("%s: got %q, want %q", step.body, got, step.want)
		}
	}
	if left := p.Unused(); len(left) != 0 || p.Err() != nil {
		t.Errorf("left %v, error %v", left, p.Err())
	}
}

func TestReplay_UsedUpRecordingRefuses(t *testing.T) {
	p := replayFrom(t, recordingOf(t, numbered(), gateway.Folders{}, `{}`), gateway.ReplayOptions{})
	exchangeWith(t, p, messageRequest(t, `{}`))
	resp, err := p.RoundTrip(messageRequest(t, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusPaymentRequired || resp.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("got %s, want 402, which the CLI does not retry", resp.Status)
	}
	var body struct{ Error struct{ Message string } }
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil || !strings.Contains(body.Error.Message, "request 2 (POST /v1/messages)") || !strings.Contains(body.Error.Message, "all its exchanges are used") {
		t.Errorf("got %v (%v)", body, err)
	}
	if p.Err() == nil || advice.Text(p.Err()) != body.Error.Message {
		t.Errorf("Err: got %v, want what the CLI received", p.Err())
	}
}

func TestReplay_GetRequestsMayRepeat(t *testing.T) {
	r, path := recordTo(t, numbered(), gateway.RecordOptions{})
	exchangeWith(t, r, httptest.NewRequest(http.MethodGet, "/inference-profiles?type=SYSTEM_DEFINED", nil))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	p := replayFrom(t, path, gateway.ReplayOptions{})
	for range 3 {
		if got := exchangeWith(t, p, httptest.NewRequest(http.MethodGet, "/inference-profiles?type=SYSTEM_DEFINED", nil)); got != "answer 1" {
			t.Errorf("got %q", got)
		}
	}
}

func TestReplay_AnswersHaveTheNamesOfThisRun(t *testing.T) {
	then := gateway.Folders{Dir: "/home/ann/work", Home: "/home/ann"}
	// The new folder is in what was the home: no name may be replaced twice.
	now := gateway.Folders{Dir: "/home/ann", Home: "/root"}
	ask := func(id string) string {
		return `{"text":"agentId: ` + id + `","metadata":{"user_id":"{\"session_id\":\"session-of-` + id + `\"}"}}`
	}
	for _, tc := range []struct{ name, contentType, answer, want string }{
		{"one document", "application/json", `{"text":"/home/ann/work/a and /home/ann"}`, `{"text":"/home/ann/a and /root"}`},
		{"nothing to rename", "text/event-stream", "data: {\"a\" : 1}\r\n\r\n", "data: {\"a\" : 1}\r\n\r\n"},
		{"in pieces", "text/event-stream", deltas("partial_json", `{"p":"/ho`, "me/ann/wo", "rk", `/a","to":"aaaa`, `aaaa1"}`), deltas("partial_json", `{"p":"/home/ann`, "", "", `/a","to":"bbbb`, `bbbb1"}`)},
		{"the session", "text/plain", "session-of-aaaaaaaa1, session-of-aaaaaaaa12", "session-of-bbbbbbbb1, session-of-aaaaaaaa12"},
		{"in another event", "text/event-stream", "event: x\ndata: {\"a\":\"/home/ann/work\"}\n\n", "event: x\ndata: {\"a\":\"/home/ann\"}\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := replayFrom(t, recordingOf(t, says(tc.contentType, tc.answer), then, ask("aaaaaaaa1")), gateway.ReplayOptions{Folders: now})
			got := exchangeWith(t, p, messageRequest(t, ask("bbbbbbbb1")))
			if strings.Contains(tc.contentType, "stream") && got != tc.want {
				got, tc.want = joined(t, got), joined(t, tc.want)
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// joined is the text of a stream, and its events that are no text.
func joined(t testing.TB, stream string) string {
	t.Helper()
	var text, rest strings.Builder
	for line := range strings.Lines(stream) {
		var e struct{ Delta map[string]string }
		if data, ok := strings.CutPrefix(line, "data: "); ok && json.Unmarshal([]byte(data), &e) == nil && e.Delta != nil {
			text.WriteString(e.Delta["partial_json"] + e.Delta["text"])
			continue
		}
		rest.WriteString(line)
	}
	return rest.String() + text.String()
}

func TestReplay_Failures(t *testing.T) {
	const header = `{"drover_recording":1,"wire":"bedrock"}` + "\n"
	const ask = `"request":{"method":"POST","path":"/v1/messages","query":"beta=true"}`
	for _, tc := range []struct{ name, response, failure, body, wantRead string }{
		{"no answer", `{"error":"dial tcp: refused"}`, "exchange 1 got no answer: dial tcp: refused", "", ""},
		{"broken in the middle", `{"status":200,"chunks":[{"text":"half"}],"error":"reset"}`, "", "half", "was cut here"},
		{"cut by its reader", `{"status":200,"chunks":[{"text":"half"}],"cut":true}`, "", "half", "was cut here"},
		{"not recorded whole", `{"status":200,"lost":"the rest: disk full"}`, "", "", "disk full"},
		{"an error of the API", `{"status":529,"chunks":[{"text":"busy"}]}`, "", "busy", ""},
		{"bytes", `{"status":200,"chunks":[{"base64":"/w=="},{"text":"x"}]}`, "", "\xffx", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.jsonl")
			os.WriteFile(path, []byte(header+`{"seq":1,`+ask+`,"response":`+tc.response+"}\n"), 0o600)
			resp, err := replayFrom(t, path, gateway.ReplayOptions{}).RoundTrip(messageRequest(t, ""))
			if err != nil || tc.failure != "" {
				if fmt.Sprint(err) != "gateway: replay: "+tc.failure {
					t.Errorf("got error %v, want %s", err, tc.failure)
				}
				return
			}
			body, err := io.ReadAll(resp.Body)
			if string(body) != tc.body || (err != nil) != (tc.wantRead != "") || err != nil && !strings.Contains(advice.Text(err), tc.wantRead) {
				t.Errorf("got %q (%v), want %q (%s)", body, err, tc.body, tc.wantRead)
			}
		})
	}
}

func TestReplay_InvalidFileIsRefused(t *testing.T) {
	const good = `{"drover_recording":1,"wire":"anthropic"}` + "\n"
	const one = `{"seq":1,"request":{"method":"GET","path":"/"},"response":{"status":200}}` + "\n"
	for _, tc := range []struct{ name, content, want string }{
		{"empty", "", "line 1 is not the header"},
		{"something else", "hello\n", "line 1 is not the header"},
		{"another JSON", "{}\n", "line 1 is not the header"},
		{"from the future", `{"drover_recording":2,"drover":"9.9"}` + "\n", "has format 2, this program reads up to 1"},
		{"unknown wire", `{"drover_recording":1,"wire":"pigeon"}` + "\n", `unknown wire, "pigeon"`},
		{"a bad line", good + one + "{\n" + one, "line 3 is no exchange"},
		{"an empty exchange", good + "{}\n", "line 2 is no exchange"},
		{"an invalid status", good + strings.Replace(one, "200", "-7", 1), "invalid status -7"},
		{"a status that is not the last", good + strings.Replace(one, "200", "101", 1), "invalid status 101"},
		{"twice", good + one + one, "exchange 1 is there twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.jsonl")
			os.WriteFile(path, []byte(tc.content), 0o600)
			if _, err := gateway.Replay(path, gateway.ReplayOptions{}); err == nil || !strings.Contains(advice.Text(err), tc.want) || !strings.Contains(advice.Text(err), path) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
	if _, err := gateway.Replay(filepath.Join(t.TempDir(), "none"), gateway.ReplayOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: got %v", err)
	}
}

// A run that is killed leaves half a line; every cut of the file must stay readable.
func TestReplay_TornLastLineIsIgnored(t *testing.T) {
	whole, err := os.ReadFile(goldenRecording)
	if err != nil {
		t.Fatal(err)
	}
	header := strings.Index(string(whole), "\n") + 1
	second := header + strings.Index(string(whole[header:]), "\n") + 1
	path := filepath.Join(t.TempDir(), "r.jsonl")
	for _, cut := range []int{header, header + 1, second - 1, second, second + 40, len(whole) - 1, len(whole)} {
		os.WriteFile(path, whole[:cut], 0o600)
		p := replayFrom(t, path, gateway.ReplayOptions{})
		ended := whole[cut-1] == '\n'
		if note := p.Note(); (note == "") != ended || !ended && !strings.Contains(note, "was killed") {
			t.Errorf("cut at %d: note %q", cut, note)
		}
		if got, want := len(p.Unused()), strings.Count(string(whole[header:cut]), "\n"); got != want {
			t.Errorf("cut at %d: got %d exchanges, want %d", cut, got, want)
		}
	}
}

func TestReplay_Pace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.jsonl")
	os.WriteFile(path, []byte(`{"drover_recording":1,"wire":"anthropic"}
{"seq":1,"request":{"method":"GET","path":"/"},"response":{"ms":1000,"status":200,"chunks":[{"ms":1000,"text":"a"},{"ms":3000,"text":"b"}]}}
`), 0o600)
	for _, tc := range []struct {
		name string
		pace bool
		want time.Duration
	}{{"as fast as possible", false, 0}, {"kept", true, 3 * time.Second}} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				exchangeWith(t, replayFrom(t, path, gateway.ReplayOptions{Pace: tc.pace}), httptest.NewRequest(http.MethodGet, "/", nil))
				if took := time.Since(began); took != tc.want {
					t.Errorf("took %v, want %v", took, tc.want)
				}
			})
		})
	}
	t.Run("ends with its reader", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			resp, err := replayFrom(t, path, gateway.ReplayOptions{Pace: true}).RoundTrip(httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after the context ended: got %v", err)
			}
			resp, err = replayFrom(t, path, gateway.ReplayOptions{Pace: true}).RoundTrip(httptest.NewRequest(http.MethodGet, "/", nil))
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(time.Second, func() { resp.Body.Close() })
			if _, err := io.ReadAll(resp.Body); err == nil {
				t.Error("after Close: got no error")
			}
		})
	})
}

// Whatever was recorded comes back, byte for byte, in whatever order it is asked for.
func TestReplay_ReturnsTheRecordedBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answers := rapid.SliceOfNDistinct(rapid.SliceOfN(rapid.Byte(), 1, 200), 1, 6, func(b []byte) string { return string(b) }).Draw(t, "answers")
		kind := rapid.SampledFrom([]string{"text/plain", "text/event-stream", "application/vnd.amazon.eventstream"}).Draw(t, "type")
		n := -1
		up := answerFunc(func(r *http.Request) (*http.Response, error) { n++; return says(kind, string(answers[n]))(r) })
		dir, err := os.MkdirTemp("", "drover-recordings-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		r, err := gateway.Record(up, filepath.Join(dir, "r"), gateway.RecordOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range answers {
			resp, err := r.RoundTrip(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(fmt.Sprint(i))))
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		p, err := gateway.Replay(filepath.Join(dir, "r"), gateway.ReplayOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range rapid.Permutation(indexes(len(answers))).Draw(t, "order") {
			resp, err := p.RoundTrip(httptest.NewRequest(http.MethodPost, "/", strings.NewReader(fmt.Sprint(i))))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != string(answers[i]) {
				t.Fatalf("answer %d: got %q (%v), want %q", i, got, err, answers[i])
			}
		}
	})
}

func indexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}
