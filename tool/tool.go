// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/schema"
)

// A Tool is something that an agent or a program can call. Make one with [New]; the fields may also
// be set by hand, before the tool is used. A tool in use must not be changed.
type Tool struct {
	// Name has letters, digits, "_" and "-", at most 64.
	Name        string
	Description string
	// Namespace and Version tell tools of the same name apart; see [Tool.ID]. Both may be empty.
	Namespace, Version string
	// Title is a name for people.
	Title string

	// Input describes the arguments, an object. Nil means any object.
	Input *schema.Schema
	// Output describes the structured result, an object. Nil means that nothing is promised.
	Output *schema.Schema

	// Risk and Capabilities are set by the options; [Tool.Risks] and [Tool.Needs] are the effective ones.
	Risk         Risk
	Capabilities Capability
	// Tags are in kebab-case, each once.
	Tags []string
	// Metadata must have a JSON form. The keys mutates, readOnly, dangerous (booleans) and capabilities (a list of names)
	// mean what the options of the same name do. Other values of these keys, and other spellings of them, are errors.
	Metadata map[string]any
	// Examples and Deprecated, which is why the tool should not be used any more and what to use
	// instead, are shown to the model with the description: see [Tool.Manual].
	Examples   []Example
	Deprecated string

	// Timeout bounds each call. Zero means no limit of its own.
	Timeout time.Duration
	// Concurrency bounds how many calls run at once in a registry. Zero means no limit.
	Concurrency int
	// HideValue keeps values out of the model's context: it reads the message alone.
	HideValue bool
	// AlwaysLoad shows the tool to the model from the start, not only after a search; see [WithAlwaysLoad].
	AlwaysLoad bool
	// SearchHint helps the model's search for tools to find it.
	SearchHint string

	// Handler runs the tool. A tool without one is declared, but not served and not executed.
	Handler Handler
	// DryRun reports what a call would do, without doing it. Nil means that the tool has no dry run.
	DryRun Handler
}

// A Handler runs a call. Arguments were checked against Input. The context has the call: [CallFrom], [Progress], [Logger].
//
// An error becomes a failed result. A [*Error] has more than other errors: its category, a code and whether to try again.
type Handler func(ctx context.Context, input json.RawMessage) (Result, error)

// An Example shows one call to the model and to people.
type Example struct {
	Description string          `json:"description,omitzero"`
	Input       json.RawMessage `json:"input"`
	Output      json.RawMessage `json:"output,omitempty"`
}

// DefaultNamespace is the namespace of tools that name none.
const DefaultNamespace = "default"

// ID is "namespace:name@version", or "namespace:name" without a version: unique, with its parts escaped as in a URL.
func (t *Tool) ID() string {
	id := escapePart(cmp.Or(t.Namespace, DefaultNamespace)) + ":" + escapePart(t.Name)
	if t.Version != "" {
		id += "@" + escapePart(t.Version)
	}
	return id
}

var separators = strings.NewReplacer(":", "%3A", "@", "%40")

// escapePart also escapes what separates the parts, which a URL may have in a segment.
func escapePart(part string) string { return separators.Replace(url.PathEscape(part)) }

// Served reports whether the tool can be called.
func (t *Tool) Served() bool { return t.Handler != nil }

var (
	namePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) })
	tagPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`) })
)

// Check reports everything that is wrong with the declaration. [New] and [Registry.Add] call it.
func (t *Tool) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if t.Name == "" {
		bad("Name is empty; the model calls tools by it")
	} else if !namePattern().MatchString(t.Name) {
		bad("field Name must be 1 to 64 letters, digits, _ or -")
	}
	if strings.TrimSpace(t.Description) == "" {
		bad("Description is empty; the model chooses tools by it")
	}
	if t.Input != nil && !t.Input.IsObject() {
		bad(`Input must have "type":"object" at its root; use a struct or a map`)
	}
	if t.Output != nil && !t.Output.IsObject() {
		bad(`Output must have "type":"object" at its root; use a struct or a map`)
	}
	for _, tag := range t.Tags {
		if !tagPattern().MatchString(tag) {
			bad("tag %q is not in kebab-case", tag)
		}
	}
	if t.Timeout < 0 || t.Concurrency < 0 {
		bad("Timeout and Concurrency must not be negative")
	}
	if err := checkMetadata(t.Metadata); err != nil {
		bad("%w", err)
	}
	if err := checkRiskKeys(t.Metadata); err != nil {
		bad("%w", err)
	}
	for i, e := range t.Examples {
		if t.Input == nil {
			break
		}
		if err := t.Input.Validate(e.Input); err != nil {
			bad("Examples[%d].Input: %w", i, err)
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("tool: %q: %w", t.Name, errors.Join(errs...))
}
