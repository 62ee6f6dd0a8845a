// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safetext"
)

// A masker takes secrets out of what is recorded, and out of requests before they are compared with what was recorded.
type masker struct {
	*safetext.Redactor
	wire *Wire
}

func (m masker) text(s string) string { return m.String(s) }

// rewrite masks a text that may be JSON. It is a [rewriter].
func (m masker) rewrite(s string, isJSON bool) string {
	if !isJSON {
		return m.text(s)
	}
	doc, err := decodeJSON([]byte(s))
	if err != nil {
		return m.text(s)
	}
	changed := false
	doc = m.value(doc, &changed)
	if !changed && m.text(s) == s { // the value of a repeated name is not in doc
		return s
	}
	return encodeJSON(doc)
}

func (m masker) exchange(e exchange) exchange {
	e.Request.Path, e.Request.Query = m.text(e.Request.Path), m.text(e.Request.Query)
	e.Request.Headers = m.headers(e.Request.Headers)
	e.Request.Body = m.payload(e.Request.Body)
	e.Response.Headers, e.Response.Error = m.headers(e.Response.Headers), m.text(e.Response.Error)
	e.Response.Chunks = rewriteAnswer(m.wire, e.Response.Headers["Content-Type"], e.Response.Chunks, m.rewrite)
	return e
}

func (m masker) headers(h map[string]string) map[string]string {
	for name, value := range h {
		h[name] = m.text(value)
	}
	return h
}

func (m masker) payload(p payload) payload {
	if p.JSON != nil {
		return payload{JSON: json.RawMessage(m.rewrite(string(p.JSON), true))}
	}
	return newPayload(m.Bytes(p.bytes()))
}

// value masks each string by itself, with the name it has: an expression across strings would leave no JSON.
func (m masker) value(v any, changed *bool) any {
	switch v := v.(type) {
	case string:
		masked := m.text(v)
		*changed = *changed || masked != v
		return masked
	case []any:
		for i := range v {
			v[i] = m.value(v[i], changed)
		}
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(v)) {
			m.member(v, name, changed)
		}
	}
	return v
}

// longestNamed is how long a value may be that its name gives away; longer ones are texts.
const longestNamed = 4096

func (m masker) member(object map[string]any, name string, changed *bool) {
	value := m.value(object[name], changed)
	if text, ok := value.(string); ok && len(text) <= longestNamed {
		value = m.named(name, text, changed)
	}
	masked := m.text(name)
	if masked != name {
		delete(object, name)
		*changed = true
	}
	object[masked] = value
}

// named masks a value that its name gives away, as in {"password": "hunter22"}.
func (m masker) named(name, value string, changed *bool) string {
	pair := encodeJSON(map[string]string{name: value})
	masked := m.text(pair)
	if masked == pair {
		return value
	}
	var out map[string]string
	if json.Unmarshal([]byte(masked), &out) != nil || len(out) != 1 {
		return value
	}
	for _, text := range out {
		*changed = *changed || text != value
		value = text
	}
	return value
}

// decodeJSON reads one document, with numbers as they are written.
func decodeJSON(b []byte) (doc any, err error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	if err = dec.Decode(&doc); err == nil && dec.More() {
		err = errTrailing
	}
	return doc, err
}

func encodeJSON(v any) string {
	doc, _ := plainjson.Marshal(v) // a decoded document can always be encoded
	return string(doc)
}
