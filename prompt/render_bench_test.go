// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"fmt"
	"strings"
	"testing"
	texttemplate "text/template"
)

// fifty makes 50 sections, each with a tool and placeholders, ten of them with four children.
func fifty(b *testing.B) *Template[finding] {
	b.Helper()
	var sections []*Section
	for i := range 10 {
		s := benchSection(fmt.Sprintf("s%d", i))
		for j := range 4 {
			s.Children = append(s.Children, benchSection(fmt.Sprintf("s%d-%d", i, j)))
		}
		sections = append(sections, s)
	}
	return mustDefine[finding](b, Definition{Params: ParamsOf[fileArgs](), Sections: sections})
}

func benchSection(key string) *Section {
	return Markdown(key, "Section "+key, "Read $path, which has ${lines} lines.\n\nThen say what you have found there, in a few words and without haste.").With(named(key))
}

func benchPrompt(b *testing.B) *Prompt[finding] {
	b.Helper()
	p, err := fifty(b).Bind(fileArgs{"a/b.go", 120})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkRender renders 50 sections with 50 tools. "text alone" is what text/template needs for the
// text of the same sections.
func BenchmarkRender(b *testing.B) {
	p := benchPrompt(b)
	b.Run("50 sections", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Render(nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("text alone", func(b *testing.B) {
		r, err := p.Render(nil)
		if err != nil {
			b.Fatal(err)
		}
		plain := texttemplate.Must(texttemplate.New("").Parse(strings.NewReplacer("a/b.go", "{{.Path}}", "120", "{{.Lines}}").Replace(r.Text)))
		b.ReportAllocs()
		for b.Loop() {
			var text strings.Builder
			if err := plain.Execute(&text, fileArgs{"a/b.go", 120}); err != nil || text.Len() != len(r.Text) {
				b.Fatal(text.Len(), err)
			}
		}
	})
}

// BenchmarkBindAndRender does the same from the template, with new values each time.
func BenchmarkBindAndRender(b *testing.B) {
	t := fifty(b)
	b.ReportAllocs()
	for b.Loop() {
		p, err := t.Bind(fileArgs{"a/b.go", 120})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Render(nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRenderWithOverrides replaces one text and one description in the 50.
func BenchmarkRenderWithOverrides(b *testing.B) {
	p := benchPrompt(b)
	d := p.Descriptor()
	opts := &RenderOptions{Overrides: &Overrides{
		Sections: map[string]SectionOverride{"s3": {Hash: d.Sections[15].Hash, Text: new("Read $path twice.")}},
		Tools:    map[string]ToolOverride{"s4": {Hash: d.Tools[20].Hash, Description: new("Finds more.")}},
	}}
	b.ReportAllocs()
	for b.Loop() {
		if r, err := p.Render(opts); err != nil || len(r.Stale) > 0 {
			b.Fatal(err, r.Stale)
		}
	}
}
