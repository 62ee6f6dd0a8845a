// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude/script"
	"go.uber.org/goleak"
)

// start serves s and fails the test if closing leaves a goroutine.
func start(t *testing.T, s script.Script) *script.Server {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	server, err := script.Start(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t, ignore)
	})
	return server
}

// ask builds a request body that a user message "text" makes.
func ask(text string, stream bool) string {
	return fmt.Sprintf(`{"model":"claude-test","max_tokens":100,"stream":%t,"messages":[{"role":"user","content":%q}]}`, stream, text)
}

func newPost(t *testing.T, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	return req
}

// post sends a request for a message and returns the whole answer; a broken body is not an error.
func post(t *testing.T, s *script.Server, body string) (*http.Response, string, error) {
	t.Helper()
	resp, err := http.DefaultClient.Do(newPost(t, s.URL()+"/v1/messages?beta=true", body))
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp, string(data), err
}

func mustPost(t *testing.T, s *script.Server, body string) string {
	t.Helper()
	resp, data, err := post(t, s, body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("got status %d, want 200: %s", resp.StatusCode, data)
	}
	return data
}

// A streamed message, put together again from its events.
type streamed struct {
	names  []string // of events
	blocks []string // of content, as type and joined deltas
	deltas int
	stop   string
	usage  map[string]any
}

func parseStream(t *testing.T, text string) streamed {
	t.Helper()
	var out streamed
	scanner := bufio.NewScanner(strings.NewReader(text))
	scanner.Buffer(nil, 1<<24)
	for scanner.Scan() {
		if name, ok := strings.CutPrefix(scanner.Text(), "event: "); ok {
			out.names = append(out.names, name)
		}
		if data, ok := strings.CutPrefix(scanner.Text(), "data: "); ok {
			out.add(t, data)
		}
	}
	return out
}

func (s *streamed) add(t *testing.T, data string) {
	t.Helper()
	var e struct {
		Type  string
		Block struct{ Type, ID, Name string } `json:"content_block"`
		Delta struct {
			Text, Thinking, Signature string
			PartialJSON               string `json:"partial_json"`
			StopReason                string `json:"stop_reason"`
		}
		Usage map[string]any
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		t.Fatalf("event is not JSON: %v: %s", err, data)
	}
	switch e.Type {
	case "content_block_start":
		s.blocks = append(s.blocks, strings.TrimSpace(strings.Join([]string{e.Block.Type, e.Block.ID, e.Block.Name}, " "))+": ")
	case "content_block_delta":
		s.deltas++
		d := e.Delta
		s.blocks[len(s.blocks)-1] += d.Text + d.Thinking + d.PartialJSON
		if d.Signature != "" {
			s.blocks[len(s.blocks)-1] += " [" + d.Signature + "]"
		}
	case "message_delta":
		s.stop, s.usage = e.Delta.StopReason, e.Usage
	}
}

func compact(t *testing.T, data string) string {
	t.Helper()
	var buf bytes.Buffer
	if err := json.Compact(&buf, []byte(data)); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return buf.String()
}

// serve calls a model as a handler, without a server.
func serve(model *script.Model, body string) (int, string) {
	rec := httptest.NewRecorder()
	model.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(body)))
	return rec.Code, rec.Body.String()
}
