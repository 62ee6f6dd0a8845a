// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/tool"
	"github.com/google/go-cmp/cmp"
)

func TestSummarise_Tools(t *testing.T) {
	want := []Summary{
		{Name: "write-file", ID: "default:write-file", Description: "Puts text into a file.", Risk: []string{"mutates"}, Needs: []string{"fileWrite"}, Tags: []string{"files", "mutating"}, SchemaKeys: []string{"path", "offset"}, Served: true},
		{Name: "read-file", ID: "default:read-file", Description: "Gives the text of a file.", Risk: []string{"readOnly"}, Tags: []string{"files", "text", "readonly"}, SchemaKeys: []string{"path", "offset"}, Served: true},
		{Name: "fetch", ID: "web:fetch@2.0.0", Title: "Fetch a page", Description: "Gets a web page.", Needs: []string{"networkAccess"}, SchemaKeys: []string{"url"}, Served: true},
		{Name: "wipe", ID: "default:wipe", Description: "Deletes a disk.", Risk: []string{"mutates", "dangerous"}, Tags: []string{"mutating", "dangerous"}, Served: true},
		{Name: "copy", ID: "default:copy", Description: "Copies a file the old way.", Tags: []string{"files"}, Served: true, Deprecated: "Use write-file."},
		{Name: "declared", ID: "default:declared", Description: "Runs elsewhere."},
	}
	if diff := cmp.Diff(want, Summarise(shelf(t).Tools())); diff != "" {
		t.Errorf("summaries (-want +got):\n%s", diff)
	}
}

func TestSummary_NamesRisksOfMetadataAndTags(t *testing.T) {
	got := Summarise([]*tool.Tool{{Name: "a", Tags: []string{"shell-execute"}, Metadata: map[string]any{"dangerous": true}}})[0]
	want := Summary{Name: "a", ID: "default:a", Risk: []string{"dangerous"}, Needs: []string{"shellExecute"}, Tags: []string{"shell-execute"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
}

func TestSummary_JSONIsShort(t *testing.T) {
	got, err := json.Marshal(Summarise([]*tool.Tool{{Name: "a", Description: "A."}}))
	if want := `[{"name":"a","id":"default:a","description":"A.","served":false}]`; err != nil || string(got) != want {
		t.Errorf("got %s and %v, want %s", got, err, want)
	}
}

func TestSummary_NoTools(t *testing.T) {
	if got, _ := json.Marshal(Summarise(nil)); string(got) != "[]" {
		t.Errorf("got %s, want []", got)
	}
}
