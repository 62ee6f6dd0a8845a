// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxValueDepth bounds the nesting of a value, and with it the length of the pointers in a report.
const maxValueDepth = 1000

// readValue gives what encoding/json gives for "any", but refuses what readers understand in different ways: a repeated
// property, bytes that are not UTF-8, a number beyond a double. Odd says that it has whole numbers which Go may not read as
// integers: 1.0, -0, or beyond 2^53. Those beyond a float32 are among them.
func readValue(data []byte) (value any, odd bool, wrong *Violation) {
	if !json.Valid(data) {
		var v any
		err := json.Unmarshal(data, &v)
		return nil, false, &Violation{Keyword: "json", Message: "is not valid JSON: " + err.Error()}
	}
	if !utf8.Valid(data) {
		return nil, false, &Violation{Keyword: "json", Message: "is not valid JSON: it has bytes that are not UTF-8"}
	}
	r := valueReader{data: data}
	v := r.value()
	return v, r.odd, r.wrong
}

// A valueReader goes through a text that is known to be JSON.
type valueReader struct {
	data  []byte
	pos   int
	at    walk // for the path alone
	odd   bool
	wrong *Violation
}

// refuse notes a problem, which ends the reading.
func (r *valueReader) refuse(message string) {
	r.wrong = &Violation{Pointer: r.at.pointer(), Keyword: "json", Message: message}
}

// next returns the next byte that is no space.
func (r *valueReader) next() byte {
	for {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return c
		}
	}
}

func (r *valueReader) value() any {
	switch c := r.next(); c {
	case '{':
		return r.object()
	case '[':
		return r.array()
	case '"':
		return r.text()
	case 't':
		r.pos += len("true")
		return true
	case 'f':
		r.pos += len("false")
		return false
	case 'n':
		r.pos += len("null")
		return nil
	}
	return r.number()
}

func (r *valueReader) object() map[string]any {
	r.pos++
	o := map[string]any{}
	for r.wrong == nil && r.next() != '}' {
		if r.data[r.pos] == ',' {
			r.pos++
			r.next()
		}
		name := r.text()
		r.next()
		r.pos++ // the colon
		if _, twice := o[name]; twice {
			r.refuse("has the property " + strconv.Quote(name) + " twice; write each property once")
			return o
		}
		o[name] = r.inside(step{name: name})
	}
	r.pos++
	return o
}

func (r *valueReader) array() []any {
	r.pos++
	list := []any{}
	for r.wrong == nil && r.next() != ']' {
		if r.data[r.pos] == ',' {
			r.pos++
		}
		list = append(list, r.inside(step{index: len(list), elem: true}))
	}
	r.pos++
	return list
}

func (r *valueReader) inside(s step) any {
	r.at.path = append(r.at.path, s)
	if len(r.at.path) > maxValueDepth {
		r.at.path = r.at.path[:1]
		r.refuse("is nested more than " + strconv.Itoa(maxValueDepth) + " levels deep")
		return nil
	}
	v := r.value()
	if r.wrong == nil {
		r.at.path = r.at.path[:len(r.at.path)-1]
	}
	return v
}

func (r *valueReader) text() string {
	start := r.pos
	r.pos++
	escaped := false
	for r.data[r.pos] != '"' {
		if r.data[r.pos] == '\\' {
			escaped = true
			r.pos++
		}
		r.pos++
	}
	r.pos++
	raw := r.data[start:r.pos]
	if !escaped {
		return string(raw[1 : len(raw)-1])
	}
	var s string
	_ = json.Unmarshal(raw, &s) // a string always decodes into one
	return s
}

func (r *valueReader) number() float64 {
	rest := r.data[r.pos:]
	n := bytes.IndexFunc(rest, func(c rune) bool {
		return (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E'
	})
	if n < 0 {
		n = len(rest)
	}
	r.pos += n
	literal := string(rest[:n])
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		r.refuse("is a number out of range")
	}
	if f == math.Trunc(f) && (math.Abs(f) >= 1<<53 || literal == "-0" || strings.ContainsAny(literal, ".eE")) {
		r.odd = true
	}
	return f
}
