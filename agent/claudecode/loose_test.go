// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
)

func raw(s string) []byte { return []byte(s) }

// payloads are what a normaliser reports of lines, without the envelopes.
func payloads(events []event.Event) []event.Payload {
	var out []event.Payload
	for _, e := range events {
		out = append(out, e.Payload)
	}
	return out
}

func TestCLAUDE003_LooseLines(t *testing.T) {
	success := func(id, output string) event.ToolResult {
		return event.ToolResult{ID: event.CallID(id), Name: unknownTool, Status: event.ToolSuccess, Output: raw(output)}
	}
	failure := func(id string, status event.ToolStatus, output, category, message string) event.ToolResult {
		return event.ToolResult{ID: event.CallID(id), Name: unknownTool, Status: status, Output: raw(output), Failure: &event.ToolFailure{Category: category, Message: message}}
	}
	for _, test := range []struct {
		name, line string
		want       []event.Payload
	}{
		{"init without a subtype", `{"type":"system","model":"m","cwd":"/w","tools":["Read",{"name":"Bash"},3,{"x":1}]}`, []event.Payload{event.Init{Model: "m", Dir: "/w", Tools: []string{"Read", "Bash"}}}},
		{"init of the request", `{"type":"system","subtype":""}`, []event.Payload{event.Init{Model: "asked", Dir: "/asked", Tools: []string{}}}},
		{"init with tools that are objects", `{"type":"system","subtype":"init","model":"m","cwd":"/w","tools":[{"name":"Bash"}]}`, []event.Payload{event.Init{Model: "m", Dir: "/w", Tools: []string{"Bash"}}}},
		{"unknown notice", `{"type":"system","subtype":"weather","model":"m"}`, nil},
		{"unknown line", `{"type":"weather","text":"rain"}`, nil},
		{"no type", `{"text":"rain"}`, nil},

		{"top-level text", `{"type":"assistant","text":"hi"}`, []event.Payload{event.Text{Content: "hi"}}},
		{"top-level delta", `{"type":"assistant","delta":"h"}`, []event.Payload{event.TextDelta{Delta: "h"}}},
		{"top-level content", `{"type":"assistant","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"a","name":"Bash","input":{"x":1}}]}`, []event.Payload{event.Text{Content: "hi"}, event.ToolCall{ID: "a", Name: "Bash", Input: raw(`{"x":1}`)}}},
		{"content that is a string", `{"type":"assistant","content":"hi"}`, []event.Payload{event.Text{Content: "hi"}}},
		{"text, delta and content in this order", `{"type":"assistant","content":[{"type":"text","text":"3"}],"delta":{"text":"2"},"text":"1"}`, []event.Payload{event.Text{Content: "1"}, event.TextDelta{Delta: "2"}, event.Text{Content: "3"}}},
		{"message without an id", `{"type":"assistant","message":{"content":[{"type":"text","text":"hi"}]}}`, []event.Payload{event.Text{Content: "hi"}}},
		{"text beside a message without an id", `{"type":"assistant","text":"1","message":{"content":[{"type":"text","text":"2"}]}}`, []event.Payload{event.Text{Content: "1"}, event.Text{Content: "2"}}},
		{"text of another type", `{"type":"assistant","text":7,"content":[{"type":"text","text":"hi"}]}`, []event.Payload{event.Text{Content: "hi"}}},

		{"thinking as a summary", `{"type":"assistant","content":[{"type":"thinking","summary":"hm"}]}`, []event.Payload{event.Thinking{Summary: "hm"}}},
		{"thinking that is not shown", `{"type":"assistant","content":[{"type":"thinking","thinking":"","signature":"x"},{"type":"redacted_thinking","data":"x"}]}`, nil},

		{"call without anything", `{"type":"assistant","content":[{"type":"tool_use"}]}`, []event.Payload{event.ToolCall{ID: "made_1", Name: unknownTool, Input: raw(`{}`)}}},
		{"call whose input is no object", `{"type":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":[1]}]}`, []event.Payload{event.ToolCall{ID: "a", Name: "Bash", Input: raw(`{}`)}}},
		{"call with a description", `{"type":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{"description":"why"}}]}`, []event.Payload{event.ToolCall{ID: "a", Name: "Bash", Input: raw(`{"description":"why"}`), Description: "why"}}},
		{"call with a description of another type", `{"type":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{"description":{}}}]}`, []event.Payload{event.ToolCall{ID: "a", Name: "Bash", Input: raw(`{"description":{}}`)}}},

		{"result with an output", `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"a","output":{"x":1},"result":2,"content":"3"}]}`, []event.Payload{success("a", `{"x":1}`)}},
		{"result with a result", `{"type":"assistant","content":[{"type":"tool_result","toolUseId":"a","result":2,"content":"3"}]}`, []event.Payload{success("a", `2`)}},
		{"result with content", `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"a","content":"3"}]}`, []event.Payload{success("a", `"3"`)}},
		{"result with nothing", `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"a"}]}`, []event.Payload{success("a", `null`)}},
		{"result without an id", `{"type":"assistant","content":[{"type":"tool_result","content":"3"}]}`, []event.Payload{success("made_1", `"3"`)}},
		{"denied beats an error", `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"a","status":"denied","is_error":true,"content":"no"}]}`, []event.Payload{failure("a", event.ToolDenied, `"no"`, "permission", "no")}},
		{"denied as a flag", `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"a","denied":true}]}`, []event.Payload{failure("a", event.ToolDenied, `null`, "permission", "denied")}},
		{"error as a flag", `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"a","isError":true,"output":"bad"}]}`, []event.Payload{failure("a", event.ToolError, `"bad"`, "", "bad")}},
		{"error as a word", `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"a","status":"error"}]}`, []event.Payload{failure("a", event.ToolError, `null`, "", "error")}},
		{"error as a text", `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"a","error":"bad"}]}`, []event.Payload{failure("a", event.ToolError, `null`, "", "bad")}},
		{"no error", `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"a","error":false}]}`, []event.Payload{success("a", `null`)}},
		{"result with its time and name", `{"type":"assistant","content":[{"type":"tool_result","tool_use_id":"a","name":"Bash","durationMs":1.5}]}`, []event.Payload{event.ToolResult{ID: "a", Name: "Bash", Status: event.ToolSuccess, Output: raw(`null`), Duration: 1500 * time.Microsecond}}},
		{"result of a user without a message", `{"type":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"3"}]}`, []event.Payload{success("a", `"3"`)}},

		{"stream with a delta", `{"type":"stream","delta":"a"}`, []event.Payload{event.TextDelta{Delta: "a"}}},
		{"stream with a text", `{"type":"stream","text":"a"}`, []event.Payload{event.TextDelta{Delta: "a"}}},
		{"stream with both", `{"type":"delta","text":"b","delta":"a"}`, []event.Payload{event.TextDelta{Delta: "a"}, event.TextDelta{Delta: "b"}}},
		{"stream with a nested delta", `{"type":"delta","delta":{"text":"a"}}`, []event.Payload{event.TextDelta{Delta: "a"}}},
		{"stream event without an event", `{"type":"stream_event","delta":"a"}`, []event.Payload{event.TextDelta{Delta: "a"}}},
		{"stream event with an event", `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}}`, []event.Payload{event.TextDelta{Delta: "a"}}},
		{"stream event of thinking", `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}}`, nil},

		{"error with a code", `{"type":"error","code":"C","message":"bad","error":{"code":"D"}}`, []event.Payload{event.Error{Code: "C", Message: "bad"}}},
		{"error with a nested code", `{"type":"error","error":{"code":"D","type":"E","message":"bad"}}`, []event.Payload{event.Error{Code: "D", Message: "bad"}}},
		{"error with a nested type", `{"type":"error","error":{"type":"E","message":"bad"},"retryable":true}`, []event.Payload{event.Error{Code: "E", Message: "bad", Recoverable: true}}},
		{"error that is a text", `{"type":"error","error":"bad","recoverable":false,"retryable":true}`, []event.Payload{event.Error{Message: "bad"}}},
		{"error that can be recovered from", `{"type":"error","message":"bad","recoverable":true,"retryable":false}`, []event.Payload{event.Error{Message: "bad", Recoverable: true}}},
		{"error without words", `{"type":"error"}`, []event.Payload{event.Error{Message: "the agent reported an error without a message"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, _ := newNormaliser()
			n.req = agent.Request{Settings: agent.Settings{Model: "asked", Dir: "/asked"}}
			events := n.events(decode(t, test.line))
			checkStream(t, events)
			if diff := cmp.Diff(test.want, payloads(events)); diff != "" {
				t.Errorf("payloads (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNormalise_LooseResults(t *testing.T) {
	for _, test := range []struct {
		name, line string
		want       event.Done
		code       string // of the error event
	}{
		{"nothing", `{"type":"result"}`, event.Done{Status: event.DoneSuccess, Duration: time.Second}, ""},
		{"a text", `{"type":"result","result":"hi","durationMs":5}`, event.Done{Status: event.DoneSuccess, Result: "hi", Duration: 5 * time.Millisecond}, ""},
		{"status interrupted", `{"type":"result","status":"interrupted","elapsed":5}`, event.Done{Status: event.DoneInterrupted, Reason: "interrupted", Duration: 5 * time.Millisecond}, ""},
		{"stopReason cancelled", `{"type":"result","stopReason":"Cancelled","duration_ms":5}`, event.Done{Status: event.DoneInterrupted, Duration: 5 * time.Millisecond}, ""},
		{"stop_reason max_turns", `{"type":"result","stop_reason":"max_turns","duration_ms":5}`, event.Done{Status: event.DoneMaxTurns, Duration: 5 * time.Millisecond}, ""},
		{"status max_budget", `{"type":"result","status":"max_budget","duration_ms":5}`, event.Done{Status: event.DoneMaxBudget, Duration: 5 * time.Millisecond}, ""},
		{"status error", `{"type":"result","status":"error","result":"bad","duration_ms":5}`, event.Done{Status: event.DoneError, Result: "bad", Duration: 5 * time.Millisecond}, codeResult},
		{"another word", `{"type":"result","status":"fine","stop_reason":"error","duration_ms":5}`, event.Done{Status: event.DoneSuccess, Duration: 5 * time.Millisecond}, ""},
		{"isError", `{"type":"result","isError":true,"result":"bad","duration_ms":5}`, event.Done{Status: event.DoneError, Result: "bad", Duration: 5 * time.Millisecond}, codeResult},
		{"is_error", `{"type":"result","subtype":"success","is_error":true,"result":"bad","duration_ms":5}`, event.Done{Status: event.DoneError, Result: "bad", Duration: 5 * time.Millisecond}, codeResult},
		{"error subtype", `{"type":"result","subtype":"error_of_tomorrow","errors":["a","b"],"duration_ms":5}`, event.Done{Status: event.DoneError, Result: "a; b", Duration: 5 * time.Millisecond}, "error_of_tomorrow"},
		{"error subtype without words", `{"type":"result","subtype":"error_of_tomorrow","duration_ms":5}`, event.Done{Status: event.DoneError, Result: "error of tomorrow", Duration: 5 * time.Millisecond}, "error_of_tomorrow"},
		{"word of the API, no word of ours", `{"type":"result","subtype":"success","stop_reason":"error","duration_ms":5}`, event.Done{Status: event.DoneSuccess, Duration: 5 * time.Millisecond}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, tick := newNormaliser()
			events := play(t, n, tick, test.line)
			checkStream(t, events)
			done, _ := events[len(events)-1].Payload.(event.Done)
			if (done.Cause == nil) != (done.Status == event.DoneSuccess) {
				t.Errorf("the cause is %v", done.Cause)
			}
			done.Cause = nil // its text is the result
			if diff := cmp.Diff(test.want, done); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			code := ""
			if len(events) == 2 {
				failure := events[0].Payload.(event.Error)
				code = failure.Code
				if failure.Recoverable || failure.Message != done.Result || failure.Cause == nil {
					t.Errorf("error event %+v", failure)
				}
			}
			if code != test.code || len(events) > 2 {
				t.Errorf("%d events, error code %q; want %q", len(events), code, test.code)
			}
		})
	}
}

func TestNormalise_UnknownTypeChangesNothing(t *testing.T) {
	n, _ := newNormaliser()
	for _, line := range []string{`{"type":"keep_alive"}`, `{"type":"system","subtype":"status","status":"compacting"}`, `{"type":"system","subtype":"hook_started","hook_id":"h"}`, `{"type":"x","session_id":"s"}`} {
		if got := n.events(decode(t, line)); len(got) != 0 {
			t.Errorf("%s reported %v", line, payloads(got))
		}
	}
	if n.active || n.session != "" {
		t.Errorf("activity %v, session %q; want neither", n.active, n.session)
	}
}
