// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// library is a prompt with a task, a hidden manual with tools in which more is hidden, and hidden notes.
func library() []*Section {
	deploy := &Section{
		Key: "deploy", Title: "Deploying", Text: "Push the button.", Summary: "How to deploy.", Visibility: Summary,
		Tools: []*tool.Tool{named("deploy")}, Policies: []gate.Policy{gate.DenyTools("deploy")},
	}
	history := &Section{Key: "history", Title: "History", Text: "It was long ago.", Summary: "How it began.", Visibility: Summary}
	gone := &Section{Key: "gone", Title: "Gone", Text: "Not here.", Tools: []*tool.Tool{named("gone")}, Enabled: func(View) bool { return false }}
	manual := &Section{
		Key: "manual", Title: "Manual", Text: "The whole manual.", Summary: "What the manual is about.", Visibility: Summary,
		Tools:    []*tool.Tool{named("look")},
		Children: []*Section{Markdown("build", "Building", "Run make.").With(named("build")), gone, deploy, history},
	}
	return []*Section{Markdown("task", "Task", "Do it.").With(named("start")), manual, notes()}
}

func mustLive(t testing.TB, sections []*Section, opts *LiveOptions) *Live {
	t.Helper()
	l, err := mustBind(t, sections).Live(t.Context(), opts)
	if err != nil {
		t.Fatalf("Live: %v", err)
	}
	return l
}

// call calls a tool as an agent does.
func (l *Live) call(t testing.TB, name string, input any) tool.Result {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	return l.registry.Execute(t.Context(), tool.Call{Name: name, Input: raw})
}

func (l *Live) callOpen(t testing.TB, keys ...string) tool.Result {
	t.Helper()
	return l.call(t, OpenSections, openParams{keys, "I want to know."})
}

func (l *Live) callRead(t testing.TB, key string) tool.Result {
	t.Helper()
	return l.call(t, ReadSection, readParams{key})
}

func (l *Live) toolNames() []string { return toolNames(l.registry.Tools()) }

func TestLive_ToolsAreOfferedOnlyIfSectionsAreHidden(t *testing.T) {
	open := equipped("a")
	hidden := equipped("a")
	hidden.Visibility, hidden.Skills = Summary, nil
	mounts := func(context.Context, Opened) error { return nil }
	for name, c := range map[string]struct {
		sections []*Section
		want     []string
	}{
		"nothing":            {[]*Section{open}, []string{"a"}},
		"text":               {[]*Section{notes()}, []string{ReadSection}},
		"a tool":             {[]*Section{hidden}, []string{OpenSections}},
		"a tool and text":    {library(), []string{"start", OpenSections, ReadSection}},
		"text in what hides": {library()[:2], []string{"start", OpenSections}},
	} {
		t.Run(name, func(t *testing.T) {
			l := mustLive(t, c.sections, &LiveOptions{OnOpen: mounts})
			if diff := cmp.Diff(c.want, l.toolNames()); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			for _, tool := range l.Registry().Tools() {
				if !tool.AlwaysLoad {
					t.Errorf("%s is to be searched for, although the text speaks of it", tool.Name)
				}
			}
		})
	}
}

// Opening step by step: each step shows what the model can do afterwards.
func TestLive_OpensSectionsStepByStep(t *testing.T) {
	l := mustLive(t, library()[:2], nil)
	for _, step := range []struct {
		open   []string
		opened []string
		added  []string
		hidden []string
	}{
		{[]string{"manual"}, []string{"manual"}, []string{"look", "build", ReadSection}, []string{"manual.deploy", "manual.history"}},
		{[]string{"manual", "manual.build", " Manual.Deploy "}, []string{"manual.deploy"}, []string{"deploy"}, []string{"manual.history"}},
		{[]string{"manual.history"}, []string{"manual.history"}, nil, nil},
	} {
		before := l.toolNames()
		o, err := l.Open(t.Context(), step.open...)
		if err != nil {
			t.Fatalf("%v: %v", step.open, err)
		}
		if diff := cmp.Diff(step.opened, o.Paths); diff != "" {
			t.Errorf("%v: opened (-want +got):\n%s", step.open, diff)
		}
		if diff := cmp.Diff(slices.Concat(before, step.added), l.toolNames()); diff != "" {
			t.Errorf("%v: tools (-want +got):\n%s", step.open, diff)
		}
		if diff := cmp.Diff(step.hidden, hiddenPaths(l.hidden)); diff != "" {
			t.Errorf("%v: still hidden (-want +got):\n%s", step.open, diff)
		}
	}
}

func hiddenPaths(hidden []HiddenSection) []string {
	var paths []string
	for _, h := range hidden {
		paths = append(paths, h.Path)
	}
	return paths
}

// A section below a hidden one can only be seen if that one is open too.
func TestLive_OpeningASectionOpensItsParents(t *testing.T) {
	ses := session.New(nil)
	l := mustLive(t, library(), &LiveOptions{RenderOptions: RenderOptions{Session: ses}})
	o, err := l.Open(t.Context(), "manual.deploy")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"manual", "manual.deploy"}, o.Paths); diff != "" {
		t.Errorf("opened (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"look", "build", "deploy"}, toolNames(o.Tools)); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
	again := mustLive(t, library(), &LiveOptions{RenderOptions: RenderOptions{Session: ses}})
	if !strings.Contains(again.Rendered().Text, o.Text) {
		t.Errorf("a later rendering does not have what was opened:\n%s", again.Rendered().Text)
	}
	if diff := cmp.Diff([]string{"manual.history", "notes"}, hiddenPaths(again.hidden)); diff != "" {
		t.Errorf("hidden in a later run (-want +got):\n%s", diff)
	}
}

func TestLive_RejectsKeysItCannotOpen(t *testing.T) {
	const keys = "all again with keys of hidden sections: manual.deploy, manual.history, notes."
	l := mustLive(t, library(), nil)
	if _, err := l.Open(t.Context(), "manual"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		keys []string
		want string
	}{
		"unknown":                {[]string{"nowhere"}, `Unknown section key: "nowhere". C` + keys},
		"unknown beside a known": {[]string{"notes", "nowhere", "x"}, `Unknown section key: "nowhere", "x". C` + keys},
		"disabled":               {[]string{"manual.gone"}, `Unknown section key: "manual.gone". C` + keys},
		"open already":           {[]string{"manual", "task"}, "Already open: manual, task. Use the text that you have, or c" + keys},
		"none":                   {nil, "No section key is given. C" + keys},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := l.Open(t.Context(), c.keys...)
			wantErrors(t, err, ErrOpen, "prompt: demo:test: "+c.want)
			if c.keys == nil {
				return
			}
			if r := l.callOpen(t, c.keys...); r.OK() || r.Err.Message != c.want {
				t.Errorf("the model reads %q, want the error %q", r.Render(), c.want)
			}
		})
	}
	if want := []string{"start", OpenSections, ReadSection, "look", "build"}; !slices.Equal(l.toolNames(), want) {
		t.Errorf("the tools are %v, want %v: a refused call opens nothing", l.toolNames(), want)
	}
	for name, c := range map[string]struct{ key, want string }{
		"unknown":   {"nowhere", `Unknown section key: "nowhere". C` + keys},
		"full":      {"manual", "Already open: manual. Use the text that you have, or c" + keys},
		"disabled":  {"manual.gone", `Unknown section key: "manual.gone". C` + keys},
		"empty key": {"", `Unknown section key: "". C` + keys},
	} {
		t.Run("read/"+name, func(t *testing.T) {
			if r := l.callRead(t, c.key); r.OK() || r.Err.Message != c.want {
				t.Errorf("the model reads %q, want the error %q", r.Render(), c.want)
			}
		})
	}
}

func TestLive_ResultReportsThatNoSectionIsHidden(t *testing.T) {
	l := mustLive(t, library(), nil)
	if _, err := l.Open(t.Context(), "manual", "manual.deploy", "manual.history", "notes"); err != nil {
		t.Fatal(err)
	}
	const want = "No section is hidden: all sections are open. Continue with the text that you have."
	for _, r := range []tool.Result{l.callOpen(t, "manual"), l.callRead(t, "notes")} {
		if r.OK() || r.Err.Message != want {
			t.Errorf("the model reads %q, want the error %q", r.Render(), want)
		}
	}
}

func TestLive_ReadingChangesNoState(t *testing.T) {
	ses := session.New(nil)
	l := mustLive(t, library(), &LiveOptions{RenderOptions: RenderOptions{Session: ses}})
	before, last := l.toolNames(), ses.Last()
	for range 2 {
		if r := l.callRead(t, "notes"); !r.OK() || !strings.Contains(r.Render(), "All notes.") {
			t.Errorf("reading gave %q", r.Render())
		}
	}
	if after := l.toolNames(); !slices.Equal(before, after) || ses.Last() != last || !slices.Equal(hiddenPaths(l.hidden), []string{"manual", "notes"}) {
		t.Errorf("tools %v, hidden %v, %d events; want nothing changed", after, hiddenPaths(l.hidden), ses.Last()-last)
	}
}

// Many calls at once open what they ask for, and each tool is added once.
func TestLive_ConcurrentCallsAddEachToolOnce(t *testing.T) {
	ses := session.New(nil)
	l := mustLive(t, library(), &LiveOptions{RenderOptions: RenderOptions{Session: ses}})
	asked := [][]string{{"manual"}, {"manual.deploy"}, {"notes"}, {"manual.history", "notes"}}
	var wg sync.WaitGroup
	for range 4 {
		for _, keys := range asked {
			wg.Go(func() {
				if _, err := l.Open(t.Context(), keys...); err != nil && !errors.Is(err, ErrOpen) {
					t.Errorf("%v: %v", keys, err)
				}
				l.callRead(t, "notes")
			})
		}
	}
	wg.Wait()
	got := l.toolNames()
	slices.Sort(got)
	if want := []string{"build", "deploy", "look", OpenSections, ReadSection, "start"}; !slices.Equal(got, want) {
		t.Errorf("the tools are %v, want %v", got, want)
	}
	var set []string
	for e := range ses.Events() {
		if v, ok := e.Payload.(session.SetVisibility); ok {
			set = append(set, v.Section)
		}
	}
	slices.Sort(set)
	if want := []string{"manual", "manual.deploy", "manual.history", "notes"}; !slices.Equal(set, want) {
		t.Errorf("opened by the session: %v, want %v", set, want)
	}
}

// The policies of a section hold for every caller from the moment when its tools appear, and not before.
func TestLive_PoliciesApplyFromTheOpeningOn(t *testing.T) {
	l := mustLive(t, library(), nil)
	g := gate.Must(append(l.Policies(), gate.Default(event.Allow), gate.Knows("drover", l.Registry()))...)
	decide := func() event.Verdict {
		return g.Decide(event.ToolCall{Name: "mcp__drover__deploy"}, gate.Facts{}).Verdict
	}
	if got := decide(); got != event.Allow {
		t.Fatalf("before it is open the policy returns %v", got)
	}
	seen := 0
	defer l.Registry().Watch(func() {
		seen++
		if got := decide(); got != event.Deny {
			t.Errorf("when the tools came the policy returned %v, want a denial", got)
		}
	})()
	if _, err := l.Open(t.Context(), "manual.deploy"); err != nil || seen != 1 {
		t.Fatalf("the tools came %d times, %v", seen, err)
	}
	if got := decide(); got != event.Deny {
		t.Errorf("after it is open the policy returns %v, want a denial", got)
	}
}

func TestLive_OpeningIsAtomic(t *testing.T) {
	broken := errors.New("the disk is full")
	for name, c := range map[string]struct {
		opts func(l *LiveOptions)
		want string
	}{
		"the caller fails": {func(o *LiveOptions) {
			o.OnOpen = func(context.Context, Opened) error { return broken }
		}, "the disk is full"},
		"the registry fails": {func(o *LiveOptions) {
			o.Registry = tool.MustRegistry(nil, named("deploy", tool.WithID("other", "")))
		}, "the registry has a tool of this name already"},
		"the session fails": {func(o *LiveOptions) {
			o.Session = session.New(nil)
			o.OnOpen = func(context.Context, Opened) error { return o.Session.Close() }
		}, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			var opts LiveOptions
			c.opts(&opts)
			l := mustLive(t, library(), &opts)
			g := gate.Must(append(l.Policies(), gate.Default(event.Allow))...)
			before := l.toolNames()
			r := l.callOpen(t, "manual.deploy")
			for _, want := range []string{"Push the button.", "not available", c.want} {
				if r.OK() || !strings.Contains(r.Err.Message, want) {
					t.Errorf("the model reads %q, want an error with %q", r.Render(), want)
				}
			}
			if after := l.toolNames(); !slices.Equal(before, after) || !slices.Equal(hiddenPaths(l.hidden), []string{"manual", "notes"}) {
				t.Errorf("tools %v, hidden %v; want nothing opened", after, hiddenPaths(l.hidden))
			}
			if got := g.Decide(event.ToolCall{Name: "deploy"}, gate.Facts{}).Verdict; got != event.Allow {
				t.Errorf("the policy of the section that was not opened returns %v", got)
			}
			if s := opts.Session; s != nil {
				if overrides, ok := session.Query[session.VisibilityOverrides](s).Latest(); ok && len(overrides.Sections) > 0 {
					t.Errorf("the session has %v", overrides)
				}
			}
		})
	}
}

func TestLive_FailedOpeningCanBeRetried(t *testing.T) {
	calls := 0
	l := mustLive(t, library(), &LiveOptions{OnOpen: func(context.Context, Opened) error {
		if calls++; calls == 1 {
			panic("oh")
		}
		return nil
	}})
	if r := l.callOpen(t, "manual"); r.OK() {
		t.Fatalf("a panic gave %q", r.Render())
	}
	if r := l.callOpen(t, "manual"); !r.OK() {
		t.Errorf("the second call gave %q", r.Render())
	}
}

// The model has read the text and has the tools, whatever becomes of the call.
func TestLive_SectionsStayOpenAfterARollback(t *testing.T) {
	ses := session.New(nil)
	l := mustLive(t, library(), &LiveOptions{RenderOptions: RenderOptions{Session: ses}})
	ctx, tx := ses.Begin(t.Context(), "call-1")
	raw := json.RawMessage(`{"section_keys":["manual"],"reason":"r"}`)
	if r := l.registry.Execute(ctx, tool.Call{ID: "call-1", Name: OpenSections, Input: raw}); !r.OK() {
		t.Fatal(r.Render())
	}
	if err := tx.Rollback("test"); err != nil {
		t.Fatal(err)
	}
	overrides, _ := session.Query[session.VisibilityOverrides](ses).Latest()
	if diff := cmp.Diff(map[string]string{"manual": "full"}, overrides.Sections); diff != "" {
		t.Errorf("opened by the session (-want +got):\n%s", diff)
	}
}

func TestLive_HiddenSkillsNeedOnOpen(t *testing.T) {
	hidden := equipped("a", equipped("b"))
	hidden.Visibility, hidden.Skills = Summary, nil
	p := mustBind(t, []*Section{hidden})
	_, err := p.Live(t.Context(), nil)
	wantErrors(t, err, ErrRender, `prompt: demo:test: section "a.b": it is hidden and has skills, but OnOpen is not set to mount them`)
	var got Opened
	l, err := p.Live(t.Context(), &LiveOptions{OnOpen: func(_ context.Context, o Opened) error { got = o; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	r := l.callOpen(t, "a")
	if want := "You can use these skills now: b."; !strings.HasSuffix(r.Render(), want) {
		t.Errorf("the model reads %q, want it to end with %q", r.Render(), want)
	}
	if diff := cmp.Diff([]string{"b"}, skillNames(got.Skills)); diff != "" {
		t.Errorf("skills to mount (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, policyNames(got.Policies)); diff != "" {
		t.Errorf("policies (-want +got):\n%s", diff)
	}
}

// An explicit visibility is for the rendering at hand; a section that was summarised by it can be opened.
func TestLive_SectionSummarisedByAnOptionCanBeOpened(t *testing.T) {
	l := mustLive(t, []*Section{Markdown("a", "A", "Whole."), {Key: "b", Title: "B", Text: "All of b.", Summary: "Some.", Tools: []*tool.Tool{named("b")}}},
		&LiveOptions{RenderOptions: RenderOptions{Visibility: map[string]Visibility{"b": Summary}}})
	if r := l.callOpen(t, "b"); !strings.Contains(r.Render(), "All of b.") {
		t.Errorf("the model reads %q", r.Render())
	}
}

func TestLive_RegistryWithAToolOfThePromptIsRejected(t *testing.T) {
	r := tool.MustRegistry(nil, named("start"))
	_, err := mustBind(t, library()).Live(t.Context(), &LiveOptions{Registry: r})
	wantErrors(t, err, ErrRender, "prompt: demo:test: tool start: the registry has a tool of this name already")
}

// The text of the second would send the model to the tool of the first.
func TestLive_TwoPromptsCannotShareARegistry(t *testing.T) {
	r := tool.MustRegistry(nil)
	mustLive(t, library(), &LiveOptions{Registry: r})
	_, err := mustBind(t, []*Section{notes()}).Live(t.Context(), &LiveOptions{Registry: r})
	wantErrors(t, err, ErrRender, "prompt: demo:test: tool read_section: the registry has a tool of this name already")
}

func TestLive_FailedRecordLeavesTheRegistryUnchanged(t *testing.T) {
	r, ses := tool.MustRegistry(nil), session.New(nil)
	if err := ses.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := mustBind(t, library()).Live(t.Context(), &LiveOptions{Registry: r, RenderOptions: RenderOptions{Session: ses}})
	if l != nil || err == nil || len(r.Tools()) != 0 {
		t.Errorf("Live gave %v, %v and left %v in the registry", l, err, toolNames(r.Tools()))
	}
}

// What the model makes up is not repeated to it at any length.
func TestLive_RefusalOfManyKeysIsShort(t *testing.T) {
	l := mustLive(t, library(), nil)
	var keys []string
	for i := range 1000 {
		keys = append(keys, strings.Repeat("x", i))
	}
	if r := l.callOpen(t, keys...); r.OK() || len(r.Render()) > 2000 || !strings.Contains(r.Render(), `"xxx", `) || !strings.Contains(r.Render(), "and 990 more") {
		t.Errorf("the model reads %d bytes: %.500q", len(r.Render()), r.Render())
	}
}

// A predicate may enable a section during the run. What the model reads must not name a tool that is not
// there.
func TestLive_OpenToolIsOfferedForADisabledSection(t *testing.T) {
	on := false
	later := &Section{Key: "later", Title: "Later", Text: "More.", Tools: []*tool.Tool{named("later")}, Enabled: func(View) bool { return on }}
	hidden := notes()
	hidden.Children = []*Section{later}
	l := mustLive(t, []*Section{hidden}, nil)
	on = true
	if r := l.callRead(t, "notes"); !strings.Contains(r.Render(), OpenSections) {
		t.Fatalf("reading gave %q, which names no tool", r.Render())
	}
	if r := l.callOpen(t, "notes"); !r.OK() || !strings.HasSuffix(r.Render(), "You can call these tools now: later.") {
		t.Errorf("opening gave %q", r.Render())
	}
}
