// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/drover-agents/drover/internal/plainjson"
)

// A member is one of a JSON object, in its place: models read schemas in the order they are given.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf takes a JSON object apart.
func membersOf(object json.RawMessage) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, fmt.Errorf("not a JSON object: %.40s", object)
	}
	var all []member
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{name: name.(string)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

func joinMembers(all []member) json.RawMessage {
	b := []byte{'{'}
	for i, m := range all {
		if i > 0 {
			b = append(b, ',')
		}
		name, _ := plainjson.TryMarshal(m.name) // a string always has a JSON form
		b = append(append(append(b, name...), ':'), m.value...)
	}
	return append(b, '}')
}
