// SPDX-License-Identifier: Apache-2.0

package plainjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
)

// scanAny reads the next value into what encoding/json makes of it.
func scanAny(s *Scanner) any {
	switch s.Kind() {
	case Object:
		return scanObject(s)
	case Array:
		out := []any{}
		s.Array()
		for s.Elem() {
			out = append(out, scanAny(s))
		}
		return out
	case String:
		twice := *s
		raw, plain, ok := twice.Text()
		want := string(raw)
		if !plain {
			want = string(Unescape(nil, raw))
		}
		got, _, decoded := s.Decode(nil)
		if ok != decoded || (ok && want != string(got)) || twice.pos != s.pos && ok {
			return fmt.Sprintf("Decode returns %q, %v; Text returns %q, %v", got, decoded, want, ok)
		}
		return string(got)
	case Number:
		v, ok := s.Float()
		if !ok {
			return nil
		}
		return v
	case Bool:
		v, _ := s.Bool()
		return v
	}
	s.Skip()
	return nil
}

func scanObject(s *Scanner) any {
	out := map[string]any{}
	s.Object()
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		out[string(key)] = scanAny(s)
	}
	return out
}

func valid(data []byte) error {
	var s Scanner
	s.Reset(data)
	s.Skip()
	return s.End()
}

// checkLikeEncodingJSON compares the two ways of reading data, skipping and entering, with encoding/json.
func checkLikeEncodingJSON(t *testing.T, data []byte) {
	t.Helper()
	want := json.Valid(data)
	if got := valid(data) == nil; got != want {
		t.Errorf("skipping %q: valid = %v, want %v", data, got, want)
	}
	var s Scanner
	s.Reset(data)
	got := scanAny(&s)
	if ok := s.End() == nil; ok != want {
		t.Errorf("entering %q: valid = %v, want %v (%v)", data, ok, want, s.Err())
	}
	checkTrusted(t, data, want)
	var wantValue any
	if json.Unmarshal(data, &wantValue) != nil {
		return // also for numbers that a float64 cannot hold
	}
	if diff := cmp.Diff(wantValue, got); diff != "" {
		t.Errorf("value of %q (-want +got):\n%s", data, diff)
	}
}

// checkTrusted skips every value that can be skipped, without checking it.
func checkTrusted(t *testing.T, data []byte, valid bool) {
	t.Helper()
	var s, trusted Scanner
	s.Reset(data)
	trusted.ResetTrusted(data)
	want, got := s.Raw(), trusted.Raw()
	if valid && (trusted.End() != nil || string(got) != string(want)) {
		t.Errorf("trusted skip of %q: %q, %v; want %q", data, got, trusted.Err(), want)
	}
	trusted.ResetTrusted(data)
	scanAny(&trusted) // must not panic, whatever the data
	if valid && trusted.End() != nil {
		t.Errorf("trusted reading of %q: %v", data, trusted.Err())
	}
}

var texts = []string{
	``, ` `, `{}`, `[]`, ` { } `, `[ ]`, `{"a":1}`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `{"a":1]`,
	`null`, `nul`, `nulll`, `true`, `false`, `fals`, `tru e`, `-`, `-0`, `01`, `1.`, `.5`, `1e`, `1e+`, `1e5`, `-1.25E-3`, `1e999`, `+1`, `0x1`,
	`123456789012345678901234567890`, `"`, `"a`, `"\`, `"\u12`, `"\u12g4"`, `"\x"`, "\"a\nb\"", "\"a\tb\"", "\"\x00\"", `"\u0000"`, `"tab\t nl\n q\" s\/ b\\"`,
	`"\ud83d\ude00"`, `"\ud83d"`, `"\ude00x"`, `"\ud83d\n"`, `"\ud83d\ud83d\ude00"`, `"é✓😀"`, "\"\xff\xfe\"", "\"a\xc3\"", "\"\xed\xa0\x80 long enough for eight\"",
	"{\"\xff\":1}", `{"\u0061b":[{"c":{"d":[[[]]]}}]}`, `{"a":1,"a":2}`, "\ufeff{}", `{} {}`, `1 1`, "\x7f", "[1,\u00a02]", `{"a" : [ 1 , "x" ] , "b" : null }`,
	`"a\n\ud83d\uzzzz"`, "\"a\x01b\\n\"", "\"0123456789\\n\x02\"", "\"\\n\xff\\t0123456789\"", `"\n\n\t0123456789\ud83d\ude00\u00e9\"x`,
	`{"a":"\\\\","b":"\\\"","c":["]}",{"d":"\"}"}]}`, `["\\\\\""`, `{"a":1,"b":-2.5e3 ,"c":true}`,
	`"0123456"`, `"01234567"`, `"012345678"`, `"01234567890123456789\n0123456789012345"`,
}

func TestScanner_AgreesWithEncodingJSON(t *testing.T) {
	for _, text := range texts {
		checkLikeEncodingJSON(t, []byte(text))
	}
}

func TestScanner_DepthLimit(t *testing.T) {
	for _, depth := range []int{MaxDepth - 1, MaxDepth, MaxDepth + 1} {
		for _, text := range []string{
			strings.Repeat("[", depth) + strings.Repeat("]", depth),
			strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth),
		} {
			if got, want := valid([]byte(text)) == nil, json.Valid([]byte(text)); got != want {
				t.Errorf("depth %d of %.6s: valid = %v, want %v", depth, text, got, want)
			}
		}
	}
}

func TestScanner_SkipsValuesOfAnotherType(t *testing.T) {
	var s Scanner
	s.Reset([]byte(`{"s":1,"i":"x","b":[1],"f":{"x":[]},"o":"no","a":{},"last":"yes"}`))
	if !s.Object() {
		t.Fatal("Object() = false")
	}
	var last string
	for key, ok := s.Field(); ok; key, ok = s.Field() {
		var found bool
		switch string(key) {
		case "s":
			_, _, found = s.Text()
		case "i":
			_, found = s.Int()
		case "b":
			_, found = s.Bool()
		case "f":
			_, found = s.Float()
		case "o":
			found = s.Object()
		case "a":
			found = s.Array()
		case "last":
			raw, _, _ := s.Text()
			last = string(raw)
		}
		if found {
			t.Errorf("field %q: found a value of a type that is not there", key)
		}
	}
	if err := s.End(); err != nil || last != "yes" {
		t.Errorf("got last field %q, error %v; want yes, nil", last, err)
	}
}

func TestScanner_Int(t *testing.T) {
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"0", 0, true},
		{"-7", -7, true},
		{"12.9", 12, true},
		{"1e3", 1000, true},
		{"9223372036854775807", 1<<63 - 1, true},
		{"-9223372036854775808", -1 << 63, true},
		{"9223372036854775808", 0, false},
		{"1e400", 0, false},
		{`"1"`, 0, false},
		{"null", 0, false},
	} {
		var s Scanner
		s.Reset([]byte(c.text))
		if got, ok := s.Int(); got != c.want || ok != c.ok {
			t.Errorf("Int of %s = %d, %v; want %d, %v", c.text, got, ok, c.want, c.ok)
		}
	}
}

func TestScanner_ErrorHasThePosition(t *testing.T) {
	err := valid([]byte(`{"a": bad}`))
	var syntax *SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset != 6 {
		t.Errorf("got %v, want a SyntaxError at byte 6", err)
	}
	if err := valid([]byte(`{"a":`)); err == nil || !strings.Contains(advice.Text(err), "ends in the middle") {
		t.Errorf("truncated text: got %v", err)
	}
}

func TestScanner_DoesNotAllocate(t *testing.T) {
	data := []byte(`{"type":"x","n":[1,2.5,true,null],"o":{"a":"b\n"}}`)
	var s Scanner
	got := testing.AllocsPerRun(100, func() {
		s.Reset(data)
		s.Object()
		for key, ok := s.Field(); ok; key, ok = s.Field() {
			if string(key) == "n" && s.Array() {
				for s.Elem() {
					s.Float()
				}
				continue
			}
			s.Skip()
		}
	})
	if got != 0 || s.End() != nil {
		t.Errorf("got %v allocations, error %v; want none", got, s.End())
	}
}

func FuzzScanner(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(checkLikeEncodingJSON)
}

func BenchmarkSkip(b *testing.B) {
	line := []byte(`{"type":"user","content":"` + strings.Repeat(`the quick brown fox jumps over the lazy dog\n`, 400) + `"}`)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if valid(line) != nil {
			b.Fatal("not valid")
		}
	}
}

func BenchmarkUnescape(b *testing.B) {
	raw := []byte(strings.Repeat(`the quick brown fox jumps over the lazy dog\n`, 400))
	b.SetBytes(int64(len(raw)))
	var dst []byte
	for b.Loop() {
		dst = Unescape(dst[:0], raw)
	}
}
