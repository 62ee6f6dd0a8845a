// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/tool"
)

func metadata(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}

func TestRisk_ComesFromOptionsMetadataAndTags(t *testing.T) {
	for _, tc := range []struct {
		name     string
		risk     tool.Risk
		metadata map[string]any
		tags     []string
		want     tool.Risk
	}{
		{name: "nothing declared, no risk"},
		{name: "option mutates", risk: tool.Mutates, want: tool.Mutates},
		{name: "option read-only", risk: tool.ReadOnly, want: tool.ReadOnly},
		{name: "option mutates beats option read-only", risk: tool.Mutates | tool.ReadOnly, want: tool.Mutates},
		{name: "option mutates beats metadata read-only", risk: tool.Mutates, metadata: metadata("readOnly", true), want: tool.Mutates},
		{name: "metadata mutates", metadata: metadata("mutates", true), want: tool.Mutates},
		{name: "metadata mutates beats metadata read-only", metadata: metadata("mutates", true, "readOnly", true), want: tool.Mutates},
		{name: "metadata mutates beats option read-only", risk: tool.ReadOnly, metadata: metadata("mutates", true), want: tool.Mutates},
		{name: "metadata mutates beats tag readonly", metadata: metadata("mutates", true), tags: []string{"readonly"}, want: tool.Mutates},
		{name: "metadata read-only beats tag mutating", metadata: metadata("readOnly", true), tags: []string{"mutating"}, want: tool.ReadOnly},
		{name: "option read-only beats tag mutating", risk: tool.ReadOnly, tags: []string{"mutating"}, want: tool.ReadOnly},
		{name: "tag mutating", tags: []string{"mutating"}, want: tool.Mutates},
		{name: "tag readonly", tags: []string{"readonly"}, want: tool.ReadOnly},
		{name: "tag read-only", tags: []string{"read-only"}, want: tool.ReadOnly},
		{name: "tag mutating beats tag readonly", tags: []string{"readonly", "mutating"}, want: tool.Mutates},
		{name: "tag mutating beats tag read-only", tags: []string{"read-only", "mutating"}, want: tool.Mutates},
		{name: "mutates false does not cancel the tag", metadata: metadata("mutates", false), tags: []string{"mutating"}, want: tool.Mutates},
		{name: "read-only false does not cancel the tag", metadata: metadata("readOnly", false), tags: []string{"readonly"}, want: tool.ReadOnly},
		{name: "a text is not true", metadata: metadata("mutates", "true")},
		{name: "a number is not true", metadata: metadata("mutates", 1, "dangerous", 1.0)},
		{name: "a list is not true", metadata: metadata("readOnly", []any{true}), tags: []string{"mutating"}, want: tool.Mutates},
		{name: "null is not true", metadata: metadata("mutates", nil)},
		{name: "keys of metadata have one spelling", metadata: metadata("Mutates", true)},
		{name: "tags in any case", tags: []string{"MuTaTing"}, want: tool.Mutates},
		{name: "a tag is a whole word", tags: []string{"not-mutating", "dangerous-looking"}},
		{name: "option dangerous", risk: tool.Dangerous, want: tool.Dangerous},
		{name: "metadata dangerous", metadata: metadata("dangerous", true), want: tool.Dangerous},
		{name: "tag dangerous", tags: []string{"DANGEROUS"}, want: tool.Dangerous},
		{name: "dangerous false does not cancel the tag", metadata: metadata("dangerous", false), tags: []string{"dangerous"}, want: tool.Dangerous},
		{name: "dangerous and mutating", risk: tool.Dangerous, tags: []string{"mutating"}, want: tool.Dangerous | tool.Mutates},
		{name: "dangerous and read-only", metadata: metadata("dangerous", true, "readOnly", true), tags: []string{"mutating"}, want: tool.Dangerous | tool.ReadOnly},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made := &tool.Tool{Risk: tc.risk, Metadata: tc.metadata, Tags: tc.tags}
			if got := made.Risks(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestCapability_IsTheUnionOfAllDeclarations(t *testing.T) {
	all := tool.FileWrite | tool.ShellExecute | tool.NetworkAccess
	for _, tc := range []struct {
		name     string
		own      tool.Capability
		metadata any
		tags     []string
		want     tool.Capability
	}{
		{name: "nothing declared, none needed"},
		{name: "options", own: tool.FileWrite | tool.NetworkAccess, want: tool.FileWrite | tool.NetworkAccess},
		{name: "metadata made in Go", metadata: []string{"shellExecute"}, want: tool.ShellExecute},
		{name: "metadata read from JSON", metadata: []any{"fileWrite", 7, "networkAccess"}, want: tool.FileWrite | tool.NetworkAccess},
		{name: "metadata of another shape", metadata: "fileWrite"},
		{name: "unknown names", metadata: []string{"filewrite", "FileWrite"}},
		{name: "tags in any case", tags: []string{"file-write", "Shell-Execute", "network-access"}, want: all},
		{name: "all together", own: tool.FileWrite, metadata: []string{"shellExecute"}, tags: []string{"network-access"}, want: all},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made := &tool.Tool{Capabilities: tc.own, Metadata: metadata("capabilities", tc.metadata), Tags: tc.tags}
			if got := made.Needs(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestRisk_NamesOfRisksAndCapabilities(t *testing.T) {
	got := []string{
		tool.Risk(0).String(), (tool.ReadOnly | tool.Mutates | tool.Dangerous).String(), tool.Dangerous.String(),
		tool.Capability(0).String(), (tool.FileWrite | tool.ShellExecute | tool.NetworkAccess).String(), tool.ShellExecute.String(),
	}
	want := []string{"none", "readOnly, mutates, dangerous", "dangerous", "none", "fileWrite, shellExecute, networkAccess", "shellExecute"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRisk_HasNeedsEveryBit(t *testing.T) {
	if r := tool.Mutates; !r.Has(tool.Mutates) || r.Has(tool.Mutates|tool.Dangerous) || !r.Has(0) {
		t.Error("a risk does not have what it is made of, or has more")
	}
	if c := tool.FileWrite | tool.ShellExecute; !c.Has(tool.ShellExecute) || c.Has(tool.NetworkAccess) {
		t.Error("a capability does not have what it is made of, or has more")
	}
}

func TestTool_SetRiskOutweighsTagsAndMetadata(t *testing.T) {
	for _, want := range []tool.Risk{0, tool.ReadOnly, tool.Mutates, tool.Mutates | tool.Dangerous} {
		made := tool.Must("x", "d", quiet, tool.Dangerous, tool.WithTags("a", "mutating", "read-only"), tool.WithMetadata(metadata("readOnly", true, "dangerous", true)))
		if made.SetRisk(want); made.Risks() != want || !made.HasTag("a") || made.HasTag("mutating") != want.Has(tool.Mutates) {
			t.Errorf("Risks() = %s and the tags are %q, want %s", made.Risks(), made.Tags, want)
		}
		if diff := cmp.Diff(want.Names(), made.Risks().Names()); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	}
}
