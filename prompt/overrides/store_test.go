// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

func mustFile(t testing.TB, dir string, of Template, tag string) *File {
	t.Helper()
	f, err := (&Store{Dir: dir}).File(of, tag)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func mustResolve(t testing.TB, f *File) (*prompt.Overrides, []prompt.StaleOverride) {
	t.Helper()
	o, stale, err := f.Resolve()
	if err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	return o, stale
}

// must fails the test at the first error of several calls.
func must(t testing.TB, errs ...error) {
	t.Helper()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
}

func TestFile_RenderingShowsOverridesOfSetters(t *testing.T) {
	p, ctx := mustBind(t, overridable(), fileArgs{Path: "a.go"}), t.Context()
	f := mustFile(t, t.TempDir(), p, "")
	must(t,
		f.SetText(ctx, "task", "replaced"),
		f.SetText(ctx, "task", "New text\nabout $path."),
		f.SetExample(ctx, "task", 0, nil),
		f.SetExample(ctx, "task", 1, &prompt.TaskExample{Objective: "new two"}),
		f.AppendExample(ctx, "task", prompt.TaskExample{Objective: "three"}),
		f.AppendExample(ctx, "task", prompt.TaskExample{Objective: "four", Steps: []prompt.ExampleStep{{Tool: "find", Input: json.RawMessage(`{"query":"<x>"}`)}}}),
		f.SetSummary(ctx, "bare", "In short."),
		f.SetVisibility(ctx, "bare", prompt.Summary),
		f.SetDescription(ctx, "find", "Finds better."),
		f.SetParam(ctx, "find", "query", "the words"),
		f.SetParam(ctx, "save", "filter.path", "the folder"),
		f.SetToolExample(ctx, "find", 0, nil),
		f.SetToolExample(ctx, "find", 1, &tool.Example{Input: json.RawMessage(`{"query":"new"}`)}),
		f.AppendToolExample(ctx, "find", tool.Example{Input: json.RawMessage(`{"query":"more"}`)}),
	)
	o, stale := mustResolve(t, f)
	r := mustRender(t, p, &prompt.RenderOptions{Overrides: o})
	want := "## 1. Task (task)\n\nNew text\nabout a.go.\n\nExample: new two\n\nExample: three\n\nExample: four\n\n1. Call `find` with `{\"query\":\"<x>\"}`.\n\n" +
		"## 2. Fixed (fixed)\n\nFixed text.\n\n" +
		"## 3. Bare (bare)\n\nIn short.\n\n---\nThis is a summary. Call `read_section` with section key \"bare\" to read the full section."
	if diff := cmp.Diff(want, r.Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if got, want := r.Tools[0].Manual(), "Finds better.\n\nExamples:\n{\"query\":\"new\"}\n{\"query\":\"more\"}"; got != want {
		t.Errorf("manual of find: got %q, want %q", got, want)
	}
	if got := describedAs(t, r.Tools[0], "query"); got != "the words" {
		t.Errorf("query of find: got %q", got)
	}
	if got := describedAs(t, r.Tools[1], "filter", "path"); got != "the folder" {
		t.Errorf("filter.path of save: got %q", got)
	}
	if len(stale)+len(r.Stale) > 0 {
		t.Errorf("got stale %v and %v", stale, r.Stale)
	}
}

func TestFile_FormatIsReadable(t *testing.T) {
	p, ctx, dir := mustBind(t, []*prompt.Section{{Key: "task", Title: "Task", Text: "Go.", Tools: []*tool.Tool{named("find")}}}), t.Context(), t.TempDir()
	f := mustFile(t, dir, p, "Try.1")
	must(t,
		f.SetParam(ctx, "find", "query", "the <words>"),
		f.SetText(ctx, "task", "One,\ntwo & three."),
		f.SetSummary(ctx, "task", "Both."),
	)
	if want := filepath.Join(dir, "demo", "test", "try.1.json"); f.Path() != want {
		t.Errorf("path: got %q, want %q", f.Path(), want)
	}
	sections, tools := atHand(p.Descriptor())
	want := `{
  "version": 1,
  "overrides": [
    {
      "section": "task",
      "target": "summary",
      "hash": "",
      "value": "Both."
    },
    {
      "section": "task",
      "target": "text",
      "hash": "` + sections["task"].Hash + `",
      "value": [
        "One,",
        "two & three."
      ]
    },
    {
      "tool": "find",
      "target": "params.query",
      "hash": "` + tools["find"].Hash + `",
      "value": "the <words>"
    }
  ]
}
`
	got, err := os.ReadFile(f.Path())
	if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestFile_MissingFileHasNoOverrides(t *testing.T) {
	p, dir := mustBind(t, overridable(), fileArgs{}), filepath.Join(t.TempDir(), "not", "there")
	f := mustFile(t, dir, p, "")
	o, stale := mustResolve(t, f)
	if diff := cmp.Diff(&prompt.Overrides{}, o); diff != "" || stale != nil {
		t.Errorf("got %v, %v", o, stale)
	}
	if tags, err := (&Store{Dir: dir}).Tags(p); tags != nil || err != nil {
		t.Errorf("Tags = %v, %v", tags, err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading made the folder: %v", err)
	}
	must(t, f.Delete(t.Context()))
}

func TestSeed_ChangesNoText(t *testing.T) {
	sections := append(overridable(), &prompt.Section{
		Key: "hidden", Title: "Hidden", Text: "\n\n\t\tA\n\t\t  b $$5\n", Summary: "S.", Visibility: prompt.Summary, Children: []*prompt.Section{prompt.Markdown("empty", "Empty", "")},
	}, &prompt.Section{Key: "when", Title: "When", Text: "W.", Summary: "S.", VisibilityWhen: func(prompt.View) prompt.Visibility { return prompt.Summary }})
	p := mustBind(t, sections, fileArgs{Path: "a.go"})
	f := mustFile(t, t.TempDir(), p, "")
	must(t, f.Seed(t.Context(), false))
	o, stale := mustResolve(t, f)
	plain, r := mustRender(t, p, nil), mustRender(t, p, &prompt.RenderOptions{Overrides: o})
	if diff := cmp.Diff(plain.Text, r.Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	for i, tool := range plain.Tools {
		if got := r.Tools[i]; got.Manual() != tool.Manual() || string(got.Input.JSON()) != string(tool.Input.JSON()) {
			t.Errorf("tool %s changed:\n%s\n%s", tool.Name, got.Manual(), got.Input.JSON())
		}
	}
	if len(stale) > 0 || len(o.Sections) != 5 || len(o.Tools) != 2 {
		t.Errorf("got stale %v, %d sections, %d tools; want all but the fixed ones", stale, len(o.Sections), len(o.Tools))
	}
	if o.Sections["when"].Visibility != nil || *o.Sections["hidden"].Visibility != prompt.Summary {
		t.Error("the visibility of a section that chooses for itself is fixed, or that of another is not there")
	}
}

func TestSeed_OverwritesOnlyOnRequest(t *testing.T) {
	p, ctx := mustBind(t, overridable(), fileArgs{}), t.Context()
	f := mustFile(t, t.TempDir(), p, "")
	must(t, f.SetText(ctx, "task", "mine"))
	if err := f.Seed(ctx, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
	if o, _ := mustResolve(t, f); *o.Sections["task"].Text != "mine" {
		t.Error("the file was overwritten")
	}
	must(t, f.Seed(ctx, true))
	if o, _ := mustResolve(t, f); *o.Sections["task"].Text != "Old text about $path." {
		t.Error("the file was not overwritten")
	}
}

func TestFile_KeepsOverridesForSeveralTexts(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	version := func(text string) *File {
		return mustFile(t, dir, mustBind(t, []*prompt.Section{prompt.Markdown("task", "Task", text)}), "")
	}
	a, b, c := version("A"), version("B"), version("C")
	must(t, a.SetText(ctx, "task", "for A"), b.SetText(ctx, "task", "for B"))
	hashA, hashB, hashC := hash([]byte("A")), hash([]byte("B")), hash([]byte("C"))
	stale := func(madeFor, now string) prompt.StaleOverride {
		return prompt.StaleOverride{Section: "task", Target: "text", MadeFor: madeFor, Now: now, Reason: reasonChanged}
	}
	byHash := func(x, y prompt.StaleOverride) int { return strings.Compare(x.MadeFor, y.MadeFor) }
	for _, v := range []struct {
		file  *File
		text  *string
		stale []prompt.StaleOverride
	}{
		{a, new("for A"), []prompt.StaleOverride{stale(hashB, hashA)}},
		{b, new("for B"), []prompt.StaleOverride{stale(hashA, hashB)}},
		{c, nil, slices.SortedFunc(slices.Values([]prompt.StaleOverride{stale(hashA, hashC), stale(hashB, hashC)}), byHash)},
	} {
		o, stale := mustResolve(t, v.file)
		if diff := cmp.Diff(v.text, o.Sections["task"].Text); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(v.stale, stale); diff != "" {
			t.Errorf("stale (-want +got):\n%s", diff)
		}
	}
	pruned, err := b.Prune(ctx)
	if diff := cmp.Diff([]prompt.StaleOverride{stale(hashA, hashB)}, pruned); diff != "" || err != nil {
		t.Errorf("Prune: %v (-want +got):\n%s", err, diff)
	}
	if o, stale := mustResolve(t, b); *o.Sections["task"].Text != "for B" || stale != nil {
		t.Errorf("after Prune: got %v, %v", o, stale)
	}
}

func TestFile_RemovedOrForbiddenTargetsAreStale(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	before := mustFile(t, dir, mustBind(t, []*prompt.Section{
		{Key: "gone", Title: "Gone", Tools: []*tool.Tool{named("lost")}},
		{Key: "shut", Title: "Shut", Tools: []*tool.Tool{named("kept")}},
		{Key: "less", Title: "Less", Examples: []prompt.TaskExample{{Objective: "one"}}},
	}), "")
	must(t, before.SetText(ctx, "gone", "x"), before.SetText(ctx, "shut", "x"), before.SetExample(ctx, "less", 0, nil), before.SetDescription(ctx, "lost", "x"), before.SetDescription(ctx, "kept", "x"))
	after := mustFile(t, dir, mustBind(t, []*prompt.Section{
		{Key: "shut", Title: "Shut", NoOverrides: true, Tools: []*tool.Tool{named("kept")}}, {Key: "less", Title: "Less"},
	}), "")
	o, stale := mustResolve(t, after)
	var got []string
	for _, s := range stale {
		got = append(got, s.Section+s.Tool+" "+s.Target+": "+s.Reason)
		if s.MadeFor == "" {
			t.Errorf("%v does not say what it was made for", s)
		}
	}
	want := []string{
		"gone text: " + reasonGone, "less examples[0]: " + reasonGone, "shut text: " + reasonRefused,
		"kept description: " + reasonRefused, "lost description: " + reasonGone,
	}
	if diff := cmp.Diff(want, got); diff != "" || o.Sections != nil || o.Tools != nil {
		t.Errorf("got %v, stale (-want +got):\n%s", o, diff)
	}
}

func TestPut_ReplacesOverridesOfTheCurrentTexts(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	old := mustFile(t, dir, mustBind(t, []*prompt.Section{prompt.Markdown("task", "Task", "Old.")}), "")
	must(t, old.SetText(ctx, "task", "for the old one"))
	p := mustBind(t, overridable(), fileArgs{})
	f := mustFile(t, dir, p, "")
	must(t, f.SetText(ctx, "task", "first"), f.SetDescription(ctx, "save", "first"))
	sections, tools := atHand(p.Descriptor())
	o := &prompt.Overrides{
		Sections: map[string]prompt.SectionOverride{"bare": {Text: new("b"), Summary: new("s"), Visibility: new(prompt.Full)}},
		Tools:    map[string]prompt.ToolOverride{"find": {Hash: tools["find"].Hash, Params: map[string]string{"query": "q"}}},
	}
	must(t, f.Put(ctx, o))
	got, stale := mustResolve(t, f)
	bare := o.Sections["bare"]
	bare.Hash = sections["bare"].Hash
	if diff := cmp.Diff(&prompt.Overrides{Sections: map[string]prompt.SectionOverride{"bare": bare}, Tools: o.Tools}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(stale) != 1 || stale[0].MadeFor != hash([]byte("Old.")) {
		t.Errorf("got stale %v, want the one for the old text", stale)
	}
	must(t, f.Put(ctx, got))
	bare.Hash = "other"
	err := f.Put(ctx, &prompt.Overrides{Sections: map[string]prompt.SectionOverride{"bare": bare}})
	if !errors.Is(err, prompt.ErrOverride) || !strings.Contains(advice.Text(err), "it was made for the hash other") {
		t.Errorf("got %v, want an override for another text refused", err)
	}
	if again, _ := mustResolve(t, f); !cmp.Equal(got, again) {
		t.Error("a refused Put changed the file")
	}
}

func TestFile_TagsAreSeparate(t *testing.T) {
	p, ctx, dir := mustBind(t, overridable(), fileArgs{}), t.Context(), t.TempDir()
	must(t, mustFile(t, dir, p, "").SetText(ctx, "bare", "latest"), mustFile(t, dir, p, "B-2").SetText(ctx, "bare", "second"))
	must(t, os.WriteFile(filepath.Join(dir, "demo", "test", "Not a tag.json"), nil, 0o600), os.WriteFile(filepath.Join(dir, "demo", "test", "notes.txt"), nil, 0o600))
	store := &Store{Dir: dir}
	if tags, err := store.Tags(p); !slices.Equal(tags, []string{"b-2", "latest"}) || err != nil {
		t.Errorf("Tags = %v, %v", tags, err)
	}
	if o, _ := mustResolve(t, mustFile(t, dir, p.Template(), "b-2")); *o.Sections["bare"].Text != "second" {
		t.Errorf("b-2 has %q", *o.Sections["bare"].Text)
	}
	must(t, mustFile(t, dir, p, "b-2").Delete(ctx))
	if tags, err := store.Tags(p); !slices.Equal(tags, []string{DefaultTag}) || err != nil {
		t.Errorf("Tags after Delete = %v, %v", tags, err)
	}
}

func TestFile_PathsStayInTheFolder(t *testing.T) {
	p, ctx, dir, outside := mustBind(t, overridable(), fileArgs{}), t.Context(), t.TempDir(), t.TempDir()
	for _, tag := range []string{"../x", "a/b", `a\b`, "..", ".hidden", "a b", strings.Repeat("a", 65), "ä"} {
		if f, err := (&Store{Dir: dir}).File(p, tag); err == nil {
			t.Errorf("the tag %q gives %s", tag, f.Path())
		}
	}
	if _, err := (&Store{}).File(p, ""); err == nil {
		t.Error("a store without a folder is used")
	}
	if err := os.Symlink(outside, filepath.Join(dir, "demo")); err != nil {
		t.Skip("no links here:", err)
	}
	f := mustFile(t, dir, p, "")
	if err := f.SetText(ctx, "bare", "x"); err == nil {
		t.Error("a link out of the folder was followed")
	}
	if _, _, err := f.Resolve(); err == nil {
		t.Error("a link out of the folder was read")
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("outside there is %v", left)
	}
}

func TestFile_TooLargeFileIsNeitherReadNorWritten(t *testing.T) {
	p, ctx := mustBind(t, overridable(), fileArgs{Path: "a.go"}), t.Context()
	f := mustFile(t, t.TempDir(), p, "")
	must(t, f.SetText(ctx, "task", "small"))
	if err := f.SetText(ctx, "task", strings.Repeat("x", maxFile)); err == nil || !strings.Contains(advice.Text(err), tooLarge) {
		t.Errorf("writing: got %v, want %q", err, tooLarge)
	}
	if o, _ := mustResolve(t, f); *o.Sections["task"].Text != "small" {
		t.Errorf("the text is %.20q, want the one before", *o.Sections["task"].Text)
	}
	must(t, os.Truncate(f.Path(), maxFile+1))
	if _, _, err := f.Resolve(); !errors.Is(err, ErrFile) || !strings.Contains(advice.Text(err), tooLarge) {
		t.Errorf("reading: got %v, want %q", err, tooLarge)
	}
}
