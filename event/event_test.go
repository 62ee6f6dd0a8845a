// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testsize"
)

// rawJSON draws JSON that a careless writer would change: escapes, odd numbers, repeated and
// unsorted keys, text that is special in HTML.
func rawJSON() *rapid.Generator[json.RawMessage] {
	leaf := rapid.SampledFrom([]string{
		`null`, `true`, `0`, `-0`, `1.50`, `1e400`, `12345678901234567890`, `""`, `"<&>"`, `"\u003c"`, `"\u2028"`, "\"\u2028\u2029\"", `"\/"`, `"\ud800"`, `{}`, `[]`,
	})
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		a, b := leaf.Draw(t, "a"), leaf.Draw(t, "b")
		switch rapid.IntRange(0, 3).Draw(t, "shape") {
		case 0:
			return json.RawMessage(a)
		case 1:
			return json.RawMessage(`[` + a + `,` + b + `]`)
		case 2:
			return json.RawMessage(`{"b":` + a + `,"a":` + b + `}`)
		}
		return json.RawMessage(`{"a":` + a + `,"<":[` + b + `],"a":` + b + `}`)
	})
}

func optional(g *rapid.Generator[json.RawMessage]) *rapid.Generator[json.RawMessage] {
	return rapid.OneOf(rapid.Just(json.RawMessage(nil)), g)
}

func rawMap() *rapid.Generator[map[string]json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) map[string]json.RawMessage {
		m := rapid.MapOfN(rapid.String(), rawJSON(), 0, 3).Draw(t, "map")
		if len(m) == 0 {
			return nil
		}
		return m
	})
}

func payloads() *rapid.Generator[Payload] {
	text, raw := rapid.String(), optional(rawJSON())
	number := rapid.Float64Range(-1e300, 1e300)
	return rapid.Custom(func(t *rapid.T) Payload {
		id, name, words := text.Draw(t, "id"), text.Draw(t, "name"), text.Draw(t, "words")
		data, yes := raw.Draw(t, "data"), rapid.Bool().Draw(t, "yes")
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			return ToolCall{ID: id, Name: name, Input: data, Description: words, AgentID: words}
		case 1:
			r := ToolResult{ID: id, Name: name, Status: ToolStatus(words), Output: data, InputDigest: words}
			r.Duration = time.Duration(rapid.Int64().Draw(t, "duration"))
			if yes {
				r.Failure = &ToolFailure{Code: name, Category: words, Message: words, Retryable: yes}
			}
			return r
		case 2:
			return PermissionRequest{ID: id, Name: name, Input: data, Reason: words}
		case 3:
			v := rapid.SampledFrom([]Verdict{Deny, Ask, Allow}).Draw(t, "verdict")
			return Decision{CallID: id, Tool: name, Verdict: v, Reason: words, Policy: name, Input: data, Asked: yes, Remembered: !yes}
		case 4:
			return ToolProgress{ID: id, Progress: number.Draw(t, "progress"), Total: number.Draw(t, "total"), Message: words}
		case 5:
			return ToolStep{ID: id, Name: name, Step: words, Detail: words}
		case 6:
			return ToolLog{ID: id, Level: name, Message: words, Attrs: rawMap().Draw(t, "attrs")}
		}
		return Extension{Kind: Kind("x:" + name), Data: data}
	})
}

func events() *rapid.Generator[Event] {
	text := rapid.String()
	return rapid.Custom(func(t *rapid.T) Event {
		return Event{
			Agent: text.Draw(t, "agent"), SessionID: text.Draw(t, "session"), RunID: text.Draw(t, "run"),
			ParentToolUseID: text.Draw(t, "parent"), Role: text.Draw(t, "role"), Seq: rapid.Int64().Draw(t, "seq"),
			Time:     time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "sec"), rapid.Int64Range(0, 999_999_999).Draw(t, "nsec")),
			Metadata: rawMap().Draw(t, "metadata"), Payload: payloads().Draw(t, "payload"),
		}
	})
}

func TestAnEventIsTheSameAfterMarshalling(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := events().Draw(rt, "event")
		text := line(t, e)
		if bytes.ContainsRune(text, '\n') {
			rt.Fatalf("more than one line: %s", text)
		}
		if diff := cmp.Diff(onTheWire(e), read(t, string(text))); diff != "" {
			rt.Fatalf("read again (-want +got):\n%s", diff)
		}
	})
}

// The standard library escapes what a Marshaler returns. Readers decode the same text from it.
func TestAnEventThroughJSONMarshalHasTheSameMeaning(t *testing.T) {
	e := Event{Payload: ToolCall{ID: "1", Name: "Bash", Input: json.RawMessage(`{"command":"a <b && c"}`)}}
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	input := read(t, string(text)).Payload.(ToolCall).Input
	if got, want := string(input), `{"command":"a \u003cb \u0026\u0026 c"}`; got != want {
		t.Errorf("input is %s, want %s: correct what the comment of MarshalJSON says", got, want)
	}
	var got, want any
	_ = json.Unmarshal(input, &got)
	_ = json.Unmarshal(e.Payload.(ToolCall).Input, &want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
}

func TestAnEncoderWithoutEscapesKeepsTheBytes(t *testing.T) {
	e := Event{Payload: Extension{Kind: "x:y", Data: json.RawMessage(`{"a":"<&>"}`)}}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode([]Event{e}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(b.String()), "["+string(line(t, e))+"]"; got != want {
		t.Errorf("Encode gave %s, want %s", got, want)
	}
}

func TestWhiteSpaceInRawJSONGoesButNothingElse(t *testing.T) {
	e := Event{Payload: Extension{Kind: "x:y", Data: json.RawMessage("{ \"a\" :\n[1.0, 2] }")}}
	if got, want := string(read(t, string(line(t, e))).Payload.(Extension).Data), `{"a":[1.0,2]}`; got != want {
		t.Errorf("Data is %s, want %s", got, want)
	}
}

func TestTimesFarAway(t *testing.T) {
	for name, when := range map[string]time.Time{
		"zero":         {},
		"before epoch": time.Date(1969, 12, 31, 23, 59, 59, 999_000_000, time.UTC),
		"year 9999":    time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		"other zone":   time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600)),
		"first":        time.UnixMilli(-1 << 63),
		"last":         time.UnixMilli(1<<63 - 1),
	} {
		got := read(t, string(line(t, Event{Time: when, Payload: ToolLog{}}))).Time
		if !got.Equal(when) || got.IsZero() != when.IsZero() {
			t.Errorf("%s: got %v, want %v", name, got, when)
		}
	}
}

func TestDurationsInMilliseconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`0`:             0,
		`12`:            12 * time.Millisecond,
		`12.25`:         12*time.Millisecond + 250*time.Microsecond,
		`-3`:            -3 * time.Millisecond,
		`9223372036854`: 9223372036854 * time.Millisecond,
	} {
		var got ToolResult
		if err := json.Unmarshal([]byte(`{"durationMs":`+text+`}`), &got); err != nil || got.Duration != want {
			t.Errorf("durationMs %s: got %v and %v, want %v", text, got.Duration, err, want)
		}
	}
}

func TestWhatIsNoEventIsRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"no type", `{"payload":{}}`, "needs type and payload"},
		{"no payload", `{"type":"tool_use"}`, "needs type and payload"},
		{"null", `null`, "needs type and payload"},
		{"a list", `[]`, "cannot unmarshal array"},
		{"known kind, null payload", `{"type":"tool_use","payload":null}`, "payload of tool_use: it must be an object"},
		{"known kind, other payload", `{"type":"tool:log","payload":"x"}`, "payload of tool:log: it must be an object"},
		{"unknown verdict", `{"type":"gate:decision","payload":{"verdict":"Allow"}}`, `"Allow" is no verdict`},
		{"number as verdict", `{"type":"gate:decision","payload":{"verdict":2}}`, "payload of gate:decision"},
		{"timestamp as text", `{"type":"x:y","timestamp":"2026-01-01","payload":1}`, "timestamp"},
		{"duration just too long", `{"type":"tool_result","payload":{"durationMs":9223372036855}}`, "more than a time.Duration holds"},
		{"endless duration", `{"type":"tool_result","payload":{"durationMs":1e300}}`, "more than a time.Duration holds"},
	} {
		e := Event{Agent: "untouched"}
		err := e.UnmarshalJSON([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "event: ") {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if e.Agent != "untouched" {
			t.Errorf("%s: the event was changed", c.name)
		}
	}
}

func TestWhatNobodyCouldReadIsNotWritten(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload Payload
		want    string
	}{
		{"no payload", nil, "no Payload"},
		{"no kind", Extension{Data: json.RawMessage(`1`)}, "has no kind"},
		{"broken JSON", ToolCall{Input: json.RawMessage(`{`)}, "payload of tool_use"},
		{"broken JSON in a result", ToolResult{Output: json.RawMessage(`1 2`)}, "payload of tool_result"},
		{"broken extension", Extension{Kind: "x:y", Data: json.RawMessage(`nil`)}, "payload of x:y"},
	} {
		if text, err := (Event{Payload: c.payload}).MarshalJSON(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %s and %v, want %q", c.name, text, err, c.want)
		}
	}
}

func TestThePayloadGivesTheKind(t *testing.T) {
	e := Event{Kind: KindToolLog, Payload: ToolCall{ID: "1"}}
	if got := read(t, string(line(t, e))).Kind; got != KindToolUse {
		t.Errorf("Kind is %s, want %s", got, KindToolUse)
	}
	if got := New(ToolLog{}); got.Kind != KindToolLog || time.Since(got.Time) > time.Minute {
		t.Errorf("New gave %+v", got)
	}
}

func FuzzEventUnmarshal(f *testing.F) {
	for name := range goldenEvents {
		_, lines := readGolden(f, name)
		for _, text := range lines {
			f.Add([]byte(text))
		}
	}
	f.Add([]byte(`{"TYPE":"x","type":"tool_result","payload":{"durationMs":0.4,"Output": [ 1 ]},"metadata":{"":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var e Event
		if json.Unmarshal(data, &e) != nil {
			return
		}
		first := line(t, e)
		if second := line(t, read(t, string(first))); !bytes.Equal(first, second) {
			t.Errorf("not stable: first\n%s\nthen\n%s", first, second)
		}
	})
}
