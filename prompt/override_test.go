// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/tool"
)

type saveFilter struct {
	Path string `json:"path" doc:"where"`
}

type saveParams struct {
	Text    string       `json:"text"`
	Filter  saveFilter   `json:"filter"`
	Filters []saveFilter `json:"filters,omitempty"`
}

func overridable() []*Section {
	save := tool.Must("save", "Saves.", func(_ context.Context, p saveParams) (tool.Result, error) { return tool.Text("saved " + p.Text), nil })
	find := named("find", tool.WithExamples(
		tool.Example{Description: "first", Input: json.RawMessage(`{"query":"a"}`)},
		tool.Example{Description: "second", Input: json.RawMessage(`{"query":"b"}`)},
	))
	return []*Section{
		{
			Key: "task", Title: "Task", Text: "Old text about $path.", Summary: "Old summary.", Params: ParamsOf[fileArgs](),
			Tools: []*tool.Tool{find, save}, Examples: []TaskExample{{Objective: "one"}, {Objective: "two"}},
		},
		{Key: "fixed", Title: "Fixed", Text: "Fixed text.", NoOverrides: true, Tools: []*tool.Tool{named("keep")}},
		{Key: "bare", Title: "Bare", Text: "No summary."},
	}
}

// atHand has the hashes of a prompt by path and by tool.
func atHand(d *Descriptor) (sections map[string]SectionDescriptor, tools map[string]ToolDescriptor) {
	sections, tools = map[string]SectionDescriptor{}, map[string]ToolDescriptor{}
	for _, s := range d.Sections {
		sections[s.Path] = s
	}
	for _, t := range d.Tools {
		tools[t.Name] = t
	}
	return sections, tools
}

func TestOverrides_ChangeTheText(t *testing.T) {
	p := mustBind(t, overridable(), fileArgs{Path: "a.go"})
	hashes, _ := atHand(p.Descriptor())
	task := hashes["task"]
	for _, c := range []struct {
		name     string
		override SectionOverride
		want     string
	}{
		{
			"text",
			SectionOverride{Hash: task.Hash, Text: new("\n\tNew text about $path,\n\tfor $$5.\n")},
			"## 1. Task (task)\n\nNew text about a.go,\nfor $5.\n\nExample: one\n\nExample: two",
		},
		{
			"summary and visibility",
			SectionOverride{Hash: task.Hash, SummaryHash: task.SummaryHash, Summary: new("New summary of $path."), Visibility: new(Summary)},
			"## 1. Task (task)\n\nNew summary of a.go.\n\n---\nThis is a summary. Call `open_sections` with section key \"task\" to get the full section with its tools and skills.",
		},
		{
			"an example replaced",
			SectionOverride{Examples: []ExampleOverride[TaskExample]{{Index: 1, Hash: task.Examples[1], New: &TaskExample{
				Objective: "new", Steps: []ExampleStep{{Tool: "find", Input: json.RawMessage(`{"query":"x"}`)}},
			}}}},
			"## 1. Task (task)\n\nOld text about a.go.\n\nExample: one\n\nExample: new\n\n1. Call `find` with `{\"query\":\"x\"}`.",
		},
		{
			"an example removed, another added",
			SectionOverride{
				Hash: task.Hash, Examples: []ExampleOverride[TaskExample]{{Index: 0, Hash: task.Examples[0]}}, AppendExamples: []TaskExample{{Objective: "three"}},
			},
			"## 1. Task (task)\n\nOld text about a.go.\n\nExample: two\n\nExample: three",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustRender(t, p, &RenderOptions{Overrides: &Overrides{Sections: map[string]SectionOverride{"task": c.override}}})
			got, _, _ := strings.Cut(r.Text, "\n\n## 2.")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(r.Stale) > 0 || !r.Descriptor.Sections[0].Overridden || r.Descriptor.Sections[1].Overridden {
				t.Errorf("got stale %v, overridden %v and %v; want none, true and false", r.Stale, r.Descriptor.Sections[0].Overridden, r.Descriptor.Sections[1].Overridden)
			}
			if again := mustRender(t, p, nil); again.Text == r.Text || again.Descriptor.Sections[0].Overridden {
				t.Error("the override stays without being given")
			}
		})
	}
}

func TestOverrides_CanAddASummary(t *testing.T) {
	p := mustBind(t, overridable(), fileArgs{})
	hashes, _ := atHand(p.Descriptor())
	o := SectionOverride{Hash: hashes["bare"].Hash, Summary: new("In short."), Visibility: new(Summary)}
	r := mustRender(t, p, &RenderOptions{Overrides: &Overrides{Sections: map[string]SectionOverride{"bare": o}}})
	if !strings.Contains(r.Text, "## 3. Bare (bare)\n\nIn short.\n\n---") {
		t.Errorf("the summary is not in the text:\n%s", r.Text)
	}
}

// A model receives the manual and the input schema of a tool.
func TestOverrides_ChangeManualAndInputSchemaOfTools(t *testing.T) {
	p := mustBind(t, overridable(), fileArgs{})
	_, tools := atHand(p.Descriptor())
	find, save := tools["find"], tools["save"]
	o := &Overrides{Tools: map[string]ToolOverride{
		"find": {
			Hash: find.Hash, Description: new("Finds better."), Params: map[string]string{"query": `say "what"`, "limit": "how many"},
			Examples: []ExampleOverride[tool.Example]{
				{Index: 0, Hash: find.Examples[0]},
				{Index: 1, Hash: find.Examples[1], New: &tool.Example{Input: json.RawMessage(`{"query":"new"}`)}},
			},
			AppendExamples: []tool.Example{{Input: json.RawMessage(`{"query":"more"}`)}},
		},
		"save": {Hash: save.Hash, Params: map[string]string{"filter.path": "in one", "filters.path": "in each", "filters": "many"}},
	}}
	before := mustRender(t, p, nil)
	r := mustRender(t, p, &RenderOptions{Overrides: o})
	if want, got := "Finds better.\n\nExamples:\n{\"query\":\"new\"}\n{\"query\":\"more\"}", r.Tools[0].Manual(); got != want {
		t.Errorf("manual: got %q, want %q", got, want)
	}
	for i, replacements := range [][]string{
		{`"description":"what to look for"`, `"description":"say \"what\""`, `"limit":{`, `"limit":{"description":"how many",`},
		{`"filters":{`, `"filters":{"description":"many",`},
	} {
		want := strings.NewReplacer(replacements...).Replace(string(before.Tools[i].Input.JSON()))
		if i == 1 { // the two descriptions are the same text in the schema
			want = strings.Replace(want, `"description":"where"`, `"description":"in one"`, 1)
			want = strings.Replace(want, `"description":"where"`, `"description":"in each"`, 1)
		}
		if diff := cmp.Diff(want, string(r.Tools[i].Input.JSON())); diff != "" {
			t.Errorf("input of %s (-want +got):\n%s", r.Tools[i].Name, diff)
		}
	}
	result := r.Tools[0].Run(t.Context(), tool.Call{Input: json.RawMessage(`{"query":"it"}`)})
	if got := result.Render(); got != "found it" {
		t.Errorf("the tool returns %q, want it to work as before", got)
	}
	if result := r.Tools[0].Run(t.Context(), tool.Call{Input: json.RawMessage(`{"query":""}`)}); result.OK() {
		t.Error("the tool accepts what it refused before")
	}
	if got := []bool{r.Descriptor.Tools[0].Overridden, r.Descriptor.Tools[1].Overridden, r.Descriptor.Tools[2].Overridden}; !cmp.Equal(got, []bool{true, true, false}) {
		t.Errorf("overridden: got %v", got)
	}
	if after := mustRender(t, p, nil); after.Tools[0] != before.Tools[0] || after.Tools[0].Description != "Finds things." || r.Tools[2] != before.Tools[2] {
		t.Error("the tools of the template have changed")
	}
}

func TestOverrides_StaleOnesAreReportedAndNotApplied(t *testing.T) {
	p := mustBind(t, overridable(), fileArgs{})
	hashes, tools := atHand(p.Descriptor())
	o := &Overrides{
		Sections: map[string]SectionOverride{
			"gone": {Text: new("x")},
			"task": {
				Hash: "old", SummaryHash: "old", Text: new("x $unknown"), Summary: new("x"), Visibility: new(Summary), AppendExamples: []TaskExample{{}},
				Examples: []ExampleOverride[TaskExample]{{Index: 0, Hash: "old"}, {Index: 5, Hash: hashes["task"].Examples[0]}, {Index: -1}},
			},
			"fixed": {Hash: hashes["fixed"].Hash, Text: new("x")},
		},
		Tools: map[string]ToolOverride{
			"gone": {Description: new("x")},
			"find": {
				Hash: "old", Description: new("x"), Params: map[string]string{"nothing": "x"}, AppendExamples: []tool.Example{{}},
				Examples: []ExampleOverride[tool.Example]{{Index: 0, Hash: tools["find"].Examples[1]}},
			},
			"keep": {Hash: tools["keep"].Hash, Description: new("x")},
		},
	}
	r := mustRender(t, p, &RenderOptions{Overrides: o})
	plain := mustRender(t, p, nil)
	if diff := cmp.Diff(plain.Text, r.Text); diff != "" {
		t.Errorf("the text changed (-want +got):\n%s", diff)
	}
	for i := range r.Tools {
		if r.Tools[i] != plain.Tools[i] {
			t.Errorf("tool %s changed", r.Tools[i].Name)
		}
	}
	task, find := hashes["task"], tools["find"]
	want := []StaleOverride{
		{Section: "fixed", Reason: reasonRefused},
		{Section: "gone", Reason: reasonGone},
		{Section: "task", Target: "text", MadeFor: "old", Now: task.Hash, Reason: reasonChanged},
		{Section: "task", Target: "examples[0]", MadeFor: "old", Now: task.Examples[0], Reason: reasonChanged},
		{Section: "task", Target: "examples[5]", MadeFor: task.Examples[0], Reason: reasonGone},
		{Section: "task", Target: "examples[-1]", Reason: reasonGone},
		{Section: "task", Target: "appendExamples", MadeFor: "old", Now: task.Hash, Reason: reasonChanged},
		{Section: "task", Target: "summary", MadeFor: "old", Now: task.SummaryHash, Reason: reasonChanged},
		{Section: "task", Target: "visibility", MadeFor: "old", Now: task.Hash, Reason: reasonChanged},
		{Tool: "find", Target: "description", MadeFor: "old", Now: find.Hash, Reason: reasonChanged},
		{Tool: "find", Target: "params", MadeFor: "old", Now: find.Hash, Reason: reasonChanged},
		{Tool: "find", Target: "examples[0]", MadeFor: find.Examples[1], Now: find.Examples[0], Reason: reasonChanged},
		{Tool: "find", Target: "appendExamples", MadeFor: "old", Now: find.Hash, Reason: reasonChanged},
		{Tool: "gone", Reason: reasonGone},
		{Tool: "keep", Reason: reasonRefused},
	}
	if diff := cmp.Diff(want, r.Stale); diff != "" {
		t.Errorf("stale (-want +got):\n%s", diff)
	}
}

func TestOverrides_AreCheckedLikeTheOriginalText(t *testing.T) {
	p := mustBind(t, overridable(), fileArgs{})
	hashes, tools := atHand(p.Descriptor())
	task := hashes["task"]
	_, err := p.Render(&RenderOptions{Overrides: &Overrides{
		Sections: map[string]SectionOverride{
			"task": {Hash: task.Hash, SummaryHash: task.SummaryHash, Text: new("a\n $other"), Summary: new("${"), AppendExamples: []TaskExample{{Objective: "o", Steps: []ExampleStep{{Tool: "lose"}}}}},
			"bare": {Hash: hashes["bare"].Hash, Text: new("$path $size")},
		},
		Tools: map[string]ToolOverride{
			"find": {Hash: tools["find"].Hash, Description: new(" ")},
			"save": {Hash: tools["save"].Hash, Params: map[string]string{"filter.nothing": "x"}},
		},
	}})
	wantErrors(t, err, ErrOverride,
		`prompt: demo:test: section "bare": override of text 1:7: placeholder $size: has no value: none of the params has it`,
		`prompt: demo:test: section "task": override of examples: example 2: Steps[0]: no section has a tool "lose"`,
		`prompt: demo:test: section "task": override of text 2:2: unknown placeholder $other (known: path, lines)`,
		`prompt: demo:test: section "task": override of summary 1:1: ${ is not closed in its line: ${`,
		`prompt: demo:test: section "task": override of tool find: it does not fit the tool: tool: "find": Description is empty; the model chooses tools by it`,
		`prompt: demo:test: section "task": override of tool save: it does not fit the tool: it has no parameter "filter.nothing" (known: filter, filter.path, filters, filters.path, text)`,
	)
}

func TestOverrides_JSONRoundTrip(t *testing.T) {
	o := Overrides{
		Sections: map[string]SectionOverride{"a.b": {
			Hash: "h", Text: new("<t>"), SummaryHash: "s", Summary: new(""), Visibility: new(Summary),
			Examples: []ExampleOverride[TaskExample]{{Index: 0, Hash: "e"}}, AppendExamples: []TaskExample{{Objective: "o"}},
		}},
		Tools: map[string]ToolOverride{"t": {Hash: "h", Description: new("d"), Params: map[string]string{"p": "x"}}},
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var got Overrides
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A section that is shown as its summary is not changed by an override of its text, nor the other way round.
func TestOverrides_OnlyShownPartsCountAsOverridden(t *testing.T) {
	p := mustBind(t, overridable(), fileArgs{})
	hashes, _ := atHand(p.Descriptor())
	task := hashes["task"]
	for name, c := range map[string]struct {
		override SectionOverride
		want     map[Visibility]bool
	}{
		"text":    {SectionOverride{Hash: task.Hash, Text: new("New.")}, map[Visibility]bool{Full: true, Summary: false}},
		"summary": {SectionOverride{SummaryHash: task.SummaryHash, Summary: new("New.")}, map[Visibility]bool{Full: false, Summary: true}},
	} {
		for v, want := range c.want {
			r := mustRender(t, p, &RenderOptions{
				Visibility: map[string]Visibility{"task": v}, Overrides: &Overrides{Sections: map[string]SectionOverride{"task": c.override}},
			})
			if got := r.Descriptor.Sections[0].Overridden; got != want {
				t.Errorf("an override of the %s, shown %v: overridden is %t, want %t", name, v, got, want)
			}
		}
	}
}

// An override of a tool that is hidden at first is there when its section is opened.
func TestOverrides_ApplyToAToolThatIsOpenedLater(t *testing.T) {
	p := mustBind(t, library())
	_, tools := atHand(p.Descriptor())
	l, err := p.Live(t.Context(), &LiveOptions{RenderOptions: RenderOptions{Overrides: &Overrides{Tools: map[string]ToolOverride{
		"deploy": {Hash: tools["deploy"].Hash, Description: new("Deploys better.")},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	if stale := l.Rendered().Stale; stale != nil {
		t.Errorf("stale: %+v", stale)
	}
	if _, err := l.Open(t.Context(), "manual.deploy"); err != nil {
		t.Fatal(err)
	}
	if deploy, ok := l.Registry().Lookup("deploy"); !ok || deploy.Description != "Deploys better." {
		t.Errorf("the registry has %+v", deploy)
	}
}

func TestTemplate_OverridableChangesNothing(t *testing.T) {
	p := mustBind(t, overridable(), fileArgs{Path: "a.go"})
	all := p.Overridable()
	if stale, err := p.CheckOverrides(all); len(stale) > 0 || err != nil {
		t.Errorf("stale: %v, error: %v", stale, err)
	}
	if _, closed := all.Sections["fixed"]; closed || len(all.Sections) != 2 || len(all.Tools) != 2 {
		t.Errorf("got %+v, want all but what takes no overrides", all)
	}
	with, without := mustRender(t, p, &RenderOptions{Overrides: all}), mustRender(t, p, nil)
	if diff := cmp.Diff(without.Text, with.Text); diff != "" {
		t.Errorf("the text (-without +with):\n%s", diff)
	}
}

func TestTemplate_CheckOverridesReportsStaleAndWrong(t *testing.T) {
	p := mustBind(t, overridable(), fileArgs{Path: "a.go"})
	hashes, _ := atHand(p.Descriptor())
	stale, err := p.CheckOverrides(&Overrides{Sections: map[string]SectionOverride{
		"task":  {Hash: "of before", Text: new("New.")},
		"fixed": {Text: new("New.")},
		"lost":  {Visibility: new(Summary)},
		"bare":  {Hash: hashes["bare"].Hash, Visibility: new(Summary), SummaryHash: "of before", Summary: new("Short.")},
	}})
	var got []string
	for _, s := range stale {
		got = append(got, s.Section+" "+s.Target+": "+s.Reason)
	}
	if diff := cmp.Diff([]string{"bare summary: " + reasonChanged, "fixed : " + reasonRefused, "lost : " + reasonGone, "task text: " + reasonChanged}, got); diff != "" {
		t.Errorf("stale (-want +got):\n%s", diff)
	}
	if !errors.Is(err, ErrOverride) || !strings.Contains(advice.Text(err), "only a summary is to be shown") {
		t.Errorf("got %v, want that section bare has no summary", err)
	}
}
