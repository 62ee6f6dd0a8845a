// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/schema"
)

type wireRegistry struct {
	Tools []json.RawMessage `json:"tools"`
}

// wireTool is the JSON form of a tool. The order of the fields is the order in the JSON.
type wireTool struct {
	Name         string          `json:"name"`
	Namespace    string          `json:"namespace,omitzero"`
	Version      string          `json:"version,omitzero"`
	Title        string          `json:"title,omitzero"`
	Description  string          `json:"description"`
	Input        json.RawMessage `json:"input,omitempty"`
	Output       json.RawMessage `json:"output,omitempty"`
	Risk         []string        `json:"risk,omitempty"`
	Capabilities []string        `json:"capabilities,omitempty"`
	Tags         []string        `json:"tags,omitempty"`
	Metadata     json.RawMessage `json:"metadata,omitempty"`
	Examples     []Example       `json:"examples,omitempty"`
	Deprecated   string          `json:"deprecated,omitzero"`
	Timeout      string          `json:"timeout,omitzero"` // "1m30s"
	Concurrency  int             `json:"concurrency,omitzero"`
	HideValue    bool            `json:"hideValue,omitzero"`
	AlwaysLoad   bool            `json:"alwaysLoad,omitzero"`
	SearchHint   string          `json:"searchHint,omitzero"`
	Served       bool            `json:"served,omitzero"`
}

// MarshalJSON writes down all tools in the order in which they were added, for [ReadTools] and for
// readers that are no Go programs. The same tools always give the same bytes. Risk and capabilities
// are the effective ones, from any source. Schemas are written unchanged. Handlers are not written, only
// that there is one: "served". Metadata without a JSON form is an error that names its path.
func (r *Registry) MarshalJSON() ([]byte, error) {
	out := wireRegistry{Tools: []json.RawMessage{}}
	for _, t := range r.Tools() {
		raw, err := t.marshal()
		if err != nil {
			return nil, fmt.Errorf("tool: %q: %w", t.Name, err)
		}
		out.Tools = append(out.Tools, raw)
	}
	return plainjson.TryMarshal(out)
}

func (t *Tool) marshal() (json.RawMessage, error) {
	w := wireTool{
		Name: t.Name, Namespace: t.Namespace, Version: t.Version, Title: t.Title, Description: t.Description,
		Risk: t.Risks().Names(), Capabilities: t.Needs().Names(), Tags: t.Tags,
		Examples: t.Examples, Deprecated: t.Deprecated, Concurrency: t.Concurrency,
		HideValue: t.HideValue, AlwaysLoad: t.AlwaysLoad, SearchHint: t.SearchHint, Served: t.Served(),
	}
	if t.Input != nil {
		w.Input = t.Input.JSON()
	}
	if t.Output != nil {
		w.Output = t.Output.JSON()
	}
	if t.Timeout != 0 {
		w.Timeout = t.Timeout.String()
	}
	if len(t.Metadata) > 0 {
		if err := checkMetadata(t.Metadata); err != nil {
			return nil, err
		}
		raw, err := plainjson.Form(t.Metadata)
		if err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
		w.Metadata = raw
	}
	return plainjson.TryMarshal(w)
}

// ReadTools reads what [Registry.MarshalJSON] writes. It asks handlers for the handler of each tool,
// by its id; where handlers is nil or gives nil the tool is declared, but not served. Dry runs and
// all else that is no data must be set again.
//
// Numbers in metadata are float64, as from encoding/json; one that a float64 does not hold stays a [json.Number]. The error
// names every tool that is wrong; a field, a risk or a capability that is not known is wrong, since it may be a warning.
func ReadTools(data []byte, handlers func(id string) Handler) ([]*Tool, error) {
	var all wireRegistry
	if err := decodeStrict(data, &all); err != nil {
		return nil, fmt.Errorf("tool: reading tools: %w", err)
	}
	if all.Tools == nil {
		return nil, errors.New(`tool: reading tools: no list "tools"`)
	}
	tools := make([]*Tool, 0, len(all.Tools))
	var errs []error
	for i, raw := range all.Tools {
		t, err := readTool(raw)
		if err != nil {
			errs = append(errs, fmt.Errorf("tool: reading tools[%d]: %w", i, err))
			continue
		}
		if handlers != nil {
			t.Handler = handlers(t.ID())
		}
		tools = append(tools, t)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return tools, nil
}

func readTool(raw json.RawMessage) (*Tool, error) {
	var w wireTool
	if err := decodeStrict(raw, &w); err != nil {
		return nil, fmt.Errorf("%q: %w", w.Name, err)
	}
	t := &Tool{
		Name: w.Name, Namespace: w.Namespace, Version: w.Version, Title: w.Title, Description: w.Description,
		Tags: w.Tags, Examples: w.Examples, Deprecated: w.Deprecated, Concurrency: w.Concurrency,
		HideValue: w.HideValue, AlwaysLoad: w.AlwaysLoad, SearchHint: w.SearchHint,
	}
	var errs [6]error
	t.Input, errs[0] = readSchema("input", w.Input)
	t.Output, errs[1] = readSchema("output", w.Output)
	t.Timeout, errs[2] = readTimeout(w.Timeout)
	t.Metadata, errs[3] = readMetadata(w.Metadata)
	t.Risk, errs[4] = readFlags[Risk]("risk", w.Risk, riskNames)
	t.Capabilities, errs[5] = readFlags[Capability]("capability", w.Capabilities, capabilityNames)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("%q: %w", w.Name, err)
	}
	t.settle()
	return t, t.Check()
}

func readSchema(field string, raw json.RawMessage) (*schema.Schema, error) {
	if raw == nil {
		return nil, nil
	}
	s, err := schema.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return s, nil
}

func readTimeout(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("timeout: %w", err)
	}
	return d, nil
}

func readFlags[F ~uint8](what string, names, known []string) (F, error) {
	var set F
	for _, name := range names {
		i := slices.Index(known, name)
		if i < 0 {
			return 0, fmt.Errorf("%q is no %s; there are %s", name, what, strings.Join(known, ", "))
		}
		set |= 1 << i
	}
	return set, nil
}

func readMetadata(raw json.RawMessage) (map[string]any, error) {
	if raw == nil {
		return nil, nil
	}
	value, err := plainjson.Value(raw)
	if err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	m, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("metadata: it must be an object")
	}
	return m, nil
}

func decodeStrict(data []byte, into any) error {
	if !json.Valid(data) {
		return json.Unmarshal(data, into) // says where
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}

func checkMetadata(metadata map[string]any) error {
	if _, err := json.Marshal(metadata); err != nil {
		return unserialisable("metadata", metadata, err, 0)
	}
	return nil
}

// maxPath bounds the depth of a path: a value that contains itself has no end.
const maxPath = 20

// unserialisable finds the innermost value that causes err, the error of value.
func unserialisable(path string, value any, err error, depth int) error {
	if depth < maxPath {
		for name, inner := range innerValues(value) {
			if _, innerErr := json.Marshal(inner); innerErr != nil {
				return unserialisable(path+name, inner, innerErr, depth+1)
			}
		}
	}
	return fmt.Errorf("%s has no JSON form: %w", path, err)
}

// innerValues yields the values of maps and lists in order, with how to write the step to them.
func innerValues(value any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		switch v := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				if !yield("."+key, v[key]) {
					return
				}
			}
		case []any:
			for i, inner := range v {
				if !yield("["+strconv.Itoa(i)+"]", inner) {
					return
				}
			}
		}
	}
}
