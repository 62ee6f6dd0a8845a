// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

type shelfParams struct {
	Path   string `json:"path" doc:"the file"`
	Offset int    `json:"offset,omitzero"`
}

func shelfNothing(context.Context, shelfParams) (string, error) { return "", nil }

// shelf is a registry with tools that differ in everything a query can ask for.
func shelf(t testing.TB) *tool.Registry {
	t.Helper()
	return tool.MustRegistry(nil,
		tool.Must("write-file", "Puts text into a file.", shelfNothing, tool.Mutates, tool.FileWrite, tool.WithTags("files"), tool.WithMetadata(map[string]any{"owner": "core", "cost": 2})),
		tool.Must("read-file", "Gives the text of a file.", shelfNothing, tool.ReadOnly, tool.WithTags("files", "text"), tool.WithMetadata(map[string]any{"owner": "core", "limits": map[string]any{"kb": 64, "at": []int{1, 2}}})),
		tool.Must("fetch", "Gets a web page.", func(context.Context, struct {
			URL string `json:"url"`
		},
		) (string, error) {
			return "", nil
		}, tool.NetworkAccess, tool.WithID("web", "2.0.0"), tool.WithTitle("Fetch a page"), tool.WithSearchHint("http download")),
		&tool.Tool{Name: "wipe", Description: "Deletes a disk.", Risk: tool.Mutates | tool.Dangerous, Handler: shelfEcho},
		&tool.Tool{Name: "copy", Description: "Copies a file the old way.", Deprecated: "Use write-file.", Tags: []string{"files"}, Handler: shelfEcho},
		&tool.Tool{Name: "declared", Description: "Runs elsewhere.", Metadata: map[string]any{"owner": nil}},
	)
}

func shelfEcho(_ context.Context, input json.RawMessage) (tool.Result, error) {
	return tool.OK(string(input)), nil
}

func toolNamesOf(tools []*tool.Tool) []string {
	out := []string{}
	for _, t := range tools {
		out = append(out, t.Name)
	}
	return out
}

func TestQuery_Filters(t *testing.T) {
	all := []string{"write-file", "read-file", "fetch", "wipe", "declared"}
	for _, c := range []struct {
		name string
		q    Query
		want []string
	}{
		{"zero leaves out the deprecated", Query{}, all},
		{"deprecated too", Query{IncludeDeprecated: true}, slices.Insert(slices.Clone(all), 4, "copy")},

		{"tag", Query{Tags: []string{"files"}}, []string{"write-file", "read-file"}},
		{"tags in any case", Query{Tags: []string{"Files", "TEXT"}}, []string{"read-file"}},
		{"tags that risks make", Query{Tags: []string{"mutating"}}, []string{"write-file", "wipe"}},
		{"any tag", Query{AnyTag: []string{"text", "dangerous"}}, []string{"read-file", "wipe"}},
		{"no tag", Query{NoTag: []string{"files", "dangerous"}}, []string{"fetch", "declared"}},
		{"tag wanted and not", Query{Tags: []string{"files"}, NoTag: []string{"files"}}, []string{}},
		{"tag that no tool has", Query{Tags: []string{"x"}}, []string{}},

		{"risk", Query{Risk: tool.Mutates}, []string{"write-file", "wipe"}},
		{"all of the risks", Query{Risk: tool.Mutates | tool.Dangerous}, []string{"wipe"}},
		{"none of the risks", Query{NotRisk: tool.Mutates | tool.Dangerous}, []string{"read-file", "fetch", "declared"}},
		{"needs", Query{Needs: tool.FileWrite}, []string{"write-file"}},
		{"needs both", Query{Needs: tool.FileWrite | tool.NetworkAccess}, []string{}},

		{"schema key", Query{SchemaKeys: []string{"path"}}, []string{"write-file", "read-file"}},
		{"schema keys", Query{SchemaKeys: []string{"path", "url"}}, []string{}},
		{"schema key in another case", Query{SchemaKeys: []string{"Path"}}, []string{}},

		{"metadata", Query{Metadata: map[string]any{"owner": "core"}}, []string{"write-file", "read-file"}},
		{"metadata, number of another type", Query{Metadata: map[string]any{"cost": 2.0}}, []string{"write-file"}},
		{"metadata, nested", Query{Metadata: map[string]any{"limits": map[string]any{"at": []any{1.0, 2.0}, "kb": 64.0}}}, []string{"read-file"}},
		{"metadata, null is there", Query{Metadata: map[string]any{"owner": nil}}, []string{"declared"}},
		{"metadata, both", Query{Metadata: map[string]any{"owner": "core", "cost": 3}}, []string{}},
		{"metadata without JSON", Query{Metadata: map[string]any{"owner": math.NaN()}}, []string{}},

		{"namespace", Query{Namespace: "web"}, []string{"fetch"}},
		{"default namespace", Query{Namespace: tool.DefaultNamespace}, []string{"write-file", "read-file", "wipe", "declared"}},
		{"version", Query{Version: "2.0.0"}, []string{"fetch"}},
		{"other version", Query{Version: "2"}, []string{}},

		{"where", Query{Where: func(t *tool.Tool) bool { return !t.Served() }}, []string{"declared"}},
		{"where panics", Query{Where: func(t *tool.Tool) bool {
			if t.Input == nil {
				panic("no schema")
			}
			return true
		}}, []string{"write-file", "read-file", "fetch"}},

		{"limit", Query{Limit: 2}, all[:2]},
		{"offset", Query{Offset: 3}, all[3:]},
		{"both", Query{Offset: 1, Limit: 1}, all[1:2]},
		{"limit beyond", Query{Offset: 4, Limit: 9}, all[4:]},
		{"offset beyond", Query{Offset: 9}, []string{}},
		{"negative is nothing", Query{Offset: -1, Limit: -1}, all},
		{"limit after where", Query{Limit: 1, Where: func(t *tool.Tool) bool { return t.Name > "r" }}, []string{"write-file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, toolNamesOf(Find(shelf(t), c.q))); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuery_Text(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{"write-file", "read-file", "fetch", "wipe", "declared"}},
		{" \t-- ", []string{"write-file", "read-file", "fetch", "wipe", "declared"}},
		{"READ", []string{"read-file"}},
		{"readFile", []string{"read-file", "write-file"}},      // "file" fits both
		{"file", []string{"read-file", "write-file"}},          // equals by name
		{"text", []string{"read-file", "write-file"}},          // tag before description
		{"path", []string{"read-file", "write-file"}},          // parameter
		{"url", []string{"fetch"}},                             // parameter
		{"download", []string{"fetch"}},                        // search hint
		{"pages", []string{"fetch"}},                           // "page" is its beginning
		{"elete", []string{"wipe"}},                            // a part of a word
		{"a disk to wipe", []string{"wipe"}},                   // "a" and "to" mean nothing
		{"write page", []string{"write-file", "fetch"}},        // name before title
		{"de", []string{}},                                     // too short for a part
		{"submarine", []string{}},                              //
		{"gives the web", []string{"read-file", "fetch"}},      // more words first
		{"dangerous mutating", []string{"wipe", "write-file"}}, // more words first
	} {
		t.Run(c.text, func(t *testing.T) {
			if diff := cmp.Diff(c.want, toolNamesOf(Find(shelf(t), Query{Text: c.text}))); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuery_TextRespectsTheOtherConditions(t *testing.T) {
	got := toolNamesOf(Find(shelf(t), Query{Text: "file", Risk: tool.Mutates, Limit: 1}))
	if diff := cmp.Diff([]string{"write-file"}, got); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestQuery_OrdersVersionsOfATool(t *testing.T) {
	r := tool.MustRegistry(nil)
	for _, version := range []string{"3", "1", "2"} {
		if err := r.Add(&tool.Tool{Name: "a", Description: "A.", Version: version}); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string][]string{"": {"3", "1", "2"}, "a": {"1", "2", "3"}} {
		got := []string{}
		for _, found := range Find(r, Query{Text: text}) {
			got = append(got, found.Version)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestSchemaKeys_AreInTheOrderOfTheSchema(t *testing.T) {
	for text, want := range map[string][]string{
		`{"type":"object","properties":{"z":{"type":"object","properties":{"inner":{}}},"a":true,"":{}}}`: {"z", "a", ""},
		`{"type":"object","properties":{}}`: nil,
		`{"type":"object"}`:                 nil,
	} {
		got := schemaKeys(&tool.Tool{Input: schema.MustParse(text)})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestQuery_ConcurrentChangesAreAtomic is for the race detector, and for a query that would see a change by
// halves: the tools "even" and "odd" are only ever there together.
func TestQuery_ConcurrentChangesAreAtomic(t *testing.T) {
	r := shelf(t)
	pair := []*tool.Tool{{Name: "even", Description: "One of a pair."}, {Name: "odd", Description: "One of a pair."}}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := range 100 {
				if i%2 == 0 {
					_ = r.Replace(pair...)
				} else {
					r.Remove("even", "odd")
				}
			}
		})
		wg.Go(func() {
			for i := range 100 {
				_ = r.Add(&tool.Tool{Name: "t" + strconv.Itoa(i), Description: "Another."})
			}
		})
		wg.Go(func() {
			for range 50 {
				if got := Find(r, Query{Text: "pair", Where: func(*tool.Tool) bool { return len(r.Tools()) > 0 }}); len(got)%2 != 0 {
					t.Errorf("half of a change: %v", toolNamesOf(got))
				}
				if _, err := json.Marshal(r); err != nil {
					t.Error(err)
				}
				Summarise(r.Tools())
			}
		})
	}
	wg.Wait()
}

func BenchmarkQuery(b *testing.B) {
	r := tool.MustRegistry(nil)
	for i := range 200 {
		_ = r.Add(tool.Must(fmt.Sprintf("tool-%d", i), "Gives the text of a file, in whole or in part.", shelfNothing, tool.WithTags("files")))
	}
	for name, q := range map[string]Query{"tags": {Tags: []string{"files"}}, "text": {Text: "read file"}, "keys": {SchemaKeys: []string{"path"}}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Find(r, q)
			}
		})
	}
}
