// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/session"
)

// numbered is a session whose ids are "id-1", "id-2" and so on.
func numbered() *session.Session {
	n := 0
	return session.New(&session.Options{ID: "s", NewID: func() string { n++; return fmt.Sprint("id-", n) }})
}

type hookArgs struct{ Run func() }

func TestRecord_HasTheToolsOfTheRendering(t *testing.T) {
	ses := numbered()
	sections := []*Section{{Key: "a", Title: "A", Text: "Read $path.", Params: ParamsOf[fileArgs]().And(ParamsOf[hookArgs]())}}
	sections[0].With(named("find"))
	p := mustBind(t, sections, fileArgs{Path: "x"}, hookArgs{func() {}})
	r := mustRender(t, p, nil)
	id, err := p.Record(t.Context(), ses, r, "claude-code")
	if err != nil {
		t.Fatal(err)
	}
	got, _ := session.Query[session.PromptRendered](ses).Latest()
	if got.EventID != id || id != "id-1" || got.Namespace != "demo" || got.Key != "test" || got.Name != "demo:test" || got.Adapter != "claude-code" || got.Text != r.Text || len(got.Descriptor) == 0 {
		t.Errorf("recorded under %q: %+v", id, got)
	}
	if diff := cmp.Diff([]string{"find"}, got.Tools); diff != "" {
		t.Errorf("names of the tools (-want +got):\n%s", diff)
	}
	const here = "github.com/drover-agents/drover/prompt."
	params := map[string]string{}
	for name, raw := range got.Params {
		params[name] = string(raw)
	}
	want := map[string]string{here + "fileArgs": `{"Path":"x"}`, here + "hookArgs": `"[unserializable]"`}
	if diff := cmp.Diff(want, params); diff != "" {
		t.Errorf("params (-want +got):\n%s", diff)
	}
	tools, _ := session.Query[session.RenderedTools](ses).Latest()
	asked, err := json.Marshal(r.Tools[0].Input)
	if err != nil {
		t.Fatal(err)
	}
	schema := []session.ToolSchema{{Name: "find", Description: r.Tools[0].Description, Parameters: asked}}
	if diff := cmp.Diff(session.RenderedTools{RenderEventID: id, Tools: schema}, tools); diff != "" {
		t.Errorf("the tools (-want +got):\n%s", diff)
	}
}

func TestRecord_ParamsOfUnnamedTypesAreSeparate(t *testing.T) {
	ses := session.New(nil)
	p := mustBind(t, []*Section{Markdown("a", "A", "$X $Y")}, struct{ X int }{1}, struct{ Y int }{2})
	if _, err := p.Record(t.Context(), ses, mustRender(t, p, nil), ""); err != nil {
		t.Fatal(err)
	}
	if got, _ := session.Query[session.PromptRendered](ses).Latest(); len(got.Params) != 2 {
		t.Errorf("the record has the params %s, want both", got.Params)
	}
}

// A live prompt records what it begins with, and what each opening adds, under the same id.
func TestRecord_OpenedSectionsHaveTheIDOfTheRendering(t *testing.T) {
	ses := numbered()
	l := mustLive(t, library(), &LiveOptions{RenderOptions: RenderOptions{Session: ses}, Adapter: "claude-code"})
	if r := l.callOpen(t, "manual", "notes"); !r.OK() {
		t.Fatal(r.Render())
	}
	var got []string
	for e := range ses.Events() {
		got = append(got, outlineOf(e))
	}
	want := []string{
		"rendered id-1 [start open_sections read_section]",
		"tools id-1 [start open_sections read_section]",
		"manual full: I want to know.",
		"notes full: I want to know.",
		"tools id-1 [look build]",
	}
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}

func outlineOf(e event.Event) string {
	switch p := e.Payload.(type) {
	case session.PromptRendered:
		return fmt.Sprint("rendered ", p.EventID, " ", p.Tools)
	case session.RenderedTools:
		var names []string
		for _, t := range p.Tools {
			names = append(names, t.Name)
		}
		return fmt.Sprint("tools ", p.RenderEventID, " ", names)
	case session.SetVisibility:
		return p.Section + " " + p.Visibility + ": " + p.Reason
	}
	return string(e.Kind)
}
