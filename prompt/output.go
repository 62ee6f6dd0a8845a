// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/drover-agents/drover/schema"
)

// Text is the output type of prompts whose answer is plain text: no schema is asked for. A plain
// string, in contrast, is a structured answer of the JSON type string.
type Text string

// JSON is the output type of prompts whose answer is described by [Definition.Output], for programs that
// learn its form when they run. Without a schema the answer is plain text, and JSON has it as a string.
type JSON json.RawMessage

// MarshalJSON returns the answer as it is.
func (j JSON) MarshalJSON() ([]byte, error) { return json.RawMessage(j).MarshalJSON() }

// UnmarshalJSON keeps the answer as it is.
func (j *JSON) UnmarshalJSON(raw []byte) error { return (*json.RawMessage)(j).UnmarshalJSON(raw) }

// String returns the JSON text.
func (j JSON) String() string { return string(j) }

type output struct {
	schema   *schema.Schema  // nil for plain text
	forAgent json.RawMessage // nil for plain text
}

// outputOf describes an output type. The answer is read into it, so the schema is the one by which
// tools read their params: what it accepts can be decoded.
func outputOf[Out any](d Definition) (output, error) {
	switch typ := reflect.TypeFor[Out](); {
	case typ == reflect.TypeFor[JSON]():
		return dynamicOutput(d)
	case d.Output != nil:
		return output{}, fmt.Errorf("field Output is for prompts with the output type JSON, and this one has %v", typ)
	case typ == reflect.TypeFor[Text]():
		return output{}, nil
	}
	s, err := schema.For[Out]()
	if err != nil {
		return output{}, err
	}
	if d.ExtraKeys {
		// Inside a JSON string the quotes would be escaped, so what is taken out is always a keyword.
		opened := bytes.ReplaceAll(s.JSON(), []byte(`,"additionalProperties":false`), nil)
		if s, err = schema.Parse(opened); err != nil {
			return output{}, err
		}
	}
	forAgent, _, err := schema.ForCLI(s)
	return output{s, forAgent}, err
}

// dynamicOutput describes an answer by a schema, which also allows or forbids other properties.
func dynamicOutput(d Definition) (output, error) {
	switch {
	case d.ExtraKeys:
		return output{}, errors.New("ExtraKeys is for answers that a Go type describes; Output itself states the allowed properties")
	case d.Output == nil:
		return output{}, nil
	}
	forAgent, _, err := schema.ForCLI(d.Output)
	return output{d.Output, forAgent}, err
}

// Parse checks a structured answer and decodes it, in the form in which the agent gives it: other roots than objects may be
// wrapped, see [schema.ForCLI]. For [Text] the answer is a JSON string. The error is an [*OutputError].
func (p *Prompt[Out]) Parse(raw json.RawMessage) (Out, error) {
	out, err := parseOutput[Out](p.b.t.output.schema, raw)
	if err != nil {
		var none Out
		return none, &OutputError{Prompt: p.Name(), Raw: bytes.Clone(raw), Err: err}
	}
	return out, nil
}

func parseOutput[Out any](s *schema.Schema, raw json.RawMessage) (out Out, err error) {
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return out, errors.New("there is no structured answer")
	case s == nil && string(bytes.TrimSpace(raw)) == "null":
		return out, errors.New("the answer is null, not a string")
	case s == nil:
		return out, json.Unmarshal(raw, &out)
	}
	return schema.Decode[Out](s, raw)
}

// An OutputError is returned for an answer that is not of the output type. It matches [ErrOutput].
type OutputError struct {
	// Prompt is the name of the prompt.
	Prompt string
	// Raw is the answer as received.
	Raw json.RawMessage
	// Err is the problem; often it is a [*schema.ValidationError].
	Err error
}

const maxQuoted = 500

// Error states the problem and quotes the beginning of the answer.
func (e *OutputError) Error() string {
	quoted := string(e.Raw)
	if len(quoted) > maxQuoted {
		quoted = strings.ToValidUTF8(quoted[:maxQuoted], "") + fmt.Sprintf("... (%d bytes)", len(e.Raw))
	}
	return fmt.Sprintf("prompt: %s: %v: %v\n  answer: %s", e.Prompt, ErrOutput, e.Err, quoted)
}

// Unwrap returns [ErrOutput] and the reason.
func (e *OutputError) Unwrap() []error { return []error{ErrOutput, e.Err} }
