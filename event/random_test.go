// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "github.com/drover-agents/drover/internal/testkit"
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

// rawObject draws what an input may be.
func rawObject() *rapid.Generator[json.RawMessage] {
	return rapid.Map(rawJSON(), func(value json.RawMessage) json.RawMessage {
		return json.RawMessage(`{"b":` + string(value) + `,"<":0}`)
	})
}

// wordOf draws one of the words of an enumeration.
func wordOf[T ~string]() *rapid.Generator[T] {
	return rapid.Map(rapid.SampledFrom(enumWords[T]()), func(word any) T { return T(word.(string)) })
}

func tokenRecords() *rapid.Generator[TokenRecord] {
	known := func(t *rapid.T, name string) *int64 {
		return rapid.Ptr(rapid.OneOf(rapid.Int64Range(0, 1000), rapid.Int64Range(0, maxCount/6)), true).Draw(t, name)
	}
	total := func(rest int64, parts ...*int64) int64 {
		sum, all := int64(0), true
		for _, p := range parts {
			if p == nil {
				all = false
			} else {
				sum += *p
			}
		}
		if all {
			return sum
		}
		return sum + rest
	}
	return rapid.Custom(func(t *rapid.T) TokenRecord {
		rest := rapid.Int64Range(0, 1000).Draw(t, "rest")
		in := InputTokens{Uncached: known(t, "uncached"), CacheRead: known(t, "read"), CacheWrite: known(t, "write")}
		in.Total = total(rest, in.Uncached, in.CacheRead, in.CacheWrite)
		out := OutputTokens{Visible: known(t, "visible"), Reasoning: known(t, "reasoning")}
		out.Total = total(rest, out.Visible, out.Reasoning)
		r := TokenRecord{Model: rapid.String().Draw(t, "model"), Requests: rest, Tokens: TokenCount{in, out}, Cost: costs().Draw(t, "cost")}
		if rapid.Bool().Draw(t, "units") {
			r.PricedUnits = []PricedUnit{{"web_search_request", rest}}
		}
		return r
	})
}

func costs() *rapid.Generator[*Cost] {
	return rapid.Ptr(rapid.Custom(func(t *rapid.T) Cost {
		return Cost{rapid.Float64Range(0, 1e6).Draw(t, "usd"), wordOf[CostSource]().Draw(t, "source")}
	}), true)
}

func usages() *rapid.Generator[Usage] {
	return rapid.Custom(func(t *rapid.T) Usage {
		u := Usage{ToolUses: rapid.IntRange(0, 1<<30).Draw(t, "uses"), Cost: costs().Draw(t, "cost")}
		records := rapid.SliceOfN(tokenRecords(), 0, 3).Draw(t, "records")
		u.Tokens, _ = NewTokens(wordOf[Coverage]().Draw(t, "coverage"), records...)
		return u
	})
}

// drawPayload has, for each kind, how to draw a payload of it.
var drawPayload = map[Kind]func(*rapid.T) Payload{
	KindInit: func(t *rapid.T) Payload {
		return Init{words(t), words(t), rapid.OneOf(rapid.Just([]string(nil)), rapid.SliceOfN(rapid.String(), 0, 3)).Draw(t, "tools"), rawMap().Draw(t, "capabilities")}
	},
	KindText:      func(t *rapid.T) Payload { return Text{words(t)} },
	KindTextDelta: func(t *rapid.T) Payload { return TextDelta{words(t)} },
	KindThinking:  func(t *rapid.T) Payload { return Thinking{words(t)} },
	KindToolUse: func(t *rapid.T) Payload {
		return ToolCall{CallID(words(t)), words(t), optional(rawObject()).Draw(t, "input"), words(t), words(t), words(t)}
	},
	KindToolResult: func(t *rapid.T) Payload {
		r := ToolResult{ID: CallID(words(t)), Name: words(t), Status: wordOf[ToolStatus]().Draw(t, "status"), Output: optional(rawJSON()).Draw(t, "output"), InputDigest: words(t), OutputDigest: words(t)}
		r.Duration = durations(t)
		if yes(t) {
			r.Failure = &ToolFailure{words(t), words(t), words(t), yes(t)}
		}
		return r
	},
	KindPermissionRequest: func(t *rapid.T) Payload {
		return PermissionRequest{CallID(words(t)), words(t), optional(rawObject()).Draw(t, "input"), words(t)}
	},
	KindError: func(t *rapid.T) Payload {
		return Error{words(t), words(t), words(t), yes(t), rapid.SampledFrom([]error{nil, errors.New("cause")}).Draw(t, "cause")}
	},
	KindDone: func(t *rapid.T) Payload {
		return Done{wordOf[DoneStatus]().Draw(t, "status"), words(t), optional(rawJSON()).Draw(t, "output"), words(t), words(t), usages().Draw(t, "usage"), durations(t), nil}
	},
	KindDecision: func(t *rapid.T) Payload {
		verdict := rapid.SampledFrom([]Verdict{Deny, Ask, Allow})
		var chain []PolicyVerdict
		for range rapid.IntRange(0, 2).Draw(t, "chain") {
			chain = append(chain, PolicyVerdict{words(t), rapid.Ptr(verdict, true).Draw(t, "verdict of a policy"), words(t), yes(t), words(t)})
		}
		return Decision{CallID(words(t)), words(t), verdict.Draw(t, "verdict"), yes(t), yes(t), words(t), words(t), optional(rawObject()).Draw(t, "input"), chain, 0}
	},
	KindToolStep: func(t *rapid.T) Payload { return ToolStep{CallID(words(t)), words(t), words(t), words(t)} },
	KindToolProgress: func(t *rapid.T) Payload {
		number := rapid.Float64Range(-1e300, 1e300)
		return ToolProgress{CallID(words(t)), number.Draw(t, "progress"), number.Draw(t, "total"), words(t)}
	},
	KindToolLog: func(t *rapid.T) Payload {
		return ToolLog{CallID(words(t)), words(t), words(t), rawMap().Draw(t, "attrs")}
	},
	"": func(t *rapid.T) Payload { return Extension{Kind("x:" + words(t)), optional(rawJSON()).Draw(t, "data")} },
}

func words(t *rapid.T) string            { return rapid.String().Draw(t, "words") }
func yes(t *rapid.T) bool                { return rapid.Bool().Draw(t, "yes") }
func durations(t *rapid.T) time.Duration { return time.Duration(rapid.Int64().Draw(t, "duration")) }

func payloads() *rapid.Generator[Payload] {
	kinds := slices.Sorted(maps.Keys(drawPayload))
	return rapid.Custom(func(t *rapid.T) Payload {
		return drawPayload[rapid.SampledFrom(kinds).Draw(t, "kind")](t)
	})
}

func events() *rapid.Generator[Event] {
	return rapid.Custom(func(t *rapid.T) Event {
		return Event{
			Agent: words(t), SessionID: words(t), RunID: words(t), ParentToolUseID: CallID(words(t)), AgentID: words(t), Role: words(t),
			Position: Position{rapid.Int64Range(1, maxCount).Draw(t, "entry"), rapid.IntRange(0, 1000).Draw(t, "part")},
			Seq:      rapid.Int64Range(0, maxCount).Draw(t, "seq"), Turn: rapid.IntRange(0, 1000).Draw(t, "turn"),
			Time:     time.Unix(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "sec"), rapid.Int64Range(0, 999_999_999).Draw(t, "nsec")),
			Metadata: rawMap().Draw(t, "metadata"), Payload: payloads().Draw(t, "payload"),
		}
	})
}

// A kind that cannot be drawn is one that no property is checked of.
func TestGenerator_DrawsEveryKind(t *testing.T) {
	for kind := range decoders {
		if drawPayload[kind] == nil {
			t.Errorf("%s is not drawn", kind)
		}
	}
}
