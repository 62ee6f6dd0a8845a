// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/schema"
)

// A judge holds lines against the schema. It asks two implementations, which must agree, except on
// numbers that no float64 holds: ours refuses them wherever they are.
type judge struct {
	theirs *jsonschema.Resolved
	ours   *schema.Schema
}

var errDisagree = errors.New("the judges disagree")

func newJudge(t testing.TB) judge {
	t.Helper()
	var text jsonschema.Schema
	if err := json.Unmarshal(Schema(), &text); err != nil {
		t.Fatal(err)
	}
	theirs, err := text.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := schema.Parse(Schema())
	if err != nil {
		t.Fatal(err)
	}
	return judge{theirs, ours}
}

// problem is what is wrong with a line, or nil.
func (j judge) problem(text []byte) error {
	value, err := decodeAny(text)
	if err != nil {
		return err
	}
	theirs, ours := j.theirs.Validate(value), j.ours.Validate(text)
	var plain any
	if (theirs == nil) != (ours == nil) && json.Unmarshal(text, &plain) == nil {
		return fmt.Errorf("%w: jsonschema-go returns %v, package schema %v", errDisagree, theirs, ours)
	}
	return theirs
}

// decodeAny is json.Unmarshal that also takes numbers which no float64 holds.
func decodeAny(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&value)
	return withFloats(value), err
}

func withFloats(value any) any {
	switch v := value.(type) {
	case json.Number:
		f, _ := strconv.ParseFloat(v.String(), 64)
		return f
	case []any:
		for i := range v {
			v[i] = withFloats(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = withFloats(v[key])
		}
	}
	return value
}

func TestSchema_AcceptsTheGoldenLines(t *testing.T) {
	j := newJudge(t)
	for name := range goldenEvents {
		_, lines := readGolden(t, name)
		for _, text := range lines {
			if err := j.problem([]byte(text)); err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
			}
		}
	}
}

func TestSchema_AcceptsEveryEvent(t *testing.T) {
	j := newJudge(t)
	rapid.Check(t, func(rt *rapid.T) {
		text := line(t, events().Draw(rt, "event"))
		value, err := decodeAny(text)
		if err != nil {
			rt.Fatal(err)
		}
		if err := j.theirs.Validate(value); err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
	})
}

// envelope is an event of a kind with a payload.
func envelope(kind, payload string) string {
	return `{"type":"` + kind + `","agent":"a","timestamp":1,"sessionId":"s","payload":` + payload + `}`
}

func TestSchema_RefusesBrokenLines(t *testing.T) {
	j := newJudge(t)
	done := func(usage string) string {
		return envelope("done", `{"status":"success","durationMs":1,"usage":`+usage+`}`)
	}
	tokens := func(totals string) string { return done(`{"toolUses":0,"tokens":` + totals + `}`) }
	for _, c := range []struct{ name, line string }{
		{"no object", `[]`},
		{"no type", `{"agent":"a","timestamp":1,"sessionId":"s","payload":{}}`},
		{"no agent", `{"type":"x:y","timestamp":1,"sessionId":"s","payload":{}}`},
		{"no timestamp", `{"type":"x:y","agent":"a","sessionId":"s","payload":{}}`},
		{"no session", `{"type":"x:y","agent":"a","timestamp":1,"payload":{}}`},
		{"no payload", `{"type":"x:y","agent":"a","timestamp":1,"sessionId":"s"}`},
		{"empty type", envelope("", `{}`)},
		{"timestamp as text", `{"type":"x:y","agent":"a","timestamp":"now","sessionId":"s","payload":{}}`},
		{"timestamp in fractions", `{"type":"x:y","agent":"a","timestamp":1.5,"sessionId":"s","payload":{}}`},
		{"seq as text", `{"type":"x:y","agent":"a","timestamp":1,"sessionId":"s","seq":"1","payload":{}}`},
		{"position as number", `{"type":"x:y","agent":"a","timestamp":1,"sessionId":"s","position":12,"payload":{}}`},
		{"position of nothing", `{"type":"x:y","agent":"a","timestamp":1,"sessionId":"s","position":"0","payload":{}}`},
		{"negative seq", `{"type":"x:y","agent":"a","timestamp":1,"sessionId":"s","seq":-1,"payload":{}}`},
		{"metadata as list", `{"type":"x:y","agent":"a","timestamp":1,"sessionId":"s","metadata":[],"payload":{}}`},

		{"init without tools", envelope("init", `{"model":"m","cwd":"/"}`)},
		{"init with tools null", envelope("init", `{"model":"m","cwd":"/","tools":null}`)},
		{"init with tools that are objects", envelope("init", `{"model":"m","cwd":"/","tools":[{"name":"Bash"}]}`)},
		{"text without content", envelope("text", `{}`)},
		{"text as text", envelope("text", `"hello"`)},
		{"delta under another name", envelope("text_delta", `{"content":"x"}`)},
		{"thinking that is null", envelope("thinking", `{"summary":null}`)},
		{"tool_use without an id", envelope("tool_use", `{"toolName":"Bash","input":{}}`)},
		{"tool_use without input", envelope("tool_use", `{"toolUseId":"1","toolName":"Bash"}`)},
		{"tool_use with a list as input", envelope("tool_use", `{"toolUseId":"1","toolName":"Bash","input":[]}`)},
		{"tool_result without a status", envelope("tool_result", `{"toolUseId":"1","toolName":"Bash"}`)},
		{"tool_result with another status", envelope("tool_result", `{"toolUseId":"1","toolName":"Bash","status":"ok"}`)},
		{"tool_result with a failure without words", envelope("tool_result", `{"toolUseId":"1","toolName":"Bash","status":"error","failure":{}}`)},
		{"permission_request without input", envelope("permission_request", `{"toolUseId":"1","toolName":"Bash"}`)},
		{"error without recoverable", envelope("error", `{"message":"m"}`)},
		{"error with recoverable as text", envelope("error", `{"message":"m","recoverable":"no"}`)},
		{"decision without a verdict", envelope("gate:decision", `{}`)},
		{"decision with a number", envelope("gate:decision", `{"verdict":2}`)},
		{"progress as text", envelope("tool:progress", `{"toolUseId":"1","progress":"half"}`)},
		{"log without a level", envelope("tool:log", `{"toolUseId":"1","message":"m"}`)},
		{"step without a step", envelope("tool:step", `{"toolUseId":"1","toolName":"x"}`)},

		{"done without usage", envelope("done", `{"status":"success","durationMs":1}`)},
		{"done without a duration", envelope("done", `{"status":"success","usage":{"toolUses":0}}`)},
		{"done with another status", envelope("done", `{"status":"ok","durationMs":1,"usage":{"toolUses":0}}`)},
		{"done with a token that is null", envelope("done", `{"status":"success","resumeToken":null,"durationMs":1,"usage":{"toolUses":0}}`)},
		{"usage without tool uses", done(`{}`)},
		{"negative tool uses", done(`{"toolUses":-1}`)},
		{"cost without an amount", done(`{"toolUses":0,"cost":{"source":"agent-estimate"}}`)},
		{"negative cost", done(`{"toolUses":0,"cost":{"usd":-1}}`)},
		{"cost with another source", done(`{"toolUses":0,"cost":{"usd":1,"source":"guess"}}`)},
		{"tokens without coverage", tokens(`{"totals":{"input":{"total":0},"output":{"total":0}}}`)},
		{"tokens with another coverage", tokens(`{"coverage":"most","totals":{"input":{"total":0},"output":{"total":0}}}`)},
		{"tokens without output", tokens(`{"coverage":"complete","totals":{"input":{"total":0}}}`)},
		{"tokens with half of one", tokens(`{"coverage":"complete","totals":{"input":{"total":0.5},"output":{"total":0}}}`)},
		{"tokens beyond safe integers", tokens(`{"coverage":"complete","totals":{"input":{"total":9007199254740992},"output":{"total":0}}}`)},
		{"record without tokens", tokens(`{"coverage":"complete","totals":{"input":{"total":0},"output":{"total":0}},"records":[{}]}`)},
	} {
		switch err := j.problem([]byte(c.line)); {
		case err == nil:
			t.Errorf("%s: accepted: %s", c.name, c.line)
		case errors.Is(err, errDisagree):
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// Each required field of each kind, taken away from a line that has it, is missed.
func TestSchema_RefusesAMissingRequiredField(t *testing.T) {
	j := newJudge(t)
	for name := range goldenEvents {
		_, lines := readGolden(t, name)
		for _, text := range lines {
			for _, kind := range knownKinds() {
				if !strings.HasPrefix(text, fmt.Sprintf(`{"type":%q,`, kind)) {
					continue
				}
				for _, field := range requiredFields(payloadType(kind)) {
					if without := withoutField(t, text, field); j.problem(without) == nil {
						t.Errorf("accepted without %s: %s", field, without)
					}
				}
			}
		}
	}
}

func requiredFields(t reflect.Type) []string {
	for _, m := range (generator{map[string]object{}}).fields(t) {
		if m.key == "required" {
			return m.value.([]string)
		}
	}
	return nil
}

func withoutField(t *testing.T, text, field string) []byte {
	t.Helper()
	var whole struct {
		wire[map[string]json.RawMessage]
	}
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		t.Fatal(err)
	}
	if whole.Payload[field] == nil {
		t.Errorf("no %s in %s", field, text)
	}
	delete(whole.Payload, field)
	without, err := marshalPlain(whole)
	if err != nil {
		t.Fatal(err)
	}
	return without
}

func TestSchema_AcceptsAdditionsOfLaterVersions(t *testing.T) {
	j := newJudge(t)
	for _, c := range []struct{ name, line string }{
		{"a field in the envelope", `{"type":"text","agent":"a","timestamp":1,"sessionId":"s","new":1,"payload":{"content":""}}`},
		{"a field in a payload", envelope("text", `{"content":"","new":1}`)},
		{"a field deep down", envelope("done", `{"status":"success","durationMs":1,"usage":{"toolUses":0,"cost":{"usd":1,"new":1}}}`)},
		{"a common kind", envelope("summary", `[]`)},
		{"a kind of an agent", envelope("claude-code:task", `"x"`)},
		{"a kind whose name begins like another", envelope("text_", `null`)},
	} {
		if err := j.problem([]byte(c.line)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestSchema_IsACopy(t *testing.T) {
	clear(Schema())
	if !json.Valid(Schema()) {
		t.Error("a caller can spoil the schema")
	}
}

// The words in the schema are all the constants of their types, and no type with constants is
// forgotten.
func TestSchema_EnumsMatchTheSource(t *testing.T) {
	found := map[string][]any{}
	for _, spec := range constants(t) {
		if name, ok := spec.Type.(*ast.Ident); ok && len(spec.Values) == 1 {
			if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
				word, _ := strconv.Unquote(text.Value)
				found[name.Name] = append(found[name.Name], word)
			}
		}
	}
	delete(found, "Kind") // any other string is one too
	for v := range 256 {
		if word := Verdict(v).String(); !slices.Contains(found["Verdict"], any(word)) {
			found["Verdict"] = append(found["Verdict"], word)
		}
	}
	want := map[string][]any{}
	for t, words := range enums {
		want[t.Name()] = words
	}
	if diff := cmp.Diff(found, want); diff != "" {
		t.Errorf("enums (-source +list):\n%s", diff)
	}
}

// constants are all constants with a type that the package declares.
func constants(t *testing.T) []*ast.ValueSpec {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var specs []*ast.ValueSpec
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && spec.Type != nil {
				specs = append(specs, spec)
			}
			return true
		})
	}
	return specs
}

// Every kind constant has a decoder, so that the schema knows it.
func TestSchema_HasEveryKindOfTheSource(t *testing.T) {
	for _, spec := range constants(t) {
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != "Kind" {
			continue
		}
		word, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if decoders[Kind(word)] == nil {
			t.Errorf("%s: no decoder reads %s", spec.Names[0], word)
		}
	}
}

func BenchmarkSchema(b *testing.B) {
	j := newJudge(b)
	text := line(b, typicalEvents()["tool_use"])
	b.Run("jsonschema-go", func(b *testing.B) {
		for b.Loop() {
			var value any
			if err := json.Unmarshal(text, &value); err != nil {
				b.Fatal(err)
			}
			if err := j.theirs.Validate(value); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("schema", func(b *testing.B) {
		for b.Loop() {
			if err := j.ours.Validate(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
