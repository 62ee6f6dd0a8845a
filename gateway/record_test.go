// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gateway"
)

// answerFunc is an upstream of the Anthropic wire.
type answerFunc func(*http.Request) (*http.Response, error)

func (f answerFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
func (f answerFunc) Name() string                                      { return "func" }
func (f answerFunc) Wire() *gateway.Wire                               { return gateway.WireAnthropic }

// says answers everything with a body.
func says(contentType, body string) answerFunc {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: 200, Header: http.Header{"Content-Type": {contentType}, "Set-Cookie": {"session=plantedcookie"}},
			ContentLength: -1, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

func messageRequest(t testing.TB, body string) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages?beta=true", strings.NewReader(body))
}

// exchangeWith does one exchange and returns what came of it.
func exchangeWith(t testing.TB, up gateway.Upstream, req *http.Request) string {
	t.Helper()
	resp, err := up.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// recordedLines closes a recorder and returns the lines after the header.
func recordedLines(t testing.TB, r *gateway.Recorder, path string) []string {
	t.Helper()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasSuffix(b, []byte("\n")) {
		t.Error("the last line has no end")
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")[1:]
}

// deltas is a stream whose text comes in the given pieces.
func deltas(field string, pieces ...string) string {
	var b strings.Builder
	b.WriteString("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\"}}\n\n")
	for _, p := range pieces {
		text, _ := json.Marshal(p)
		fmt.Fprintf(&b, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"x\",%q:%s}}\n\n", field, text)
	}
	b.WriteString("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
	return b.String()
}

func TestRecorder_StoresNoSecret(t *testing.T) {
	defer goleak.VerifyNone(t)
	const known, key, cloud, forge = "hunter22-known", "sk-ant-api03-abcdefghijkl", "AKIAABCDEFGHIJKLMNOP", "ghp_abcdefghijklmnopqrstuvwxyz12"
	secrets := []string{known, key, cloud, forge, "plantedheader", "plantedcookie", "plantedpassword"}
	for _, tc := range []struct{ name, body, contentType, answer string }{
		{"in the request", `{"messages":[{"text":"` + known + " " + key + `"},{"input":{"password":"plantedpassword"}},"` + cloud + `"]}`, "application/json", `{}`},
		{"in a request that is no JSON", known + " " + forge, "text/plain", ""},
		{"in an answer", `{}`, "application/json", `{"text":"` + known + " " + cloud + `"}`},
		{"spread over a stream", `{}`, "text/event-stream; charset=utf-8", deltas("text", "the key is hunt", "er22-", "known, or sk-a", "nt-api03-abcdef", "ghijkl.")},
		{"spread over the input of a tool", `{}`, "text/event-stream", deltas("partial_json", `{"command":"echo AKIAABCD`, `EFGHIJKLMNOP; echo gh`, `p_abcdefghijklmnopqrstuvwxyz12"}`)},
		{"in another event", `{}`, "text/event-stream", "event: error\ndata: {\"type\":\"error\",\"message\":\"" + key + "\"}\n\n"},
		{"in half an event", `{}`, "text/event-stream", "event: error\ndata: {\"type\":\"error\",\"message\":\"" + key},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, path := recordTo(t, says(tc.contentType, tc.answer), gateway.RecordOptions{Secrets: []string{known}})
			req := messageRequest(t, tc.body)
			for _, name := range []string{"X-Api-Key", "Authorization", "Cookie", "X-Whatever"} {
				req.Header.Set(name, "plantedheader")
			}
			if got := exchangeWith(t, r, req); got != tc.answer {
				t.Errorf("the answer must pass as it is, got %q", got)
			}
			line := recordedLines(t, r, path)[0]
			for _, s := range secrets {
				if strings.Contains(line, s) {
					t.Errorf("%s is in the recording: %s", s, line)
				}
			}
			if !json.Valid([]byte(line)) {
				t.Errorf("the line is no JSON: %s", line)
			}
		})
	}
}

func TestRecorder_TextAroundASecretStays(t *testing.T) {
	r, path := recordTo(t, says("text/event-stream", deltas("text", "it is sk-a", "nt-abcdefgh", " or so")), gateway.RecordOptions{})
	exchangeWith(t, r, messageRequest(t, `{"a":"not secret","n":12345678901234567890}`))
	line := recordedLines(t, r, path)[0]
	for _, want := range []string{"it is [redacted]", " or so", "not secret", "12345678901234567890", `"text\":\"\"`} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is missing in %s", want, line)
		}
	}
}

func TestRecorder_FileIsNewAndPrivate(t *testing.T) {
	r, path := recordTo(t, says("text/plain", ""), gateway.RecordOptions{})
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v (%v), want 0600", info.Mode(), err)
	}
	_, err := gateway.Record(says("", ""), path, gateway.RecordOptions{})
	if !errors.Is(err, os.ErrExist) || !strings.Contains(advice.Text(err), "next: ") {
		t.Errorf("over an old recording: got %v, want a refusal that says what to do", err)
	}
	if _, err := gateway.Record(says("", ""), filepath.Join(path, "x"), gateway.RecordOptions{}); err == nil {
		t.Error("not a folder: got no error")
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a recording of nothing is still there (%v), and in the way of the next one", err)
	}
}

// Each event must arrive before the next one is made.
func TestRecorder_AnswersPassUnbuffered(t *testing.T) {
	defer goleak.VerifyNone(t)
	seen := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			<-seen
		}
	}))
	defer server.Close()
	up := newModelEndpoint(t, server.URL, gateway.WireAnthropic)
	defer up.CloseIdleConnections()
	r, _ := recordTo(t, up, gateway.RecordOptions{})
	resp, err := r.RoundTrip(messageRequest(t, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for i := range 3 {
		want := fmt.Sprintf("data: %d\n\n", i)
		got := make([]byte, len(want))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
			t.Fatalf("event %d: got %q (%v)", i, got, err)
		}
		seen <- struct{}{}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// endless is a large answer that is nowhere in memory.
type endless struct{ left int }

var manyAs = bytes.Repeat([]byte("a"), 32<<10)

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p[:min(len(p), e.left)], manyAs)
	if e.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (e *endless) Close() error { return nil }

func TestRecorder_LargeAnswerDoesNotStayInMemory(t *testing.T) {
	const size = 50 << 20
	up := answerFunc(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, ContentLength: -1, Body: &endless{size}}, nil
	})
	r, path := recordTo(t, up, gateway.RecordOptions{})
	resp, err := r.RoundTrip(messageRequest(t, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	if _, err := io.CopyN(io.Discard, resp.Body, size); err != nil {
		t.Fatal(err)
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("the heap has grown by %d MiB while the answer passed", grown>>20)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Fatal(err)
	}
	if line := recordedLines(t, r, path)[0]; strings.Count(line, "a") < size {
		t.Errorf("the recorded answer has %d bytes, want %d", strings.Count(line, "a"), size)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestRecorder_ParallelExchangesAreWholeLines(t *testing.T) {
	defer goleak.VerifyNone(t)
	r, path := recordTo(t, says("text/event-stream", deltas("text", strings.Repeat("x", 100_000))), gateway.RecordOptions{})
	const many = 32
	var wg sync.WaitGroup
	for i := range many {
		req := messageRequest(t, fmt.Sprintf(`{"n":%d}`, i))
		wg.Go(func() { exchangeWith(t, r, req) })
	}
	wg.Wait()
	lines := recordedLines(t, r, path)
	seqs := map[int]bool{}
	for _, line := range lines {
		var e struct{ Seq int }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("a line is not whole: %v", err)
		}
		seqs[e.Seq] = true
	}
	if len(seqs) != many || !seqs[1] || !seqs[many] {
		t.Errorf("got %d numbers, want 1 to %d", len(seqs), many)
	}
}

// failing is a body that breaks.
type failing struct{ io.Reader }

func (f failing) Close() error { return nil }

func TestRecorder_StoresHowAnExchangeEnded(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("some"), failingReader{errors.New("connection reset, key sk-ant-abcdefghi")})
	for _, tc := range []struct {
		name string
		up   answerFunc
		read func(*http.Response, context.CancelFunc)
		want string
	}{
		{"whole", says("text/plain", "all"), func(r *http.Response, _ context.CancelFunc) { io.Copy(io.Discard, r.Body) }, `"status":200,TYPE,"chunks":[{"ms":0,"text":"all"}]`},
		{"no reader to the end", says("text/plain", "all"), func(r *http.Response, _ context.CancelFunc) { r.Body.Read(make([]byte, 1)) }, `"status":200,TYPE,"chunks":[{"ms":0,"text":"a"}],"cut":true`},
		{"as long as announced", func(*http.Request) (*http.Response, error) {
			resp, err := says("text/plain", "all")(nil)
			resp.ContentLength = 3
			return resp, err
		}, func(r *http.Response, _ context.CancelFunc) { io.ReadFull(r.Body, make([]byte, 3)) }, `"status":200,TYPE,"chunks":[{"ms":0,"text":"all"}]`},
		{"broken", func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, ContentLength: -1, Body: failing{broken}}, nil
		}, func(r *http.Response, _ context.CancelFunc) { io.Copy(io.Discard, r.Body) }, `"status":200,TYPE,"chunks":[{"ms":0,"text":"some"}],"error":"connection reset, key [redacted]"`},
		{"the reader went away", func(*http.Request) (*http.Response, error) {
			gone := io.MultiReader(strings.NewReader("some"), failingReader{context.Canceled})
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, ContentLength: -1, Body: failing{gone}}, nil
		}, func(r *http.Response, cancel context.CancelFunc) { cancel(); io.Copy(io.Discard, r.Body) }, `"status":200,TYPE,"chunks":[{"ms":0,"text":"some"}],"error":"context canceled","cut":true`},
		{"no answer", func(*http.Request) (*http.Response, error) { return nil, errors.New("refused") }, nil, `"error":"refused"`},
		{"compressed", func(*http.Request) (*http.Response, error) {
			resp, err := says("text/plain", "\x1f\x8b")(nil)
			resp.Header.Set("Content-Encoding", "gzip")
			return resp, err
		}, func(r *http.Response, _ context.CancelFunc) { io.Copy(io.Discard, r.Body) }, `"status":200,TYPE,"lost":"the answer, because it came encoded as gzip"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, path := recordTo(t, tc.up, gateway.RecordOptions{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if resp, err := r.RoundTrip(messageRequest(t, "{}").WithContext(ctx)); err == nil {
				tc.read(resp, cancel)
				resp.Body.Close()
			}
			var e struct{ Response json.RawMessage }
			if err := json.Unmarshal([]byte(recordedLines(t, r, path)[0]), &e); err != nil {
				t.Fatal(err)
			}
			got := timesOf.ReplaceAllString(string(e.Response), `"ms":0`)
			want := `{"ms":0,` + strings.ReplaceAll(tc.want, "TYPE", `"headers":{"Content-Type":"text/plain"}`) + `}`
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }

func TestRecorder_RequestIsSentUnchanged(t *testing.T) {
	var sent *http.Request
	var body []byte
	up := answerFunc(func(r *http.Request) (*http.Response, error) {
		sent = r
		body, _ = io.ReadAll(r.Body)
		return says("text/plain", "")(r)
	})
	r, _ := recordTo(t, up, gateway.RecordOptions{})
	defer r.Close()
	req := messageRequest(t, `{"text":"sk-ant-abcdefghijk"}`)
	req.Header.Set("Accept-Encoding", "gzip, br")
	req.Header.Set("X-Api-Key", "k")
	exchangeWith(t, r, req)
	if string(body) != `{"text":"sk-ant-abcdefghijk"}` || sent.ContentLength != int64(len(body)) || sent.Header.Get("X-Api-Key") != "k" {
		t.Errorf("sent %q (length %d), header %v", body, sent.ContentLength, sent.Header)
	}
	if got := sent.Header.Get("Accept-Encoding"); got != "identity" {
		t.Errorf("Accept-Encoding: got %q, want identity, because what is compressed cannot be masked", got)
	}
	if again, err := sent.GetBody(); err != nil {
		t.Error(err)
	} else if b, _ := io.ReadAll(again); !bytes.Equal(b, body) {
		t.Errorf("for a second try: got %q", b)
	}
}

// Settle waits for an exchange that is under way, as one that has just brought the answer is.
func TestRecorder_SettleWaitsForOpenExchanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r")
	r, err := gateway.Record(says("text/plain", "Seven."), path, gateway.RecordOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Settle(t.Context()); err != nil {
		t.Errorf("without an exchange: %v", err)
	}
	resp, err := r.RoundTrip(messageRequest(t, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Settle(over); !errors.Is(err, context.Canceled) {
		t.Errorf("with an open exchange: %v", err)
	}
	settled := make(chan error, 1)
	go func() { settled <- r.Settle(t.Context()) }()
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || bytes.Count(text, []byte("\n")) != 2 {
		t.Errorf("the file has %s, %v", text, err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}
