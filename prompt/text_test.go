// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A prompt of one text is that text, whatever it contains, and then come the sections.
func TestDefinition_TextIsRenderedAsWritten(t *testing.T) {
	for _, text := range []string{"What is this?", "  indented $path ${x} $$ \r\n\n", "## 1. Task (task)", "\n"} {
		if got := renderedText(t, text); got != text {
			t.Errorf("%q is rendered as %q", text, got)
		}
		if got, want := renderedText(t, text, Markdown("more", "More", "Costs $$5.")), text+"\n\n## 2. More (more)\n\nCosts $5."; got != want {
			t.Errorf("%q with a section is rendered as %q, want %q", text, got, want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringN(1, -1, 200).Draw(rt, "text")
		if got := renderedText(rt, text); got != text {
			rt.Errorf("%q is rendered as %q", text, got)
		}
	})
}

// A prompt of one text needs nothing else, and is that text.
func TestFromText_TextIsSentAsWritten(t *testing.T) {
	const text = "  Costs $5 of $path. \n\n## 1. Task (task)\n"
	p, err := FromText[string](text)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := p.Render(nil); err != nil || r.Text != text || r.Output != nil {
		t.Errorf("got %+v, %v, want the text and no form of an answer", r, err)
	}
	typed, err := FromText[struct {
		Lines int `json:"lines"`
	}](text)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := typed.Render(nil); err != nil || r.Text != text || !strings.Contains(string(r.OutputSchema), `"lines"`) {
		t.Errorf("got %+v, %v, want the text and the form of the answer", r, err)
	}
	for _, empty := range []string{"", " \n\t"} {
		if _, err := FromText[string](empty); err == nil || !strings.Contains(err.Error(), "the text is empty") {
			t.Errorf("%q: %v, want an error", empty, err)
		}
	}
}

func renderedText(t rapid.TB, text string, sections ...*Section) string {
	t.Helper()
	tmpl, err := Define[Text](Definition{Namespace: "demo", Key: "test", Text: text, Sections: sections})
	if err != nil {
		t.Fatal(err)
	}
	p, err := tmpl.Bind()
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := p.Render(nil)
	if err != nil {
		t.Fatal(err)
	}
	return rendered.Text
}
