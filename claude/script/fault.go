// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A FaultKind is how an answer breaks.
type FaultKind string

// The ways in which an answer can break.
const (
	// FaultReset resets the TCP connection.
	FaultReset FaultKind = "reset"
	// FaultTruncate ends the answer as if it were complete, without its end.
	FaultTruncate FaultKind = "truncate"
	// FaultMalformed sends an event that is not JSON, then ends the answer.
	FaultMalformed FaultKind = "malformed"
	// FaultErrorEvent sends an SSE error event, then ends the answer. Without streaming it is an HTTP error.
	FaultErrorEvent FaultKind = "error_event"
	// FaultHang sends no more until the client disconnects.
	FaultHang FaultKind = "hang"
)

// statusOverloaded is the API's own status for overload.
const statusOverloaded = 529

// Nothing, as [Fault.After], breaks the answer before its first event; a reset or a hang even before the HTTP status.
const Nothing = -1

// A Fault breaks an answer at a chosen position.
type Fault struct {
	Kind FaultKind
	// After is the number of stream events sent before the fault; pings are not counted. Zero means that all content has
	// been sent, but neither message_delta nor message_stop; [Nothing] means no event. message_stop is never sent. Of an
	// answer that is not streamed, half the body is sent, or with [Nothing] none of it.
	After int
	// Error is the error of [FaultErrorEvent]. Nil, or a Status of zero, means status 529. In a
	// stream the status only chooses the default type and message.
	Error *APIError
}

// ResetAfter is a connection reset after a number of events.
func ResetAfter(events int) Fault { return Fault{Kind: FaultReset, After: events} }

// TruncateAfter is a stream that ends early after a number of events.
func TruncateAfter(events int) Fault { return Fault{Kind: FaultTruncate, After: events} }

// MalformedAfter is an event that is not JSON, after a number of good events.
func MalformedAfter(events int) Fault { return Fault{Kind: FaultMalformed, After: events} }

// ErrorEventAfter is an SSE error event after a number of events.
func ErrorEventAfter(events int, apiError APIError) Fault {
	return Fault{Kind: FaultErrorEvent, After: events, Error: &apiError}
}

// cut returns how many of n events are sent.
func (f *Fault) cut(n int) int {
	switch {
	case f.After < 0:
		return 0
	case f.After == 0:
		return max(n-2, 0)
	default:
		return min(f.After, n-1)
	}
}

func (f *Fault) apiError() APIError {
	var e APIError
	if f.Error != nil {
		e = *f.Error
	}
	if e.Status == 0 {
		e.Status = statusOverloaded
	}
	return e
}

func (f *Fault) check() error {
	switch f.Kind {
	case FaultReset, FaultTruncate, FaultMalformed, FaultErrorEvent, FaultHang:
	default:
		return fmt.Errorf("unknown kind of fault %q; use reset, truncate, malformed, error_event or hang", f.Kind)
	}
	if f.After < Nothing {
		return fmt.Errorf("a fault cannot come after %d events; use -1 for before the first, 0 for after all content", f.After)
	}
	if f.Error != nil && f.Kind != FaultErrorEvent {
		return fmt.Errorf("only a fault of kind error_event carries an error, not %s", f.Kind)
	}
	return nil
}

// An APIError is an error answer of the Messages API.
type APIError struct {
	// Status is the HTTP status, 400 to 599.
	Status int `yaml:"status,omitempty"`
	// Type is the API's name for the error. Empty means the usual one for Status.
	Type string `yaml:"type,omitempty"`
	// Message is the text of the error. Empty means the usual text of Status.
	Message string `yaml:"message,omitempty"`
}

func (e APIError) errorType() string {
	if e.Type != "" {
		return e.Type
	}
	if name, ok := errorTypes[e.Status]; ok {
		return name
	}
	if e.Status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

var errorTypes = map[int]string{
	400:              "invalid_request_error",
	401:              "authentication_error",
	402:              "billing_error",
	403:              "permission_error",
	404:              "not_found_error",
	413:              "request_too_large",
	429:              "rate_limit_error",
	500:              "api_error",
	504:              "timeout_error",
	statusOverloaded: "overloaded_error",
}

func (e APIError) message() string {
	if e.Message != "" {
		return e.Message
	}
	if e.Status == statusOverloaded {
		return "Overloaded"
	}
	return http.StatusText(e.Status)
}

func (e APIError) check() error {
	if e.Status < 400 || e.Status > 599 {
		return fmt.Errorf("status %d is not an error; use 400 to 599", e.Status)
	}
	return nil
}

type wireError struct {
	Type      string          `json:"type"`
	Error     wireErrorDetail `json:"error"`
	RequestID string          `json:"request_id,omitempty"`
}

type wireErrorDetail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

func (e APIError) wire(requestID string) wireError {
	return wireError{"error", wireErrorDetail{e.errorType(), e.message()}, requestID}
}

func wholeSeconds(d time.Duration) string {
	return strconv.Itoa(int((d + time.Second - 1) / time.Second))
}
