// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

// The reasons that rendering gives for a stale override.
const (
	reasonChanged = "it has changed since the override was made"
	reasonGone    = "it does not exist any more"
	reasonRefused = "the section takes no overrides"
)

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// describedAs is the description of a parameter of a tool, by the way to it.
func describedAs(t testing.TB, of *tool.Tool, way ...string) string {
	t.Helper()
	raw := of.Input.JSON()
	var s struct {
		Description string                     `json:"description"`
		Properties  map[string]json.RawMessage `json:"properties"`
	}
	for _, name := range way {
		if err := json.Unmarshal(raw, &s); err != nil {
			t.Fatal(err)
		}
		raw = s.Properties[name]
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	return s.Description
}

type findParams struct {
	Query string `json:"query" doc:"what to look for" minLength:"1"`
	Limit *int   `json:"limit,omitempty"`
}

// named makes a tool that finds things, under any name.
func named(name string, opts ...tool.Option) *tool.Tool {
	return tool.Must(name, "Finds things.", func(_ context.Context, p findParams) (tool.Result, error) {
		return tool.Text("found " + p.Query), nil
	}, opts...)
}

type fileArgs struct {
	Path  string `prompt:"path"`
	Lines int    `json:"lines,omitempty"`
}

func mustDefine[Out any](t testing.TB, d prompt.Definition) *prompt.Template[Out] {
	t.Helper()
	if d.Namespace == "" {
		d.Namespace, d.Key = "demo", "test"
	}
	made, err := prompt.Define[Out](d)
	if err != nil {
		t.Fatalf("Define: %v", err)
	}
	return made
}

func mustBind(t testing.TB, sections []*prompt.Section, params ...any) *prompt.Prompt[prompt.Text] {
	t.Helper()
	p, err := mustDefine[prompt.Text](t, prompt.Definition{Sections: sections}).Bind(params...)
	if err != nil {
		t.Fatalf("Bind: %v", err)
	}
	return p
}

func mustRender[Out any](t testing.TB, p *prompt.Prompt[Out], opts *prompt.RenderOptions) *prompt.Rendered {
	t.Helper()
	r, err := p.Render(opts)
	if err != nil {
		t.Fatalf("Render: %v", err)
	}
	return r
}

type saveFilter struct {
	Path string `json:"path" doc:"where"`
}

type saveParams struct {
	Text    string       `json:"text"`
	Filter  saveFilter   `json:"filter"`
	Filters []saveFilter `json:"filters,omitempty"`
}

func overridable() []*prompt.Section {
	save := tool.Must("save", "Saves.", func(_ context.Context, p saveParams) (tool.Result, error) { return tool.Text("saved " + p.Text), nil })
	find := named("find", tool.WithExamples(
		tool.Example{Description: "first", Input: json.RawMessage(`{"query":"a"}`)},
		tool.Example{Description: "second", Input: json.RawMessage(`{"query":"b"}`)},
	))
	return []*prompt.Section{
		{
			Key: "task", Title: "Task", Text: "Old text about $path.", Summary: "Old summary.", Params: prompt.ParamsOf[fileArgs](),
			Tools: []*tool.Tool{find, save}, Examples: []prompt.TaskExample{{Objective: "one"}, {Objective: "two"}},
		},
		{Key: "fixed", Title: "Fixed", Text: "Fixed text.", NoOverrides: true, Tools: []*tool.Tool{named("keep")}},
		{Key: "bare", Title: "Bare", Text: "No summary."},
	}
}

// atHand has the hashes of a prompt by path and by tool.
func atHand(d *prompt.Descriptor) (sections map[string]prompt.SectionDescriptor, tools map[string]prompt.ToolDescriptor) {
	sections, tools = map[string]prompt.SectionDescriptor{}, map[string]prompt.ToolDescriptor{}
	for _, s := range d.Sections {
		sections[s.Path] = s
	}
	for _, t := range d.Tools {
		tools[t.Name] = t
	}
	return sections, tools
}
