// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/claude/internal/streamgen"
	"github.com/drover-agents/drover/internal/plainjson"
	_ "github.com/drover-agents/drover/internal/testkit"
)

// mustDecode decodes a line that is known to be good.
func mustDecode[T Message](t testing.TB, line string) T {
	t.Helper()
	m, err := DecodeMessage([]byte(line))
	if err != nil {
		t.Fatalf("%.200s: %v", line, err)
	}
	typed, ok := m.(T)
	if !ok {
		t.Fatalf("%.200s: decoded as %T", line, m)
	}
	return typed
}

func TestDecodeMessage_RefusesNonObjects(t *testing.T) {
	for _, line := range []string{``, ` `, `null`, `[]`, `"text"`, `1`, `{`, `{"type":"user"`, `{"type":"user"}x`, `{"type":"user",}`, "[SandboxDebug] hi", `{"type":"user","message":{"content":[{"type":"text","text":"x}]}}`} {
		if m, err := DecodeMessage([]byte(line)); err == nil {
			t.Errorf("%q: decoded as %T, want an error", line, m)
		}
		if _, err := ParseLine([]byte(line)); err == nil {
			t.Errorf("%q: parsed, want an error", line)
		}
	}
}

func TestDecodeMessage_KeepsUnknownFields(t *testing.T) {
	line := `{"type":"assistant","message":{"content":[{"type":"text","text":"x","new_in_block":1}],"new_in_message":2},"new":3}`
	m := mustDecode[*AssistantMessage](t, line)
	if string(m.Raw()) != line {
		t.Errorf("Raw = %s", m.Raw())
	}
	if got, want := string(m.Content[0].Raw()), `{"type":"text","text":"x","new_in_block":1}`; got != want {
		t.Errorf("Raw of the block = %s, want %s", got, want)
	}
}

func TestDecodeMessage_ReplacesMalformedUTF8(t *testing.T) {
	m := mustDecode[*AssistantMessage](t, "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xffb\\n\xc3\"}]},\"uuid\":\"\xfe\"}")
	if got, want := m.Text(), "a\ufffdb\n\ufffd"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got, want := m.UUID, "\ufffd"; got != want {
		t.Errorf("uuid %q, want %q", got, want)
	}
	if !strings.Contains(string(m.Raw()), "\xff") {
		t.Error("Raw does not have the bytes of the CLI")
	}
}

func TestDecodeMessage_FiveMegabytes(t *testing.T) {
	text := strings.Repeat("five megabytes of \"text\" é\n", 5<<20/27)
	quoted, _ := json.Marshal(text)
	m := mustDecode[*AssistantMessage](t, `{"type":"assistant","message":{"content":[{"type":"text","text":`+string(quoted)+`}]},"uuid":"u"}`)
	if m.Text() != text || m.UUID != "u" {
		t.Errorf("got %d bytes of text, uuid %q; want %d, u", len(m.Text()), m.UUID, len(text))
	}
	u := mustDecode[*UserMessage](t, string(streamgen.Large(1, 5<<20)[0]))
	if got := len(u.ToolResults()[0].Text()); got < 2<<20 {
		t.Errorf("tool result of %d bytes", got)
	}
}

func TestDecodeMessage_SurvivesDeepNesting(t *testing.T) {
	for _, depth := range []int{7, 500, 4990, 20000} {
		content := strings.Repeat(`[{"type":"tool_result","content":`, depth) + `"x"` + strings.Repeat(`}]`, depth)
		line := []byte(`{"type":"user","message":{"content":` + content + `}}`)
		if _, err := DecodeMessage(line); (err == nil) != json.Valid(line) {
			t.Errorf("depth %d: error %v, valid %v", depth, err, json.Valid(line))
		}
	}
}

// shuffleKeys writes a JSON value again with the keys of every object in another order.
func shuffleKeys(t *rapid.T, raw []byte) []byte {
	var s plainjson.Scanner
	s.Reset(raw)
	switch s.Kind() {
	case plainjson.Object:
		var fields [][]byte
		s.Object()
		for key, ok := s.Field(); ok; key, ok = s.Field() {
			quoted, _ := json.Marshal(string(key))
			fields = append(fields, bytes.Join([][]byte{quoted, shuffleKeys(t, s.Raw())}, []byte(":")))
		}
		if len(fields) > 1 {
			fields = rapid.Permutation(fields).Draw(t, "fields")
		}
		return append(append([]byte("{"), bytes.Join(fields, []byte(","))...), '}')
	case plainjson.Array:
		var elems [][]byte
		s.Array()
		for s.Elem() {
			elems = append(elems, shuffleKeys(t, s.Raw()))
		}
		return append(append([]byte("["), bytes.Join(elems, []byte(","))...), ']')
	}
	return raw
}

// withoutRaw is dumpMessage without the parts that are copies of the text, whose order of keys may differ.
func withoutRaw(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = withoutRaw(inner)
		}
	case []any:
		for i, inner := range v {
			v[i] = withoutRaw(inner)
		}
	case string:
		if strings.HasPrefix(v, "raw ") {
			return "raw"
		}
	}
	return v
}

func TestDecodeMessage_IgnoresTheOrderOfKeys(t *testing.T) {
	var lines [][]byte
	goldenLines(t, func(name string, line []byte) {
		if !strings.HasSuffix(name, ": type-twice") {
			lines = append(lines, line)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom(lines).Draw(t, "line")
		want, err := DecodeMessage(line)
		if err != nil {
			t.Fatal(err)
		}
		shuffled := shuffleKeys(t, line)
		got, err := DecodeMessage(shuffled)
		if err != nil {
			t.Fatalf("%s: %v", shuffled, err)
		}
		if diff := cmp.Diff(withoutRaw(dumpMessage(want)), withoutRaw(dumpMessage(got))); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", shuffled, diff)
		}
	})
}

func TestDecodeMessage_Allocations(t *testing.T) {
	for name, c := range map[string]struct {
		stream [][]byte
		typed  float64
	}{
		"text":  {streamgen.Text(50), 7},
		"mixed": {streamgen.Mixed(streamgen.RoundLines), 7},
	} {
		messages := float64(len(c.stream))
		typed := testing.AllocsPerRun(3, func() {
			for _, line := range c.stream {
				m, _ := DecodeMessage(line)
				lookAt(m)
			}
		}) / messages
		lazy := testing.AllocsPerRun(3, func() {
			for _, line := range c.stream {
				_, _ = ParseLine(line)
			}
		}) / messages
		// The line itself is one more.
		if typed > c.typed || lazy > 1 {
			t.Errorf("%s: %.2f allocations a message typed, %.2f lazy; want at most %v and 1", name, typed, lazy, c.typed)
		}
	}
}

func TestStreamEvent_Parts(t *testing.T) {
	event := func(event string) *StreamEvent {
		return mustDecode[*StreamEvent](t, `{"type":"stream_event","event":`+event+`}`)
	}
	delta := func(delta string) *StreamEvent {
		return event(`{"type":"content_block_delta","index":2,"delta":` + delta + `}`)
	}
	type part func(*StreamEvent) (string, bool)
	parts := map[string]part{
		"text": (*StreamEvent).TextDelta, "thinking": (*StreamEvent).ThinkingDelta, "input": (*StreamEvent).InputJSONDelta,
		"signature": (*StreamEvent).SignatureDelta, "stop": (*StreamEvent).StopReason,
	}
	for _, c := range []struct {
		event      *StreamEvent
		part, want string
	}{
		{delta(`{"type":"text_delta","text":"a\nb"}`), "text", "a\nb"},
		{delta(`{"text":"late type","type":"text_delta"}`), "text", "late type"},
		{delta(`{"type":"text_delta","text":""}`), "text", ""},
		{delta(`{"type":"thinking_delta","thinking":"hm"}`), "thinking", "hm"},
		{delta(`{"type":"input_json_delta","partial_json":"{\"a\":"}`), "input", `{"a":`},
		{delta(`{"type":"signature_delta","signature":"sig"}`), "signature", "sig"},
		{event(`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`), "stop", "tool_use"},
		{event(`{"type":"message_delta","delta":{"stop_reason":null}}`), "", ""},
		{delta(`{"type":"text_delta"}`), "", ""},
		{delta(`{"text":"no type"}`), "", ""},
		{delta(`7`), "", ""},
		{event(`{"type":"ping"}`), "", ""},
		{event(`null`), "", ""},
		{event(`[]`), "", ""},
	} {
		for name, read := range parts {
			got, ok := read(c.event)
			if ok != (name == c.part) || ok && got != c.want {
				t.Errorf("%s of %s = %q, %v; want %q for %s", name, c.event.Event, got, ok, c.want, c.part)
			}
		}
	}
	if got := delta(`{}`).Index(); got != 2 {
		t.Errorf("Index = %d, want 2", got)
	}
	if got := event(`{"type":"ping"}`).Index(); got != -1 {
		t.Errorf("Index without one = %d, want -1", got)
	}
}

func TestStreamEvent_BlockAndUsage(t *testing.T) {
	start := mustDecode[*StreamEvent](t, `{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}}`)
	block, ok := start.BlockStart()
	if use, isUse := block.(*ToolUseBlock); !ok || !isUse || use.Name != "Bash" {
		t.Errorf("BlockStart = %v, %v; want a call of Bash", block, ok)
	}
	if got := start.EventType(); got != "content_block_start" {
		t.Errorf("EventType = %q", got)
	}
	for _, event := range []string{
		`{"type":"message_start","message":{"id":"m","usage":{"input_tokens":12}}}`,
		`{"type":"message_delta","usage":{"input_tokens":12}}`,
	} {
		m := mustDecode[*StreamEvent](t, `{"type":"stream_event","event":`+event+`}`)
		if u, ok := m.Usage(); !ok || u.InputTokens != 12 {
			t.Errorf("Usage of %s = %v, %v; want 12 input tokens", event, u, ok)
		}
	}
	if _, ok := start.Usage(); ok {
		t.Error("Usage of an event without one reports true")
	}
}

func FuzzDecodeMessage(f *testing.F) {
	goldenLines(f, func(_ string, line []byte) { f.Add(line) })
	f.Add([]byte("{\"type\":\"user\",\"message\":{\"content\":\"\xff\"}}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := DecodeMessage(line)
		isObject := json.Valid(line) && bytes.HasPrefix(bytes.TrimLeft(line, " \t\r\n"), []byte("{"))
		if (err == nil) != isObject {
			t.Fatalf("error %v, but a JSON object: %v", err, isObject)
		}
		lazy, lazyErr := ParseLine(line)
		if (lazyErr == nil) != isObject {
			t.Fatalf("ParseLine: error %v, but a JSON object: %v", lazyErr, isObject)
		}
		if err != nil {
			return
		}
		checkSameMessage(t, m, lazy)
	})
}

// checkSameMessage compares a message with the one that its Line decodes to, and with what
// encoding/json reads.
func checkSameMessage(t *testing.T, m Message, lazy Line) {
	t.Helper()
	again, err := lazy.Decode()
	if err != nil {
		t.Fatalf("Line.Decode: %v", err)
	}
	if diff := cmp.Diff(dumpMessage(m), dumpMessage(again)); diff != "" {
		t.Fatalf("Line.Decode differs (-message +line):\n%s", diff)
	}
	tagged := taggedLine(lazy.Raw(), lazy.tag())
	if tagged.Type() != m.Type() || tagged.Subtype() != m.Subtype() || tagged.head.hasParent != lazy.head.hasParent {
		t.Fatalf("from its tag the line is %q %q; want %q %q", tagged.Type(), tagged.Subtype(), m.Type(), m.Subtype())
	}
	if !utf8.ValidString(m.Type()) || !utf8.ValidString(m.header().UUID) {
		t.Fatalf("strings are not UTF-8: %q %q", m.Type(), m.header().UUID)
	}
	if e, ok := m.(*StreamEvent); ok {
		e.TextDelta()
		e.BlockStart()
		e.Usage()
		e.StopReason()
		e.EventType()
	}
	if r, ok := m.(*ResultMessage); ok && (r.Err() != nil) != r.Failed() {
		t.Fatal("Err and Failed disagree")
	}
}
