// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/tool"
)

func TestDescriptor_HashOfAPartChangesWithThatPartAlone(t *testing.T) {
	base := func() *Section {
		return &Section{
			Key: "a", Title: "A", Text: "\n\t\tOne $$.\n\t\tTwo.", Summary: "Sum.", Tools: []*tool.Tool{named("find", tool.WithExamples(tool.Example{Input: json.RawMessage(`{"query":"x"}`)}))},
			Examples: []TaskExample{{Objective: "o", Steps: []ExampleStep{{Tool: "find", Input: json.RawMessage(`{"query":"x"}`)}}}},
		}
	}
	type parts struct{ Text, Summary, Example, Tool, ToolExample string }
	of := func(s *Section) parts {
		d := mustDefine[Text](t, Definition{Sections: []*Section{s}}).Descriptor()
		return parts{d.Sections[0].Hash, d.Sections[0].SummaryHash, d.Sections[0].Examples[0], d.Tools[0].Hash, d.Tools[0].Examples[0]}
	}
	original := of(base())
	for _, c := range []struct {
		name   string
		change func(s *Section)
		want   []bool // whether text, summary, example, tool and its example changed
	}{
		{"nothing", func(*Section) {}, []bool{false, false, false, false, false}},
		{"the title", func(s *Section) { s.Title = "B" }, []bool{false, false, false, false, false}},
		{"the indentation", func(s *Section) { s.Text = "One $$.\nTwo." }, []bool{false, false, false, false, false}},
		{"the text", func(s *Section) { s.Text = "One $.\nTwo." }, []bool{true, false, false, false, false}},
		{"the summary", func(s *Section) { s.Summary = "Other." }, []bool{false, true, false, false, false}},
		{"an example", func(s *Section) { s.Examples[0].Outcome = "x" }, []bool{false, false, true, false, false}},
		{"spaces in an example", func(s *Section) { s.Examples[0].Steps[0].Input = json.RawMessage(`{ "query": "x" }`) }, []bool{false, false, false, false, false}},
		{"the description of the tool", func(s *Section) { s.Tools[0].Description = "x" }, []bool{false, false, false, true, false}},
		{"the output of the tool", func(s *Section) { s.Tools[0].Output = s.Tools[0].Input }, []bool{false, false, false, true, false}},
		{"the example of the tool", func(s *Section) { s.Tools[0].Examples[0].Description = "x" }, []bool{false, false, false, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := base()
			c.change(s)
			now := of(s)
			got := []bool{now.Text != original.Text, now.Summary != original.Summary, now.Example != original.Example, now.Tool != original.Tool, now.ToolExample != original.ToolExample}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDescriptor_RenderingHasOnlyShownParts(t *testing.T) {
	hidden := equipped("b", equipped("x"))
	hidden.Visibility = Summary
	off := equipped("c")
	off.Enabled = func(View) bool { return false }
	p := mustBind(t, []*Section{equipped("a"), hidden, off})
	whole := p.Descriptor()
	if len(whole.Sections) != 4 || len(whole.Tools) != 4 || len(whole.Skills) != 4 {
		t.Errorf("the template has %d sections, %d tools and %d skills, want 4 of each", len(whole.Sections), len(whole.Tools), len(whole.Skills))
	}
	r := mustRender(t, p, nil)
	want := Descriptor{
		Namespace: "demo", Key: "test", Sections: whole.Sections[:2], Tools: whole.Tools[:1],
		Skills: []SkillDescriptor{{Name: "a", Section: "a", Hash: "hash of a"}},
	}
	if diff := cmp.Diff(want, r.Descriptor); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(mustRender(t, mustBind(t, []*Section{Markdown("a", "A", "Text.")}), nil).Descriptor)
	if want := `{"namespace":"demo","key":"test","sections":[{"path":"a","hash":"f06dce27b84e18ccb3c7e94a0679c279cd42027da23bcf1e1ca1f94e365ea420"}]}`; err != nil || string(raw) != want {
		t.Errorf("got %s (%v), want %s", raw, err, want)
	}
}
