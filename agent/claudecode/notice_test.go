// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

func TestNotice_ProblemsAreRecoverableErrors(t *testing.T) {
	for _, test := range []struct{ name, line, code, message string }{
		{"retry", `{"type":"system","subtype":"api_retry","attempt":1,"max_retries":3,"retry_delay_ms":613.4,"error_status":529,"error":"overloaded"}`, "overloaded", "the API failed: overloaded (HTTP 529); attempt 1 of 3 follows in 613ms"},
		{"retry without a class", `{"type":"system","subtype":"api_retry","attempt":2,"max_retries":3,"retry_delay_ms":1000,"error_status":500}`, "http_500", "the API failed: http_500; attempt 2 of 3 follows in 1s"},
		{"retry without an answer", `{"type":"system","subtype":"api_retry","attempt":1,"max_retries":3,"retry_delay_ms":1}`, "no_response", "the API did not answer; attempt 1 of 3 follows in 1ms"},
		{"fallback", `{"type":"system","subtype":"model_fallback","trigger":"overloaded","original_model":"a","fallback_model":"b"}`, "model_fallback", "a cannot answer (overloaded); b goes on"},
		{"refusal with a fallback", `{"type":"system","subtype":"model_refusal_fallback","original_model":"a","fallback_model":"b"}`, "model_refusal_fallback", "a refused to answer; b goes on"},
		{"refusal", `{"type":"system","subtype":"model_refusal_no_fallback","original_model":"a"}`, "model_refusal_no_fallback", "a refused to answer"},
		{"warning", `{"type":"system","subtype":"informational","level":"warning","tag":"hook_callback_failed","content":"the hook failed"}`, "hook_callback_failed", "the hook failed"},
		{"warning without a tag", `{"type":"system","subtype":"informational","level":"warning","content":"careful"}`, "informational", "careful"},
		{"mirror", `{"type":"system","subtype":"mirror_error","error":"disk"}`, "mirror_error", "the session could not be stored: disk"},
		{"full disk", `{"type":"system","subtype":"session_writes_lost","error_code":"ENOSPC"}`, "ENOSPC", "the disk is full; the session cannot be continued as it was"},
		{"login", `{"type":"auth_status","error":"expired"}`, "auth_status", "expired"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, _ := newNormaliser()
			want := []event.Payload{event.Error{Code: test.code, Message: test.message, Recoverable: true}}
			if diff := cmp.Diff(want, payloads(n.events(decode(t, test.line)))); diff != "" {
				t.Errorf("payloads (-want +got):\n%s", diff)
			}
			if n.active {
				t.Error("a notice counts as activity")
			}
		})
	}
}

func TestNotice_HarmlessOnesAreIgnored(t *testing.T) {
	for _, line := range []string{
		`{"type":"system","subtype":"informational","level":"notice","content":"fine"}`,
		`{"type":"system","subtype":"background_tasks_changed","tasks":[]}`,
		`{"type":"tool_progress","tool_use_id":"a","elapsed_time_seconds":3}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}`,
		`{"type":"auth_status","isAuthenticating":true}`,
		`{"type":"system","subtype":"task_started","task_id":"t","ambient":true}`,
		`{"type":"system","subtype":"task_updated","task_id":"t","patch":{"status":"completed"}}`,
	} {
		n, _ := newNormaliser()
		if got := n.events(decode(t, line)); len(got) > 0 {
			t.Errorf("%s reported %+v", line, payloads(got))
		}
		if got := n.events(decode(t, `{"type":"keep_alive"}`)); len(got) > 0 {
			t.Errorf("%s reported later %+v", line, payloads(got))
		}
	}
}

func TestNotice_RetryNamesItsSubagent(t *testing.T) {
	n, _ := newNormaliser()
	got := n.events(decode(t, `{"type":"tool_progress","tool_use_id":"a","subagent_retry":{"agent_id":"x","attempt":1,"max_retries":2,"retry_delay_ms":5,"error_category":"rate_limit","error_status":429}}`))
	if len(got) != 1 || got[0].ParentToolUseID != "a" || got[0].AgentID != "x" || got[0].Payload.(event.Error).Code != "rate_limit" {
		t.Errorf("events %+v", got)
	}
}

func TestNormalise_MalformedLineIsARecoverableError(t *testing.T) {
	n, _ := newNormaliser()
	cause := &claude.ProtocolError{Line: "{oops", Err: errors.New("bad")}
	got := payloads(n.events(&claude.MalformedLine{Err: cause}))
	failure, _ := got[0].(event.Error)
	if len(got) != 1 || failure.Code != codeMalformedLine || !failure.Recoverable || !errors.Is(failure, cause) {
		t.Errorf("payloads %+v, want a recoverable %s", got, codeMalformedLine)
	}
}

func TestRateLimit_RejectionIsReported(t *testing.T) {
	n, _ := newNormaliser()
	got := payloads(n.events(decode(t, `{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour","resetsAt":1800000000,"utilization":1}}`)))
	want := []event.Payload{RateLimit{Status: "rejected", Type: "five_hour", ResetsAt: 1800000000000, Utilization: new(1.0)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("payloads (-want +got):\n%s", diff)
	}
}

// A task ends with an update, with a report, or with both; the end is reported once, with all that is known.
func TestTask_EndsOnce(t *testing.T) {
	const (
		started = `{"type":"system","subtype":"task_started","task_id":"t","tool_use_id":"a","task_type":"local_bash","is_backgrounded":true}`
		updated = `{"type":"system","subtype":"task_updated","task_id":"t","patch":{"status":"failed","error":"boom"}}`
		report  = `{"type":"system","subtype":"task_notification","task_id":"t","tool_use_id":"a","status":"failed","summary":"It broke.","usage":{"total_tokens":7,"tool_uses":1,"duration_ms":5}}`
		other   = `{"type":"keep_alive"}`
	)
	begin := Task{ID: "t", State: TaskStarted, ToolUseID: "a", Type: "local_bash", Background: true}
	byUpdate := Task{ID: "t", State: TaskEnded, ToolUseID: "a", Status: "failed", Error: "boom"}
	byReport := Task{ID: "t", State: TaskEnded, ToolUseID: "a", Status: "failed", Summary: "It broke.", Tokens: 7, ToolUses: 1, DurationMS: 5}
	both, late := byReport, byReport
	both.Error, late.State = "boom", TaskUpdated
	for _, test := range []struct {
		name  string
		lines []string
		want  []Task
	}{
		{"update and report", []string{started, updated, report}, []Task{begin, both}},
		{"update alone", []string{started, updated, other}, []Task{begin, byUpdate}},
		{"update at the very end", []string{started, updated}, []Task{begin, byUpdate}},
		{"report alone", []string{started, report}, []Task{begin, byReport}},
		{"report that comes late", []string{started, updated, other, report}, []Task{begin, byUpdate, late}},
		{"change", []string{started, `{"type":"system","subtype":"task_updated","task_id":"t","patch":{"is_backgrounded":true,"status":"running"}}`}, []Task{begin, {ID: "t", State: TaskUpdated, ToolUseID: "a", Status: "running", Background: true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			n, tick := newNormaliser()
			events := play(t, n, tick, test.lines...)
			checkStream(t, events)
			var got []Task
			for _, e := range events {
				if task, ok := e.Payload.(Task); ok {
					got = append(got, task)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("tasks (-want +got):\n%s", diff)
			}
		})
	}
}
