// SPDX-License-Identifier: Apache-2.0

package claude

import "encoding/json"

// Usage counts tokens as the API does. In an [AssistantMessage] it is what was known when the
// block was complete, with too few output tokens; in a [ResultMessage] it is the turn.
type Usage struct {
	InputTokens              int
	OutputTokens             int
	CacheCreationInputTokens int
	CacheReadInputTokens     int
	// CacheCreation5m and CacheCreation1h divide CacheCreationInputTokens by lifetime.
	CacheCreation5m int
	CacheCreation1h int
	// ThinkingTokens are part of OutputTokens.
	ThinkingTokens    int
	WebSearchRequests int
	WebFetchRequests  int
	ServiceTier       string
	Speed             string
	InferenceGeo      string
	// Raw is the whole object, nil if the object is missing.
	Raw json.RawMessage
}

// Total returns all tokens, read from the cache or not.
func (u *Usage) Total() int {
	return u.InputTokens + u.OutputTokens + u.CacheCreationInputTokens + u.CacheReadInputTokens
}

func (u *Usage) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "input_tokens":
		u.InputTokens = d.int()
	case "output_tokens":
		u.OutputTokens = d.int()
	case "cache_creation_input_tokens":
		u.CacheCreationInputTokens = d.int()
	case "cache_read_input_tokens":
		u.CacheReadInputTokens = d.int()
	case "cache_creation", "output_tokens_details", "server_tool_use":
		d.object((*usageDetail)(u))
	case "service_tier":
		u.ServiceTier = d.str()
	case "speed":
		u.Speed = d.str()
	case "inference_geo":
		u.InferenceGeo = d.str()
	default:
		return false
	}
	return true
}

// usageDetail reads the objects inside a usage, whose keys are all different.
type usageDetail Usage

func (u *usageDetail) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "ephemeral_5m_input_tokens":
		u.CacheCreation5m = d.int()
	case "ephemeral_1h_input_tokens":
		u.CacheCreation1h = d.int()
	case "thinking_tokens":
		u.ThinkingTokens = d.int()
	case "web_search_requests":
		u.WebSearchRequests = d.int()
	case "web_fetch_requests":
		u.WebFetchRequests = d.int()
	default:
		return false
	}
	return true
}

func (d *msgDecoder) usage() (u Usage) {
	start := d.Pos()
	if d.object(&u) {
		u.Raw = d.Since(start)
	}
	return u
}

// ModelUsage counts what one model used and cost. In a [ResultMessage] it is a running total.
type ModelUsage struct {
	InputTokens              int
	OutputTokens             int
	ThinkingTokens           int
	CacheReadInputTokens     int
	CacheCreationInputTokens int
	CacheCreation5m          int
	CacheCreation1h          int
	WebSearchRequests        int
	CostUSD                  float64
	ContextWindow            int
	MaxOutputTokens          int
	CanonicalModel           string
	Provider                 string
	CostBasis                string
}

// modelUsage reads usage by model name; nil if there is no object.
func (d *msgDecoder) modelUsage() map[string]ModelUsage {
	if !d.Object() {
		return nil
	}
	out := map[string]ModelUsage{}
	for key, ok := d.Field(); ok; key, ok = d.Field() {
		var u ModelUsage
		name := d.keep(key)
		if d.fill(&u) {
			out[name] = u
		}
	}
	return out
}

// sub returns u without what was already counted in base.
func (u ModelUsage) sub(base ModelUsage) ModelUsage {
	u.InputTokens -= base.InputTokens
	u.OutputTokens -= base.OutputTokens
	u.ThinkingTokens -= base.ThinkingTokens
	u.CacheReadInputTokens -= base.CacheReadInputTokens
	u.CacheCreationInputTokens -= base.CacheCreationInputTokens
	u.CacheCreation5m -= base.CacheCreation5m
	u.CacheCreation1h -= base.CacheCreation1h
	u.WebSearchRequests -= base.WebSearchRequests
	u.CostUSD -= base.CostUSD
	return u
}

// add returns the sum of the counts; other fields are taken from u.
func (u ModelUsage) add(v ModelUsage) ModelUsage {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.ThinkingTokens += v.ThinkingTokens
	u.CacheReadInputTokens += v.CacheReadInputTokens
	u.CacheCreationInputTokens += v.CacheCreationInputTokens
	u.CacheCreation5m += v.CacheCreation5m
	u.CacheCreation1h += v.CacheCreation1h
	u.WebSearchRequests += v.WebSearchRequests
	u.CostUSD += v.CostUSD
	return u
}

func (u ModelUsage) counts() bool {
	return u.InputTokens != 0 || u.OutputTokens != 0 || u.CacheReadInputTokens != 0 ||
		u.CacheCreationInputTokens != 0 || u.WebSearchRequests != 0 || u.CostUSD != 0
}
