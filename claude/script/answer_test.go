// SPDX-License-Identifier: Apache-2.0

package script_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover/claude/script"
	"github.com/google/go-cmp/cmp"
)

func TestAnswer_StreamedMessage(t *testing.T) {
	bash := script.ToolCall{Name: "Bash", Input: script.Input{"command": "a < b"}}
	tests := []struct {
		name   string
		turn   script.Turn
		blocks []string
		stop   string
	}{
		{"text", script.Text("hi"), []string{"text: hi"}, "end_turn"},
		{"empty message", script.Turn{}, nil, "end_turn"},
		{"thinking", script.Think("hm", "hi"), []string{"thinking: hm [c2NyaXB0ZWQ=]", "text: hi"}, "end_turn"},
		{"signed thinking", script.Reply(script.ThinkingBlock{Thinking: "hm", Signature: "S"}), []string{"thinking: hm [S]"}, "end_turn"},
		{"redacted thinking", script.Reply(script.RedactedThinkingBlock{Data: "x"}), []string{"redacted_thinking: "}, "end_turn"},
		{"tool call", script.Call("Bash", script.Input{"command": "ls"}), []string{`tool_use toolu_0001_1 Bash: {"command":"ls"}`}, "tool_use"},
		{"no input", script.Call("Bash", nil), []string{`tool_use toolu_0001_1 Bash: {}`}, "tool_use"},
		{
			"parallel", script.Reply(script.TextBlock{Text: "two"}, bash, script.ToolCall{ID: "mine", Name: "Read"}),
			[]string{"text: two", `tool_use toolu_0001_2 Bash: {"command":"a < b"}`, "tool_use mine Read: {}"},
			"tool_use",
		},
		{"structured", script.Structured(struct {
			N int `json:"n"`
		}{4}), []string{`tool_use toolu_0001_1 StructuredOutput: {"n":4}`}, "tool_use"},
		{"bad tool JSON", script.Reply(script.ToolCall{Name: "Bash", RawInput: `{"comm`}), []string{`tool_use toolu_0001_1 Bash: {"comm`}, "tool_use"},
		{"refusal", script.Refusal("no"), []string{"text: no"}, "refusal"},
		{"max tokens", script.MaxTokens("lon"), []string{"text: lon"}, "max_tokens"},
		{"chunked", script.Text("añb€c").Chunked(2, 0), []string{"text: añb€c"}, "end_turn"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := start(t, script.New(tt.turn))
			got := parseStream(t, mustPost(t, server, ask("go", true)))
			if diff := cmp.Diff(tt.blocks, got.blocks); diff != "" {
				t.Errorf("blocks (-want +got):\n%s", diff)
			}
			if got.stop != tt.stop {
				t.Errorf("stop reason: got %q, want %q", got.stop, tt.stop)
			}
		})
	}
}

func TestAnswer_OrderOfStreamEvents(t *testing.T) {
	server := start(t, script.New(script.Text("abcde").Chunked(2, 0).
		Metered(script.Usage{Input: 7, Output: 9, CacheRead: 3, CacheCreation: 2})))
	got := parseStream(t, mustPost(t, server, ask("go", true)))
	want := []string{
		"message_start", "ping", "content_block_start", "content_block_delta", "content_block_delta",
		"content_block_delta", "content_block_stop", "message_delta", "message_stop",
	}
	if diff := cmp.Diff(want, got.names); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	usage := map[string]any{"input_tokens": 7.0, "output_tokens": 9.0, "cache_read_input_tokens": 3.0, "cache_creation_input_tokens": 2.0}
	if diff := cmp.Diff(usage, got.usage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func TestAnswer_WholeMessage(t *testing.T) {
	turn := script.Reply(script.ThinkingBlock{Thinking: "hm", Signature: "S"}, script.TextBlock{Text: "a"},
		script.ToolCall{ID: "x", Name: "Bash", Input: json.RawMessage(`{"b":1,"a":2}`)})
	turn.StopSequence, turn.Model = "END", "other"
	server := start(t, script.New(turn))
	got := mustPost(t, server, ask("go", false))
	want := compact(t, `{"id":"msg_0001","type":"message","role":"assistant","model":"other","content":[
		{"type":"thinking","thinking":"hm","signature":"S"},{"type":"text","text":"a"},
		{"type":"tool_use","id":"x","name":"Bash","input":{"b":1,"a":2}}],
		"stop_reason":"tool_use","stop_sequence":"END",
		"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":10}}`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
}

func TestFail_StatusAndRetryAfter(t *testing.T) {
	server := start(t, script.New(script.Fail(529, "").RetryAfter(1500*time.Millisecond)))
	resp, body, err := post(t, server, ask("go", true))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := resp.StatusCode, 529; got != want {
		t.Errorf("status: got %d, want %d", got, want)
	}
	if got, want := resp.Header.Get("Retry-After"), "2"; got != want {
		t.Errorf("retry-after: got %q, want %q", got, want)
	}
	want := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_0001"}`
	if body != want {
		t.Errorf("body: got %s, want %s", body, want)
	}
	if failures := server.Failures(); failures != nil {
		t.Errorf("a scripted error is not a failure of the script: %v", failures)
	}
}

func TestFault_BreaksTheAnswer(t *testing.T) {
	overloaded := script.APIError{Status: 529, Message: "busy"}
	tests := []struct {
		name   string
		fault  script.Fault
		stream bool
		err    error  // of reading
		end    string // of what was read
		events int    // without ping
	}{
		{"truncate after content", script.TruncateAfter(0), true, nil, "", 4},
		{"truncate in block", script.TruncateAfter(3), true, nil, "", 3},
		{"truncate late still lacks message_stop", script.TruncateAfter(99), true, nil, "", 5},
		{"nothing", script.TruncateAfter(script.Nothing), true, nil, "", 0},
		{"reset in block", script.ResetAfter(3), true, syscall.ECONNRESET, "", 3},
		{"malformed", script.MalformedAfter(2), true, nil, "\"delta\":{\"ty\n\n", 3},
		{"error event", script.ErrorEventAfter(3, overloaded), true, nil, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}` + "\n\n", 4},
		{"whole truncated", script.TruncateAfter(0), false, nil, "", 0},
		{"whole reset", script.ResetAfter(1), false, syscall.ECONNRESET, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			server := start(t, script.New(script.Text("hello").Breaking(tt.fault)))
			_, body, err := post(t, server, ask("go", tt.stream))
			if tt.err == nil && err != nil || !errors.Is(err, tt.err) {
				t.Errorf("error: got %v, want %v", err, tt.err)
			}
			if !strings.HasSuffix(body, tt.end) {
				t.Errorf("answer: got %q, want the end %q", body, tt.end)
			}
			if got := strings.Count(body, "event: ") - strings.Count(body, "event: ping"); got != tt.events {
				t.Errorf("events: got %d, want %d in %s", got, tt.events, body)
			}
			if !tt.stream && json.Valid([]byte(body)) {
				t.Errorf("a broken answer is valid JSON: %s", body)
			}
		})
	}
}

func TestFault_ResetBeforeTheAnswer(t *testing.T) {
	server := start(t, script.New(script.Text("x").Breaking(script.ResetAfter(script.Nothing)), script.Text("y")))
	req := newPost(t, server.URL()+"/v1/messages", ask("go", true))
	req.GetBody = nil // otherwise the client may send the request again by itself
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		resp.Body.Close()
		t.Fatalf("got status %d, want a reset connection", resp.StatusCode)
	}
	if !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want a reset connection", err)
	}
}

func TestFault_ErrorEventWithoutStreamIsAnErrorStatus(t *testing.T) {
	server := start(t, script.New(script.Text("x").Breaking(script.ErrorEventAfter(0, script.APIError{Type: "billing_error", Message: "m"}))))
	resp, body, err := post(t, server, ask("go", false))
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 529 || !strings.Contains(body, "billing_error") {
		t.Errorf("got %d %s, want 529 billing_error", resp.StatusCode, body)
	}
}

// Hanging answers end with the client, and with the server.
func TestHang_EndsWithClientOrServer(t *testing.T) {
	for _, turn := range []script.Turn{script.Hang(), script.Text("x").Breaking(script.Fault{Kind: script.FaultHang, After: 2}), script.Text("x").Delayed(time.Hour), script.Text("x").Chunked(1, time.Hour)} {
		for _, end := range []string{"client", "server"} {
			server := start(t, script.New(turn))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				req := newPost(t, server.URL()+"/v1/messages", ask("go", true)).WithContext(ctx)
				resp, err := http.DefaultClient.Do(req)
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				done <- err
			}()
			if err := server.WaitRequests(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if end == "client" {
				cancel()
			} else if err := server.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := <-done; err == nil {
				t.Errorf("ended by the %s: got a whole answer, want an error", end)
			}
			cancel()
		}
	}
}

func TestServer_CloseNamesABlockedFunc(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{})
	server, err := script.Start(script.New(script.Func(func(*script.Request) script.Turn {
		close(entered)
		<-release
		return script.Text("late")
	})))
	if err != nil {
		t.Fatal(err)
	}
	server.SetCloseLimit(10 * time.Millisecond)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _, _ = post(t, server, ask("go", true))
	}()
	<-entered
	if err := server.Close(); !errors.Is(err, script.ErrStillRunning) {
		t.Errorf("got %v, want %v", err, script.ErrStillRunning)
	}
	close(release)
	<-done
}

func TestTurn_Delays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model, err := script.NewModel(script.New(script.Text("abcdef").Delayed(time.Hour).Chunked(2, time.Minute).Times(2)))
		if err != nil {
			t.Fatal(err)
		}
		for stream, want := range map[bool]time.Duration{true: time.Hour + 3*time.Minute, false: time.Hour} {
			begin := time.Now()
			if status, body := serve(model, ask("x", stream)); status != 200 {
				t.Errorf("got %d %s", status, body)
			}
			if got := time.Since(begin); got != want {
				t.Errorf("streamed %t: took %v, want %v", stream, got, want)
			}
		}
	})
}
