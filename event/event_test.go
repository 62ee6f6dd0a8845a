// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/drover-agents/drover/advice"
	_ "github.com/drover-agents/drover/internal/testkit"
)

func TestEvent_SurvivesMarshalling(t *testing.T) {
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
func TestEvent_JSONMarshalKeepsTheMeaning(t *testing.T) {
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

func TestEvent_EncoderWithoutEscapesKeepsTheBytes(t *testing.T) {
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

func TestEvent_RawJSONLosesOnlyWhiteSpace(t *testing.T) {
	e := Event{Payload: Extension{Kind: "x:y", Data: json.RawMessage("{ \"a\" :\n[1.0, 2] }")}}
	if got, want := string(read(t, string(line(t, e))).Payload.(Extension).Data), `{"a":[1.0,2]}`; got != want {
		t.Errorf("Data is %s, want %s", got, want)
	}
}

func TestEvent_DistantTimes(t *testing.T) {
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

func TestDuration_IsInMilliseconds(t *testing.T) {
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

func TestEvent_UnmarshalRefusesInvalidLines(t *testing.T) {
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
		if err == nil || !strings.Contains(advice.Text(err), c.want) || !strings.HasPrefix(advice.Text(err), "event: ") {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
		if e.Agent != "untouched" {
			t.Errorf("%s: the event was changed", c.name)
		}
	}
}

func TestEvent_MarshalRefusesInvalidPayloads(t *testing.T) {
	for _, c := range []struct {
		name    string
		payload Payload
		want    string
	}{
		{"no payload", nil, "no Payload"},
		{"no kind", Extension{Data: json.RawMessage(`1`)}, "has no kind"},
		{"broken JSON", ToolCall{Input: json.RawMessage(`{`)}, "writing tool_use"},
		{"broken JSON in a result", ToolResult{Output: json.RawMessage(`1 2`)}, "writing tool_result"},
		{"broken extension", Extension{Kind: "x:y", Data: json.RawMessage(`nil`)}, "writing x:y"},
	} {
		if text, err := (Event{Payload: c.payload}).MarshalJSON(); err == nil || !strings.Contains(advice.Text(err), c.want) {
			t.Errorf("%s: got %s and %v, want %q", c.name, text, err, c.want)
		}
	}
}

func TestEvent_PayloadGivesTheKind(t *testing.T) {
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

func TestCallID_JoinsTheEventsOfACall(t *testing.T) {
	call, result := ToolCall{ID: "1"}, ToolResult{ID: "1"}
	request, decision := PermissionRequest{ID: "1"}, Decision{CallID: "1"}
	step, progress, log := ToolStep{ID: "1"}, ToolProgress{ID: "1"}, ToolLog{ID: "1"}
	about := []Payload{
		call, result, request, decision, step, progress, log,
		&call, &result, &request, &decision, &step, &progress, &log,
	}
	for _, p := range about {
		if got := (Event{Payload: p}).CallID(); got != "1" {
			t.Errorf("CallID of %T is %q, want 1", p, got)
		}
	}
	others := []Payload{nil, Init{}, Text{}, TextDelta{}, Thinking{}, Error{Code: "1"}, Done{ResumeToken: "1"}, Extension{Kind: "x:y", Data: json.RawMessage(`{"toolUseId":"1"}`)}}
	for _, p := range others {
		if got := (Event{Payload: p}).CallID(); got != "" {
			t.Errorf("CallID of %T is %q, want none", p, got)
		}
	}
	if named := len(about)/2 + len(others) - 2; named != len(decoders) { // nil and Extension are no kinds
		t.Errorf("%d kinds are tried, but there are %d", named, len(decoders))
	}
}

func TestEvent_PointerPayloadIsWrittenAsItsValue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		e := events().Draw(rt, "event")
		want := line(t, e)
		pointer := reflect.New(reflect.TypeOf(e.Payload))
		pointer.Elem().Set(reflect.ValueOf(e.Payload))
		e.Payload = pointer.Interface().(Payload)
		if got := line(t, e); !bytes.Equal(got, want) {
			rt.Fatalf("a pointer gives\n%s\nwant\n%s", got, want)
		}
	})
}

// widened is a payload of another package, which needs more than a ToolCall has.
type widened struct {
	ToolCall
	Depth int `json:"depth"`
}

func (widened) EventKind() Kind { return "x:call" }

func TestEvent_EmbeddingPayloadIsWrittenWhole(t *testing.T) {
	e := Event{Payload: widened{ToolCall{ID: "1", Input: json.RawMessage(`{}`)}, 3}}
	data := read(t, string(line(t, e))).Payload.(Extension).Data
	if got, want := string(data), `{"toolUseId":"1","toolName":"","input":{},"depth":3}`; got != want {
		t.Errorf("payload is %s, want %s", got, want)
	}
	if got := e.CallID(); got != "1" {
		t.Errorf("CallID is %q, want 1", got)
	}
}

func TestError_LosesItsCauseInJSON(t *testing.T) {
	cause := errors.New("exit status 1")
	e := Error{Code: "X", Message: "the CLI ended", Cause: cause}
	if !errors.Is(e, cause) || e.Error() != "the CLI ended" {
		t.Errorf("%v does not wrap its cause", e)
	}
	again := read(t, string(line(t, Event{Payload: e}))).Payload.(Error)
	if again.Cause != nil || again.Error() != e.Error() || errors.Unwrap(again) != nil {
		t.Errorf("read again: %+v, want the words without the cause", again)
	}
}

// Readers look into these without asking, so there is something to look into.
func TestEvent_RequiredListsAndObjectsAreWritten(t *testing.T) {
	for _, c := range []struct {
		payload Payload
		want    string
	}{
		{Init{}, `"tools":[]`},
		{ToolCall{}, `"input":{}`},
		{ToolCall{Input: json.RawMessage(`null`)}, `"input":{}`},
		{PermissionRequest{}, `"input":{}`},
		{&PermissionRequest{Input: json.RawMessage{}}, `"input":{}`},
	} {
		if text := string(line(t, Event{Payload: c.payload})); !strings.Contains(text, c.want) {
			t.Errorf("%T: no %s in %s", c.payload, c.want, text)
		}
	}
}

// Events of many goroutines share encoders; no goroutine sees the text of another, large or small.
func TestEvent_ConcurrentMarshalling(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			want := strings.Repeat(strconv.Itoa(i), 1+i*keptBuffer/4)
			for range 50 {
				text, err := (Event{Payload: Text{want}}).MarshalJSON()
				if err != nil || !strings.Contains(string(text), `"`+want+`"`) {
					t.Errorf("goroutine %d got %.80s and %v", i, text, err)
					return
				}
				_, _ = Event{Payload: Extension{Kind: "x:y", Data: json.RawMessage(`{`)}}.MarshalJSON()
			}
		})
	}
	wg.Wait()
}
