// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPeekLine_Heads(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       lineHead
	}{
		{"type first", `{"type":"assistant","message":{},"parent_tool_use_id":null}`, lineHead{typ: "assistant"}},
		{"type last", `{"message":{"type":"message","subtype":"x"},"type":"user"}`, lineHead{typ: "user"}},
		{"of a subagent", `{"type":"user","parent_tool_use_id":"toolu_1"}`, lineHead{typ: "user", hasParent: true}},
		{"result", `{"is_error":true,"subtype":"error_max_turns","type":"result"}`, lineHead{typ: "result", subtype: "error_max_turns"}},
		{"system", `{"subtype":"init","type":"system"}`, lineHead{typ: "system", subtype: "init"}},
		{"new system subtype", `{"type":"system","subtype":"brand_new"}`, lineHead{typ: "system", subtype: "brand_new"}},
		{"new type", `{"type":"brand_new","subtype":"x"}`, lineHead{typ: "brand_new", subtype: "x"}},
		{
			"request", `{"request":{"tool_name":"Bash","subtype":"can_use_tool"},"request_id":"r1","type":"control_request"}`,
			lineHead{typ: "control_request", requestID: "r1", bodySubtype: "can_use_tool", body: []byte(`{"tool_name":"Bash","subtype":"can_use_tool"}`)},
		},
		{
			"response", `{"type":"control_response","response":{"subtype":"success","request_id":"r2","response":{"subtype":"inner","request_id":"x"}}}`,
			lineHead{typ: "control_response", requestID: "r2", bodySubtype: "success", body: []byte(`{"subtype":"success","request_id":"r2","response":{"subtype":"inner","request_id":"x"}}`)},
		},
		{"cancel", `{"type":"control_cancel_request","request_id":"r\u0033"}`, lineHead{typ: "control_cancel_request", requestID: "r3"}},
		{"request without a body", `{"type":"control_request","request_id":"r4"}`, lineHead{typ: "control_request", requestID: "r4"}},
		{"request_id of an answer of the API", `{"type":"assistant","request_id":"req_1"}`, lineHead{typ: "assistant"}},
		{"no type", `{"a":1}`, lineHead{}},
		{"spaces", " {\t\"type\" : \"keep_alive\" }\r", lineHead{typ: "keep_alive"}},
		{"the last of two", `{"type":"user","type":"keep_alive"}`, lineHead{typ: "keep_alive"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := peekLine([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			got.kind = 0
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(lineHead{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLine_IsRestoredFromItsTag makes each known line again from bytes and tag, as a queue on disk does.
func TestLine_IsRestoredFromItsTag(t *testing.T) {
	goldenLines(t, func(name string, raw []byte) {
		line, err := ParseLine(raw)
		if err != nil {
			t.Fatal(name, err)
		}
		again := taggedLine(raw, line.tag())
		if diff := cmp.Diff(line, again, cmp.AllowUnexported(Line{}, lineHead{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	})
	if got := taggedLine([]byte(`{"type":"user"}`), 1<<40).Type(); got != "user" {
		t.Errorf("a tag of another version gives a line of type %q, want user", got)
	}
}

// FuzzGlance holds what the reader takes from a line at a glance against what a full reading says.
func FuzzGlance(f *testing.F) {
	goldenLines(f, func(_ string, raw []byte) { f.Add(raw) })
	f.Fuzz(func(t *testing.T, raw []byte) {
		glance, glanceErr := glanceLine(raw)
		full, err := peekLine(raw)
		if err != nil {
			return // then a glance may say anything, but must not panic
		}
		if glanceErr != nil {
			t.Fatalf("a glance refuses JSON: %v", glanceErr)
		}
		if diff := cmp.Diff(full, glance, cmp.AllowUnexported(lineHead{})); diff != "" {
			t.Errorf("(-full +glance):\n%s", diff)
		}
	})
}
