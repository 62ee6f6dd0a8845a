// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/tool"
)

func TestDefinition_AllProblemsAreReported(t *testing.T) {
	own := &Section{Key: "own", Title: "Own"}
	own.Children = []*Section{own}
	for _, c := range []struct {
		name string
		d    Definition
		want []string
	}{
		{"invalid names", Definition{Namespace: "a b", Key: "-x", Sections: []*Section{Markdown("k", "T", "")}}, []string{
			`prompt: a b:-x: Namespace: "a b" is not 1 to 64 letters, digits, dots, _ or -, a letter or digit first`,
			`prompt: a b:-x: Key: "-x" is not 1 to 64 letters, digits, dots, _ or -, a letter or digit first`,
		}},
		{"no sections", Definition{}, []string{`prompt: demo:test: it has no sections`}},
		{"a nil section", Definition{Sections: []*Section{nil, {Key: "a", Title: "A", Children: []*Section{nil}}}}, []string{
			`prompt: demo:test: child 0 is nil`,
			`prompt: demo:test: section "a": child 0 is nil`,
		}},
		{"a section in itself", Definition{Sections: []*Section{own}}, []string{
			`prompt: demo:test: section "own": section "own" is among its own children`,
		}},
		{"keys", Definition{Sections: []*Section{Markdown("a.b", "A", ""), Markdown("", "B", ""), Markdown("c", "C", ""), Markdown("C", "D", "")}}, []string{
			`prompt: demo:test: section "a.b": the key "a.b" is not 1 to 64 letters, digits, _ or -, a letter or digit first`,
			`prompt: demo:test: the key "" is not 1 to 64 letters, digits, _ or -, a letter or digit first`,
			`prompt: demo:test: section "c": two sections side by side have the key "c"`,
		}},
		{"titles", Definition{Sections: []*Section{Markdown("a", " ", ""), Markdown("b", "two\nlines", "")}}, []string{
			`prompt: demo:test: section "a": the title " " is not one line of text`,
			`prompt: demo:test: section "b": the title "two\nlines" is not one line of text`,
		}},
		{"placeholders in text and summary, with their places", Definition{Sections: []*Section{{
			Key: "a", Title: "A", Params: ParamsOf[fileArgs](), Text: "\n\t\tRead $path.\n\t\tThen $other and ${bad name}.", Summary: "About $paht.",
		}}}, []string{
			`prompt: demo:test: section "a": text 3:8: unknown placeholder $other (known: path, lines)`,
			`prompt: demo:test: section "a": text 3:19: ${bad name} is not a name: letters, digits and _, not a digit first`,
			`prompt: demo:test: section "a": summary 1:7: unknown placeholder $paht (known: path, lines)`,
		}},
		{"a placeholder that two structs have", Definition{
			Params: ParamsOf[fileArgs](),
			Sections: []*Section{{Key: "a", Title: "A", Params: ParamsOf[struct {
				Lines int `json:"lines"`
			}](), Text: "$path $lines"}},
		}, []string{
			"prompt: demo:test: section \"a\": text 1:7: placeholder $lines is ambiguous: struct { Lines int \"json:\\\"lines\\\"\" } and prompt.fileArgs have it",
		}},
		{"a field that has no text", Definition{Params: ParamsOf[struct{ List []string }](), Sections: []*Section{Markdown("a", "A", "$List")}}, []string{
			`prompt: demo:test: section "a": text 1:1: placeholder $List: field struct { List []string }.List: []string is not a string, number, bool, time or fmt.Stringer`,
		}},
		{"params that are no structs, or twice", Definition{
			Params:   ParamsOf[int](),
			Sections: []*Section{{Key: "a", Title: "A", Params: ParamsOf[fileArgs]().And(Defaults(&fileArgs{}))}},
		}, []string{
			`prompt: demo:test: Params: params must be structs, int is not a struct`,
			`prompt: demo:test: section "a": Params: params prompt.fileArgs are declared twice`,
		}},
		{"invalid defaults", Definition{Params: Defaults((*fileArgs)(nil)).And(Defaults("x")), Sections: []*Section{Markdown("a", "A", "")}}, []string{
			`prompt: demo:test: Params: a nil *prompt.fileArgs has no values`,
			`prompt: demo:test: Params: params must be structs, string is not a struct`,
		}},
		{"a summary that is not there", Definition{Sections: []*Section{{Key: "a", Title: "A", Summary: " \n", Visibility: Summary}, {Key: "b", Title: "B", Visibility: 7}}}, []string{
			`prompt: demo:test: section "a": Visibility is Summary, but the section has no Summary`,
			`prompt: demo:test: section "b": Visibility(7) is neither Full nor Summary`,
		}},
		{"tools", Definition{Sections: []*Section{
			{Key: "a", Title: "A", Tools: []*tool.Tool{named("find"), nil, {Name: "no description"}}},
			{Key: "b", Title: "B", Children: []*Section{Markdown("c", "C", "").With(named("find"), named("open_sections"))}},
		}}, []string{
			`prompt: demo:test: section "a": tool 1 is nil`,
			`prompt: demo:test: section "a": a tool is not usable: tool: "no description": field Name must be 1 to 64 letters, digits, _ or -`,
			`Description is empty; the model chooses tools by it`,
			`prompt: demo:test: section "b.c": section "a" already has a tool "find"`,
			`prompt: demo:test: section "b.c": the tool name "open_sections" is reserved for hidden sections`,
		}},
		{"skills", Definition{Sections: []*Section{
			{Key: "a", Title: "A", Skills: []*Skill{skill("deploy"), nil, {}}},
			{Key: "b", Title: "B", Skills: []*Skill{skill("deploy")}},
		}}, []string{
			`prompt: demo:test: section "a": skill 1 was not loaded`,
			`prompt: demo:test: section "a": skill 2 was not loaded`,
			`prompt: demo:test: section "b": section "a" already has a skill "deploy"`,
		}},
		{"examples", Definition{Sections: []*Section{{Key: "a", Title: "A", Tools: []*tool.Tool{named("find")}, Examples: []TaskExample{
			{Steps: []ExampleStep{{Tool: "lose"}, {}}},
			{Objective: "o", Steps: []ExampleStep{{Tool: "find", Input: json.RawMessage(`{"query":1}`)}, {Tool: "find", Input: json.RawMessage(`{"query":"x"}`), Output: json.RawMessage(`{`)}}},
		}}}}, []string{
			`prompt: demo:test: section "a": Examples[0]: Objective is empty`,
			`prompt: demo:test: section "a": Examples[0]: Steps[0]: no section has a tool "lose"`,
			`prompt: demo:test: section "a": Examples[0]: Steps[1]: a step is a Tool with its Input, or a Text`,
			`prompt: demo:test: section "a": Examples[1]: Steps[0]: Input of find: value does not match its schema: /query: must be a string, got an integer`,
			`prompt: demo:test: section "a": Examples[1]: Steps[1]: Output is not JSON`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.d.Namespace == "" {
				c.d.Namespace, c.d.Key = "demo", "test"
			}
			_, err := Define[Text](c.d)
			wantErrors(t, err, ErrDefinition, c.want...)
		})
	}
}

func TestDefinition_OutputTypeWithoutASchemaIsRejected(t *testing.T) {
	_, err := New[struct{ C chan int }]("demo", "test", Markdown("a", "A", ""))
	if err == nil || !strings.Contains(advice.Text(err), "prompt: demo:test: output: the output type has no schema") {
		t.Errorf("got %v, want an error about the output type", err)
	}
}

func TestMust_PanicsOnAnInvalidDefinition(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Must returned, want a panic")
		}
	}()
	Must[Text]("demo", "test")
}

func TestDefinition_NameIsLowerCaseAndDefaultsToNamespaceAndKey(t *testing.T) {
	plain := Must[Text]("Demo", "Test.1", Markdown("Task", "Task", "x"))
	got := []string{plain.t.namespace, plain.Key(), plain.Name()}
	if diff := cmp.Diff([]string{"demo", "test.1", "demo:test.1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p, err := mustDefine[Text](t, Definition{Namespace: "a", Key: "b", Name: "My prompt", Sections: []*Section{Markdown("Task", "Task", "x")}}).Bind()
	if err != nil {
		t.Fatal(err)
	}
	r := mustRender(t, p, nil)
	got = []string{p.Name(), p.Namespace(), p.Key(), r.Name, r.Namespace, r.Key, r.Sections[0].Path, p.Template().Name()}
	if diff := cmp.Diff([]string{"My prompt", "a", "b", "My prompt", "a", "b", "task", "My prompt"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A template keeps nothing of its sections that the caller can still change.
func TestTemplate_LaterChangesOfSectionsHaveNoEffect(t *testing.T) {
	child := Markdown("child", "Child", "inner")
	s := &Section{
		Key: "a", Title: "A", Text: "text", Children: []*Section{child}, Policies: nil,
		Tools:    []*tool.Tool{named("find")},
		Skills:   []*Skill{skill("one")},
		Examples: []TaskExample{{Objective: "o", Steps: []ExampleStep{{Tool: "find", Input: json.RawMessage(`{"query":"x"}`)}}}},
	}
	p := mustBind(t, []*Section{s})
	before := mustRender(t, p, nil)
	s.Text, s.Title, child.Text = "other", "Other", "other"
	s.Tools[0], s.Skills[0] = named("lose"), skill("two")
	s.Examples[0].Objective = "other"
	s.Examples[0].Steps[0].Input[10] = 'y'
	s.Children[0] = Markdown("new", "New", "")
	before.Tools[0] = named("third") // nor what was rendered before
	p, err := p.Bind()
	if err != nil {
		t.Fatal(err)
	}
	after := mustRender(t, p, nil)
	if diff := cmp.Diff(before.Text, after.Text); diff != "" {
		t.Errorf("the text changed (-before +after):\n%s", diff)
	}
	if after.Tools[0].Name != "find" || after.Skills[0].Name() != "one" {
		t.Errorf("got tool %s and skill %s, want find and one", after.Tools[0].Name, after.Skills[0].Name())
	}
}

func TestTemplate_TwoTemplatesCanShareASection(t *testing.T) {
	shared := Markdown("rules", "Rules", "Be brief.").With(named("find"))
	for _, key := range []string{"one", "two"} {
		r := mustRender(t, mustBind(t, []*Section{Markdown("first", key, ""), shared}), nil)
		if !strings.Contains(r.Text, "## 2. Rules (rules)\n\nBe brief.") || len(r.Tools) != 1 {
			t.Errorf("%s: got %q with %d tools", key, r.Text, len(r.Tools))
		}
	}
}
