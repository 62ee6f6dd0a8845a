// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// hookInputFile returns the input of event as a CLI sent it.
func hookInputFile(t testing.TB, event HookEvent) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "hooks", string(event)+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Every field that the CLI sends has a typed place that holds the same value.
func TestHookInput_KeepsEveryField(t *testing.T) {
	if len(hookEvents) != 33 {
		t.Errorf("%d hook events, want 33", len(hookEvents))
	}
	for _, event := range slices.Sorted(maps.Keys(hookEvents)) {
		t.Run(string(event), func(t *testing.T) {
			data := hookInputFile(t, event)
			in, err := decodeHookInput(event, data)
			if err != nil {
				t.Fatal(err)
			}
			if got := in.hookEvent(); got != event {
				t.Errorf("input is of event %s", got)
			}
			if got := in.common().Raw; string(got) != string(data) {
				t.Errorf("Raw = %s, want the input", got)
			}
			var want map[string]any
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			got := jsonObject(t, in)
			maps.DeleteFunc(got, func(k string, _ any) bool { _, sent := want[k]; return !sent })
			dropAbsent(got["tool_calls"], want["tool_calls"])
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("typed input differs from what was sent (-sent +typed):\n%s", diff)
			}
		})
	}
}

// dropAbsent exists for symmetry with top-level fields: members that were not sent are no loss.
func dropAbsent(got, want any) {
	g, _ := got.([]any)
	w, _ := want.([]any)
	for i := range min(len(g), len(w)) {
		sent := w[i].(map[string]any)
		maps.DeleteFunc(g[i].(map[string]any), func(k string, _ any) bool { _, ok := sent[k]; return !ok })
	}
}

func jsonObject(t testing.TB, v any) map[string]any {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestHookInput_UnknownEventKeepsRaw(t *testing.T) {
	const data = `{"hook_event_name":"MoonRise","session_id":"s1","phase":{"full":true}}`
	in, err := decodeHookInput("MoonRise", []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	got, ok := in.(*UnknownHookInput)
	if !ok || got.Event != "MoonRise" || got.SessionID != "s1" || string(got.Raw) != data {
		t.Errorf("got %#v, want an UnknownHookInput with everything in Raw", in)
	}
}

func TestDecodeHookInput_Details(t *testing.T) {
	tests := []struct {
		name, input string
		want        PreToolUseInput // Raw is not compared
	}{
		{
			"escapes and surrogates", `{"hook_event_name":"PreToolUse","tool_name":"A\u0042\n\ud83d\ude00","tool_input":{}}`,
			PreToolUseInput{HookCommon: HookCommon{Event: HookPreToolUse}, ToolName: "AB\n😀", ToolInput: json.RawMessage(`{}`)},
		},
		{
			"escaped field name", `{"hook_event_name":"PreToolUse","tool\u005fname":"Bash"}`,
			PreToolUseInput{HookCommon: HookCommon{Event: HookPreToolUse}, ToolName: "Bash"},
		},
		{
			"the last of two wins", `{"hook_event_name":"PreToolUse","tool_name":"A","tool_name":"B"}`,
			PreToolUseInput{HookCommon: HookCommon{Event: HookPreToolUse}, ToolName: "B"},
		},
		{
			"names are exact", `{"hook_event_name":"PreToolUse","Tool_Name":"A"}`,
			PreToolUseInput{HookCommon: HookCommon{Event: HookPreToolUse}},
		},
		{
			"null is absent", `{"hook_event_name":"PreToolUse","tool_name":null,"effort":null,"agent_id":null}`,
			PreToolUseInput{HookCommon: HookCommon{Event: HookPreToolUse}},
		},
		{
			"brackets inside strings", `{"hook_event_name":"PreToolUse","tool_input":{"a":"}]\"{"},"tool_name":"X"}`,
			PreToolUseInput{HookCommon: HookCommon{Event: HookPreToolUse}, ToolName: "X", ToolInput: json.RawMessage(`{"a":"}]\"{"}`)},
		},
		{
			"white space", " {\n\t\"hook_event_name\" : \"PreToolUse\" ,\r\n \"tool_name\" : \"X\" } ",
			PreToolUseInput{HookCommon: HookCommon{Event: HookPreToolUse}, ToolName: "X"},
		},
		{
			"wrong kind leaves the rest", `{"hook_event_name":"PreToolUse","effort":"high","tool_name":"X"}`,
			PreToolUseInput{HookCommon: HookCommon{Event: HookPreToolUse}, ToolName: "X"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in, err := decodeHookInput(HookPreToolUse, []byte(tt.input))
			if err != nil && !isFieldError(err) {
				t.Fatal(err)
			}
			got := *in.(*PreToolUseInput)
			got.Raw = nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeHookInput_RefusesMalformedJSON(t *testing.T) {
	for _, data := range []string{"", "null", "[]", `"x"`, "{", `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1}x`, `{"a":tru}`, `{"a":"x}`, `{a:1}`, "{\"a\\"} {
		if in, err := decodeHookInput(HookPreToolUse, []byte(data)); err == nil || isFieldError(err) {
			t.Errorf("decodeHookInput(%q) = %v, %v, want an error about JSON", data, in, err)
		}
	}
}
