// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"fmt"
	"strings"
)

// Conditions that callers test for with errors.Is.
var (
	// ErrInvalid is wrapped when a text or a Go type cannot be used as a schema.
	ErrInvalid = errors.New("schema: not a usable schema")
	// ErrNotForCLI is wrapped when a schema is sound but says something that the CLI's structured output cannot express.
	ErrNotForCLI = errors.New("schema: the CLI cannot express this schema")
)

// A LocationError names the location inside a schema, or the Go type, that is wrong. It wraps [ErrInvalid] or [ErrNotForCLI].
type LocationError struct {
	// Location is a JSON pointer into the schema ("#/properties/a"), or a Go type ("main.T.Field").
	Location string
	Reason   string
	Err      error
}

func (e *LocationError) Error() string {
	return fmt.Sprintf("%v: at %s: %s", e.Err, e.Location, e.Reason)
}

// Unwrap returns the condition.
func (e *LocationError) Unwrap() error { return e.Err }

func invalid(path, format string, args ...any) error {
	return &LocationError{Location: path, Reason: fmt.Sprintf(format, args...), Err: ErrInvalid}
}

func notForCLI(path, format string, args ...any) error {
	return &LocationError{Location: path, Reason: fmt.Sprintf(format, args...), Err: ErrNotForCLI}
}

// A Violation is one way in which a value breaks its schema.
type Violation struct {
	// Pointer leads to the offending value: "" is the whole value, "/items/2" an element.
	Pointer string
	// Keyword is the schema keyword that was broken ("type", "required"), "json" where the value is no JSON at all, "decode"
	// where it fits the schema but not the Go type, or "doubles" where it has a whole number that may have been rounded.
	Keyword string
	// Message says what is wrong in words a model can act on.
	Message string
}

// String gives "/items/2: must be a string, got a number".
func (v Violation) String() string {
	if v.Pointer == "" {
		return "(root): " + v.Message
	}
	return v.Pointer + ": " + v.Message
}

// maxListed bounds the text of an error, not the list of violations in it.
const maxListed = 50

// A ValidationError lists everything that is wrong with a value.
type ValidationError struct {
	Violations []Violation // at least one
}

func (e *ValidationError) Error() string {
	var b strings.Builder
	b.WriteString("value does not match its schema: ")
	for i, v := range e.Violations {
		if i == maxListed {
			fmt.Fprintf(&b, "; and %d more", len(e.Violations)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(v.String())
	}
	return b.String()
}
