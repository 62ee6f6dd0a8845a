// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/drover-agents/drover/internal/plainjson"
)

// An object is a JSON object whose members keep their order and their exact text.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

func parseObject(line []byte) (object, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("transcript: not a JSON object")
	}
	var o object
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		o = append(o, member{key.(string), value})
	}
	_, err := dec.Token()
	return o, err
}

// set gives key a value, at its position or at the end.
func (o object) set(key string, value any) object {
	raw := encode(value)
	if i := slices.IndexFunc(o, func(m member) bool { return m.key == key }); i >= 0 {
		o[i].value = raw
		return o
	}
	return append(o, member{key, raw})
}

func (o object) without(keys ...string) object {
	return slices.DeleteFunc(o, func(m member) bool { return slices.Contains(keys, m.key) })
}

func (o object) bytes() []byte {
	b := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, encode(m.key)...), ':')
		b = append(b, m.value...)
	}
	return append(b, '}')
}

// encode marshals values that always encode: strings, numbers, structs of them. Like the CLI it leaves <, > and & alone.
func encode(v any) []byte {
	raw, err := plainjson.Marshal(v)
	if err != nil {
		return []byte("null")
	}
	return raw
}
