// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/drover-agents/drover/claude/transcript"
)

// said is a line of a conversation; content is its blocks, or a text.
func said(uuid, parent, kind, message, content string) json.RawMessage {
	if parent != "null" {
		parent = fmt.Sprintf("%q", parent)
	}
	return json.RawMessage(fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%s,"sessionId":"s","cwd":"/w","version":"2","message":{"id":%q,"role":%q,"content":%s}}`,
		kind, uuid, parent, message, kind, content))
}

func TestFindInterrupted_AtEachMoment(t *testing.T) {
	call := func(id string) string { return `[{"type":"tool_use","id":"` + id + `","name":"Bash","input":{}}]` }
	result := func(id, text string) string {
		return `[{"type":"tool_result","tool_use_id":"` + id + `","content":"` + text + `"}]`
	}
	const rejection = "The user doesn't want to proceed with this tool use. The tool use was rejected."
	prompt := said("u1", "null", "user", "", `"Do it."`)
	first, done := said("a1", "u1", "assistant", "m1", call("t1")), said("r1", "a1", "user", "", result("t1", "done"))
	second, third := said("a2", "r1", "assistant", "m2", call("t2")), said("a3", "a2", "assistant", "m2", call("t3"))
	for name, c := range map[string]struct {
		lines []json.RawMessage
		at    string
		open  []string
		calls int
	}{
		"nothing":                     {nil, "", nil, 0},
		"no message":                  {[]json.RawMessage{json.RawMessage(`{"type":"queue-operation"}`)}, "", nil, 0},
		"the prompt":                  {[]json.RawMessage{prompt}, "u1", nil, 0},
		"what surrounds it":           {[]json.RawMessage{prompt, json.RawMessage(`{"type":"attachment","uuid":"x","parentUuid":"u1"}`)}, "u1", nil, 0},
		"thinking":                    {[]json.RawMessage{prompt, said("a1", "u1", "assistant", "m1", `[{"type":"thinking","thinking":"hm"}]`)}, "u1", nil, 0},
		"a text":                      {[]json.RawMessage{prompt, said("a1", "u1", "assistant", "m1", `[{"type":"text","text":"I will."}]`)}, "a1", nil, 0},
		"a call":                      {[]json.RawMessage{prompt, first}, "a1", []string{"t1"}, 1},
		"its result":                  {[]json.RawMessage{prompt, first, done}, "r1", nil, 1},
		"two calls":                   {[]json.RawMessage{prompt, first, done, second, third}, "a3", []string{"t2", "t3"}, 3},
		"the result of the first":     {[]json.RawMessage{prompt, first, done, second, third, said("r2", "a2", "user", "", result("t2", "done"))}, "r2", []string{"t3"}, 3},
		"the result of the second":    {[]json.RawMessage{prompt, first, done, second, third, said("r3", "a3", "user", "", result("t3", "done"))}, "r3", []string{"t2"}, 3},
		"a rejection":                 {[]json.RawMessage{prompt, first, said("r1", "a1", "user", "", result("t1", rejection))}, "a1", []string{"t1"}, 1},
		"a rejection, and its report": {[]json.RawMessage{prompt, first, said("r1", "a1", "user", "", result("t1", rejection)), said("u2", "r1", "user", "", `[{"type":"text","text":"[Request interrupted by user for tool use]"}]`)}, "a1", []string{"t1"}, 1},
		"a subagent's call":           {[]json.RawMessage{prompt, json.RawMessage(`{"type":"assistant","uuid":"s1","parentUuid":"u1","isSidechain":true,"message":{"id":"m9","content":` + call("t9") + `}}`)}, "u1", nil, 0},
		"an error of the API":         {[]json.RawMessage{prompt, json.RawMessage(`{"type":"assistant","uuid":"e1","parentUuid":"u1","message":{"id":"e","model":"<synthetic>","content":[{"type":"text","text":"API Error"}]}}`)}, "u1", nil, 0},
		"a line is missing":           {[]json.RawMessage{prompt, first, second}, "", nil, 0},
		"a branch that was left":      {[]json.RawMessage{prompt, first, done, said("a9", "r1", "assistant", "m9", `[{"type":"thinking","thinking":"hm"}]`), said("u2", "r1", "user", "", `"Go on."`)}, "u2", nil, 1},
	} {
		found := transcript.FindInterrupted(c.lines)
		var open []string
		for _, call := range found.Open {
			open = append(open, call.ID)
		}
		if found.At != c.at || !slices.Equal(open, c.open) || len(found.Calls) != c.calls {
			t.Errorf("%s: at %q, open %q, calls %q; want at %q, open %q, %d calls", name, found.At, open, found.Calls, c.at, c.open, c.calls)
		}
		lines := c.lines
		for _, call := range found.Open {
			lines = append(slices.Clone(lines), found.Result(call, "known <now>", false))
		}
		again := transcript.FindInterrupted(lines)
		if len(again.Open) != 0 || again.At != found.At {
			t.Errorf("%s: with all results the conversation ends at %q with %d open calls, want at %q without", name, again.At, len(again.Open), found.At)
		}
	}
}
