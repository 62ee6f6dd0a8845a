// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
)

// streamEvents is an answer as the API streams it.
var streamEvents = []string{
	`{"type":"message_start","message":{"model":"claude-sonnet-4-5-20250929","usage":{"input_tokens":100,"cache_read_input_tokens":7,"cache_creation_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":30},"output_tokens":1}}}`,
	`{"type":"ping"}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\"type\":\"message_delta\",\"usage\":{\"output_tokens\":999}"}}`,
	`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":25,"output_tokens_details":{"thinking_tokens":5},"server_tool_use":{"web_search_requests":2}}}`,
	`{"type":"message_stop"}`,
}

var streamReading = Reading{
	Model: "claude-sonnet-4-5-20250929", StopReason: "end_turn", Metered: true, Finished: true,
	Tokens: Tokens{Input: 100, CacheRead: 7, CacheWrite5m: 20, CacheWrite1h: 30, Output: 25, Thinking: 5, WebSearches: 2},
}

func sseOf(events []string, newline string) []byte {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "event: x%sdata: %s%s%s", newline, e, newline, newline)
	}
	return []byte(b.String())
}

// chunkFrame is an event as Bedrock wraps it.
func chunkFrame(event string) []byte {
	payload := `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(event)) + `","p":"abc"}`
	return eventFrame([][2]string{{":event-type", "chunk"}, {":content-type", "application/json"}, {":message-type", "event"}}, []byte(payload))
}

func framesOf(events []string) []byte {
	var all []byte
	for _, e := range events {
		all = append(all, chunkFrame(e)...)
	}
	return all
}

var jsonAnswer = `{"type":"message","model":"claude-sonnet-4-5-20250929","stop_reason":"end_turn","usage":{"input_tokens":100,"cache_read_input_tokens":7,` +
	`"cache_creation_input_tokens":50,"cache_creation":{"ephemeral_5m_input_tokens":20,"ephemeral_1h_input_tokens":30},"output_tokens":25,` +
	`"output_tokens_details":{"thinking_tokens":5},"server_tool_use":{"web_search_requests":2}}}`

var meteredAnswers = []struct {
	name        string
	wire        *Wire
	contentType string
	body        []byte
}{
	{"server-sent events", WireAnthropic, "text/event-stream; charset=utf-8", sseOf(streamEvents, "\n")},
	{"server-sent events with carriage returns", WireAnthropic, "text/event-stream", sseOf(streamEvents, "\r\n")},
	{"frames of AWS", WireBedrock, "application/vnd.amazon.eventstream", framesOf(streamEvents)},
	{"JSON", WireAnthropic, "application/json", []byte(jsonAnswer)},
	{"JSON of Bedrock", WireBedrock, "application/json", []byte(jsonAnswer)},
}

func compareReading(t rapid.TB, got, want Reading) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Reading{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func newMeter(w *Wire, contentType string) Meter {
	_, m := w.newMeter(contentType)
	return m
}

// The wire decides how an answer is read, whatever its bytes look like.
func TestMeter_ChosenByTheWire(t *testing.T) {
	for name, tc := range map[string]struct {
		wire        *Wire
		contentType string
		body        []byte
	}{
		"frames on the Messages wire": {WireAnthropic, "application/vnd.amazon.eventstream", framesOf(streamEvents)},
		"events on Bedrock's wire":    {WireBedrock, "text/event-stream", sseOf(streamEvents, "\n")},
		"events as JSON":              {WireAnthropic, "application/json", sseOf(streamEvents, "\n")},
		"JSON as events":              {WireAnthropic, "text/event-stream", []byte(jsonAnswer)},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeter(tc.wire, tc.contentType)
			boundaries(m, tc.body, func(left int) int { return left })
			compareReading(t, *m.Reading(), Reading{})
		})
	}
}

// However an answer is cut into pieces, the same is read, and the places where it may be cut are the
// same.
func TestMeter_AnyChunksGiveTheSameCount(t *testing.T) {
	for _, tc := range meteredAnswers {
		t.Run(tc.name, func(t *testing.T) {
			wantPlaces := boundaries(newMeter(tc.wire, tc.contentType), tc.body, func(int) int { return 1 })
			rapid.Check(t, func(t *rapid.T) {
				m := newMeter(tc.wire, tc.contentType)
				places := boundaries(m, tc.body, func(left int) int { return rapid.IntRange(1, left).Draw(t, "piece") })
				want := streamReading
				if _, whole := m.(*wholeMeter); !whole {
					want.pieces = 20
				}
				compareReading(t, *m.Reading(), want)
				for place := range places {
					if !wantPlaces[place] {
						t.Errorf("byte %d is no place to cut", place)
					}
				}
			})
			if streamed := !strings.HasSuffix(tc.contentType, "json"); streamed && len(wantPlaces) != len(streamEvents) {
				t.Errorf("got %d places to cut, want one after each of %d events", len(wantPlaces), len(streamEvents))
			}
		})
	}
}

// boundaries feeds a meter in pieces and returns the places where it would cut.
func boundaries(m Meter, body []byte, size func(left int) int) map[int]bool {
	places := map[int]bool{}
	for at := 0; at < len(body); {
		n := size(len(body) - at)
		if b := m.Feed(body[at : at+n]); b >= 0 {
			places[at+b] = true
		}
		at += n
	}
	m.Close()
	return places
}

func TestMeter_CutStreamCountsItsReports(t *testing.T) {
	m := newMeter(WireAnthropic, "text/event-stream")
	m.Feed(sseOf(streamEvents[:3], "\n"))
	got := m.Reading()
	if want := (Tokens{Input: 100, CacheRead: 7, CacheWrite5m: 20, CacheWrite1h: 30, Output: 1}); got.Tokens != want {
		t.Errorf("got %+v, want %+v", got.Tokens, want)
	}
	if got.Finished {
		t.Error("a stream without its end is finished")
	}
}

func TestMeter_OddUsage(t *testing.T) {
	cases := []struct {
		name, event string
		want        Tokens
	}{
		{"negative", `{"type":"message_delta","usage":{"output_tokens":-5,"input_tokens":3}}`, Tokens{Input: 3}},
		{"beyond all numbers", `{"type":"message_delta","usage":{"input_tokens":1e999,"output_tokens":5}}`, Tokens{Output: 5}},
		{"of another type", `{"type":"message_delta","delta":"x","usage":{"input_tokens":"7","cache_creation":0,"server_tool_use":[],"output_tokens":5}}`, Tokens{Output: 5}},
		{"enormous", `{"type":"message_delta","usage":{"output_tokens":1e300}}`, Tokens{Output: maxTokens}},
		{"null", `{"type":"message_delta","usage":null}`, Tokens{}},
		{"fractions", `{"type":"message_delta","usage":{"output_tokens":2.5}}`, Tokens{Output: 2}},
		{"a cache without lifetimes", `{"type":"message_delta","usage":{"cache_creation_input_tokens":9}}`, Tokens{CacheWrite5m: 9}},
		{"lifetimes without their sum", `{"type":"message_delta","usage":{"cache_creation":{"ephemeral_1h_input_tokens":4,"ephemeral_5m_input_tokens":2}}}`, Tokens{CacheWrite5m: 2, CacheWrite1h: 4}},
		{"no JSON", `{"type":"message_delta","usage":{`, Tokens{}},
		{
			"a compaction that the sum lacks", `{"type":"message_delta","usage":{"input_tokens":23,"output_tokens":1,"iterations":[{"type":"compaction","input_tokens":180,"output_tokens":3,` +
				`"cache_creation_input_tokens":4},{"type":"message","input_tokens":23,"output_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":5}}]}}`,
			Tokens{Input: 203, Output: 4, CacheWrite5m: 4, CacheWrite1h: 5},
		},
		{"parts that the sum has", `{"type":"message_delta","usage":{"input_tokens":23,"output_tokens":5,"iterations":[{"input_tokens":20,"output_tokens":1},{"output_tokens":4}]}}`, Tokens{Input: 23, Output: 5}},
		{"parts of parts", `{"type":"message_delta","usage":{"output_tokens":5,"iterations":[{"output_tokens":5,"iterations":[{"output_tokens":9}]},7]}}`, Tokens{Output: 5}},
		{"invalid parts", `{"type":"message_delta","usage":{"iterations":{"output_tokens":7},"output_tokens":5}}`, Tokens{Output: 5}},
		{"another type", `{"type":"message_other","usage":{"output_tokens":5}}`, Tokens{}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			m := newMeter(WireAnthropic, "text/event-stream")
			m.Feed(sseOf([]string{tc.event}, "\n"))
			if got := m.Reading().Tokens; got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestMeter_LaterFiguresReplaceEarlierOnes(t *testing.T) {
	m := newMeter(WireAnthropic, "text/event-stream")
	m.Feed(sseOf([]string{
		`{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":8,"output_tokens":3}}}`,
		`{"type":"message_delta","usage":{"input_tokens":12,"cache_creation":{"ephemeral_1h_input_tokens":8,"ephemeral_5m_input_tokens":0},"output_tokens":2}}`,
	}, "\n"))
	if got, want := m.Reading().Tokens, (Tokens{Input: 12, CacheWrite1h: 8, Output: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMeter_ReadsAnExceptionFrame(t *testing.T) {
	m := newMeter(WireBedrock, "application/vnd.amazon.eventstream")
	m.Feed(bedrockErrorEvent(402, "spent"))
	if got := m.Reading().Error; got != bedrockException {
		t.Errorf("got %q", got)
	}
}

func TestMeter_CorruptFrameEndsTheCount(t *testing.T) {
	frames := framesOf(streamEvents)
	first := len(chunkFrame(streamEvents[0]))
	frames[first+2] ^= 1 // the length of the second frame
	m := newMeter(WireBedrock, "application/vnd.amazon.eventstream")
	if got := m.Feed(frames); got != first {
		t.Errorf("the place to cut is %d, want %d", got, first)
	}
	if got := m.Reading().Tokens.Output; got != 1 {
		t.Errorf("got %d output tokens, want those of the first frame", got)
	}
}

func fuzzMeter(f *testing.F, wire *Wire, contentType string) {
	f.Fuzz(func(t *testing.T, body []byte, seed uint64) {
		whole, pieces := newMeter(wire, contentType), newMeter(wire, contentType)
		boundaries(whole, body, func(left int) int { return left })
		random := rand.New(rand.NewPCG(seed, 0))
		boundaries(pieces, body, func(left int) int { return 1 + random.IntN(left) })
		compareReading(t, *pieces.Reading(), *whole.Reading())
	})
}

func FuzzSSE(f *testing.F) {
	f.Add(sseOf(streamEvents, "\n"), uint64(1))
	f.Add([]byte("data:{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\r\n\r\n:\n"), uint64(2))
	fuzzMeter(f, WireAnthropic, "text/event-stream")
}

func FuzzFrames(f *testing.F) {
	f.Add(framesOf(streamEvents), uint64(1))
	f.Add(bedrockErrorEvent(402, "spent"), uint64(2))
	f.Add(make([]byte, 64), uint64(3))
	fuzzMeter(f, WireBedrock, "application/vnd.amazon.eventstream")
}
