// SPDX-License-Identifier: Apache-2.0

package event

import (
	_ "embed"
	"encoding/json"
)

//go:embed event.schema.json
var schemaText string

// Schema is the JSON Schema, in the dialect of 2020-12, of one event as [Event.MarshalJSON] writes it. It is made from the
// types of this package. Fields that it does not name are allowed, and so is every payload of a kind that it does not know,
// since both may come from a later version. What a kind promises must be there, and have its type.
//
// [Event.UnmarshalJSON] is more lenient: it reads an event in which something is missing.
func Schema() json.RawMessage { return json.RawMessage(schemaText) }
