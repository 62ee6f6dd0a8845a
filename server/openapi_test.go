// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-agents/drover/server"
)

// Each operation is described with its answer, and each reference leads to a schema.
func TestOpenAPI_DescribesEachOperation(t *testing.T) {
	text, err := server.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]struct {
			OperationID string
			Responses   map[string]any
		}
		Components struct{ Schemas map[string]any }
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, pattern := range server.Patterns() {
		method, path, _ := strings.Cut(pattern, " ")
		o := doc.Paths[path][strings.ToLower(method)]
		if o.OperationID == "" || ids[o.OperationID] || len(o.Responses) < 3 {
			t.Errorf("%s is described as %+v", pattern, o)
		}
		ids[o.OperationID] = true
	}
	for part := range strings.SplitSeq(string(text), `"$ref":"#/components/schemas/`) {
		if name, _, is := strings.Cut(part, `"`); is && !strings.HasPrefix(part, "{") && doc.Components.Schemas[name] == nil {
			t.Errorf("there is no schema %s", name)
		}
	}
	if doc.OpenAPI != "3.1.0" || len(doc.Components.Schemas) < 10 {
		t.Errorf("OpenAPI %s with %d schemas", doc.OpenAPI, len(doc.Components.Schemas))
	}
}
