// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/schema"
)

// A Base is exported, as encoding/json sets a pointer to it only then.
type Base struct {
	ID   string `json:"id" doc:"from the base"`
	Kind string `json:"kind"`
}

type shadowing struct {
	*Base
	Kind int `json:"kind"`
	//lint:ignore U1000 it must not appear in the schema
	hidden int
	Skip   int `json:"-"`
	//lint:ignore SA5008 the name "-" is what is tested
	Dash  int `json:"-,"` //nolint:staticcheck // the name "-" is what is tested
	Plain bool
}

type (
	ambiguousA struct{ X int }
	ambiguousB struct{ X int }
	ambiguous  struct {
		ambiguousA
		ambiguousB
		Y int
	}
)

type left struct {
	Right *right `json:"right"`
}
type right struct {
	Lefts []left `json:"lefts"`
	Same  *right `json:"same,omitempty"`
}

type panicking struct{ p *int }

func (p panicking) Enum() []string { return []string{string(rune(*p.p))} }

func TestFor_Types(t *testing.T) {
	for _, tc := range []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"string", reflect.TypeFor[string](), `{"type":"string"}`},
		{"pointers in a list", reflect.TypeFor[[]*int](), `{"type":"array","items":{"type":"integer"}}`},
		{"pointers in a map", reflect.TypeFor[map[string]*int](), `{"type":"object","additionalProperties":{"type":"integer"}}`},
		{"pointer root", reflect.TypeFor[**bool](), `{"type":"boolean"}`},
		{"sized integers are bounded", reflect.TypeFor[int8](), `{"type":"integer","minimum":-128,"maximum":127}`},
		{"uint32", reflect.TypeFor[uint32](), `{"type":"integer","minimum":0,"maximum":4294967295}`},
		{"int64 is not", reflect.TypeFor[int64](), `{"type":"integer"}`},
		{"duration", reflect.TypeFor[time.Duration](), `{"type":"integer"}`},
		{"time", reflect.TypeFor[time.Time](), `{"type":"string","format":"date-time"}`},
		{"bytes", reflect.TypeFor[[]byte](), `{"type":"string","contentEncoding":"base64"}`},
		{"text", reflect.TypeFor[netip.Addr](), `{"type":"string"}`},
		{"raw", reflect.TypeFor[json.RawMessage](), `{}`},
		{"any", reflect.TypeFor[any](), `{}`},
		{"enum", reflect.TypeFor[severity](), `{"type":"string","enum":["low","high"]}`},
		{"array", reflect.TypeFor[[3]string](), `{"type":"array","items":{"type":"string"},"minItems":3,"maxItems":3}`},
		{"slices inside have no null", reflect.TypeFor[[][]int](), `{"type":"array","items":{"type":"array","items":{"type":"integer"}}}`},
		{"map", reflect.TypeFor[map[string]*int](), `{"type":"object","additionalProperties":{"type":"integer"}}`},
		{"embedding and shadowing", reflect.TypeFor[shadowing](), `{"type":"object","properties":{"id":{"type":"string","description":"from the base"},"kind":{"type":"integer"},"-":{"type":"integer"},"Plain":{"type":"boolean"}},"required":["id","kind","-","Plain"],"additionalProperties":false}`},
		{"ambiguous names drop out", reflect.TypeFor[ambiguous](), `{"type":"object","properties":{"Y":{"type":"integer"}},"required":["Y"],"additionalProperties":false}`},
		{"recursion", reflect.TypeFor[tree](), `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#"}},"parent":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["name","children"],"additionalProperties":false}`},
		{"mutual recursion", reflect.TypeFor[left](), `{"type":"object","properties":{"right":{"anyOf":[{"$ref":"#/$defs/right"},{"type":"null"}]}},"additionalProperties":false,"$defs":{"right":{"type":"object","properties":{"lefts":{"type":"array","items":{"$ref":"#"}},"same":{"anyOf":[{"$ref":"#/$defs/right"},{"type":"null"}]}},"required":["lefts"],"additionalProperties":false}}}`},
		{"optional fields", reflect.TypeFor[struct {
			A []string       `json:"a"`
			B []string       `json:"b,omitempty"`
			C *int           `json:"c"`
			D *severity      `json:"d"`
			E map[string]int `json:"e,omitzero"`
			F int            `json:"f,omitempty"`
			G int            `json:"g,string"`
		}](), `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":["array","null"],"items":{"type":"string"}},"c":{"type":["integer","null"]},"d":{"type":["string","null"],"enum":["low","high",null]},"e":{"type":["object","null"],"additionalProperties":{"type":"integer"}},"f":{"type":"integer"},"g":{"type":"string"}},"required":["a","g"],"additionalProperties":false}`},
		{"descriptions keep their characters", reflect.TypeFor[struct {
			A string `json:"a" doc:"<b> & \"c\""`
		}](), `{"type":"object","properties":{"a":{"type":"string","description":"<b> & \"c\""}},"required":["a"],"additionalProperties":false}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := schema.ForType(tc.typ)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.String(); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if again, _ := schema.ForType(tc.typ); again != s {
				t.Error("the schema was computed twice")
			}
		})
	}
}

func TestFor_RefusesUnsupportedTypes(t *testing.T) {
	for _, tc := range []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"channel in a list", reflect.TypeFor[struct{ A []chan int }](), ".A[]: a chan has no JSON form"},
		{"function", reflect.TypeFor[func()](), "func"},
		{"complex", reflect.TypeFor[complex64](), "complex64"},
		{"map key", reflect.TypeFor[map[float64]int](), "float64"},
		{"panicking enum", reflect.TypeFor[panicking](), "panics"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := schema.ForType(tc.typ)
			if !errors.Is(err, schema.ErrInvalid) || !strings.Contains(advice.Text(err), tc.want) {
				t.Errorf("got %v, want ErrInvalid with %q", err, tc.want)
			}
		})
	}
}

// What a type's own value marshals to must fit the schema of the type.
func TestFor_FitsMarshalledValues(t *testing.T) {
	fix := "x"
	r := report{
		Summary: "s", Grid: [2][]uint8{{1}, {2}},
		Findings: []finding{{Severity: "low", Tags: []string{}, Fix: &fix, Related: []finding{{Severity: "high", Tags: []string{"t"}}}}},
		Scores:   map[string]float64{"a": 1.5},
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	got, err := schema.Decode[report](mustFor[report](t), raw)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, r) {
		t.Errorf("got %+v, want %+v", got, r)
	}
}

func TestForOutput_Type(t *testing.T) {
	for _, tc := range []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"a pointer has the schema of what it points to", reflect.TypeFor[*int](), `{"type":"integer"}`},
		{"what may be nil may be null", reflect.TypeFor[struct {
			A []string       `json:"a"`
			B map[string]int `json:"b"`
			C *int           `json:"c"`
			D []byte         `json:"d"`
			E any            `json:"e"`
		}](), `{"type":"object","properties":{"a":{"type":["array","null"],"items":{"type":"string"}},"b":{"type":["object","null"],"additionalProperties":{"type":"integer"}},"c":{"type":["integer","null"]},"d":{"type":["string","null"],"contentEncoding":"base64"},"e":{}},"required":["a","b","c","d","e"],"additionalProperties":false}`},
		{"what is left out is not null", reflect.TypeFor[struct {
			A []string `json:"a,omitempty"`
			B *int     `json:"b,omitzero"`
		}](), `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"type":"integer"}},"additionalProperties":false}`},
		{"elements may be null", reflect.TypeFor[map[string][]*bool](), `{"type":"object","additionalProperties":{"type":["array","null"],"items":{"type":["boolean","null"]}}}`},
		{"constraints of elements that may be null", reflect.TypeFor[struct {
			A []*string `json:"a,omitempty" enum:"x,y" maxItems:"2"`
		}](), `{"type":"object","properties":{"a":{"type":"array","items":{"type":["string","null"],"enum":["x","y",null]},"maxItems":2}},"additionalProperties":false}`},
		{"an embedded pointer leaves its fields out", reflect.TypeFor[shadowing](), `{"type":"object","properties":{"id":{"type":"string","description":"from the base"},"kind":{"type":"integer"},"-":{"type":"integer"},"Plain":{"type":"boolean"}},"required":["kind","-","Plain"],"additionalProperties":false}`},
		{"also one that cannot be read", reflect.TypeFor[hiddenPointer](), `{"type":"object","properties":{"A":{"type":"integer"}},"additionalProperties":false}`},
		{"recursion", reflect.TypeFor[tree](), `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":["array","null"],"items":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"parent":{"$ref":"#"}},"required":["name","children"],"additionalProperties":false}`},
		{"what writes itself as text", reflect.TypeFor[netip.Addr](), `{"type":"string"}`},
		{"what writes itself through a pointer may not", reflect.TypeFor[pointerText](), `{}`},
		{"what only reads itself is written by its kind", reflect.TypeFor[readsText](), `{"type":"integer"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := schema.ForOutputType(tc.typ)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.String(); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if again, _ := schema.ForOutputType(tc.typ); again != s {
				t.Error("the schema was computed twice")
			}
		})
	}
}

type pointerText int

func (*pointerText) MarshalText() ([]byte, error) { return []byte("x"), nil }

type readsText int

func (*readsText) UnmarshalText([]byte) error { return nil }
