// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Bounds of a schema, far above what people write. They keep a hostile one from costing more than its length.
const (
	maxDepth     = 200     // levels of nesting
	maxValues    = 100_000 // objects, lists, texts, numbers and the others
	maxSchemas   = 20_000  // schemas, the inner ones included
	maxPathBytes = 8 << 20 // bytes of the paths of all schemas
	maxPattern   = 4096    // bytes of a regular expression
	maxPatterns  = 100     // patterns in one patternProperties
	maxProgram   = 100_000 // instructions and ranges of all regular expressions
)

// An object is a JSON object that keeps the order of its members, because models read properties in that order.
type object struct {
	members []member
}

type member struct {
	name  string
	value any // nil, bool, string, json.Number, []any or *object
}

func (o *object) get(name string) (any, bool) {
	for i := range o.members {
		if o.members[i].name == name {
			return o.members[i].value, true
		}
	}
	return nil, false
}

func (o *object) has(name string) bool {
	_, ok := o.get(name)
	return ok
}

// set replaces the member called name, or appends it.
func (o *object) set(name string, value any) {
	for i := range o.members {
		if o.members[i].name == name {
			o.members[i].value = value
			return
		}
	}
	o.members = append(o.members, member{name, value})
}

func newObject(pairs ...any) *object {
	o := new(object)
	for i := 0; i < len(pairs); i += 2 {
		o.members = append(o.members, member{pairs[i].(string), pairs[i+1]})
	}
	return o
}

// parseOrdered reads exactly one JSON value. A repeated member name is an error: readers disagree about which one counts.
func parseOrdered(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	r := &orderedReader{Decoder: dec}
	v, err := r.value(0)
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON value")
	}
	return v, nil
}

// An orderedReader reads a document and counts its values.
type orderedReader struct {
	*json.Decoder
	values int
}

func (r *orderedReader) value(depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d levels deep", maxDepth)
	}
	if r.values++; r.values > maxValues {
		return nil, fmt.Errorf("it has more than %d values", maxValues)
	}
	tok, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		return r.object(depth)
	case json.Delim('['):
		return r.list(depth)
	}
	return tok, nil
}

func (r *orderedReader) object(depth int) (*object, error) {
	o := new(object)
	seen := map[string]bool{}
	for r.More() {
		tok, err := r.Token()
		if err != nil {
			return nil, err
		}
		name := tok.(string)
		if seen[name] {
			return nil, fmt.Errorf("member %q appears twice in one object", name)
		}
		seen[name] = true
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		o.members = append(o.members, member{name, v})
	}
	_, err := r.Token()
	return o, err
}

func (r *orderedReader) list(depth int) ([]any, error) {
	list := []any{}
	for r.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.Token()
	return list, err
}

// appendJSON writes v compactly, with HTML characters as they are: \u003c would cost the models that read it six characters.
func appendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		b = append(b, '{')
		for i, m := range v.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendString(b, m.name)
			b = append(b, ':')
			b = appendJSON(b, m.value)
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, e)
		}
		return append(b, ']')
	case string:
		return appendString(b, v)
	case json.Number:
		return append(b, v...)
	case bool:
		return strconv.AppendBool(b, v)
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	}
	return append(b, "null"...)
}

func appendString(b []byte, s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // a string always encodes
	}
	return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
}

// plain turns an ordered value into what encoding/json gives for "any".
func plain(v any) any {
	switch v := v.(type) {
	case *object:
		m := make(map[string]any, len(v.members))
		for _, e := range v.members {
			m[e.name] = plain(e.value)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i, e := range v {
			list[i] = plain(e)
		}
		return list
	case json.Number:
		f, _ := v.Float64() // out of range was refused when the schema was parsed
		return f
	case int:
		return float64(v)
	}
	return v
}
