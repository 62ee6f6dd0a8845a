// SPDX-License-Identifier: Apache-2.0

package overrides

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

// A written section is what a random template has in one place, as its author wrote it. Texts are
// few, so that many are the same again after a change.
type written struct {
	text, summary, example string
	description, toolInput string
	noOverrides, removed   bool
}

var someText = rapid.SampledFrom([]string{"one", "two", "\n\tthree\n\t  lines\n", "$$5", "a\r\nb", ""})

// plain is a text as a template has it: without shared indentation, blank lines around it and carriage returns.
func plain(text string) string {
	switch text {
	case "\n\tthree\n\t  lines\n":
		return "three\n  lines"
	case "a\r\nb":
		return "a\nb"
	}
	return text
}

func drawWritten(t *rapid.T) written {
	return written{
		text: someText.Draw(t, "text"), summary: someText.Draw(t, "summary"), example: rapid.SampledFrom([]string{"x", "y"}).Draw(t, "example"),
		description: rapid.SampledFrom([]string{"Does.", "Does it."}).Draw(t, "description"), toolInput: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "input"),
		noOverrides: rapid.IntRange(0, 5).Draw(t, "closed") == 0, removed: rapid.IntRange(0, 5).Draw(t, "removed") == 0,
	}
}

func (w written) section(i int) *prompt.Section {
	key := fmt.Sprintf("s%d", i)
	fn := func(context.Context, struct{}) (tool.Result, error) { return tool.Text("done"), nil }
	t := tool.Must(fmt.Sprintf("t%d", i), w.description, fn)
	if w.toolInput == "q" {
		t = tool.Must(t.Name, w.description, func(context.Context, findParams) (tool.Result, error) { return tool.Text("done"), nil })
	}
	return &prompt.Section{
		Key: key, Title: "Title", Text: w.text, Summary: w.summary, NoOverrides: w.noOverrides,
		Examples: []prompt.TaskExample{{Objective: w.example}}, Tools: []*tool.Tool{t},
	}
}

func templateOf(t testing.TB, all []written) *prompt.Template[prompt.Text] {
	sections := []*prompt.Section{prompt.Markdown("always", "Always", "There.")}
	for i, w := range all {
		if !w.removed {
			sections = append(sections, w.section(i))
		}
	}
	return mustDefine[prompt.Text](t, prompt.Definition{Sections: sections})
}

// part is what an edit is about, by the number of the section.
type part struct {
	at     int
	target string
}

// source is what the author wrote for a part, without what a template takes off.
func (w written) source(target string) string {
	switch target {
	case targetSummary:
		return plain(w.summary)
	case exampleTarget(0):
		return w.example
	case targetDescription:
		return w.description + w.toolInput
	}
	return plain(w.text)
}

// apply makes one edit with the setters.
func (p part) apply(ctx context.Context, f *File, by string) error {
	section := fmt.Sprintf("s%d", p.at)
	switch p.target {
	case targetText:
		return f.SetText(ctx, section, by)
	case targetSummary:
		return f.SetSummary(ctx, section, by)
	case targetVisibility:
		return f.SetVisibility(ctx, section, prompt.Full)
	case targetDescription:
		return f.SetDescription(ctx, fmt.Sprintf("t%d", p.at), by)
	}
	return f.SetExample(ctx, section, 0, &prompt.TaskExample{Objective: by})
}

// got reads what is resolved for a part.
func (p part) got(o *prompt.Overrides) (string, bool) {
	s, t := o.Sections[fmt.Sprintf("s%d", p.at)], o.Tools[fmt.Sprintf("t%d", p.at)]
	text := map[string]*string{targetText: s.Text, targetSummary: s.Summary, targetDescription: t.Description}[p.target]
	switch {
	case p.target == targetVisibility:
		return "", s.Visibility != nil
	case p.target == exampleTarget(0):
		if len(s.Examples) == 0 {
			return "", false
		}
		return s.Examples[0].New.Objective, true
	case text == nil:
		return "", false
	}
	return *text, true
}

// Templates change at random and edits are made at random in between. In the end, what applies to a
// part is the last edit made for what its author has there now, and nothing else; all other edits are
// stale.
func TestFile_OverrideAppliesIfAndOnlyIfItsTextMatches(t *testing.T) {
	targets := []string{targetText, targetSummary, targetVisibility, targetDescription, exampleTarget(0)}
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(dir, "store")
		must(t, err)
		all := make([]written, rapid.IntRange(1, 3).Draw(rt, "sections"))
		model := edits{}
		for range rapid.IntRange(1, 5).Draw(rt, "versions") {
			for i := range all {
				if all[i].description == "" || rapid.Bool().Draw(rt, "change") {
					all[i] = drawWritten(rt)
				}
			}
			f := mustFile(t, dir, templateOf(t, all), "")
			for range rapid.IntRange(0, 4).Draw(rt, "edits") {
				p := part{rapid.IntRange(0, len(all)-1).Draw(rt, "at"), rapid.SampledFrom(targets).Draw(rt, "target")}
				by := rapid.SampledFrom([]string{"new", "newer", "two\nlines"}).Draw(rt, "by")
				err := p.apply(t.Context(), f, by)
				if refused := all[p.at].removed || all[p.at].noOverrides; refused != (err != nil) {
					rt.Fatalf("%v of %+v: %v", p, all[p.at], err)
				} else if !refused {
					if p.target == targetVisibility {
						by = ""
					}
					model.note(p, all[p.at].source(p.target), by)
				}
			}
			checkResolved(rt, f, all, targets, model)
		}
	})
}

// edits is the model: for each part, by what its author had there, what is put in its place.
type edits map[part]map[string]string

func (e edits) note(p part, of, by string) {
	if e[p] == nil {
		e[p] = map[string]string{}
	}
	e[p][of] = by
}

func checkResolved(t *rapid.T, f *File, all []written, targets []string, model edits) {
	o, stale, err := f.Resolve()
	if err != nil {
		t.Fatalf("Resolve: %v", err)
	}
	applied, total := 0, 0
	for i, w := range all {
		for _, target := range targets {
			p := part{i, target}
			total += len(model[p])
			want, ok := model[p][w.source(target)]
			if w.removed || w.noOverrides {
				want, ok = "", false
			}
			got, is := p.got(o)
			if got != want || is != ok {
				t.Fatalf("%v of %+v: got %q, %t, want %q, %t", p, w, got, is, want, ok)
			}
			if ok {
				applied++
			}
		}
	}
	if len(stale) != total-applied {
		t.Fatalf("got %d stale, want %d of %d:\n%s", len(stale), total-applied, total, cmp.Diff(nil, stale))
	}
}
