// SPDX-License-Identifier: Apache-2.0

package claude

import "time"

// An APIRetry says that a request to the API failed and will be repeated.
type APIRetry struct {
	MessageHeader
	Attempt     int
	MaxRetries  int
	RetryDelay  time.Duration
	ErrorStatus int // HTTP status, zero if there was no answer
	Error       string
	// NoResponse is not nil if the API was silent for too long.
	NoResponse *NoResponse
}

// NoResponse says how long the CLI waited for the API in vain.
type NoResponse struct {
	Waited    time.Duration
	RetryWait time.Duration
}

func (m *APIRetry) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "attempt":
		m.Attempt = d.int()
	case "max_retries":
		m.MaxRetries = d.int()
	case "retry_delay_ms":
		m.RetryDelay = d.millis()
	case "error_status":
		m.ErrorStatus = d.int()
	case "error":
		m.Error = d.str()
	case "no_response":
		m.NoResponse = objectPtr[NoResponse](d)
	default:
		return false
	}
	return true
}

func (n *NoResponse) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "waited_ms":
		n.Waited = d.millis()
	case "retry_wait_ms":
		n.RetryWait = d.millis()
	default:
		return false
	}
	return true
}

// A ControlRequestProgress says that a control request of ours is still worked on.
type ControlRequestProgress struct {
	MessageHeader
	RequestID   string
	Status      string // started or api_retry
	Attempt     int
	MaxRetries  int
	RetryDelay  time.Duration
	ErrorStatus int
}

func (m *ControlRequestProgress) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "request_id":
		m.RequestID = d.str()
	case "status":
		m.Status = d.str()
	case "attempt":
		m.Attempt = d.int()
	case "max_retries":
		m.MaxRetries = d.int()
	case "retry_delay_ms":
		m.RetryDelay = d.millis()
	case "error_status":
		m.ErrorStatus = d.int()
	default:
		return false
	}
	return true
}

// A ModelRefusalFallback says that a model refused and another one takes over.
type ModelRefusalFallback struct {
	MessageHeader
	Trigger               string
	Direction             string
	Scope                 string
	OriginalModel         string
	FallbackModel         string
	RequestID             string
	APIRefusalCategory    string
	APIRefusalExplanation string
	// RetractedMessageUUIDs are messages that no longer count.
	RetractedMessageUUIDs  []string
	RefusedUserMessageUUID string
	Content                string
}

func (m *ModelRefusalFallback) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "trigger":
		m.Trigger = d.str()
	case "direction":
		m.Direction = d.str()
	case "scope":
		m.Scope = d.str()
	case "original_model":
		m.OriginalModel = d.str()
	case "fallback_model":
		m.FallbackModel = d.str()
	case "request_id":
		m.RequestID = d.str()
	case "api_refusal_category":
		m.APIRefusalCategory = d.str()
	case "api_refusal_explanation":
		m.APIRefusalExplanation = d.str()
	case "retracted_message_uuids":
		m.RetractedMessageUUIDs = d.strs()
	case "refused_user_message_uuid":
		m.RefusedUserMessageUUID = d.str()
	case "content":
		m.Content = d.str()
	default:
		return false
	}
	return true
}

// A ModelRefusalNoFallback says that a model refused and none takes over.
type ModelRefusalNoFallback struct {
	MessageHeader
	OriginalModel          string
	RequestID              string
	APIRefusalCategory     string
	APIRefusalExplanation  string
	RefusedUserMessageUUID string
	Content                string
}

func (m *ModelRefusalNoFallback) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "original_model":
		m.OriginalModel = d.str()
	case "request_id":
		m.RequestID = d.str()
	case "api_refusal_category":
		m.APIRefusalCategory = d.str()
	case "api_refusal_explanation":
		m.APIRefusalExplanation = d.str()
	case "refused_user_message_uuid":
		m.RefusedUserMessageUUID = d.str()
	case "content":
		m.Content = d.str()
	default:
		return false
	}
	return true
}

// A ThinkingTokens message counts the tokens of thinking that is not shown.
type ThinkingTokens struct {
	MessageHeader
	EstimatedTokens      int
	EstimatedTokensDelta int
	UserMessageUUID      string
}

func (m *ThinkingTokens) field(d *msgDecoder, key []byte) bool {
	switch string(key) {
	case "estimated_tokens":
		m.EstimatedTokens = d.int()
	case "estimated_tokens_delta":
		m.EstimatedTokensDelta = d.int()
	case "user_message_uuid":
		m.UserMessageUUID = d.str()
	default:
		return false
	}
	return true
}
