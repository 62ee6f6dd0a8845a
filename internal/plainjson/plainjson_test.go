// SPDX-License-Identifier: Apache-2.0

package plainjson

import (
	"encoding/json"
	"testing"
)

func TestEqual_ComparesValues(t *testing.T) {
	for _, c := range []struct {
		name, a, b string
		want       bool
	}{
		{"other order of keys", `{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1}`, true},
		{"spaces", `{ "a" : 1 }`, `{"a":1}`, true},
		{"escapes", `"\u0041<"`, `"A\u003c"`, true},
		{"another value", `{"a":1}`, `{"a":2}`, false},
		{"large numbers with the same float64", `9007199254740993`, `9007199254740992`, false},
		{"order of a list", `[1,2]`, `[2,1]`, false},
		{"no JSON, the same", `{`, `{`, true},
		{"no JSON, not the same", `{`, `{ `, false},
		{"two values", `1 1`, `1`, false},
		{"a key twice, where the last counts", `{"a":1,"a":2}`, `{"a":2}`, false},
		{"a key twice, where decoders join the values", `{"o":{"force":true},"o":{"y":"a\\\":b"}}`, `{"o":{"y":"a\\\":b"}}`, false},
		{"a key twice, the same", `{"a":1,"a":2}`, `{"a":1,"a":2}`, true},
		{"bytes that are not UTF-8", "\"\xff\"", "\"\xfe\"", false},
		{"halves of characters", `"\ud800"`, `"\ud801"`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Equal(json.RawMessage(c.a), json.RawMessage(c.b)); got != c.want {
				t.Errorf("Equal(%s, %s) = %v, want %v", c.a, c.b, got, c.want)
			}
			if same := Digest(json.RawMessage(c.a)) == Digest(json.RawMessage(c.b)); same != c.want {
				t.Errorf("digests of %s and %s are the same: %v, want %v", c.a, c.b, same, c.want)
			}
		})
	}
}

func TestMarshal_DoesNotEscapeHTML(t *testing.T) {
	got, err := Marshal(map[string]any{"b": "<&>", "a": json.RawMessage(`"<"`)})
	if want := `{"a":"<","b":"<&>"}`; err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
	if got, err := Marshal(make(chan int)); err == nil {
		t.Errorf("a channel is %s, want an error", got)
	}
}

func TestIsObject_Table(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, " \n{\"a\":1} ": true, ``: false, ` `: false, `[]`: false, `null`: false, `"{}"`: false, `{`: false, `{} {}`: false,
	} {
		if got := IsObject(json.RawMessage(text)); got != want {
			t.Errorf("IsObject(%q) = %v, want %v", text, got, want)
		}
	}
}
