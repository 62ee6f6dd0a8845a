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

func TestCatalogue_SubjectOfACall(t *testing.T) {
	known := &tool.Catalogue{Natives: []tool.Native{{Name: "Read", Files: tool.ReadsFile, Fields: tool.Fields{Paths: []string{"file_path"}}}, {Name: "Find", Fields: tool.Fields{Paths: []string{"file_path"}}}}}
	for name, x := range map[string]struct {
		of         *tool.Catalogue
		tool, call string
		want       string
	}{
		"a file below the folder":      {known, "Read", `{"file_path":"/work/a/b.go"}`, "a/b.go"},
		"a file elsewhere":             {known, "Read", `{"file_path":"/etc/hosts"}`, "/etc/hosts"},
		"a tool that reads no file":    {known, "Find", `{"file_path":"/work/a","pattern":"x"}`, "x"},
		"without a catalogue":          {nil, "Read", `{"file_path": "/work/a"}`, `{"file_path":"/work/a"}`},
		"a common tool without one":    {nil, "read_file", `{"path":"/work/a"}`, "a"},
		"a command before its meaning": {nil, "Bash", `{"command":"ls","description":"list"}`, "ls"},
		"nothing":                      {nil, "now", ` {} `, ""},
		"not JSON":                     {nil, "now", `{"a`, `{"a`},
	} {
		if got := x.of.Subject(x.tool, json.RawMessage(x.call), "/work"); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
}
