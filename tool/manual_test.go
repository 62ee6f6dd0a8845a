// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/tool"
)

func TestManual_HasTheWholeDeclaration(t *testing.T) {
	plain := sum()
	if got, want := plain.Manual(), "adds two numbers"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	full := sum(tool.WithDeprecation("use add instead."), tool.WithExamples(
		tool.Example{Input: json.RawMessage(`{"a":1,"b":2}`), Output: json.RawMessage(`3`), Description: "two small ones"},
		tool.Example{Input: json.RawMessage(`{"a":0,"b":0}`)}))
	want := "adds two numbers\n\nDeprecated: use add instead.\n\nExamples:\n" +
		`{"a":1,"b":2} gives 3 (two small ones)` + "\n" + `{"a":0,"b":0}`
	if got := full.Manual(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
