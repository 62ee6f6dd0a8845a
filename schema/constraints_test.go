// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/schema"
)

// property cuts the schema of the one property out of that of a struct with one field.
func property(t *testing.T, s *schema.Schema) string {
	t.Helper()
	var doc struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(s.JSON(), &doc); err != nil || len(doc.Properties) != 1 {
		t.Fatalf("%s: want one property, got error %v", s, err)
	}
	for _, sub := range doc.Properties {
		return string(sub)
	}
	return ""
}

type ring []ring

func TestFor_TagsBecomeConstraints(t *testing.T) {
	for _, tc := range []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"bounds of a number", reflect.TypeFor[struct {
			A float64 `minimum:"-1.5" maximum:"2e3" multipleOf:"0.5"`
		}](), `{"type":"number","minimum":-1.5,"maximum":2e3,"multipleOf":0.5}`},
		{"exclusive bounds stand beside the bounds of the type", reflect.TypeFor[struct {
			A uint8 `exclusiveMinimum:"0" exclusiveMaximum:"100"`
		}](), `{"type":"integer","minimum":0,"maximum":255,"exclusiveMinimum":0,"exclusiveMaximum":100}`},
		{"a tag narrows the bounds of the type", reflect.TypeFor[struct {
			A int8 `minimum:"1" maximum:"10"`
		}](), `{"type":"integer","minimum":1,"maximum":10}`},
		{"length, pattern and format", reflect.TypeFor[struct {
			A string `minLength:"1" maxLength:"8" pattern:"^[a-z]+$" format:"hostname"`
		}](), `{"type":"string","minLength":1,"maxLength":8,"pattern":"^[a-z]+$","format":"hostname"}`},
		{"enum of strings", reflect.TypeFor[struct {
			A string `enum:"low, high"`
		}](), `{"type":"string","enum":["low","high"]}`},
		{"enum of numbers", reflect.TypeFor[struct {
			A int `enum:"1,2,3"`
		}](), `{"type":"integer","enum":[1,2,3]}`},
		{"enum of a type that has one is narrower", reflect.TypeFor[struct {
			A severity `enum:"high"`
		}](), `{"type":"string","enum":["high"]}`},
		{"an optional enum may be null", reflect.TypeFor[struct {
			A *string `enum:"a,b"`
		}](), `{"type":["string","null"],"enum":["a","b",null]}`},
		{"sizes of a list", reflect.TypeFor[struct {
			A []bool `minItems:"1" maxItems:"3" uniqueItems:"true"`
		}](), `{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":3,"uniqueItems":true}`},
		{"what is about strings is about the elements", reflect.TypeFor[struct {
			A []string `minItems:"1" minLength:"2" pattern:"a" enum:"ab,ba"`
		}](), `{"type":"array","items":{"type":"string","enum":["ab","ba"],"minLength":2,"pattern":"a"},"minItems":1}`},
		{"and of numbers in an array", reflect.TypeFor[struct {
			A [2]uint8 `maximum:"9"`
		}](), `{"type":"array","items":{"type":"integer","minimum":0,"maximum":9},"minItems":2,"maxItems":2}`},
		{"sizes of a map", reflect.TypeFor[struct {
			A map[string]int `minProperties:"1" maxProperties:"2"`
		}](), `{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2}`},
		{"beside a reference", reflect.TypeFor[struct {
			A ring `maxItems:"2"`
		}](), `{"$ref":"#/$defs/ring","maxItems":2}`},
		{"default and examples", reflect.TypeFor[struct {
			A int `default:"5" examples:"1, 7" json:",omitempty"`
		}](), `{"type":"integer","examples":[1,7],"default":5}`},
		{"the default of a string is no JSON", reflect.TypeFor[struct {
			A string `default:"a, b"`
		}](), `{"type":"string","default":"a, b"}`},
		{"an empty default", reflect.TypeFor[struct {
			A string `default:""`
		}](), `{"type":"string","default":""}`},
		{"the default of a list", reflect.TypeFor[struct {
			A []string `default:"[\"x\"]" json:",omitempty"`
		}](), `{"type":["array","null"],"items":{"type":"string"},"default":["x"]}`},
		{"time keeps its format", reflect.TypeFor[struct {
			A time.Time `pattern:"Z$"`
		}](), `{"type":"string","format":"date-time","pattern":"Z$"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := schema.ForType(tc.typ)
			if err != nil {
				t.Fatal(err)
			}
			if got := property(t, s); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

type embedsWithTag struct {
	Base `minProperties:"1"`
}

type hiddenPointer struct {
	*hiddenBase
}

type hiddenBase struct{ A int }

type numberWithEnum int

func (numberWithEnum) Enum() []string { return []string{"one"} }

func TestFor_RefusesTagsThatDoNotFit(t *testing.T) {
	for _, tc := range []struct {
		name string
		typ  reflect.Type
		want string
	}{
		{"a length of a number", reflect.TypeFor[struct {
			A int `minLength:"1"`
		}](), ".A: the tag minLength is about a string, and does not fit a int"},
		{"a bound of a string", reflect.TypeFor[struct {
			A string `minimum:"1"`
		}](), "the tag minimum is about an integer or a number"},
		{"a bound of a boolean", reflect.TypeFor[struct {
			A bool `maximum:"1"`
		}](), "does not fit a bool"},
		{"a pattern of a map", reflect.TypeFor[struct {
			A map[string]string `pattern:"a"`
		}](), "does not fit a map[string]string"},
		{"a pattern of lists of lists", reflect.TypeFor[struct {
			A [][]string `pattern:"a"`
		}](), "does not fit a [][]string"},
		{"anything of anything", reflect.TypeFor[struct {
			A any `minLength:"1"`
		}](), "does not fit a interface {}"},
		{"no number", reflect.TypeFor[struct {
			A int `minimum:"low"`
		}](), `.A: the tag minimum is "low", which is no number`},
		{"a number out of range", reflect.TypeFor[struct {
			A float64 `maximum:"1e400"`
		}](), "no number"},
		{"half a count", reflect.TypeFor[struct {
			A string `minLength:"1.5"`
		}](), "must be a whole number"},
		{"a negative count", reflect.TypeFor[struct {
			A []int `maxItems:"-1"`
		}](), "must be a whole number"},
		{"no regular expression", reflect.TypeFor[struct {
			A string `pattern:"["`
		}](), ".A: the tag pattern is no regular expression"},
		{"a zero factor", reflect.TypeFor[struct {
			A int `multipleOf:"0"`
		}](), "above zero"},
		{"neither true nor false", reflect.TypeFor[struct {
			A []int `uniqueItems:"yes"`
		}](), "must be true or false"},
		{"wider than the type", reflect.TypeFor[struct {
			A int8 `maximum:"1000"`
		}](), "the tag maximum is 1000, but a int8 has maximum 127"},
		{"wider than the array", reflect.TypeFor[struct {
			A [3]int `minItems:"1"`
		}](), "can only narrow"},
		{"an empty range", reflect.TypeFor[struct {
			A int `minimum:"5" maximum:"4"`
		}](), "minimum is above maximum"},
		{"an empty range of elements", reflect.TypeFor[struct {
			A []string `minLength:"5" maxLength:"4"`
		}](), "minLength is above maxLength"},
		{"another format", reflect.TypeFor[struct {
			A time.Time `format:"date"`
		}](), `has the format "date-time"`},
		{"an enum that is not of the type", reflect.TypeFor[struct {
			A severity `enum:"middle"`
		}](), `has "middle", which is not a value of`},
		{"an enum out of range", reflect.TypeFor[struct {
			A uint8 `enum:"1,256"`
		}](), `has "256", which is no uint8`},
		{"an enum with nothing in it", reflect.TypeFor[struct {
			A string `enum:"a,,b"`
		}](), `has "", which is no string`},
		{"an enum with one value twice", reflect.TypeFor[struct {
			A string `enum:"a,a"`
		}](), `has "a" twice`},
		{"a default that is no JSON", reflect.TypeFor[struct {
			A int `default:"five"`
		}](), "no JSON"},
		{"a default of another type", reflect.TypeFor[struct {
			A int `default:"true"`
		}](), "the tag default is true, which does not fit"},
		{"a default that breaks the constraints", reflect.TypeFor[struct {
			A int `default:"5" maximum:"4"`
		}](), "must be at most 4"},
		{"a tag that would be lost", reflect.TypeFor[embedsWithTag](), "embedsWithTag.Base: the tag minProperties is on an embedded struct"},
		{"a field that cannot be set", reflect.TypeFor[hiddenPointer](), "hiddenPointer.A: it is in an embedded pointer to an unexported struct"},
		{"strings for a number", reflect.TypeFor[numberWithEnum](), "has an Enum of strings but is no string"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := schema.ForType(tc.typ)
			var at *schema.LocationError
			if !errors.As(err, &at) || !errors.Is(err, schema.ErrInvalid) || !strings.Contains(advice.Text(err), tc.want) {
				t.Errorf("got %v, want a LocationError of ErrInvalid with %q", err, tc.want)
			}
		})
	}
}
