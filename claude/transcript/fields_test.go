// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzFields compares the scanner that tolerates cut lines with the JSON decoder on whole ones, and
// lets it run over every prefix.
func FuzzFields(f *testing.F) {
	for _, line := range []string{
		`{}`, `{"a":1,"b":"x\"y\\","c":{"d":[1,{"e":"}"}]},"f":null}`, " { \"a\" : [ ] , \"b\":-1e5 } ",
		`{"type":"user","message":{"content":[{"type":"text","text":"h\u00e9\ud83d\ude00"}]}}`, `{"a":"\`, `{"a"`, `[1]`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		for i := 0; i <= len(line); i += max(1, len(line)/50) {
			var s Summary
			s.fold(line[:i])
			Conversation([]json.RawMessage{line[:i]})
		}
		want, err := parseObject(line)
		if err != nil || !json.Valid(line) {
			return
		}
		var got object
		eachField(line, func(key string, value []byte, whole bool) {
			if !whole {
				t.Errorf("value of %q is reported to be cut: %q", key, value)
			}
			got = append(got, member{key, bytes.TrimRight(value, " \t\r\n")})
		})
		if g, w := got.bytes(), want.bytes(); !bytes.Equal(g, w) {
			t.Errorf("fields of %q\n got %s\nwant %s", line, g, w)
		}
	})
}

func TestUnquoteStart_CutStrings(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"plain", `"abc`, "abc"},
		{"cut escape", `"abc\`, "abc"},
		{"cut unicode escape", `"abc\u00e`, "abc"},
		{"cut character", "\"abc\xc3", "abc"},
		{"cut surrogate pair", `"abc\ud83d`, "abc"},
		{"nothing", `"`, ""},
		{"no string", `12`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := unquoteStart([]byte(tt.text)); got != tt.want {
				t.Errorf("unquoteStart(%q) = %q, want %q", tt.text, got, tt.want)
			}
		})
	}
}
