// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/drover-agents/drover/tool"
	"github.com/google/go-cmp/cmp"
)

func runSearch(t *testing.T, r *tool.Registry, input string) searchReply {
	t.Helper()
	found, ok := r.Lookup("search-tools")
	if !ok {
		t.Fatal("no search-tools")
	}
	result := found.Run(context.Background(), tool.Call{Input: json.RawMessage(input)})
	if !result.OK() {
		t.Fatalf("%s: %v", input, result.Err)
	}
	var reply searchReply
	if err := json.Unmarshal([]byte(result.Render()), &reply); err != nil {
		t.Fatal(err)
	}
	return reply
}

func TestSearchTool_FindsToolsThatTheModelCanCall(t *testing.T) {
	r := shelf(t)
	if err := r.Add(SearchTool(r)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, input string
		want        []string
		more        int
	}{
		{"by words", `{"query":"write something into a file"}`, []string{"write-file", "read-file"}, 0},
		{"all, but not itself, the deprecated or the declared", `{"query":""}`, []string{"write-file", "read-file", "fetch", "wipe"}, 0},
		{"limit", `{"query":"file","limit":1}`, []string{"read-file"}, 1},
		{"limit of nothing is the default", `{"query":"file","limit":0}`, []string{"read-file", "write-file"}, 0},
		{"nothing", `{"query":"submarine"}`, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			reply := runSearch(t, r, c.input)
			var got []string
			for _, s := range reply.Tools {
				got = append(got, s.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || reply.More != c.more {
				t.Errorf("tools (-want +got):\n%s\n%d more, want %d", diff, reply.More, c.more)
			}
		})
	}
}

func TestSearchTool_SeesLaterTools(t *testing.T) {
	r := tool.MustRegistry(nil)
	if err := r.Add(SearchTool(r)); err != nil {
		t.Fatal(err)
	}
	if got := runSearch(t, r, `{"query":"dive"}`); len(got.Tools) != 0 {
		t.Fatalf("found %v in an empty registry", got.Tools)
	}
	if err := r.Add(&tool.Tool{Name: "submarine", Description: "Dives.", Handler: shelfEcho}); err != nil {
		t.Fatal(err)
	}
	want := []Summary{{Name: "submarine", ID: "default:submarine", Description: "Dives.", Served: true}}
	if diff := cmp.Diff(want, runSearch(t, r, `{"query":"dive"}`).Tools); diff != "" {
		t.Errorf("tools (-want +got):\n%s", diff)
	}
}

func TestSearchTool_IsReadOnly(t *testing.T) {
	if got := SearchTool(tool.MustRegistry(nil)); got.Risks() != tool.ReadOnly || got.Needs() != 0 {
		t.Errorf("it has the risks %v and needs %v", got.Risks(), got.Needs())
	}
}

func TestSplitWords_Parts(t *testing.T) {
	for text, want := range map[string][]string{
		"readFile":              {"file", "read"},
		"read_file-READ":        {"file", "read"},
		"utf8Text":              {"text", "utf8"},
		"HTTP":                  {"http"},
		"Größe, 大小":             {"größe", "大小"},
		"\xff\xfe":              nil,
		"":                      nil,
		"mcp__files__read-file": {"file", "files", "mcp", "read"},
	} {
		got := splitWords(text)
		if len(got) == 0 {
			got = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}
