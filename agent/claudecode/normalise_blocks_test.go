// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/event"
)

// assistantLine is an assistant line of one block.
func assistantLine(messageID, lineID, block string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":%q,"model":"m","content":[%s]},"uuid":%q,"session_id":"s"}`, messageID, block, lineID)
}

func call1(id string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"x"}}`, id)
}

// returns is a user line with a result, and more fields.
func returns(id, text string, isError bool, more string) string {
	return fmt.Sprintf(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%q,"is_error":%v}]},"session_id":"s"%s}`, id, text, isError, more)
}

func TestToolResult_Status(t *testing.T) {
	meta := func(fields string) string { return `,"tool_result_meta":[{"id":"other"},{"id":"a"` + fields + `}]` }
	const rejected, accepted = `,"permission_decision":{"decision":"reject"}`, `,"permission_decision":{"decision":"accept"}`
	for _, test := range []struct {
		name   string
		result string
		before string // a line between call and result
		host   bool   // our side denied it
		want   event.ToolStatus
	}{
		{"success", returns("a", "ok", false, ""), "", false, event.ToolSuccess},
		{"error", returns("a", "bad", true, ""), "", false, event.ToolError},
		{"error of a call that was let run", returns("a", "bad", true, meta(accepted)), "", false, event.ToolError},
		{"denied by the host", returns("a", "bad", true, meta(accepted)), "", true, event.ToolDenied},
		{"denied by the CLI", returns("a", "bad", true, meta(rejected+`,"non_execution_kind":"user-rejected"`)), "", false, event.ToolDenied},
		{"denied by a notice", returns("a", "bad", true, ""), `{"type":"system","subtype":"permission_denied","tool_use_id":"a"}`, false, event.ToolDenied},
		{"denied in words", returns("a", "Permission to use Bash with command x has been denied.", true, ""), "", false, event.ToolDenied},
		{"words of a tool that ran", returns("a", "Permission to use Bash has been denied.", true, meta(accepted)), "", false, event.ToolError},
		{"words about another tool", returns("a", "Permission to use Write has been denied.", true, ""), "", false, event.ToolError},
		{"words of a success", returns("a", "Permission to use Bash has been denied.", false, ""), "", false, event.ToolSuccess},
		{"interrupted", returns("a", "stopped", true, meta(`,"non_execution_kind":"user-rejected"`)), "", false, event.ToolCancelled},
		{"interrupted after it was let run", returns("a", "stopped", true, meta(accepted+`,"non_execution_kind":"user-rejected"`)), "", false, event.ToolCancelled},
		{"interrupted, an older CLI", returns("a", "stopped", true, `,"tool_use_result":"User rejected tool use"`), "", false, event.ToolCancelled},
		{"interrupted because it was denied", returns("a", "stopped", true, `,"tool_use_result":"User rejected tool use"`), "", true, event.ToolDenied},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, _ := newNormaliser()
			n.events(decode(t, assistantLine("m", "u", call1("a"))))
			if test.host {
				_, _ = n.ledger.Ask(t.Context(), agent.Question{ToolCall: event.ToolCall{ID: "a", Name: "Bash"}, Decide: func(context.Context, event.ToolCall) (agent.CallDecision, error) {
					return agent.CallDecision{Verdict: event.Deny}, nil
				}})
			}
			if test.before != "" {
				n.events(decode(t, test.before))
			}
			got := n.events(decode(t, test.result))
			checkStream(t, got)
			if len(got) != 1 || got[0].Payload.(event.ToolResult).Status != test.want {
				t.Errorf("payloads %+v, want status %s", payloads(got), test.want)
			}
		})
	}
}

// Some services number the calls of each answer from the beginning. A call under an id that was denied once is
// reported like any other.
func TestStream_AnIDThatComesAgain(t *testing.T) {
	n, _ := newNormaliser()
	var got []event.Event
	add := func(line string) { got = append(got, slices.Clone(n.events(decode(t, line)))...) }
	add(assistantLine("m1", "u1", call1("call_0")))
	_, _ = n.ledger.Ask(t.Context(), agent.Question{ToolCall: event.ToolCall{ID: "call_0", Name: "Bash"}, Decide: func(context.Context, event.ToolCall) (agent.CallDecision, error) {
		return agent.CallDecision{Verdict: event.Deny}, nil
	}})
	add(returns("call_0", "no", true, ""))
	add(assistantLine("m2", "u2", call1("call_0")))
	add(assistantLine("m2", "u2", call1("call_0"))) // a line that comes twice is one
	add(returns("call_0", "done", false, ""))
	var reported []string
	for _, e := range got {
		switch p := e.Payload.(type) {
		case event.ToolCall:
			reported = append(reported, string("call "+p.ID))
		case event.ToolResult:
			reported = append(reported, string(p.Status)+" "+string(p.ID))
		}
	}
	if diff := cmp.Diff([]string{"call call_0", "denied call_0", "call call_0", "success call_0"}, reported); diff != "" {
		t.Errorf("the stream (-want +got):\n%s", diff)
	}
}

func TestToolResult_Output(t *testing.T) {
	for _, test := range []struct{ name, content, want string }{
		{"text", `"a <b>"`, `"a <b>"`},
		{"text keeps its bytes", `"\u0061"`, `"\u0061"`},
		{"text blocks", `[{"type":"text","text":"a <b>"},{"type":"text","text":"c"}]`, `"a <b>\nc"`},
		{"image", `[{"type":"image","source":{"type":"base64","data":"x"}}]`, `[{"type":"image","source":{"type":"base64","data":"x"}}]`},
		{"nothing", `null`, `null`},
		{"empty list", `[]`, `[]`},
		{"neither text nor list", `{"x":1}`, `{"x":1}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, _ := newNormaliser()
			got := n.events(decode(t, `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":`+test.content+`}]}}`))
			if out := string(got[0].Payload.(event.ToolResult).Output); out != test.want {
				t.Errorf("output %s, want %s", out, test.want)
			}
		})
	}
}

func TestNormalise_ServerToolsAreCalls(t *testing.T) {
	n, tick := newNormaliser()
	events := play(t, n, tick,
		assistantLine("m", "1", `{"type":"server_tool_use","id":"a","name":"web_search","input":{"query":"x"}}`),
		assistantLine("m", "2", `{"type":"web_search_tool_result","tool_use_id":"a","content":[{"type":"web_search_result","url":"u"}]}`),
		assistantLine("m", "3", `{"type":"server_tool_use","id":"b","name":"web_fetch","input":{}}`),
		assistantLine("m", "4", `{"type":"web_fetch_tool_result","tool_use_id":"b","content":{"type":"web_fetch_tool_result_error","error_code":"url_not_allowed"}}`))
	checkStream(t, events)
	want := []event.Payload{
		event.ToolCall{ID: "a", Name: "web_search", Input: raw(`{"query":"x"}`)},
		event.ToolResult{ID: "a", Name: "web_search", Status: event.ToolSuccess, Output: raw(`[{"type":"web_search_result","url":"u"}]`), Duration: time.Second},
		event.ToolCall{ID: "b", Name: "web_fetch", Input: raw(`{}`)},
		event.ToolResult{ID: "b", Name: "web_fetch", Status: event.ToolError, Output: raw(`{"type":"web_fetch_tool_result_error","error_code":"url_not_allowed"}`), Duration: time.Second, Failure: &event.ToolFailure{Message: "url_not_allowed"}},
	}
	if diff := cmp.Diff(want, payloads(events)[:4]); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
}

func TestToolResult_DurationIsTheCLIsWhereReported(t *testing.T) {
	stamped := func(line, second string) string {
		return line[:len(line)-1] + `,"timestamp":"2026-01-02T03:04:` + second + `Z"}`
	}
	for _, test := range []struct {
		name         string
		call, result string
		want         time.Duration
	}{
		{"both stamped", stamped(assistantLine("m", "u", call1("a")), "05"), stamped(returns("a", "", false, ""), "05.250"), 250 * time.Millisecond},
		{"call not stamped", assistantLine("m", "u", call1("a")), stamped(returns("a", "", false, ""), "05"), time.Second},
		{"clock set back", stamped(assistantLine("m", "u", call1("a")), "06"), stamped(returns("a", "", false, ""), "05"), time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, tick := newNormaliser()
			events := play(t, n, tick, test.call, test.result)
			if got := events[1].Payload.(event.ToolResult).Duration; got != test.want {
				t.Errorf("duration %s, want %s", got, test.want)
			}
		})
	}
}

func TestNormalise_RepeatedLinesAreReportedOnce(t *testing.T) {
	lines := []string{
		assistantLine("m1", "1", `{"type":"text","text":"hi"}`), assistantLine("m1", "2", call1("a")), returns("a", "ok", false, `,"uuid":"3"`),
		assistantLine("m2", "4", `{"type":"text","text":"hi"}`),
	}
	end := result(`"duration_ms":1`)
	n, tick := newNormaliser()
	want := payloads(play(t, n, tick, append(slices.Clone(lines), end)...))
	for name, twice := range map[string][]string{
		"each at once": {lines[0], lines[0], lines[1], lines[1], lines[2], lines[2], lines[3], lines[3]},
		"all again":    slices.Concat(lines, lines),
		"under another uuid": slices.Concat(lines, []string{
			assistantLine("m1", "9", call1("a")),
		}),
	} {
		n, tick := newNormaliser()
		got := payloads(play(t, n, tick, append(twice, end)...))
		opt := cmp.Transformer("", func(r event.ToolResult) event.ToolStatus { return r.Status })
		if diff := cmp.Diff(want, got, opt); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestSubagent_HasTheTurnOfItsCall(t *testing.T) {
	inner := func(agent string) string {
		return `{"type":"assistant","message":{"id":"x","content":[{"type":"text","text":"in"}]},"parent_tool_use_id":"a"` + agent + `}`
	}
	n, tick := newNormaliser()
	events := play(t, n, tick,
		assistantLine("m1", "1", call1("a")),
		assistantLine("m2", "2", `{"type":"text","text":"out"}`),
		inner(""),
		inner(`,"agent_id":"helper"`),
		`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"d"}},"parent_tool_use_id":"a"}`)
	type at struct {
		kind          event.Kind
		turn          int
		parent, agent string
	}
	var got []at
	for _, e := range events[:5] {
		got = append(got, at{e.Kind, e.Turn, string(e.ParentToolUseID), e.AgentID})
	}
	want := []at{
		{event.KindToolUse, 1, "", ""},
		{event.KindText, 2, "", ""},
		{event.KindText, 1, "a", ""},
		{event.KindText, 1, "a", "helper"},
		{event.KindTextDelta, 1, "a", "helper"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(at{})); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func TestNormalise_SyntheticTextIsNotATurn(t *testing.T) {
	n, tick := newNormaliser()
	events := play(t, n, tick,
		`{"type":"assistant","message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"Total cost: $0"}]}}`,
		assistantLine("m1", "1", `{"type":"text","text":"hi"}`))
	if events[0].Turn != 0 || events[0].Kind != event.KindText || events[1].Turn != 1 {
		t.Errorf("events %+v, want the text of the CLI before the first turn", events)
	}
}

// Older CLIs name the message only where it begins.
func TestDelta_HasTheTurnOfItsMessage(t *testing.T) {
	start := `{"type":"stream_event","event":{"type":"message_start","message":{"id":%q}}}`
	delta := `{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"message_start"}}}`
	n, tick := newNormaliser()
	events := play(t, n, tick, fmt.Sprintf(start, "m1"), delta, assistantLine("m1", "1", `{"type":"text","text":"x"}`), fmt.Sprintf(start, "m2"), delta, result(`"x":1`))
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprint(e.Kind, " ", e.Turn))
	}
	if want := []string{"text_delta 1", "text 1", "text_delta 2", "done 2"}; !slices.Equal(got, want) {
		t.Errorf("events and turns %v, want %v", got, want)
	}
	if diff := cmp.Diff(event.Payload(event.TextDelta{Delta: "message_start"}), events[0].Payload); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSubagent_APIErrorIsRecoverable(t *testing.T) {
	line := `{"type":"assistant","message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]},"error":"server_error"%s}`
	n, _ := newNormaliser()
	if got := n.events(decode(t, fmt.Sprintf(line, ""))); len(got) != 0 {
		t.Errorf("the main agent's is reported before the result: %+v", payloads(got))
	}
	got := payloads(n.events(decode(t, fmt.Sprintf(line, `,"parent_tool_use_id":"a"`))))
	if diff := cmp.Diff([]event.Payload{event.Error{Code: "server_error", Message: "API Error", Recoverable: true}}, got); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
	if n.turn != 0 {
		t.Errorf("turn %d, want none: the model sent nothing", n.turn)
	}
}

func TestNormalise_ActivityMakesASessionResumable(t *testing.T) {
	for line, want := range map[string]bool{
		`{"type":"system","subtype":"init","session_id":"s"}`:                                                                              false,
		`{"type":"system","subtype":"api_retry","session_id":"s"}`:                                                                         false,
		`{"type":"user","isReplay":true,"message":{"content":"hi"},"session_id":"s"}`:                                                      false,
		`{"type":"user","message":{"content":"hi"},"session_id":"s"}`:                                                                      true,
		`{"type":"assistant","message":{"id":"m","content":[]},"session_id":"s"}`:                                                          true,
		`{"type":"stream_event","event":{"type":"message_start"},"session_id":"s"}`:                                                        true,
		`{"type":"result","subtype":"error_during_execution","is_error":true,"startup_failure_reason":"cwd_unavailable","session_id":"s"}`: false,
		`{"type":"result","subtype":"success","session_id":"s"}`:                                                                           true,
	} {
		n, _ := newNormaliser()
		n.events(decode(t, line))
		if n.active != want {
			t.Errorf("%s: activity %v, want %v", line, n.active, want)
		}
		if !want {
			continue
		}
		if n.session != "s" {
			t.Errorf("%s: session %q", line, n.session)
		}
	}
}
