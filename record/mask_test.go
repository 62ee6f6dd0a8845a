// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/drover-agents/drover/internal/plainjson"
)

func TestMasker_NameBesideItsText(t *testing.T) {
	m := newMasker(nil)
	long := strings.Repeat("x y", 5000)
	for _, c := range []struct{ what, name, text, want string }{
		{"a secret by its name", "password", long, m.known.Mark()},
		{"a text", "note", long, long},
		{"a text with a word of a form", "note", long + " token", long + " token"},
		{"a short one", "clientSecret", "correct horse", m.known.Mark()},
	} {
		raw := `{"a":"\n","` + c.name + `":"` + c.text + `"}`
		if got, want := string(m.json([]byte(raw))), `{"a":"\n","`+c.name+`":"`+c.want+`"}`; got != want {
			t.Errorf("%s: got %d bytes, want %d", c.what, len(got), len(want))
		}
	}
}

// A value is found in JSON that has other escapes than ours.
func TestMasker_SpellingsOfAValue(t *testing.T) {
	for _, value := range []string{"plain value", "a\"quoted\" one", "two\nlines", "back\\slash", "<html> & more", "tab\t\b\f\x01", "line\u2028and \"quote\"", "é\"ü\"", "a/slash\"es"} {
		m := newMasker([]string{value})
		quoted, err := json.Marshal(map[string]string{"text": "It is\n\"" + value + "\"."})
		if err != nil {
			t.Fatal(err)
		}
		plain, err := plainjson.Marshal(map[string]string{"text": "It is\n\"" + value + "\"."})
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range []string{
			string(quoted), string(plain), strings.ReplaceAll(string(plain), "/", `\/`), strings.ReplaceAll(string(plain), "a", `\u0061`), strings.ReplaceAll(string(quoted), `\u2028`, "\u2028"),
		} {
			var got map[string]string
			if err := json.Unmarshal(m.json([]byte(raw)), &got); err != nil || got["text"] != "It is\n\"[redacted]\"." {
				t.Errorf("%s becomes %q, %v", raw, got, err)
			}
		}
		nested := value // as JSON in JSON, which a tool returns that has read a log
		for depth := range 7 {
			text, err := plainjson.Marshal(map[string]string{"text": nested})
			if err != nil {
				t.Fatal(err)
			}
			nested = string(text)
			if got := string(m.json([]byte(nested))); !strings.Contains(got, "[redacted]") {
				t.Errorf("%d deep %s stays as it is", depth+1, got)
			}
		}
	}
}

// A form of a secret is found in JSON in JSON, where what is before it is escaped. The text around it stays.
func TestMasker_FormsInJSONInJSON(t *testing.T) {
	m := newMasker([]string{secretOfTests})
	for name, text := range map[string]string{
		"a key on a line of its own": "one\nghp_abcdefghijklmnopqrstuvwx12\ntwo",
		"a key behind a tab":         "\tAKIAIOSFODNN7EXAMPLE ",
		"a member":                   `{"clientSecret": "correct horse", "note": "two"}`,
		"a header":                   "GET /\r\ncookie: session=abcdefgh\r\n",
		"a value with quotes":        "one " + secretOfTests + " two",
	} {
		raw := json.RawMessage(text)
		for depth := range 6 {
			text, err := plainjson.Marshal(map[string]string{"text": "It is " + string(raw) + "."})
			if err != nil {
				t.Fatal(err)
			}
			raw = text
			got := string(m.json(raw))
			if strings.Count(got, "[redacted]") != 1 || strings.Contains(got, "ghp_") || strings.Contains(got, "AKIA") || strings.Contains(got, "horse") || strings.Contains(got, "abcdefgh") || strings.Contains(got, "winter") {
				t.Errorf("%s, %d deep: %s becomes %s", name, depth+1, raw, got)
			}
			if depth < 4 && strings.Count(got, "It is") != depth+1 {
				t.Errorf("%s, %d deep: %s loses what is around it: %s", name, depth+1, raw, got)
			}
		}
	}
}

// plainly is masker.json without haste: it takes the JSON apart.
func plainly(m *masker, raw json.RawMessage) json.RawMessage {
	var (
		out    []byte
		copied int
		name   string
		before byte
	)
	for at := 0; at < len(raw); at++ {
		if raw[at] != '"' {
			if !strings.ContainsRune(" \t\r\n", rune(raw[at])) {
				before = raw[at]
			}
			continue
		}
		end := at + 1
		for ; raw[end] != '"'; end++ {
			if raw[end] == '\\' {
				end++
			}
		}
		end++
		var text string
		if json.Unmarshal(raw[at:end], &text) != nil {
			text = string(raw[at+1 : end-1])
		}
		masked := m.known.String(text)
		switch {
		case nextByte(raw, end) == ':':
			if name = text; fieldName.MatchString(text) {
				masked = text
			}
		case before == ':' && name == "type" && kindForm.MatchString(text):
			masked = text
		case before == ':' && masked == text && m.known.HidesPair([]byte(name), []byte(text)):
			masked = m.known.Mark()
		}
		if masked != text {
			quoted, _ := plainjson.Marshal(masked)
			out = append(append(out, raw[copied:at]...), quoted...)
			copied = end
		}
		at = end - 1
	}
	return append(out, raw[copied:]...)
}

// pieces are what random texts are made of.
var pieces = []string{
	" ", " ", "\n", "\t", "a", "task", "-", "_", "\"", "\\", "'", ":", "=", ": ", "://", "@", "/", ",", "é", "\u2028", "\u212a", "<", "x9",
	"hunter\"2 of <winter>", "hunter2", "aHVudGVyMg", "pass", "word", "password", "PASSWORD", "API_KEY", "api-key", "Authorization", "bearer",
	"Bearer ", "cookie", "AKIAIOSFODNN7EXAMPLE", "sk-", "sk-ant-", "abcdefgh12345678abcdefgh", "ghp_", "eyJ", ".", "clientSecret", "_TOKEN", "$",
	"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "type", "drover-run-", "ABCDEFGHABCDEFGHABCD", "aws_secret_access_key", "user",
}

func randomText(r *rand.Rand) string {
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// randomValue is a value of JSON, with JSON in its texts here and there.
func randomValue(r *rand.Rand, depth int) any {
	switch kind := r.IntN(8); {
	case depth > 0 && kind < 3:
		object := map[string]any{}
		for range r.IntN(4) {
			object[randomText(r)] = randomValue(r, depth-1)
		}
		return object
	case depth > 0 && kind == 3:
		return []any{randomValue(r, depth-1), randomValue(r, depth-1)}
	case depth > 0 && kind == 4:
		text, _ := json.Marshal(randomValue(r, depth-1))
		return string(text)
	case kind == 5:
		return r.IntN(100)
	}
	return randomText(r)
}

// The masker finds what it would find if it took each line apart and tried each expression.
func TestMasker_AgreesWithThePlainWay(t *testing.T) {
	seed := rand.Uint64()
	r, masked := rand.New(rand.NewPCG(seed, 1)), 0
	for _, m := range []*masker{newMasker(nil), newMasker([]string{secretOfTests, "hunter2", "two\nlines of a value that is long", "/pass"})} {
		for range 1500 {
			raw, err := plainjson.Marshal(randomValue(r, 3))
			if r.IntN(2) == 0 {
				raw, err = json.Marshal(randomValue(r, 3))
			}
			if err != nil {
				t.Fatal(err)
			}
			got, want := string(m.json(raw)), string(plainly(m, raw))
			if got != want {
				t.Fatalf("seed %d: %s\nbecomes %s\nand not %s", seed, raw, got, want)
			}
			if got != string(raw) {
				masked++
			}
		}
	}
	if masked < 250 {
		t.Errorf("only %d of the lines have a secret", masked)
	}
}

const secretOfTests = `hunter"2 of <winter>`

// transcriptLines are like those of an agent: instructions, descriptions of tools, sources, and results of tools with JSON.
func transcriptLines(b *testing.B) (all []json.RawMessage, size int) {
	b.Helper()
	var text, source strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, "- Ask before you risk a task-list: tokens, cookies and the password of `user%d` are not for the author's \"bearer\".\n", i)
		if i%10 == 0 {
			fmt.Fprintf(&text, "  See https://example.com/docs/%d and set ANTHROPIC_API_KEY, or x-api-key, as the secret that the basic authorization needs.\n", i)
		}
		fmt.Fprintf(&source, "\tif err := json.Unmarshal([]byte(%q), &token%d); err != nil {\n\t\treturn fmt.Errorf(\"line\\t%%d: %%w\\n\", n, err)\n\t}\n", `{"name":"value"}`, i)
	}
	for _, v := range []any{
		map[string]any{"type": "system", "prompt": text.String(), "tools": []any{map[string]any{"name": "Bash", "description": text.String()}}},
		map[string]any{"type": "user", "message": map[string]any{"content": []any{map[string]any{"type": "tool_result", "content": source.String()}}}, "toolUseResult": map[string]any{"file": source.String()}},
		map[string]any{"type": "assistant", "uuid": "3f1c7c1e-6c8e-4d0e-9a53-0f6a6a1b2c3d", "message": map[string]any{"content": "Done."}},
	} {
		raw, err := plainjson.Marshal(v)
		if err != nil {
			b.Fatal(err)
		}
		all, size = append(all, raw), size+len(raw)
	}
	return all, size
}

// BenchmarkMasker is the masking of a transcript without secrets, as a recorder with the values of some variables does it.
func BenchmarkMasker(b *testing.B) {
	all, size := transcriptLines(b)
	values := []string{secretOfTests}
	for i := range 8 {
		values = append(values, fmt.Sprintf("%x-value-of-a-variable", uint64(i+1)*0x9E3779B97F4A7C15))
	}
	m := newMasker(values)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, raw := range all {
			if got := m.json(raw); len(got) != len(raw) {
				b.Fatalf("%d bytes become %d", len(raw), len(got))
			}
		}
	}
}
