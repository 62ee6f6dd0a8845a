// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/schema"
)

// An Outcome is how a call ended.
type Outcome = event.ToolStatus

// The outcomes of a call. A [Result] without one is a success, or an error if Err is set.
const (
	Success       = event.ToolSuccess
	Failed        = event.ToolError
	Denied        = event.ToolDenied
	NeedsApproval = event.ToolNeedsApproval
	Cancelled     = event.ToolCancelled
)

// A Result is what came of a call.
type Result struct {
	// CallID and Tool name the call. They are filled in for handlers.
	CallID event.CallID
	Tool   string

	Outcome Outcome
	// Message is a text for the model. It reads it where there is no value, or the value is hidden.
	Message string
	// Value is what the handler returned. The model reads its Render() string if it has that method, and otherwise its JSON.
	Value any
	// HideValue keeps the value out of the model's context.
	HideValue bool
	// Structured is the value as a JSON object; nil if it is not an object. It is filled in for handlers
	// that leave it nil, unless the value is hidden or renders itself.
	Structured json.RawMessage
	Images     []Image

	// Err is why the call did not succeed. It is nil for a success.
	Err *Error
	// Action is what must happen first, for a call that needs approval.
	Action *Action

	// InputDigest and OutputDigest are SHA-256 over the JSON with sorted keys, where asked for.
	InputDigest, OutputDigest string
	// DryRun marks the answer to a dry run.
	DryRun   bool
	Duration time.Duration
}

// An Image is a picture for the model.
type Image struct {
	Data     []byte
	MIMEType string // "image/png"
}

// An Action is what must happen before a call can succeed.
type Action struct {
	// Type is "approval" or "input".
	Type    string
	Message string
	// Input describes the input that is needed.
	Input *schema.Schema
}

// OK is a success with a value.
func OK(value any) Result { return Result{Outcome: Success, Value: value} }

// Text is a success with a message alone.
func Text(message string) Result { return Result{Outcome: Success, Message: message} }

// Fail is a failure that the model reads and may repair.
func Fail(message string) Result {
	return Result{Outcome: Failed, Err: &Error{Code: CodeFailed, Category: CategoryInternal, Message: message}}
}

// OK reports whether the call succeeded.
func (r *Result) OK() bool { return r.Outcome == Success || r.Outcome == "" && r.Err == nil }

// agree makes outcome and error of a result say the same: an error is no success, and what is no success has an error.
func (r *Result) agree() {
	switch {
	case r.Err != nil && (r.Outcome == "" || r.Outcome == Success):
		r.Outcome = failed(r.Err).Outcome
	case r.OK():
		r.Outcome = Success
	case r.Err == nil:
		r.Err = unexplained(r)
	}
}

// A Renderer is a value that writes its own text for the model.
type Renderer interface{ Render() string }

// Unserializable is shown instead of a value without a JSON form.
const Unserializable = "[unserializable]"

// Render gives the text that the model reads: of a call that did not succeed the error; of a value its own Render, or its
// JSON, a string as it is; and the message where that is empty or the value is hidden.
func (r *Result) Render() string {
	if !r.OK() {
		return r.problem()
	}
	if r.HideValue {
		return r.Message
	}
	if text := renderValue(r.Value); text != "" {
		return text
	}
	return r.Message
}

func (r *Result) problem() string {
	switch {
	case r.Err != nil && r.Err.Message != "":
		return r.Err.Message
	case r.Action != nil && r.Action.Message != "":
		return r.Action.Message
	case r.Message != "":
		return r.Message
	}
	return fmt.Sprintf(noReason, r.Outcome)
}

// renderValue does not panic even if a method of the value does: it is called after the call, where a panic is not handled.
func renderValue(value any) (text string) {
	defer func() {
		if recover() != nil {
			text = Unserializable
		}
	}()
	switch v := value.(type) {
	case nil:
		return ""
	case Renderer:
		if isNilPointer(v) {
			return ""
		}
		return v.Render()
	case string:
		return v
	case []byte:
		return string(v)
	case json.RawMessage:
		return string(v)
	}
	raw, err := plainjson.TryMarshal(value)
	if err != nil {
		return Unserializable
	}
	return string(raw)
}

func isNilPointer(v any) bool {
	rv := reflect.ValueOf(v)
	return rv.Kind() == reflect.Pointer && rv.IsNil()
}

// A Reply is a typed result with more than its value.
type Reply[T any] struct {
	Value   T
	Message string
	Images  []Image
	// HideValue keeps the value out of the model's context.
	HideValue bool
}

type replier interface {
	result() Result
	valueType() reflect.Type
}

func (r Reply[T]) result() Result {
	return Result{Outcome: Success, Value: r.Value, Message: r.Message, Images: r.Images, HideValue: r.HideValue}
}

func (Reply[T]) valueType() reflect.Type { return reflect.TypeFor[T]() }

func resultOf(r any) Result {
	switch r := r.(type) {
	case Result:
		return r
	case *Result:
		if r == nil {
			return OK(nil)
		}
		return *r
	case replier:
		if isNilPointer(r) {
			return OK(nil)
		}
		return r.result()
	}
	return OK(r)
}

// Event returns the result as an event.
func (r *Result) Event() event.ToolResult {
	e := event.ToolResult{
		ID: r.CallID, Name: r.Tool, Status: r.Outcome, Duration: r.Duration,
		InputDigest: r.InputDigest, OutputDigest: r.OutputDigest,
	}
	if raw, err := plainjson.TryMarshal(r.Render()); err == nil {
		e.Output = raw
	}
	if r.Err != nil {
		e.Failure = &event.ToolFailure{Code: r.Err.Code, Category: string(r.Err.Category), Message: r.Err.Message, Retryable: r.Err.Retryable}
	}
	return e
}
