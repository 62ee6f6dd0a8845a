// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/drover-agents/drover/schema"
)

type (
	inner   struct{ A int }
	celsius int
	code    uint8
)

func (c celsius) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%dC", int(c)), nil }
func (c *celsius) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "%dC", (*int)(c))
	return err
}

func (c code) MarshalText() ([]byte, error)  { return []byte{'c', byte(c)}, nil }
func (c *code) UnmarshalText(b []byte) error { *c = code(b[len(b)-1]); return nil }

// Corners of encoding/json: what it writes for these fits the schema of the output, and what it can
// read back fits that of the input.
func TestFor_CornersOfEncodingJSON(t *testing.T) {
	for _, tc := range []struct {
		name  string
		value any
	}{
		{"an embedded struct with a name", struct {
			inner `json:"in"`
		}{inner{1}}},
		{"a name that encoding/json ignores", struct {
			//lint:ignore SA5008 a name that is ignored is what is tested
			A int `json:"a'b"` //nolint:staticcheck // a name that is ignored is what is tested
		}{1}},
		{"a name that it takes", struct {
			A int `json:"a b/c:d~"`
		}{1}},
		{"quotes that it ignores", struct {
			//lint:ignore SA5008 options that are ignored are what is tested
			A **int `json:",string"` //nolint:staticcheck // options that are ignored are what is tested
			//lint:ignore SA5008 options that are ignored are what is tested
			B []int   `json:",string"` //nolint:staticcheck // options that are ignored are what is tested
			C celsius `json:"c,omitempty,string"`
		}{A: new(new(1)), B: []int{1}}},
		{"quotes that it honours", struct {
			A string   `json:",string"`
			B *bool    `json:",string"`
			C float32  `json:",string"`
			D severity `json:",string"`
		}{A: "x", B: new(true), C: 1.5, D: "low"}},
		{"text as a key", map[celsius]int{20: 1, -3: 2}},
		{"a number as a key", map[uint8]int{0: 1, 255: 2}},
		{"text in a list of bytes", struct{ A []code }{[]code{'x', 'y'}}},
		{"bytes of another name", struct{ A []plainByte }{[]plainByte{1, 2, 250}}},
		{"an array of bytes", [3]byte{1, 2, 3}},
		{"the same name twice", struct {
			inner
			A string
		}{inner{1}, "outer"}},
		{"an address", netip.MustParseAddr("::1")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw, err := json.Marshal(tc.value)
			if err != nil {
				t.Fatal(err)
			}
			for name, of := range map[string]func(reflect.Type) (*schema.Schema, error){"input": schema.ForType, "output": schema.ForOutputType} {
				s, err := of(reflect.TypeOf(tc.value))
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if err := s.Validate(raw); err != nil {
					t.Errorf("%s: %s does not fit %s: %v", name, raw, s, err)
				}
			}
		})
	}
}

type plainByte byte

type grade int

func (grade) Enum() []string               { return []string{"good", "bad"} }
func (grade) MarshalText() ([]byte, error) { return []byte("good"), nil }
func (*grade) UnmarshalText(b []byte) error {
	if string(b) != "good" {
		return errors.New("not good")
	}
	return nil
}

// One field of a kind is enough for a value to be decoded before it passes.
func TestValidate_DecodesKindsThatTheSchemaDoesNotCover(t *testing.T) {
	for _, tc := range []struct {
		typ   reflect.Type
		value string
	}{
		{reflect.TypeFor[struct{ A time.Time }](), `{"A":"x"}`},
		{reflect.TypeFor[struct{ A []byte }](), `{"A":"!"}`},
		{reflect.TypeFor[struct{ A netip.Addr }](), `{"A":"x"}`},
		{reflect.TypeFor[struct{ A bomb }](), `{"A":1}`},
		{reflect.TypeFor[struct{ A grade }](), `{"A":"bad"}`},
		{reflect.TypeFor[struct{ A fmt.Stringer }](), `{"A":1}`},
		{reflect.TypeFor[struct {
			A int `json:",string"`
		}](), `{"A":"x"}`},
		{reflect.TypeFor[map[int8]int](), `{"300":1}`},
		{reflect.TypeFor[map[celsius]int](), `{"x":1}`},
		{reflect.TypeFor[[]float32](), `[1e39]`},
		{reflect.TypeFor[[]int](), `[1.0]`},
		{reflect.TypeFor[[]int8](), `[1e1]`},
		{reflect.TypeFor[[]uint](), `[-0]`},
		{reflect.TypeFor[[]int64](), `[9223372036854775808]`},
		{reflect.TypeFor[[]uint64](), `[18446744073709551616]`},
	} {
		s, err := schema.ForType(tc.typ)
		if err != nil {
			t.Errorf("%s: %v", tc.typ, err)
			continue
		}
		var wrong *schema.ValidationError
		if err := s.Validate(json.RawMessage(tc.value)); !errors.As(err, &wrong) || wrong.Violations[0].Keyword != "decode" {
			t.Errorf("%s: %s: got %v, want that it does not decode", tc.typ, tc.value, err)
		}
	}
}
