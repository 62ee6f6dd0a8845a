// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	_ "github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/schema"
)

// rich has every kind of field that the schema of a Go type knows.
type rich struct {
	Base
	*Extras
	Name    string            `json:"name" minLength:"1" maxLength:"20"`
	Count   int               `json:"count,omitempty" minimum:"-5"`
	Small   int8              `json:"small"`
	Wide    uint64            `json:"wide,omitzero"`
	Ratio   float32           `json:"ratio"`
	Level   string            `json:"level" enum:"low,high"`
	Tags    []string          `json:"tags"`
	More    []string          `json:"more,omitempty" maxItems:"3" uniqueItems:"true"`
	Zero    []int             `json:"zero,omitzero"`
	Blob    []byte            `json:"blob"`
	Labels  map[string]*int   `json:"labels"`
	Numbers map[int16]bool    `json:"numbers,omitempty"`
	When    time.Time         `json:"when"`
	Until   *time.Time        `json:"until,omitempty"`
	Address netip.Addr        `json:"address"`
	Quoted  int64             `json:"quoted,string"`
	Maybe   *int              `json:"maybe,string"`
	Number  json.Number       `json:"number"`
	Pair    [2]*bool          `json:"pair"`
	Next    *rich             `json:"next"`
	Nodes   []*node           `json:"nodes"`
	ByName  map[string][]node `json:"byName"`
	Any     any               `json:"any"`
	Case    string            `json:"Case"`
	Lower   string            `json:"case"`
}

type Extras struct {
	Extra  string `json:"extra"`
	Extra2 []byte `json:"extra2,omitempty"`
}

type node struct {
	Value    int     `json:"value"`
	Children []*node `json:"children"`
}

func genNode(depth int) *rapid.Generator[*node] {
	return rapid.Custom(func(t *rapid.T) *node {
		if rapid.Bool().Draw(t, "nil") {
			return nil
		}
		n := &node{Value: rapid.Int().Draw(t, "value")}
		if depth > 0 && rapid.Bool().Draw(t, "children") {
			n.Children = rapid.SliceOfN(genNode(depth-1), 0, 2).Draw(t, "list")
		}
		return n
	})
}

// orNil gives the zero value of a type now and then.
func orNil[T any](g *rapid.Generator[T]) *rapid.Generator[T] {
	return rapid.OneOf(rapid.Just(*new(T)), g)
}

func genTime() *rapid.Generator[time.Time] {
	return rapid.Map(rapid.Int64Range(-60_000_000_000, 200_000_000_000), func(s int64) time.Time { return time.Unix(s, s).UTC() })
}

func genRich(depth int) *rapid.Generator[*rich] {
	return rapid.Custom(func(t *rapid.T) *rich {
		r := &rich{
			Base: Base{ID: rapid.String().Draw(t, "id")},
			Name: rapid.StringN(1, 20, -1).Draw(t, "name"), Count: rapid.IntRange(-5, math.MaxInt).Draw(t, "count"),
			Small: rapid.Int8().Draw(t, "small"), Wide: rapid.Uint64().Draw(t, "wide"), Ratio: rapid.Float32().Draw(t, "ratio"),
			Level:   rapid.SampledFrom([]string{"low", "high"}).Draw(t, "level"),
			Tags:    orNil(rapid.SliceOfN(rapid.String(), 0, 3)).Draw(t, "tags"),
			More:    orNil(rapid.SliceOfNDistinct(rapid.StringMatching("[a-z]*"), 0, 3, rapid.ID)).Draw(t, "more"),
			Zero:    orNil(rapid.SliceOfN(rapid.Int(), 0, 2)).Draw(t, "zero"),
			Blob:    orNil(rapid.SliceOf(rapid.Byte())).Draw(t, "blob"),
			Labels:  orNil(rapid.MapOfN(rapid.StringMatching("[a-zA-Z]*"), rapid.Ptr(rapid.Int(), true), 0, 3)).Draw(t, "labels"),
			Numbers: orNil(rapid.MapOfN(rapid.Int16(), rapid.Bool(), 0, 3)).Draw(t, "numbers"),
			When:    genTime().Draw(t, "when"), Until: rapid.Ptr(genTime(), true).Draw(t, "until"),
			Address: netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address"))),
			Quoted:  rapid.Int64().Draw(t, "quoted"), Maybe: rapid.Ptr(rapid.Int(), true).Draw(t, "maybe"),
			Number: json.Number(fmt.Sprint(rapid.Float64().Draw(t, "number"))),
			Pair:   [2]*bool{rapid.Ptr(rapid.Bool(), true).Draw(t, "pair")},
			Nodes:  orNil(rapid.SliceOfN(genNode(2), 0, 2)).Draw(t, "nodes"),
			Any:    rapid.SampledFrom([]any{nil, 1, "x", []any{1.5, nil}, map[string]any{"a": true}}).Draw(t, "any"),
			Case:   "upper", Lower: rapid.String().Draw(t, "lower"),
		}
		if rapid.Bool().Draw(t, "extras") {
			r.Extras = &Extras{Extra: rapid.String().Draw(t, "extra")}
		}
		if rapid.Bool().Draw(t, "byName") {
			r.ByName = map[string][]node{"a": nil, "b": {{Value: 1}}}
		}
		if depth > 0 && rapid.Bool().Draw(t, "next") {
			r.Next = genRich(depth-1).Draw(t, "nested")
		}
		return r
	})
}

// fill takes out every null that Go would write and no schema of arguments allows.
func (r *rich) fill() {
	r.Tags, r.Blob, r.Pair = append([]string{}, r.Tags...), append([]byte{}, r.Blob...), [2]*bool{new(true), new(false)}
	r.Labels, r.ByName = map[string]*int{"one": new(1)}, map[string][]node{"a": {{Children: []*node{}}}}
	r.Nodes = fillNodes(r.Nodes)
	if r.Extras == nil {
		r.Extras = new(Extras)
	}
	if r.Next != nil {
		r.Next.fill()
	}
}

func fillNodes(nodes []*node) []*node {
	filled := []*node{}
	for _, n := range nodes {
		if n != nil {
			filled = append(filled, &node{n.Value, fillNodes(n.Children)})
		}
	}
	return filled
}

func mustForOutput[T any](tb testing.TB) *schema.Schema {
	tb.Helper()
	s, err := schema.ForOutputType(reflect.TypeFor[T]())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestFor_MarshalledValuesFitTheOutputSchema(t *testing.T) {
	s := mustForOutput[rich](t)
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.Marshal(genRich(1).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(raw); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
	})
}

// mutate changes a value that Go has written, in ways that models and attackers do.
func mutate(t *rapid.T, raw []byte) []byte {
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		olds := []string{"null", "true", ":1", "\"", "{", "[", "],", "}", ",", "case", "0"}
		news := []string{"null", "[]", "{}", "0", "1.0", "1e400", `"x"`, "-1", "\"", ",", `"case":"x",`, `"NAME":"x",`, `"id":"x",`, "\xff", "\\ud800", " "}
		old, with := rapid.SampledFrom(olds).Draw(t, "old"), rapid.SampledFrom(news).Draw(t, "new")
		if n := bytes.Count(raw, []byte(old)); n > 0 {
			at := rapid.IntRange(0, n-1).Draw(t, "which")
			parts := bytes.SplitN(raw, []byte(old), at+2)
			raw = append(bytes.Join(parts[:at+1], []byte(old)), append([]byte(with), parts[at+1]...)...)
		}
	}
	return raw
}

func TestValidate_AcceptedValuesDecode(t *testing.T) {
	s := mustFor[rich](t)
	passed, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := genRich(1).Draw(t, "value")
		r.fill()
		raw, _ := json.Marshal(r)
		if checkAgreement[rich](t, s, mutate(t, raw)) {
			passed++
		} else {
			refused++
		}
	})
	if passed == 0 || refused == 0 {
		t.Errorf("%d passed and %d were refused; the test needs both", passed, refused)
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkAgreement reports whether raw passes, having seen that it then decodes, that nothing in it
// was dropped or taken for something else, and that it decodes strictly.
func checkAgreement[T any](t fataler, s *schema.Schema, raw []byte) bool {
	t.Helper()
	err := s.Validate(raw)
	var all *schema.ValidationError
	if err != nil {
		if !errors.As(err, &all) || len(all.Violations) == 0 {
			t.Fatalf("%q: got %T %v, want violations", raw, err, err)
		}
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var v T
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q passes, but does not decode: %v", raw, err)
	}
	again, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%q decodes to what does not encode: %v", raw, err)
	}
	var before, after map[string]any
	if json.Unmarshal(raw, &before) != nil || json.Unmarshal(again, &after) != nil {
		return true // no object
	}
	for name, value := range before {
		if text, ok := value.(string); ok && after[name] != text && name != "blob" && name != "extra2" && !sameMeaning(text, after[name]) {
			t.Fatalf("%q passes with %s %q, but decodes as %v", raw, name, text, after[name])
		}
	}
	return true
}

// sameMeaning allows for the several spellings of a time, of an address and of a quoted number.
func sameMeaning(text string, got any) bool {
	other, ok := got.(string)
	if !ok {
		return false
	}
	a, errA := time.Parse(time.RFC3339, text)
	b, errB := time.Parse(time.RFC3339, other)
	ipA, errC := netip.ParseAddr(text)
	ipB, errD := netip.ParseAddr(other)
	return errA == nil && errB == nil && a.Equal(b) || errC == nil && errD == nil && ipA == ipB ||
		text == "" && other == "" || strings.TrimLeft(text, "-+0") == strings.TrimLeft(other, "-+0")
}

// plainArgs is a struct for which encoding/json and the schema can be compared both ways.
type plainArgs struct {
	Path  string             `json:"path"`
	Limit int32              `json:"limit"`
	Big   int64              `json:"big"`
	Count uint64             `json:"count"`
	Any   any                `json:"any"`
	Rate  float64            `json:"rate"`
	Flag  bool               `json:"flag"`
	List  []string           `json:"list"`
	Map   map[string]int     `json:"map"`
	In    struct{ A, B int } `json:"in"`
}

func FuzzValidateAgreesWithDecode(f *testing.F) {
	one, yes := 1, true
	raw, err := json.Marshal(rich{
		Base: Base{ID: "1"}, Extras: &Extras{Extra: "x"}, Name: "n", Level: "low", Tags: []string{"t"}, Blob: []byte("blob"), Number: "1.5",
		Labels: map[string]*int{"l": &one}, Numbers: map[int16]bool{-3: true}, Address: netip.IPv4Unspecified(), Maybe: &one,
		Pair: [2]*bool{&yes, &yes}, Nodes: []*node{{Value: 1, Children: []*node{}}}, ByName: map[string][]node{"a": {}}, When: time.Unix(0, 0).UTC(),
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, change := range [][2]string{
		{"", ""},
		{`"name":"n"`, `"name":"n","name":""`},
		{`"name":"n"`, `"name":"n","n\u0061me":""`},
		{`"name":"n"`, `"name":"n","NAME":""`},
		{`"name":"n"`, `"name":"n","ſmall":1`},
		{`"small":0`, `"small":1.0`},
		{`"small":0`, `"small":1e2`},
		{`"small":0`, `"small":-0`},
		{`"ratio":0`, `"ratio":1e39`},
		{`"ratio":0`, `"ratio":1e400`},
		{`"ratio":0`, `"ratio":1e-400`},
		{`"number":1.5`, `"number":1e400`},
		{`"numbers":{"-3":true}`, `"numbers":{"3":true,"03":false}`},
		{`"numbers":{"-3":true}`, `"numbers":{"99999":true}`},
		{`"tags":["t"]`, `"tags":null`},
		{`"tags":["t"]`, `"tags":["` + "\xff" + `"]`},
		{`"quoted":"0"`, `"quoted":"x"`},
		{`"maybe":"1"`, `"maybe":null`},
		{`"blob":"YmxvYg=="`, `"blob":"!"`},
		{`"when":"1970`, `"when":"yesterday`},
		{`"any":null`, `"any":{"a":1,"a":2}`},
		{`"wide":`, `"Wide":`},
	} {
		f.Add([]byte(strings.Replace(string(raw), change[0], change[1], 1)))
	}
	const args1 = `{"path":"p","limit":1,"big":-9223372036854775808,"count":18446744073709551615,"any":{"a":[1.5]},"rate":1,"flag":true,"list":[],"map":{"a":1},"in":{"A":1,"B":2}}`
	if !complete[plainArgs]([]byte(args1)) {
		f.Fatalf("%s is not complete; nothing would be compared", args1)
	}
	for _, count := range []string{"18446744073709551615", "0", "-0", "1.0", "1e3", "1e-400", "18446744073709551616", "-1"} {
		f.Add([]byte(strings.NewReplacer("18446744073709551615", count, "-9223372036854775808", "5").Replace(args1)))
	}
	f.Add([]byte(strings.Repeat(`{"next":`, 5000) + "null" + strings.Repeat("}", 5000)))
	s, args := mustFor[rich](f), mustFor[plainArgs](f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		checkAgreement[rich](t, s, raw)
		passed := checkAgreement[plainArgs](t, args, raw)
		if complete[plainArgs](raw) && !passed {
			t.Fatalf("%q decodes strictly into all fields, but is refused: %v", raw, args.Validate(raw))
		}
	})
}

// complete reports whether raw decodes strictly into a T and says everything: writing it again gives
// the same text.
func complete[T any](raw []byte) bool {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	var v T
	if dec.Decode(&v) != nil || bytes.Contains(raw, []byte("null")) {
		return false
	}
	again, err := json.Marshal(v)
	var b bytes.Buffer
	return err == nil && json.Compact(&b, raw) == nil && bytes.Equal(again, b.Bytes())
}

func TestValidate_MisfitNamesThePathAndTheFix(t *testing.T) {
	type args struct {
		N      int               `json:"n,omitempty"`
		F      float32           `json:"f,omitempty"`
		When   []time.Time       `json:"when,omitempty"`
		Blob   map[string][]byte `json:"blob,omitempty"`
		Keys   map[int8]int      `json:"keys,omitempty"`
		Addr   *netip.Addr       `json:"addr"`
		Quoted int               `json:"quoted,string,omitempty"`
		Sub    *args2            `json:"sub"`
	}
	s := mustFor[args](t)
	for _, tc := range []struct{ name, value, want string }{
		{"fine", `{"n":1,"f":1.5,"when":["2026-01-02T03:04:05Z"],"blob":{"a":"YQ=="},"keys":{"-1":1},"addr":"::1","quoted":"7","sub":{"n":2}}`, ""},
		{"a fraction", `{"n":1.0}`, "/n: must be an integer in the range of int, written without a fraction or an exponent"},
		{"beyond 64 bits", `{"n":9223372036854775808}`, "/n: must be an integer in the range of int, written without a fraction or an exponent"},
		{"beyond a float", `{"f":1e39}`, "/f: must be a number in the range of float32"},
		{"beyond a double", `{"f":1e400}`, "/f: is a number out of range"},
		{"no time", `{"when":["2026-01-02T03:04:05Z","soon"]}`, "/when/1: must be a time such as 2006-01-02T15:04:05Z"},
		{"no base64", `{"blob":{"a":"YQ==","b":"?"}}`, "/blob/b: must be base64"},
		{"a key out of range", `{"keys":{"300":1}}`, "/keys/300: has a name that is no int8"},
		{"a second spelling of a key", `{"keys":{"07":1}}`, `/keys/07: must match the pattern ^(0|-?[1-9][0-9]*)$`},
		{"no address", `{"addr":"here"}`, `/addr: cannot be read: ParseAddr("here"): unable to parse IP`},
		{"no number in quotes", `{"quoted":"x"}`, "/quoted: must be a string that holds a int"},
		{"a type that panics", `{"sub":{"n":1,"bomb":true}}`, "/sub/bomb: cannot be read: reading a schema_test.bomb panics: boom"},
		{"several", `{"n":1.0,"sub":{"n":2.0}}`, "/n: must be an integer in the range of int, written without a fraction or an exponent; /sub/n: must be an integer in the range of int, written without a fraction or an exponent"},
		{"twice", `{"sub":{"n":1,"\u006e":2}}`, `/sub: has the property "n" twice; write each property once`},
		{"another case", `{"N":1}`, "/N: is not a known property"},
		{"no UTF-8", "{\"addr\":\"\xff\"}", "(root): is not valid JSON: it has bytes that are not UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, want := "", tc.want
			if err := s.Validate(json.RawMessage(tc.value)); err != nil {
				got = strings.TrimPrefix(err.Error(), "value does not match its schema: ")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type args2 struct {
	N    int  `json:"n"`
	Bomb bomb `json:"bomb,omitempty"`
}

type bomb bool

func (*bomb) UnmarshalJSON([]byte) error { panic("boom") }

func TestDecode_RefusesAnotherCaseOfAName(t *testing.T) {
	s := schema.MustParse(`{"type":"object","properties":{"path":{"type":"string","maxLength":3}}}`)
	type args struct {
		Path string `json:"path"`
	}
	for _, tc := range []struct {
		value, want string
	}{
		{`{"path":"abc","other":1}`, ""},
		{`{"path":"abc","PATH":"too long"}`, `/PATH: differs only in case from "path"`},
		{`{"paTh":"too long"}`, `/paTh: differs only in case from "path"`},
	} {
		if err := s.Validate(json.RawMessage(tc.value)); err != nil {
			t.Errorf("%s: the schema alone refuses it: %v", tc.value, err)
		}
		got, err := schema.Decode[args](s, json.RawMessage(tc.value))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(advice.Text(err), tc.want) {
			t.Errorf("%s: got %+v, %v, want %q", tc.value, got, err, tc.want)
		}
	}
}
