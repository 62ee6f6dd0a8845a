// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"errors"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type level int

func (l level) String() string { return [...]string{"low", "high"}[l] }

type embeddedArgs struct {
	Inner string
	Path  string `prompt:"path"`  // the outer one wins, by Go's rule
	Other string `prompt:"Plain"` // the outer one wins, by the same rule for placeholders
}

type allArgs struct {
	embeddedArgs
	*modeArgs
	Path     string `prompt:"path" json:"other"`
	FilePath string `json:"file_path,omitempty"`
	Plain    string
	Hidden   string `prompt:"-"`
	NotJSON  string `json:"-"`
	Count    uint8
	Ratio    float64
	Tiny     float32
	Level    level
	At       time.Time
	Wait     time.Duration
	Addr     netip.Addr
	On       bool
	secret   string
}

func TestParams_FieldsNamePlaceholdersAndFormatValues(t *testing.T) {
	args := allArgs{
		embeddedArgs: embeddedArgs{Inner: "in", Path: "inner path", Other: "inner plain"}, modeArgs: &modeArgs{Strict: true},
		Path: "a $FilePath b", FilePath: "f.go", Plain: "p", Count: 200, Ratio: 1500000.25, Tiny: 0.1, Level: 1,
		At: time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC), Wait: 90 * time.Second, Addr: netip.MustParseAddr("127.0.0.1"), secret: "s",
	}
	s := &Section{
		Key: "a", Title: "A", Params: ParamsOf[allArgs](),
		Text: "$path|$file_path|$Plain|$Inner|$Strict|$Count|$Ratio|$Tiny|$Level|$At|$Wait|$Addr|$On|$$5",
	}
	want := "## 1. A (a)\n\na $FilePath b|f.go|p|in|true|200|1500000.25|0.1|high|2026-03-04T05:06:07.000008Z|1m30s|127.0.0.1|false|$5"
	for name, params := range map[string]any{"by value": args, "by pointer": &args} {
		if diff := cmp.Diff(want, mustRender(t, mustBind(t, []*Section{s}, params), nil).Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"Hidden", "NotJSON", "secret", "FilePath", "other", "embeddedArgs", "modeArgs"} {
		_, err := New[Text]("demo", "test", &Section{Key: "a", Title: "A", Params: ParamsOf[allArgs](), Text: "$" + name})
		if !errors.Is(err, ErrDefinition) {
			t.Errorf("$%s: got %v, want it to be unknown", name, err)
		}
	}
}

func TestFormatFloat_ExponentsOnlyForVeryLargeOrSmallNumbers(t *testing.T) {
	for f, want := range map[float64]string{0: "0", 1e6: "1000000", -0.25: "-0.25", 1e-7: "1e-07", 1e21: "1e+21", math.Inf(1): "+Inf"} {
		if got := formatFloat(f, 64); got != want {
			t.Errorf("formatFloat(%g) = %s, want %s", f, got, want)
		}
	}
}

func TestParams_AmbiguousFieldsAreRejected(t *testing.T) {
	type twice struct {
		A string `prompt:"x"`
		B string `json:"x"`
		C string `prompt:"two words"`
	}
	_, err := New[Text]("demo", "test", &Section{Key: "a", Title: "A", Params: ParamsOf[twice]()})
	wantErrors(t, err, ErrDefinition,
		`prompt: demo:test: section "a": Params: fields prompt.twice.A and prompt.twice.B are both called "x"`,
		"prompt: demo:test: section \"a\": Params: field prompt.twice.C: \"two words\" cannot be a placeholder; tag it `prompt:\"name\"`, or `prompt:\"-\"` to leave it out",
	)
}

type panics struct{}

func (*panics) String() string { panic("no text") }

func TestBind_InvalidValuesAreErrorsThatNameTheSections(t *testing.T) {
	type ptrArgs struct {
		*fileArgs
		P *panics
	}
	declared := []*Section{
		{Key: "a", Title: "A", Params: ParamsOf[fileArgs](), Text: "$path"},
		{Key: "b", Title: "B", Params: ParamsOf[fileArgs]().And(Defaults(modeArgs{})), Text: "$Strict"},
	}
	open := []*Section{{Key: "a", Title: "A", Text: "\n  The $path", Summary: "$Strict"}}
	for _, c := range []struct {
		name     string
		sections []*Section
		params   []any
		want     []string
	}{
		{"missing", declared, nil, []string{`prompt: demo:test: no value of prompt.fileArgs is bound; it is for section "a", section "b"`}},
		{"doubled", declared, []any{fileArgs{}, &fileArgs{}}, []string{`prompt: demo:test: two values of prompt.fileArgs are given; it is for section "a", section "b"`}},
		{"unknown", declared, []any{fileArgs{}, level(1), findParams{}}, []string{
			`prompt: demo:test: params must be structs, prompt.level is not a struct`,
			`prompt: demo:test: no section asks for a prompt.findParams (sections: a, b)`,
		}},
		{"nil", declared, []any{(*fileArgs)(nil), nil, fileArgs{}}, []string{
			`prompt: demo:test: a nil *prompt.fileArgs has no values`,
			`prompt: demo:test: nil is not a params struct`,
		}},
		{"nothing bound where nothing is declared", open, nil, []string{
			`prompt: demo:test: section "a": text 2:7: placeholder $path: has no value: nothing is bound`,
			`prompt: demo:test: section "a": summary 1:1: placeholder $Strict: has no value: nothing is bound`,
		}},
		{"a value is missing where nothing is declared", open, []any{fileArgs{}}, []string{
			`prompt: demo:test: section "a": summary 1:1: placeholder $Strict: has no value: none of the params has it`,
		}},
		{"two values fit where nothing is declared", open, []any{fileArgs{}, modeArgs{}, allArgs{modeArgs: new(modeArgs)}}, []string{
			`prompt: demo:test: section "a": text 2:7: placeholder $path: is ambiguous: prompt.allArgs and prompt.fileArgs have it`,
			`prompt: demo:test: section "a": summary 1:1: placeholder $Strict: is ambiguous: prompt.allArgs and prompt.modeArgs have it`,
		}},
		{"an unused value where nothing is declared", []*Section{Markdown("a", "A", "x")}, []any{fileArgs{}}, []string{
			`prompt: demo:test: no section asks for a prompt.fileArgs (sections: a)`,
		}},
		{"a field that has no text", []*Section{{Key: "a", Title: "A", Params: ParamsOf[ptrArgs](), Text: "$path $P"}}, []any{ptrArgs{}}, []string{
			`prompt: demo:test: section "a": text 1:1: placeholder $path: field prompt.ptrArgs.Path: an embedded pointer on the way to it is nil`,
			`prompt: demo:test: section "a": text 1:7: placeholder $P: field prompt.ptrArgs.P: its String method panicked: no text`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := mustDefine[Text](t, Definition{Sections: c.sections}).Bind(c.params...)
			wantErrors(t, err, ErrParams, c.want...)
		})
	}
}

func TestParams_OfADefinitionApplyToAllSections(t *testing.T) {
	d := Definition{Params: ParamsOf[fileArgs](), Sections: []*Section{Markdown("a", "A", "$path"), {Key: "b", Title: "B", Children: []*Section{Markdown("c", "C", "$lines")}}}}
	tmpl := mustDefine[Text](t, d)
	_, err := tmpl.Bind()
	wantErrors(t, err, ErrParams, `prompt: demo:test: no value of prompt.fileArgs is bound; it is for the whole prompt`)
	p, err := tmpl.Bind(fileArgs{"x.go", 3})
	if err != nil {
		t.Fatal(err)
	}
	want := "## 1. A (a)\n\nx.go\n\n## 2. B (b)\n\n### 2.1. C (b.c)\n\n3"
	if diff := cmp.Diff(want, mustRender(t, p, nil).Text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestParams_NearestDefaultAppliesUnlessAValueIsBound(t *testing.T) {
	tmpl := mustDefine[Text](t, Definition{
		Params: Defaults(fileArgs{Path: "outer"}),
		Sections: []*Section{
			Markdown("a", "A", "$path"),
			{Key: "b", Title: "B", Params: Defaults(&fileArgs{Path: "inner"}), Children: []*Section{Markdown("c", "C", "$path")}},
		},
	})
	for _, c := range []struct {
		name   string
		params []any
		want   string
	}{
		{"defaults", nil, "## 1. A (a)\n\nouter\n\n## 2. B (b)\n\n### 2.1. C (b.c)\n\ninner"},
		{"bound", []any{fileArgs{Path: "bound"}}, "## 1. A (a)\n\nbound\n\n## 2. B (b)\n\n### 2.1. C (b.c)\n\nbound"},
	} {
		p, err := tmpl.Bind(c.params...)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, mustRender(t, p, nil).Text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestBind_ReplacesValuesOfTheSameType(t *testing.T) {
	args := fileArgs{Path: "one"}
	first := mustBind(t, []*Section{Markdown("a", "A", "$path $Strict")}, &args, modeArgs{})
	args.Path = "changed behind its back"
	second, err := first.Bind(fileArgs{Path: "two"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		p    *Prompt[Text]
		want []any
		text string
	}{
		{"first", first, []any{fileArgs{Path: "one"}, modeArgs{}}, "## 1. A (a)\n\none false"},
		{"second", second, []any{fileArgs{Path: "two"}, modeArgs{}}, "## 1. A (a)\n\ntwo false"},
	} {
		if diff := cmp.Diff(c.want, c.p.Params()); diff != "" {
			t.Errorf("%s: params (-want +got):\n%s", c.name, diff)
		}
		if got := mustRender(t, c.p, nil).Text; got != c.text {
			t.Errorf("%s: got %q, want %q", c.name, got, c.text)
		}
	}
}

func TestRender_UnboundPromptNamesMissingParams(t *testing.T) {
	p, err := NewPrompt[Text]("demo", "test", Markdown("a", "A", "$path"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Render(nil)
	wantErrors(t, err, ErrParams, `prompt: demo:test: section "a": text 1:1: placeholder $path: has no value: nothing is bound`)
	if p, err = p.Bind(fileArgs{Path: "x"}); err != nil {
		t.Fatal(err)
	}
	mustRender(t, p, nil)
}

func TestBind_MissingValueIsNamedWithSectionsWithoutDefault(t *testing.T) {
	tmpl := mustDefine[Text](t, Definition{
		Params:   Defaults(fileArgs{Path: "a.go"}),
		Sections: []*Section{{Key: "a", Title: "A", Text: "$path"}, {Key: "b", Title: "B", Text: "$path", Params: ParamsOf[fileArgs]()}},
	})
	_, err := tmpl.Bind()
	wantErrors(t, err, ErrParams, `prompt: demo:test: no value of prompt.fileArgs is bound; it is for section "b"`)
}
