// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

// quiet is a typed handler that does nothing.
func quiet(context.Context, tool.None) (string, error) { return "", nil }

func TestRisk_BecomesTags(t *testing.T) {
	for _, tc := range []struct {
		name string
		opts []tool.Option
		want []string
	}{
		{"nothing declared", nil, nil},
		{"options", []tool.Option{tool.Mutates, tool.Dangerous}, []string{"mutating", "dangerous"}},
		{"metadata", []tool.Option{tool.WithMetadata(metadata("readOnly", true))}, []string{"readonly"}},
		{"after the tags of the tool", []tool.Option{tool.WithTags("files"), tool.ReadOnly}, []string{"files", "readonly"}},
		{"each tag once", []tool.Option{tool.WithTags("mutating", "files", "files"), tool.WithTags("files"), tool.Mutates}, []string{"mutating", "files"}},
		{"only what holds", []tool.Option{tool.ReadOnly, tool.Mutates}, []string{"mutating"}},
		{"what a tag declares stays", []tool.Option{tool.WithTags("mutating"), tool.ReadOnly}, []string{"mutating", "readonly"}},
		{"capabilities do not", []tool.Option{tool.FileWrite}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			made, err := tool.New("x", "d", quiet, tc.opts...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, made.Tags); diff != "" {
				t.Errorf("tags (-want +got):\n%s", diff)
			}
			before := made.Risks()
			registered, _ := tool.MustRegistry(nil, made).Lookup("x")
			if registered.Risks() != before || cmp.Diff(made.Tags, registered.Tags) != "" {
				t.Errorf("in a registry: got %s and %q, want %s and %q", registered.Risks(), registered.Tags, before, made.Tags)
			}
		})
	}
}

func TestRegistry_DoesNotChangeTagsOfTheCaller(t *testing.T) {
	shared := append(make([]string, 0, 4), "a")
	for _, risk := range []tool.Risk{tool.Mutates, tool.ReadOnly} {
		tool.MustRegistry(nil, &tool.Tool{Name: "x", Description: "d", Risk: risk, Tags: shared})
		if got := shared[:2][1]; got != "" {
			t.Errorf("%s: %q was written behind the caller's list", risk, got)
		}
	}
}

func TestOption_SetEveryField(t *testing.T) {
	input, output := schema.MustParse(`{"type":"object","required":["q"]}`), schema.MustParse(`{"type":"object"}`)
	got := tool.Must("x", "d", quiet,
		tool.Dangerous, tool.FileWrite, tool.NetworkAccess,
		tool.WithID("ns", "1.2.3"), tool.WithTitle("Title"), tool.WithTags("a"),
		tool.WithMetadata(metadata("k", 1)), tool.WithMetadata(metadata("l", 2)),
		tool.WithExamples(tool.Example{Description: "e", Input: json.RawMessage(`{"q":1}`)}),
		tool.WithTimeout(time.Minute), tool.WithConcurrency(3), tool.WithDeprecation("use y"), tool.WithHiddenValue(),
		tool.WithAlwaysLoad(), tool.WithSearchHint("hint"), tool.WithInput(input), tool.WithOutput(output),
		tool.WithDryRun(func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Text("would"), nil }),
	)
	if got.Input != input || got.Output != output || got.Handler == nil || got.DryRun == nil {
		t.Error("the schemas or the handlers are not those that were given")
	}
	got.Input, got.Output, got.Handler, got.DryRun = nil, nil, nil, nil
	want := &tool.Tool{
		Name: "x", Description: "d", Namespace: "ns", Version: "1.2.3", Title: "Title",
		Risk: tool.Dangerous, Capabilities: tool.FileWrite | tool.NetworkAccess, Tags: []string{"a", "dangerous"},
		Metadata: metadata("k", 1, "l", 2), Examples: []tool.Example{{Description: "e", Input: json.RawMessage(`{"q":1}`)}},
		Deprecated: "use y", Timeout: time.Minute, Concurrency: 3, HideValue: true, AlwaysLoad: true, SearchHint: "hint",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOption_MetadataIsCopied(t *testing.T) {
	m := metadata("k", 1)
	made := tool.Must("x", "d", quiet, tool.WithMetadata(m))
	m["mutates"] = true
	if made.Risks() != 0 {
		t.Error("a later change of the caller's metadata changed the tool")
	}
}

func TestTool_WithChangesACopy(t *testing.T) {
	made := tool.Must("x", "d", quiet, tool.ReadOnly, tool.WithTags("a"), tool.WithMetadata(metadata("k", 1)))
	with := made.With(tool.WithName("y", ""), tool.WithTags("b"), tool.Mutates, tool.WithMetadata(metadata("k", 2)))
	if with.Name != "y" || with.Description != "d" || with.Risks() != tool.Mutates || with.Metadata["k"] != 2 {
		t.Errorf("the copy is %+v", with)
	}
	if diff := cmp.Diff([]string{"a", "readonly", "b", "mutating"}, with.Tags); diff != "" {
		t.Errorf("tags of the copy (-want +got):\n%s", diff)
	}
	if made.Name != "x" || made.Risks() != tool.ReadOnly || made.Metadata["k"] != 1 || made.HasTag("b") {
		t.Errorf("the tool itself changed: %+v", made)
	}
}
