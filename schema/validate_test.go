// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/drover-agents/drover/advice"
)

func TestValidate_ReportsEveryProblem(t *testing.T) {
	for _, tc := range []struct {
		name, schema, value string
		want                []string // pointer, keyword
	}{
		{
			"all at once", `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"array","items":{"type":"string","maxLength":2}},"c":{"enum":["x","y"]}},"required":["a","z"],"additionalProperties":false}`,
			`{"a":"1","b":["ok",3,"long"],"c":"q","d/e":1}`,
			[]string{" required", "/a type", "/b/1 type", "/b/2 maxLength", "/c enum", "/d~1e additionalProperties"},
		},
		{"no JSON", `{}`, `{"a":`, []string{" json"}},
		{"wrong root", `{"type":"object","required":["a"]}`, `[]`, []string{" type"}},
		{
			"numbers", `{"items":{"minimum":2,"maximum":4,"exclusiveMinimum":2,"exclusiveMaximum":4,"multipleOf":2}}`, `[1,2,4,5,"x"]`,
			[]string{"/0 minimum", "/0 exclusiveMinimum", "/0 multipleOf", "/1 exclusiveMinimum", "/2 exclusiveMaximum", "/3 maximum", "/3 exclusiveMaximum", "/3 multipleOf"},
		},
		{"tuple", `{"prefixItems":[{"type":"string"},{"type":"null"}],"items":{"type":"integer"}}`, `[1,2,3,"x"]`, []string{"/0 type", "/1 type", "/3 type"}},
		{"old tuple", `{"items":[{"type":"string"}],"additionalItems":false}`, `["a",1]`, []string{"/1 false"}},
		{"text", `{"minLength":3,"pattern":"^a"}`, `"é"`, []string{" minLength", " pattern"}},
		{"lengths count characters", `{"maxLength":2}`, `"éé"`, nil},
		{"unique", `{"uniqueItems":true,"minItems":4}`, `[{"a":1,"b":2},{"b":2,"a":1},1]`, []string{" minItems", " uniqueItems"}},
		{"contains", `{"contains":{"type":"integer"},"minContains":2,"maxContains":2}`, `[1,2,3]`, []string{" maxContains"}},
		{"contains none", `{"contains":{"type":"integer"}}`, `["a"]`, []string{" contains"}},
		{"names and patterns", `{"propertyNames":{"maxLength":1},"patternProperties":{"^n":{"type":"number"}}}`, `{"n":"x","no":1}`, []string{"/n type", "/no maxLength"}},
		{"names inside of a list", `{"items":{"propertyNames":{"maxLength":1}}}`, `[{"no":1},{"n":1},{"not":1},{}]`, []string{"/0/no maxLength", "/2/not maxLength"}},
		{"a value and more", `{"items":{"const":"x","enum":["x"],"minLength":3,"pattern":"^x"}}`, `["q"]`, []string{"/0 const", "/0 enum", "/0 minLength", "/0 pattern"}},
		{"sizes", `{"minProperties":2}`, `{"a":1}`, []string{" minProperties"}},
		{
			"dependencies", `{"dependentRequired":{"a":["b"]},"dependencies":{"a":["c"],"x":false},"dependentSchemas":{"a":{"maxProperties":0}}}`, `{"a":1}`,
			[]string{" dependentRequired", " dependentRequired", " maxProperties"},
		},
		{"all of", `{"allOf":[{"minimum":3},{"type":"string"}]}`, `1`, []string{" minimum", " type"}},
		{"any of, one kind meant", `{"anyOf":[{"type":"null"},{"type":"object","required":["a"]}]}`, `{}`, []string{" required"}},
		{"any of, distinguished by a constant", `{"oneOf":[{"properties":{"k":{"const":"x"},"v":{"type":"string"}}},{"properties":{"k":{"const":"y"},"v":{"type":"integer"}}}]}`, `{"k":"y","v":"s"}`, []string{"/v type"}},
		{"any of, none", `{"anyOf":[{"minLength":3},{"pattern":"x"}]}`, `"a"`, []string{" anyOf"}},
		{"one of, two", `{"oneOf":[{},true]}`, `1`, []string{" oneOf"}},
		{"not", `{"not":{"type":"null"}}`, `null`, []string{" not"}},
		{"if then", `{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{"a":1}`, []string{" required"}},
		{"if else", `{"if":{"required":["a"]},"then":{"required":["b"]},"else":{"required":["c"]}}`, `{}`, []string{" required"}},
		{"recursion", `{"type":"object","properties":{"next":{"$ref":"#"},"v":{"type":"integer"}}}`, `{"next":{"next":{"v":"x"}}}`, []string{"/next/next/v type"}},
		{"sibling of a reference", `{"$ref":"#/$defs/s","minLength":2,"$defs":{"s":{"type":"string"}}}`, `"a"`, []string{" minLength"}},
		{"integer written as a decimal", `{"type":"integer"}`, `2.0`, nil},
		{"unevaluated properties", `{"allOf":[{"properties":{"a":{"type":"string"}}}],"unevaluatedProperties":false}`, `{"a":1,"c":2,"b":1}`, []string{"/a type", "/b unevaluatedProperties", "/c unevaluatedProperties"}},
		{"unevaluated properties, fine", `{"allOf":[{"properties":{"a":{"type":"string"}}}],"unevaluatedProperties":false}`, `{"a":"x"}`, nil},
		{"unevaluated properties with a schema", `{"$ref":"#/$defs/a","unevaluatedProperties":{"type":"null"},"$defs":{"a":{"properties":{"a":true}}}}`, `{"a":1,"b":null,"c":3}`, []string{"/c type"}},
		{"unevaluated items", `{"prefixItems":[{}],"contains":{"type":"null"},"unevaluatedItems":false}`, `[1,null,2]`, []string{"/2 false"}},
		{"unevaluated in alternatives", unevaluatedAlternatives, `{"b":1}`, nil},
		{"unevaluated in no alternative", unevaluatedAlternatives, `{"a":1,"b":1}`, []string{" oneOf"}},
		{"unevaluated under not", `{"not":{"unevaluatedProperties":{"type":"integer"}}}`, `{"a":null}`, nil},
		{"unevaluated in a condition", `{"if":{"unevaluatedProperties":false},"then":false,"else":{"required":["b"]}}`, `{"a":1}`, []string{" required"}},
		{"only what fits is evaluated", `{"anyOf":[{"properties":{"a":{"type":"null"}}},{"properties":{"b":true}},{"properties":{"c":true}}],"unevaluatedProperties":false}`, `{"a":1,"b":1,"c":1}`, []string{"/a unevaluatedProperties"}},
		{"not what is beside", `{"properties":{"a":true},"allOf":[{"unevaluatedProperties":false}]}`, `{"a":1}`, []string{"/a unevaluatedProperties"}},
		{"not inside of a property", `{"properties":{"a":{"properties":{"b":true}}},"unevaluatedProperties":false}`, `{"a":{"b":1},"b":1}`, []string{"/b unevaluatedProperties"}},
		{"old and new dependencies", `{"dependencies":{"a":{"properties":{"a":true}}},"dependentSchemas":{"a":{"properties":{"b":true}}},"unevaluatedProperties":false}`, `{"a":1,"b":1}`, nil},
		{"const and enum of objects", `{"items":{"enum":[{"a":[1]},null]},"not":{"const":[]}}`, `[{"a":[1]},{"a":[2]},null]`, []string{"/1 enum"}},
		{"multiples as people write them", `{"items":{"multipleOf":0.01}}`, `[0.07,19.99,-0.3,0.005,0,1e300]`, []string{"/3 multipleOf"}},
		{"multiples of whole numbers", `{"items":{"multipleOf":3}}`, `[9007199254740993,9,10]`, []string{"/0 multipleOf", "/2 multipleOf"}},
		{"a property twice", `{}`, `{"a":[{"b":1,"c":2,"\u0062":3}]}`, []string{"/a/0 json"}},
		{"no UTF-8", `{}`, "\"\xff\"", []string{" json"}},
		{"out of range", `{}`, `[1e400]`, []string{"/0 json"}},
		{"every kind of value", `{}`, ` { "a" : [ true , false , null , -1.5e+3 , "\u00e9\n\"" , [ ] , { } ] } `, nil},
		{"as deep as allowed", `{}`, strings.Repeat("[", maxValueDepth+1) + strings.Repeat("]", maxValueDepth+1), nil},
		{"too deep", `{}`, strings.Repeat("[", maxValueDepth+2) + strings.Repeat("]", maxValueDepth+2), []string{"/0 json"}},
		{"format is not enforced", `{"format":"date-time"}`, `"yesterday"`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := MustParse(tc.schema).Validate(json.RawMessage(tc.value))
			if diff := cmp.Diff(tc.want, violations(t, err)); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// violations gives the places and keywords of an error.
func violations(t *testing.T, err error) (got []string) {
	t.Helper()
	var all *ValidationError
	if errors.As(err, &all) {
		for _, v := range all.Violations {
			got = append(got, v.Pointer+" "+v.Keyword)
			if v.Message == "" || !strings.Contains(advice.Text(err), v.String()) {
				t.Errorf("violation %+v is not in the text %q", v, err)
			}
		}
	} else if err != nil {
		t.Fatalf("got %T, want *ValidationError", err)
	}
	return got
}

func TestValidateDoubles_RefusesWholeNumbersThatMayBeRounded(t *testing.T) {
	for _, tc := range []struct {
		name, schema, value string
		want                []string
	}{
		{"within", `{"items":{"type":"integer"}}`, `[9007199254740991,-9007199254740991,0]`, nil},
		{"beyond", `{"items":{"type":"integer"}}`, `[9007199254740992,-9007199254740992,1e21]`, []string{"/0 doubles", "/1 doubles", "/2 doubles"}},
		{"number", `{"items":{"type":"number"}}`, `[9007199254740992,1e300]`, nil},
		{"number behind a reference", `{"$defs":{"n":{"type":"number"}},"items":{"$ref":"#/$defs/n"}}`, `[1e300]`, nil},
		{"number or nothing", `{"items":{"anyOf":[{"type":"null"},{"type":"number"}]}}`, `[1e300,null]`, nil},
		{"integer or nothing", `{"items":{"anyOf":[{"type":"null"},{"type":"integer"}]}}`, `[1e300,null]`, []string{"/0 doubles"}},
		{"not described", `{"type":"object"}`, `{"a":{"b~":[1,9007199254740993]}}`, []string{"/a/b~0/1 doubles"}},
		{"whole value", `{}`, `9007199254740993`, []string{" doubles"}},
		{"text", `{}`, `"9007199254740993"`, nil},
		{"with a fraction", `{}`, `4503599627370496.5`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := MustParse(tc.schema)
			if diff := cmp.Diff(tc.want, violations(t, s.ValidateDoubles(json.RawMessage(tc.value)))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if err := s.Validate(json.RawMessage(tc.value)); err != nil {
				t.Errorf("Validate: %v", err)
			}
		})
	}
}

// A schema of a few lines whose references double at each step must not cost doubling time.
func TestValidate_DoublingReferencesAreBounded(t *testing.T) {
	var defs []string
	for i := range 60 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	chain := `"$defs":{` + strings.Join(defs, ",") + `,"d60":{"type":"integer"}}`
	for _, tc := range []struct{ name, schema, value string }{
		{"in place", `{"$ref":"#/$defs/d0",` + chain + `}`, `1`},
		{"under not", `{"not":{"$ref":"#/$defs/d0"},` + chain + `}`, `1`},
		{"into the value", `{"additionalProperties":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := MustParse(tc.schema).Validate(json.RawMessage(tc.value))
			var all *ValidationError
			if !errors.As(err, &all) || len(all.Violations) != 1 || all.Violations[0].Keyword != "effort" {
				t.Errorf("got %v, want one violation of kind effort", err)
			}
		})
	}
	// What is large but does not multiply is checked.
	if err := MustParse(`{"items":{"type":"integer"}}`).Validate(json.RawMessage("[1" + strings.Repeat(",1", 1_500_000) + "]")); err != nil {
		t.Error(err)
	}
}

func TestError_TextIsBounded(t *testing.T) {
	value := "[" + strings.Repeat(`"x",`, 999) + `"x"]`
	err := MustParse(`{"items":{"type":"null"}}`).Validate(json.RawMessage(value))
	var all *ValidationError
	if !errors.As(err, &all) || len(all.Violations) != 1000 {
		t.Fatalf("got %v", err)
	}
	if !strings.HasSuffix(advice.Text(err), "and 950 more") {
		t.Errorf("got text of %d bytes that ends %q", len(err.Error()), err.Error()[len(err.Error())-40:])
	}
}

func TestDecode_KeepsGoErrors(t *testing.T) {
	type when struct {
		T string `json:"t"`
		N int64  `json:"n"`
	}
	s, err := For[when]()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Decode[when](s, json.RawMessage(`{"t":"a","n":1.0}`))
	var all *ValidationError
	if !errors.As(err, &all) || all.Violations[0].Keyword != "decode" {
		t.Errorf("got %v, want a violation of kind decode", err)
	}
}

const unevaluatedAlternatives = `{"oneOf":[{"properties":{"a":true},"unevaluatedProperties":false},{"properties":{"b":true},"unevaluatedProperties":false}]}`

var differentialSchemas = []string{
	`{"type":"integer"}`, `{"type":["string","null"]}`, `{"enum":[1,"a",null,{"a":1}]}`, `{"const":[1]}`,
	`{"minimum":1,"exclusiveMaximum":3}`, `{"multipleOf":2}`, `{"minLength":1,"maxLength":2,"pattern":"a"}`,
	`{"items":{"type":"integer"},"minItems":1,"maxItems":2,"uniqueItems":true}`,
	`{"prefixItems":[{"type":"integer"}],"items":{"type":"string"}}`,
	`{"contains":{"type":"integer"}}`, `{"contains":{"type":"integer"},"minContains":0,"maxContains":1}`,
	`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`,
	`{"patternProperties":{"^a":{"type":"integer"}},"additionalProperties":{"type":"string"},"propertyNames":{"maxLength":1}}`,
	`{"minProperties":1,"maxProperties":1}`, `{"dependentRequired":{"a":["b"]},"dependentSchemas":{"b":{"maxProperties":1}}}`,
	`{"anyOf":[{"type":"string"},{"minimum":2}]}`, `{"oneOf":[{"type":"integer"},{"minimum":2}]}`,
	`{"allOf":[{"type":"integer"},{"minimum":2}]}`, `{"not":{"type":"string"}}`,
	`{"if":{"type":"integer"},"then":{"minimum":2},"else":{"type":"string"}}`,
	`{"$defs":{"n":{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"additionalProperties":false}},"$ref":"#/$defs/n"}`,
	`true`, `{}`, `{"not":true}`, unevaluatedAlternatives, `{"unevaluatedProperties":{"type":"integer"},"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":true}}]}`,
	`{"prefixItems":[{"type":"integer"}],"contains":{"type":"string"},"unevaluatedItems":false}`, `{"if":{"unevaluatedItems":false,"prefixItems":[true]},"else":{"maxItems":2}}`,
}

var differentialValues = []string{
	`null`, `true`, `0`, `1`, `2`, `2.5`, `4`, `-1`, `""`, `"a"`, `"aaa"`, `"é"`, `[]`, `[1]`, `[1,1]`, `[1,"a"]`, `["a"]`, `[1,2,3]`,
	`{}`, `{"a":1}`, `{"a":"x"}`, `{"b":1}`, `{"a":1,"b":2}`, `{"a":{"a":{}}}`, `{"a":{"b":1}}`, `{"ab":1}`, `{"c":"x"}`, `[[1]]`, `[{"a":1}]`,
}

func library(tb testing.TB, s *Schema) *jsonschema.Resolved {
	tb.Helper()
	var lib jsonschema.Schema
	if err := json.Unmarshal(s.JSON(), &lib); err != nil {
		tb.Fatal(err)
	}
	resolved, err := lib.Resolve(nil)
	if err != nil {
		tb.Fatalf("%s: %v", s, err)
	}
	return resolved
}

// The walk and the library must agree about what is valid.
func TestWalk_AgreesWithTheLibrary(t *testing.T) {
	for _, text := range differentialSchemas {
		s := MustParse(text)
		lib := library(t, s)
		for _, value := range differentialValues {
			var v any
			if err := json.Unmarshal([]byte(value), &v); err != nil {
				t.Fatal(err)
			}
			got, want := s.Validate(json.RawMessage(value)), lib.Validate(v)
			if (got == nil) != (want == nil) {
				t.Errorf("schema %s, value %s: walk returns %v, library returns %v", text, value, got, want)
			}
		}
	}
}

func FuzzValidate(f *testing.F) {
	for i, v := range differentialValues {
		f.Add(uint8(i), []byte(v))
	}
	f.Fuzz(func(t *testing.T, which uint8, value []byte) {
		s := MustParse(differentialSchemas[int(which)%len(differentialSchemas)])
		v, _, wrong := readValue(value)
		var same any
		if err := json.Unmarshal(value, &same); wrong == nil && (err != nil || !reflect.DeepEqual(v, same)) {
			t.Fatalf("%q: read as %v, encoding/json returns %v, %v", value, v, same, err)
		}
		if wrong != nil {
			return
		}
		if got, want := s.Validate(value), library(t, s).Validate(v); (got == nil) != (want == nil) {
			t.Errorf("schema %s, value %s: walk returns %v, library returns %v", s, value, got, want)
		}
	})
}

type benchArgs struct {
	Path    string   `json:"path"`
	Offset  int      `json:"offset,omitempty"`
	Limit   *int     `json:"limit"`
	Tags    []string `json:"tags"`
	Nested  []struct{ A, B string }
	Verbose bool `json:"verbose"`
}

const benchValue = `{"path":"internal/x.go","offset":12,"limit":200,"tags":["a","b"],"Nested":[{"A":"x","B":"y"},{"A":"z","B":"w"}],"verbose":true}`

func BenchmarkValidate(b *testing.B) {
	s, err := For[benchArgs]()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("walk", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Validate(json.RawMessage(benchValue)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v any
			if err := json.Unmarshal([]byte(benchValue), &v); err != nil {
				b.Fatal(err)
			}
		}
	})
	lib := library(b, s)
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v any
			if err := json.Unmarshal([]byte(benchValue), &v); err != nil {
				b.Fatal(err)
			}
			if err := lib.Validate(v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestProperties_KeepTheirOrder(t *testing.T) {
	for text, want := range map[string][]string{
		`{"type":"object","properties":{"b":{"type":"object","properties":{"x":{}}},"a":true}}`: {"b", "a"},
		`{"type":"object","properties":{}}`:                                                     nil,
		`{"type":"object"}`:                                                                     nil,
		`true`:                                                                                  nil,
	} {
		if diff := cmp.Diff(want, MustParse(text).Properties()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", text, diff)
		}
	}
}
