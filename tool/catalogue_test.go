// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/tool"
)

func TestFields_EditsOfAnInput(t *testing.T) {
	whole := tool.Fields{New: "text"}
	one := tool.Fields{New: "new", Old: "old", All: "all"}
	many := tool.Fields{New: "new", Old: "old", All: "all", Edits: "edits"}
	for name, x := range map[string]struct {
		fields tool.Fields
		input  string
		want   []tool.Edit
	}{
		"a whole file":       {whole, `{"path":"a","text":"x"}`, []tool.Edit{{New: "x"}}},
		"one edit":           {one, `{"old":"a","new":"b"}`, []tool.Edit{{Old: "a", New: "b"}}},
		"of every text":      {one, `{"old":"a","new":"","all":true}`, []tool.Edit{{Old: "a", All: true}}},
		"many edits":         {many, `{"edits":[{"old":"a","new":"b"},{"old":"c","new":"d","all":true}]}`, []tool.Edit{{"a", "b", false}, {"c", "d", true}}},
		"no edits":           {many, `{"edits":[]}`, []tool.Edit{}},
		"without a list":     {many, `{"old":"a","new":"b"}`, nil},
		"one is not an edit": {many, `{"edits":[{"old":"a","new":"b"},{"old":"a"}]}`, nil},
		"without a text":     {one, `{"old":"a"}`, nil},
		"of another type":    {one, `{"old":1,"new":"b"}`, nil},
		"not an object":      {one, `[]`, nil},
		"of no editing tool": {tool.Fields{}, `{"old":"a","new":"b"}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(x.want, x.fields.EditsIn(json.RawMessage(x.input))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
