// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gate"
	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// equipped is a section with one tool, skill and policy, all called like it.
func equipped(key string, children ...*Section) *Section {
	return &Section{
		Key: key, Title: strings.ToUpper(key), Text: "Text of " + key + ".", Summary: "Summary of " + key + ".", Children: children,
		Tools: []*tool.Tool{named(key)}, Skills: []*Skill{skill(key)}, Policies: []gate.Policy{policy(key)},
	}
}

func skillNames(skills []*Skill) []string {
	var names []string
	for _, s := range skills {
		names = append(names, s.Name())
	}
	return names
}

func TestRender_ToolsSkillsAndPoliciesHaveTheOrderOfSections(t *testing.T) {
	tmpl := mustDefine[Text](t, Definition{
		Policies: []gate.Policy{policy("whole")},
		Sections: []*Section{equipped("a", equipped("b")), equipped("c")},
	})
	p, err := tmpl.Bind()
	if err != nil {
		t.Fatal(err)
	}
	r := mustRender(t, p, nil)
	want := []string{"a", "b", "c"}
	for what, got := range map[string][]string{"tools": toolNames(r.Tools), "skills": skillNames(r.Skills)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "whole"}, policyNames(r.Policies)); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]RenderedSection{{"a", "1", "A", Full}, {"a.b", "1.1", "B", Full}, {"c", "2", "C", Full}}, r.Sections); diff != "" {
		t.Errorf("sections (-want +got):\n%s", diff)
	}
	if r.Hidden != nil || r.Stale != nil {
		t.Errorf("got hidden %v and stale %v, want none", r.Hidden, r.Stale)
	}
}

func TestRender_DisabledSectionOmitsItsSubtree(t *testing.T) {
	off := equipped("b", equipped("below"))
	off.Params, off.Enabled = ParamsOf[modeArgs](), When(func(m modeArgs) bool { return m.Strict })
	sections := []*Section{equipped("a"), off, equipped("c")}
	for _, c := range []struct {
		strict bool
		want   []string
	}{
		{false, []string{"a", "c"}},
		{true, []string{"a", "b", "below", "c"}},
	} {
		r := mustRender(t, mustBind(t, sections, modeArgs{c.strict}), nil)
		for what, got := range map[string][]string{"tools": toolNames(r.Tools), "skills": skillNames(r.Skills), "policies": policyNames(r.Policies)} {
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("strict %v: %s (-want +got):\n%s", c.strict, what, diff)
			}
		}
		if got := strings.Contains(r.Text, "below"); got != c.strict {
			t.Errorf("strict %v: the text has the subtree: %v", c.strict, got)
		}
	}
}

func TestRender_PredicatesReadParamsAndSession(t *testing.T) {
	s := session.New(nil)
	saw := map[string]bool{}
	sections := []*Section{{
		Key: "a", Title: "A", Params: Defaults(fileArgs{Path: "default"}),
		Enabled: func(v View) bool {
			file, ok := Param[fileArgs](v)
			_, other := Param[modeArgs](v)
			saw[file.Path] = ok && !other && v.Session() == s
			return true
		},
	}}
	mustRender(t, mustBind(t, sections), &RenderOptions{Session: s})
	mustRender(t, mustBind(t, sections, fileArgs{Path: "bound"}), &RenderOptions{Session: s})
	if diff := cmp.Diff(map[string]bool{"default": true, "bound": true}, saw); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRender_ErrorsNameTheSection(t *testing.T) {
	for _, c := range []struct {
		name    string
		section *Section
		opts    *RenderOptions
		want    string
	}{
		{"Enabled panics", &Section{Enabled: func(View) bool { panic("oh") }}, nil, `prompt: demo:test: section "a": Enabled panicked: oh`},
		{
			"When has no value", &Section{Enabled: When(func(modeArgs) bool { return true })}, nil,
			`prompt: demo:test: section "a": Enabled panicked: it asks for prompt.modeArgs, which is not bound; declare it with ParamsOf`,
		},
		{"VisibilityWhen panics", &Section{VisibilityWhen: func(View) Visibility { panic("oh") }}, nil, `prompt: demo:test: section "a": VisibilityWhen panicked: oh`},
		{
			"no summary", &Section{VisibilityWhen: func(View) Visibility { return Summary }}, nil,
			`prompt: demo:test: section "a": only a summary is to be shown, but the section has none`,
		},
		{
			"no summary for one call", &Section{}, &RenderOptions{Visibility: map[string]Visibility{"a": Summary}},
			`prompt: demo:test: section "a": only a summary is to be shown, but the section has none`,
		},
		{"no visibility", &Section{}, &RenderOptions{Visibility: map[string]Visibility{"a": 9}}, `prompt: demo:test: section "a": Visibility(9) is neither Full nor Summary`},
		{"no such path", &Section{}, &RenderOptions{Visibility: map[string]Visibility{"b": Full}}, `prompt: demo:test: there is no section "b"`},
		{
			"a predicate below a summary panics",
			&Section{Summary: "s", Visibility: Summary, Children: []*Section{{Key: "b", Title: "B", Enabled: func(View) bool { panic("oh") }}}}, nil,
			`prompt: demo:test: section "a.b": Enabled panicked: oh`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.section.Key, c.section.Title = "a", "A"
			_, err := mustBind(t, []*Section{c.section}).Render(c.opts)
			wantErrors(t, err, ErrRender, c.want)
		})
	}
	_, err := mustBind(t, []*Section{equipped("a", equipped("b"))}).RenderSection("b", nil)
	if want := "\n  next: use one of a, a.b"; err == nil || !strings.HasSuffix(advice.Text(err), want) {
		t.Errorf("got %v, want it to end with %q", err, want)
	}
}

func TestRenderSection_HasFullTextAndSubtree(t *testing.T) {
	inner := equipped("inner")
	inner.Visibility = Summary
	hidden := equipped("b", equipped("x"), inner)
	hidden.Visibility = Summary
	p := mustBind(t, []*Section{equipped("a", hidden), equipped("c")})
	r, err := p.RenderSection("a.b", &RenderOptions{Visibility: map[string]Visibility{"a.b": Summary}})
	if err != nil {
		t.Fatal(err)
	}
	want := "### 1.1. B (a.b)\n\nText of b.\n\n#### 1.1.1. X (a.b.x)\n\nText of x.\n\n#### 1.1.2. INNER (a.b.inner)\n\nSummary of inner.\n\n---\n" +
		"This is a summary. Call `open_sections` with section key \"a.b.inner\" to get the full section with its tools and skills."
	if diff := cmp.Diff(want, r.Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "x"}, policyNames(r.Policies)); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b", "x"}, toolNames(r.Tools)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestRenderSection_RejectsADisabledSection(t *testing.T) {
	off := equipped("a", equipped("b", equipped("c")))
	off.Enabled = func(View) bool { return false }
	_, err := mustBind(t, []*Section{equipped("first"), off}).RenderSection("a.b.c", nil)
	wantErrors(t, err, ErrRender, `prompt: demo:test: section "a": it is disabled`)
}

// drawTree makes a tree of equipped sections whose keys are their numbers in it. The ones in off are
// disabled, the ones in brief only summarised.
func drawTree(t *rapid.T, off, brief map[string]bool) []*Section {
	n := 0
	var draw func(depth int) []*Section
	draw = func(depth int) []*Section {
		var sections []*Section
		for range rapid.IntRange(0, 3-depth).Draw(t, "children") {
			key := fmt.Sprintf("s%d", n)
			n++
			s := equipped(key)
			s.Children = draw(depth + 1)
			s.Enabled = func(View) bool { return !off[key] }
			s.VisibilityWhen = func(View) Visibility {
				if brief[key] {
					return Summary
				}
				return Full
			}
			sections = append(sections, s)
		}
		return sections
	}
	return append(draw(0), equipped("last"))
}

func TestRender_DisablingRemovesExactlyTheSubtree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		off, brief := map[string]bool{}, map[string]bool{}
		tmpl, err := New[Text]("demo", "test", drawTree(t, off, brief)...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := tmpl.Bind()
		if err != nil {
			t.Fatal(err)
		}
		render := func() *Rendered {
			r, err := p.Render(nil)
			if err != nil {
				t.Fatal(err)
			}
			again, err := p.Render(nil)
			if err != nil || again.Text != r.Text || !cmp.Equal(again.Descriptor, r.Descriptor) || !slices.Equal(again.Tools, r.Tools) {
				t.Fatalf("two renderings of one prompt differ: %v", err)
			}
			return r
		}
		all := render().Sections
		for _, s := range all {
			brief[s.Path[strings.LastIndex(s.Path, ".")+1:]] = rapid.Bool().Draw(t, "brief") && s.Path != "last"
		}
		whole := render()
		gone := rapid.SampledFrom(all).Draw(t, "gone").Path
		off[gone[strings.LastIndex(gone, ".")+1:]] = true
		if gone == "last" {
			return // it has no predicate
		}
		less := render()
		below := func(path string) bool { return path == gone || strings.HasPrefix(path, gone+".") }
		want := slices.DeleteFunc(slices.Clone(whole.Sections), func(s RenderedSection) bool { return below(s.Path) })
		if diff := cmp.Diff(want, less.Sections); diff != "" {
			t.Fatalf("without %s, sections (-want +got):\n%s", gone, diff)
		}
		wantTools := slices.DeleteFunc(slices.Clone(whole.Descriptor.Tools), func(d ToolDescriptor) bool { return below(d.Section) })
		if diff := cmp.Diff(wantTools, less.Descriptor.Tools); diff != "" {
			t.Fatalf("without %s, tools (-want +got):\n%s", gone, diff)
		}
		if len(less.Tools) != len(wantTools) || len(less.Skills) != len(wantTools) || len(less.Policies) != len(wantTools) {
			t.Fatalf("got %d tools, %d skills and %d policies, want %d of each", len(less.Tools), len(less.Skills), len(less.Policies), len(wantTools))
		}
	})
}
