// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/schema"
)

func TestForCLI_Cases(t *testing.T) {
	for _, tc := range cliCases(t) {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.schema.Validate(json.RawMessage(tc.sample)); err != nil {
				t.Errorf("the sample does not fit the schema itself: %v", err)
			}
			got, wrapped, err := schema.ForCLI(tc.schema)
			if err != nil {
				t.Fatal(err)
			}
			if wrapped != tc.wrapped {
				t.Errorf("wrapped: got %v, want %v in %s", wrapped, tc.wrapped, got)
			}
			if tc.want != "" && string(got) != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if again, _, _ := schema.ForCLI(tc.schema); string(again) != string(got) {
				t.Errorf("second call differs: %s", again)
			}
			if _, err := schema.Decode[any](tc.schema, cliAnswer(tc)); err != nil {
				t.Errorf("decoding the CLI's form: %v", err)
			}
		})
	}
}

// cliAnswer is the sample as the CLI would give it back.
func cliAnswer(tc cliCase) json.RawMessage {
	if tc.wrapped {
		return json.RawMessage(`{"value":` + tc.sample + `}`)
	}
	return json.RawMessage(tc.sample)
}

func TestForCLI_RefusesUnsupportedSchemas(t *testing.T) {
	for _, tc := range []struct{ name, schema, place string }{
		{"unevaluated properties", `{"type":"object","properties":{"a":{"type":"object","unevaluatedProperties":false}}}`, "#/properties/a/unevaluatedProperties"},
		{"minContains", `{"type":"object","$defs":{"q":{"contains":true,"minContains":2}}}`, "#/$defs/q/minContains"},
		{"maxContains", `{"type":"array","contains":true,"maxContains":2}`, "#/maxContains"},
		{"flags in a pattern", `{"type":"object","properties":{"a/b":{"pattern":"(?i)x"}}}`, "#/properties/a~1b/pattern"},
		{"posix class", `{"patternProperties":{"[[:alpha:]]":true}}`, "#/patternProperties/[[:alpha:]]"},
		{"reference to a place that moves", `{"type":"object","properties":{"a":{"prefixItems":[{"type":"string"}]},"b":{"$ref":"#/properties/a/prefixItems/0"}}}`, "#/properties/b/$ref"},
		{"nothing fits", `false`, "#"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := schema.ForCLI(schema.MustParse(tc.schema))
			var at *schema.LocationError
			if !errors.As(err, &at) || !errors.Is(err, schema.ErrNotForCLI) {
				t.Fatalf("got %v, want a LocationError of ErrNotForCLI", err)
			}
			if at.Location != tc.place {
				t.Errorf("place: got %s, want %s", at.Location, tc.place)
			}
		})
	}
}

func TestParse_RefusesInvalidSchemas(t *testing.T) {
	for _, tc := range []struct{ name, schema, want string }{
		{"no JSON", `{`, "EOF"},
		{"two values", `{} {}`, "follows"},
		{"a list", `[]`, "a schema is an object"},
		{"twice the same member", `{"type":"string","type":"null"}`, "twice"},
		{"bad type", `{"properties":{"a":{"type":"strin"}}}`, `#/properties/a/type: unknown type "strin"`},
		{"remote reference", `{"$ref":"https://example.com/a.json"}`, "leaves the schema"},
		{"reference to nowhere", `{"$ref":"#/$defs/x"}`, "no schema at"},
		{"reference into a value", `{"enum":[{}],"not":{"$ref":"#/enum/0"}}`, "no schema at"},
		{"circle", `{"$ref":"#"}`, "circle"},
		{"long circle", `{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"dependentSchemas":{"x":{"$ref":"#/$defs/a"}}}}}`, "circle"},
		{"dynamic reference", `{"$dynamicRef":"#x"}`, "not supported"},
		{"inner id", `{"properties":{"a":{"$id":"urn:q"}}}`, "only at the root"},
		{"old dialect", `{"$schema":"http://json-schema.org/draft-04/schema#"}`, "unknown dialect"},
		{"bad pattern", `{"pattern":"(?=x)"}`, "look-around"},
		{"bad bound", `{"minLength":-1}`, "whole number"},
		{"bad multiple", `{"multipleOf":0}`, "above zero"},
		{"empty enum", `{"enum":[]}`, "at least one"},
		{"repeated enum", `{"enum":[1,1.0]}`, "twice"},
		{"repeated required", `{"required":["a","a"]}`, "twice"},
		{"title of the wrong type", `{"title":3}`, "must be a string"},
		{"too deep", strings.Repeat(`{"not":`, 300) + `{}` + strings.Repeat(`}`, 300), "nested more than"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := schema.Parse(json.RawMessage(tc.schema))
			if !errors.Is(err, schema.ErrInvalid) || !strings.Contains(advice.Text(err), tc.want) {
				t.Errorf("got %v, want ErrInvalid with %q", err, tc.want)
			}
		})
	}
}

func TestUnwrap_LeavesOtherValues(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"value":[1]}`, `[1]`},
		{`{"value":null}`, `null`},
		{`{"value":1,"b":2}`, `{"value":1,"b":2}`},
		{`[1]`, `[1]`},
		{`oops`, `oops`},
	} {
		if got := string(schema.Unwrap(json.RawMessage(tc.in))); got != tc.want {
			t.Errorf("Unwrap(%s) = %s, want %s", tc.in, got, tc.want)
		}
	}
}

func FuzzForCLI(f *testing.F) {
	for _, tc := range cliCases(f) {
		f.Add([]byte(tc.schema.JSON()))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := schema.Parse(text)
		if err != nil {
			if !errors.Is(err, schema.ErrInvalid) {
				t.Fatalf("unclassified error: %v", err)
			}
			return
		}
		if again, err := schema.Parse(s.JSON()); err != nil || string(again.JSON()) != string(s.JSON()) {
			t.Fatalf("the schema's own JSON does not parse to itself: %v\n%s", err, s.JSON())
		}
		out, _, err := schema.ForCLI(s)
		if err != nil {
			if !errors.Is(err, schema.ErrNotForCLI) {
				t.Fatalf("unclassified error: %v", err)
			}
			return
		}
		if !json.Valid(out) || !strings.Contains(string(out), `"type":"object"`) {
			t.Fatalf("not an object schema: %s", out)
		}
		_ = s.Validate(json.RawMessage(`{"value":[1,"a",null]}`))
	})
}
