// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/drover-agents/drover/tool"
)

var update = flag.Bool("update", false, "rewrite what the files in testdata expect")

// A goldenCase is a prompt whose text is stored in testdata/render, with a sentence of why.
type goldenCase struct {
	sections []*Section
	params   []any
	opts     *RenderOptions
}

func manual() *Section {
	return &Section{
		Key: "manual", Title: "Manual", Text: "The whole manual.", Summary: "How $path is built.", Visibility: Summary,
		Children: []*Section{
			Markdown("build", "Building", "Run make.").With(named("build")),
			{Key: "old", Title: "Old ways", Text: "Gone.", Enabled: func(View) bool { return false }, Tools: []*tool.Tool{named("old")}},
			Markdown("test", "Testing", "Run make test."),
		},
	}
}

func notes() *Section {
	return &Section{Key: "notes", Title: "Notes", Text: "All notes.", Summary: "Some notes.", Visibility: Summary}
}

var goldenCases = map[string]goldenCase{
	"headings": {sections: []*Section{
		{Key: "task", Title: "Task", Text: "Do it.", Children: []*Section{
			{Key: "how", Title: "How", Text: "\n\t\tSteps:\n\n\t\t- one\n\t\t  more of one\n\t\t- two\n\t", Children: []*Section{
				{Key: "deep", Title: "Deep", Children: []*Section{
					{Key: "deeper", Title: "Deeper", Children: []*Section{
						{Key: "deepest", Title: "Deepest", Children: []*Section{Markdown("flat", "No level is left", "End.")}},
					}},
				}},
			}},
			{Key: "off", Title: "Off", Text: "Not shown.", Enabled: func(View) bool { return false }, Children: []*Section{Markdown("below", "Below", "Nor this.")}},
			Markdown("last", "Last", "Still 1.3."),
		}},
		Markdown("empty", "Only a heading", ""),
	}},
	"values": {
		sections: []*Section{Markdown("task", "Task", "Review $path (${lines} lines) for $$5, not $5 or $ ."), notes()},
		params:   []any{fileArgs{Path: "a $lines\n## b", Lines: 3}},
	},
	"summaries": {sections: []*Section{manual(), notes()}, params: []any{fileArgs{Path: "drover"}}},
	"opened": {
		sections: []*Section{manual(), notes()}, params: []any{fileArgs{Path: "drover"}},
		opts: &RenderOptions{Visibility: map[string]Visibility{"manual": Full}},
	},
	"examples": {sections: []*Section{{
		Key: "task", Title: "Task", Text: "Find things.", Tools: []*tool.Tool{named("find"), named("stop")},
		Examples: []TaskExample{
			{
				Objective: "Find the port", Outcome: "The port is 8080.",
				Steps: []ExampleStep{
					{Text: "Think first."},
					{Tool: "find", Text: "Look for it.", Input: json.RawMessage(`{ "query": "port" }`), Output: json.RawMessage(`{"line": 3}`)},
					{Tool: "find", Input: json.RawMessage(`{"query":"<port>"}`)},
				},
			},
			{Objective: "Nothing to do", Outcome: "Say so."},
		},
		Children: []*Section{Markdown("more", "More", "More text.")},
	}}},
}

func TestRender_GoldenTexts(t *testing.T) {
	files, err := filepath.Glob("testdata/render/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(goldenCases) {
		t.Errorf("there are %d files for %d cases", len(files), len(goldenCases))
	}
	for name, c := range goldenCases {
		t.Run(name, func(t *testing.T) {
			path := "testdata/render/" + name + ".txtar"
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if len(strings.TrimSpace(string(archive.Comment))) == 0 {
				t.Errorf("%s does not say why it is there", path)
			}
			got := mustRender(t, mustBind(t, c.sections, c.params...), c.opts).Text + "\n"
			if *update {
				archive.Files = []txtar.File{{Name: "text", Data: []byte(got)}}
				if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if len(archive.Files) != 1 {
				t.Fatalf("%s has %d files, want the text", path, len(archive.Files))
			}
			if diff := cmp.Diff(string(archive.Files[0].Data), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
