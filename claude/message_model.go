// SPDX-License-Identifier: Apache-2.0

package claude

import "time"

// An APIRetry reports that a request to the API failed and will be repeated.
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

// NoResponse is how long the CLI waited for the API without an answer.
type NoResponse struct {
	Waited    time.Duration
	RetryWait time.Duration
}

// A ControlRequestProgress reports that a control request of ours is still worked on.
type ControlRequestProgress struct {
	MessageHeader
	RequestID   string
	Status      string // started or api_retry
	Attempt     int
	MaxRetries  int
	RetryDelay  time.Duration
	ErrorStatus int
}

// A ModelRefusalFallback reports that a model refused and another one takes over.
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

// A ModelRefusalNoFallback reports that a model refused and none takes over.
type ModelRefusalNoFallback struct {
	MessageHeader
	OriginalModel          string
	RequestID              string
	APIRefusalCategory     string
	APIRefusalExplanation  string
	RefusedUserMessageUUID string
	Content                string
}

// A ThinkingTokens message counts the tokens of thinking that is not shown.
type ThinkingTokens struct {
	MessageHeader
	EstimatedTokens      int
	EstimatedTokensDelta int
	UserMessageUUID      string
}
