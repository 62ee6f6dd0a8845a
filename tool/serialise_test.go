// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/schema"
)

type shelfParams struct {
	Path   string `json:"path" doc:"the file"`
	Offset int    `json:"offset,omitzero"`
}

func shelfNothing(context.Context, shelfParams) (string, error) { return "", nil }

// shelf is a registry with tools that differ in all that is written down.
func shelf(t testing.TB) *Registry {
	t.Helper()
	return MustRegistry(nil,
		Must("write-file", "Puts text into a file.", shelfNothing, Mutates, FileWrite, WithTags("files"), WithMetadata(map[string]any{"owner": "core", "cost": 2})),
		Must("read-file", "Gives the text of a file.", shelfNothing, ReadOnly, WithTags("files", "text"), WithMetadata(map[string]any{"owner": "core", "limits": map[string]any{"kb": 64, "at": []int{1, 2}}})),
		Must("fetch", "Gets a web page.", func(context.Context, struct {
			URL string `json:"url"`
		},
		) (string, error) {
			return "", nil
		}, NetworkAccess, WithID("web", "2.0.0"), WithTitle("Fetch a page"), WithSearchHint("http download")),
		&Tool{Name: "wipe", Description: "Deletes a disk.", Risk: Mutates | Dangerous, Handler: shelfEcho},
		&Tool{Name: "copy", Description: "Copies a file the old way.", Deprecated: "Use write-file.", Tags: []string{"files"}, Handler: shelfEcho},
		&Tool{Name: "declared", Description: "Runs elsewhere.", Metadata: map[string]any{"owner": nil}},
	)
}

func shelfEcho(_ context.Context, input json.RawMessage) (Result, error) {
	return OK(string(input)), nil
}

func toolNamesOf(tools []*Tool) []string {
	out := []string{}
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

// plainTool compares what of tools is data.
var plainTool = cmp.Options{
	cmpopts.IgnoreFields(Tool{}, "Handler", "DryRun"),
	cmpopts.EquateEmpty(),
	cmp.Comparer(func(a, b *schema.Schema) bool {
		return (a == nil) == (b == nil) && (a == nil || a.String() == b.String())
	}),
}

func registryJSON(t testing.TB, r *Registry) string {
	t.Helper()
	text, err := r.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRegistry_JSON(t *testing.T) {
	r := MustRegistry(nil,
		&Tool{Name: "small", Description: "Says <nothing>."},
		&Tool{
			Name: "full", Namespace: "ns", Version: "1.0.0", Title: "Full", Description: "Has everything.",
			Input:        schema.MustParse(`{"type":"object","properties":{"z":{"type":"string","pattern":"^<"},"a":{"const":1.50}}}`),
			Output:       schema.MustParse(`{"type":"object"}`),
			Capabilities: ShellExecute,
			Tags:         []string{"mutating", "network-access"}, Metadata: map[string]any{"b": 1, "a": map[string]any{"d": "<", "c": nil}},
			Examples:   []Example{{Description: "one", Input: json.RawMessage(`{"z":"<","a":1.5}`), Output: json.RawMessage(`{}`)}},
			Deprecated: "Use small.", Timeout: 90 * time.Second, Concurrency: 2, HideValue: true, AlwaysLoad: true, SearchHint: "hint",
			Handler: shelfEcho,
		})
	want := `{"tools":[` +
		`{"name":"small","description":"Says <nothing>."},` +
		`{"name":"full","namespace":"ns","version":"1.0.0","title":"Full","description":"Has everything.",` +
		`"input":{"type":"object","properties":{"z":{"type":"string","pattern":"^<"},"a":{"const":1.50}}},"output":{"type":"object"},` +
		`"risk":["mutates"],"capabilities":["shellExecute","networkAccess"],"tags":["mutating","network-access"],` +
		`"metadata":{"a":{"c":null,"d":"<"},"b":1},"examples":[{"description":"one","input":{"z":"<","a":1.5},"output":{}}],` +
		`"deprecated":"Use small.","timeout":"1m30s","concurrency":2,"hideValue":true,"alwaysLoad":true,"searchHint":"hint","served":true}]}`
	if diff := cmp.Diff(want, registryJSON(t, r)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	if got := registryJSON(t, MustRegistry(nil)); got != `{"tools":[]}` {
		t.Errorf("an empty registry is %s", got)
	}
}

func TestReadTools_TakesHandlersByID(t *testing.T) {
	r := shelf(t)
	var asked []string
	tools, err := ReadTools([]byte(registryJSON(t, r)), func(id string) Handler {
		asked = append(asked, id)
		if id == "web:fetch@2.0.0" {
			return shelfEcho
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"default:write-file", "default:read-file", "web:fetch@2.0.0", "default:wipe", "default:copy", "default:declared"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	for _, read := range tools {
		if got, want := read.Served(), read.Name == "fetch"; got != want {
			t.Errorf("%s: served is %v, want %v", read.Name, got, want)
		}
	}
	result := tools[2].Run(t.Context(), Call{Input: json.RawMessage(`{"uri":"x"}`)})
	if result.OK() || result.Err.Code != CodeInvalidInput {
		t.Errorf("a call that does not fit the schema gave %+v", result)
	}
}

func TestReadTools_WithoutHandlersToolsAreDeclared(t *testing.T) {
	tools, err := ReadTools([]byte(registryJSON(t, shelf(t))), nil)
	if err != nil || len(tools) != 6 || tools[0].Served() {
		t.Errorf("got %v and %v, want six tools that are not served", toolNamesOf(tools), err)
	}
}

func TestReadTools_NumbersInMetadata(t *testing.T) {
	for text, want := range map[string]any{
		`1`:                      1.0,
		`-2.50`:                  -2.5,
		`1e3`:                    1000.0,
		`9007199254740993`:       json.Number("9007199254740993"), // the first that float64 cannot hold
		`18446744073709551615`:   json.Number("18446744073709551615"),
		`1e400`:                  json.Number("1e400"),
		`[1,9007199254740993]`:   []any{1.0, json.Number("9007199254740993")},
		`{"a":[{"b":1}],"c":{}}`: map[string]any{"a": []any{map[string]any{"b": 1.0}}, "c": map[string]any{}},
	} {
		tools, err := ReadTools([]byte(`{"tools":[{"name":"a","description":"A.","metadata":{"n":`+text+`}}]}`), nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, tools[0].Metadata["n"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestReadTools_RefusesInvalidInput(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no JSON", `{"tools":[`, "unexpected end of JSON input"},
		{"two values", `{"tools":[]} {}`, "invalid character '{' after top-level value"},
		{"no list", `{}`, `no list "tools"`},
		{"a list", `[]`, "cannot unmarshal array"},
		{"an invalid tool", `{"tools":[7]}`, "tools[0]"},
		{"null", `{"tools":[null]}`, "tools[0]"},
		{"a bad name", `{"tools":[{"name":"a b","description":"A."}]}`, "Name must be"},
		{"a field that is not known", `{"tools":[{"name":"a","description":"A.","tag":["x"]}]}`, `reading tools[0]: "a": json: unknown field "tag"`},
		{"a risk that is not known", `{"tools":[{"name":"a","description":"A.","risk":["deadly"]}]}`, `"deadly" is no risk; there are readOnly, mutates, dangerous`},
		{"a capability that is not known", `{"tools":[{"name":"a","description":"A.","capabilities":["fly"]}]}`, `"fly" is no capability`},
		{"a bad schema", `{"tools":[{"name":"a","description":"A.","input":{"type":"objekt"}}]}`, `"a": input: `},
		{"an output that is no object", `{"tools":[{"name":"a","description":"A.","output":{"type":"string"}}]}`, "Output must have"},
		{"a bad timeout", `{"tools":[{"name":"a","description":"A.","timeout":"soon"}]}`, `timeout: time: invalid duration "soon"`},
		{"a bad tag", `{"tools":[{"name":"a","description":"A.","tags":["A B"]}]}`, "kebab-case"},
		{"metadata that is a list", `{"tools":[{"name":"a","description":"A.","metadata":[]}]}`, `"a": metadata: `},
		{"the second of two", `{"tools":[{"name":"a","description":"A."},{"name":"b"}]}`, "tools[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tools, err := ReadTools([]byte(c.text), nil)
			if err == nil || !strings.Contains(advice.Text(err), c.want) || !strings.HasPrefix(advice.Text(err), "tool: ") {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if tools != nil {
				t.Errorf("got the tools %v too", toolNamesOf(tools))
			}
		})
	}
}

func TestReadTools_NamesEveryInvalidTool(t *testing.T) {
	_, err := ReadTools([]byte(`{"tools":[{"name":"a"},{"name":"b","description":"B."},{"name":"c"}]}`), nil)
	if err == nil || !strings.Contains(advice.Text(err), "tools[0]") || !strings.Contains(advice.Text(err), "tools[2]") || strings.Contains(advice.Text(err), "tools[1]") {
		t.Errorf("got %v, want tools 0 and 2", err)
	}
}

func TestMetadata_ValueWithoutJSONIsNamedByItsPath(t *testing.T) {
	loop := map[string]any{}
	loop["self"] = loop
	for want, metadata := range map[string]map[string]any{
		"metadata.fn has no JSON form":          {"ok": 1, "fn": func() {}},
		"metadata.a.b[1].c has no JSON form":    {"a": map[string]any{"b": []any{0, map[string]any{"c": math.NaN()}}}},
		"metadata.list has no JSON form":        {"list": []chan int{nil}},
		"metadata.loop.self.self":               {"loop": loop},
		"metadata.first has no JSON form: json": {"second": math.Inf(1), "first": math.Inf(1)},
	} {
		_, err := NewRegistry(nil, &Tool{Name: "odd", Description: "Odd.", Metadata: metadata})
		if err == nil || !strings.Contains(advice.Text(err), want) || !strings.Contains(advice.Text(err), `"odd"`) {
			t.Errorf("got %v, want %q and the tool's name", err, want)
		}
	}
}

func TestMetadata_ValueThatLostItsJSONFailsMarshal(t *testing.T) {
	metadata := map[string]any{"a": 1}
	r := MustRegistry(nil, &Tool{Name: "odd", Description: "Odd.", Metadata: metadata})
	metadata["a"] = make(chan int)
	if _, err := r.MarshalJSON(); err == nil || !strings.Contains(advice.Text(err), `tool: "odd": metadata.a has no JSON form`) {
		t.Errorf("got %v, want the tool and the place", err)
	}
}

func drawTool(t *rapid.T, name string) *Tool {
	text := rapid.StringN(0, 8, -1)
	value := rapid.OneOf(
		rapid.Just[any](nil), rapid.Just[any](json.RawMessage(` {"b" : 1.50,"a":"<"}`)),
		rapid.Map(rapid.Int64(), func(n int64) any { return n }), rapid.Map(rapid.Uint64(), func(n uint64) any { return n }),
		rapid.Map(rapid.Float64Range(-1e300, 1e300), func(f float64) any { return f }), rapid.Map(text, func(s string) any { return s }),
		rapid.Map(rapid.Bool(), func(b bool) any { return []any{b, map[string]any{"<": b}} }))
	plain := text.Filter(func(key string) bool { return knownKey(key) == "" })
	tool := &Tool{
		Name: name, Description: "D " + text.Draw(t, "description"), Title: text.Draw(t, "title"),
		Namespace: text.Draw(t, "namespace"), Version: text.Draw(t, "version"),
		Risk: Risk(rapid.IntRange(0, 7).Draw(t, "risk")), Capabilities: Capability(rapid.IntRange(0, 7).Draw(t, "needs")),
		Tags:     rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b-c", "mutating", "readonly", "dangerous", "file-write"}), 0, 3).Draw(t, "tags"),
		Metadata: rapid.MapOfN(plain, value, 0, 4).Draw(t, "metadata"),
		Timeout:  time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "timeout")), Concurrency: rapid.IntRange(0, 9).Draw(t, "concurrency"),
		HideValue: rapid.Bool().Draw(t, "hide"), AlwaysLoad: rapid.Bool().Draw(t, "load"),
		SearchHint: text.Draw(t, "hint"), Deprecated: text.Draw(t, "deprecated"),
	}
	if rapid.Bool().Draw(t, "schema") {
		tool.Input = schema.MustParse(`{"type":"object","properties":{"z":{"type":"string","description":"<\u2028"},"a":{}}}`)
		tool.Examples = []Example{{Input: json.RawMessage(`{"z":"<"}`)}}
	}
	if rapid.Bool().Draw(t, "served") {
		tool.Handler = shelfEcho
	}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{metaMutates, metaReadOnly, metaDangerous}), 0, 3, rapid.ID[string]).Draw(t, "risks") {
		tool.Metadata[key] = rapid.Bool().Draw(t, key)
	}
	if rapid.Bool().Draw(t, "capabilities") {
		tool.Metadata[metaCapabilities] = []any{rapid.SampledFrom(capabilityNames).Draw(t, "capability")}
	}
	return tool
}

// A registry that was read has the same JSON as the one that was written, and its tools have the
// same risks; read a second time, its tools are the same in all that is data.
func TestRegistry_SurvivesMarshalling(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := MustRegistry(nil)
		for i := range rapid.IntRange(0, 3).Draw(rt, "tools") {
			if err := r.Add(drawTool(rt, fmt.Sprintf("t%d", i))); err != nil {
				rt.Fatal(err)
			}
		}
		first, again := registryAgain(rt, r)
		second, third := registryAgain(rt, again)
		if !bytes.Equal(first, second) {
			rt.Fatalf("first\n%s\nthen\n%s", first, second)
		}
		for i, tool := range r.Tools() {
			read := again.Tools()[i]
			if tool.Risks() != read.Risks() || tool.Needs() != read.Needs() || tool.ID() != read.ID() || tool.Timeout != read.Timeout {
				rt.Fatalf("%s: %v, %v, %v became %s: %v, %v, %v", tool.ID(), tool.Risks(), tool.Needs(), tool.Timeout, read.ID(), read.Risks(), read.Needs(), read.Timeout)
			}
		}
		if diff := cmp.Diff(again.Tools(), third.Tools(), plainTool); diff != "" {
			rt.Fatalf("tools (-want +got):\n%s", diff)
		}
	})
}

func registryAgain(t *rapid.T, r *Registry) ([]byte, *Registry) {
	text, err := r.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	tools, err := ReadTools(text, func(id string) Handler {
		original, _ := r.Lookup(id)
		return original.Handler
	})
	if err != nil {
		t.Fatalf("%v, in %s", err, text)
	}
	return text, MustRegistry(nil, tools...)
}

func FuzzReadTools(f *testing.F) {
	f.Add([]byte(registryJSON(f, shelf(f))))
	f.Add([]byte(`{"tools":[{"name":"a","description":"A.","metadata":{"n":1e400,"m":-0,"mutates":true},"tags":["a","a"],"timeout":"1.5h"}]}`))
	f.Add([]byte(`{"tools":[{"NAME":"a","description":"\ud800","input":{"type":"object","properties":{"p":true}},"examples":[{"input":{}}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tools, err := ReadTools(data, nil)
		if err != nil {
			return
		}
		r, err := NewRegistry(nil, tools...)
		if err != nil {
			return // two with one id
		}
		first := registryJSON(t, r)
		tools, err = ReadTools([]byte(first), nil)
		if err != nil {
			t.Fatalf("%v, in %s", err, first)
		}
		if second := registryJSON(t, MustRegistry(nil, tools...)); first != second {
			t.Errorf("first\n%s\nthen\n%s", first, second)
		}
	})
}
