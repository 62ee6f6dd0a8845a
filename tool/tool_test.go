// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

func TestID_TextForms(t *testing.T) {
	for _, tc := range []struct {
		name string
		tool tool.Tool
		want string
	}{
		{"name alone", tool.Tool{Name: "read"}, "default:read"},
		{"namespace", tool.Tool{Name: "read", Namespace: "files"}, "files:read"},
		{"version", tool.Tool{Name: "read", Version: "1.0.0"}, "default:read@1.0.0"},
		{"all", tool.Tool{Name: "read", Namespace: "files", Version: "2.0.0-rc.1+b"}, "files:read@2.0.0-rc.1+b"},
		{"escaped", tool.Tool{Name: "read", Namespace: "my files/x:y", Version: "a@b"}, "my%20files%2Fx%3Ay:read@a%40b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.tool.ID(); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// Two tools that differ must not have one id, however their parts are written.
func TestID_DifferentToolsDiffer(t *testing.T) {
	seen := map[string]tool.Tool{}
	parts := []string{"", "a", "a:a", "a@a", "a:a@a", "a@a:a", ":", "@", "%3A", "a%40a", "a%3Aa"}
	for _, ns := range parts[1:] {
		for _, name := range parts {
			for _, version := range parts {
				made := tool.Tool{Namespace: ns, Name: name, Version: version}
				if other, twice := seen[made.ID()]; twice {
					t.Errorf("%q is the id of %q and %q", made.ID(), []string{ns, name, version}, []string{other.Namespace, other.Name, other.Version})
				}
				seen[made.ID()] = made
			}
		}
	}
}

func TestCheck_NamesTheProblem(t *testing.T) {
	object, list := schema.MustParse(`{"type":"object","properties":{"n":{"type":"integer"}}}`), schema.MustParse(`{"type":"array"}`)
	for _, tc := range []struct {
		name string
		tool tool.Tool
		want string // empty: nothing
	}{
		{"fine", tool.Tool{Name: "a_B-9", Description: "d", Input: object, Output: object, Tags: []string{"a-b2"}}, ""},
		{"the longest name", tool.Tool{Name: strings.Repeat("a", 64), Description: "d"}, ""},
		{"no name", tool.Tool{Description: "d"}, `tool: "": Name is empty; the model calls tools by it`},
		{"a longer name", tool.Tool{Name: strings.Repeat("a", 65), Description: "d"}, "Name must be"},
		{"a name with a dot", tool.Tool{Name: "a.b", Description: "d"}, `tool: "a.b": field Name must be`},
		{"a name with a line break", tool.Tool{Name: "a\n", Description: "d"}, "Name must be"},
		{"no description", tool.Tool{Name: "a", Description: " \n"}, "Description is empty"},
		{"arguments that are a list", tool.Tool{Name: "a", Description: "d", Input: list}, `Input must have "type":"object"`},
		{"a result that is a list", tool.Tool{Name: "a", Description: "d", Output: list}, `Output must have "type":"object"`},
		{"a tag with capitals", tool.Tool{Name: "a", Description: "d", Tags: []string{"ok", "Not"}}, `tag "Not" is not in kebab-case`},
		{"a tag with a space", tool.Tool{Name: "a", Description: "d", Tags: []string{"a b"}}, `tag "a b" is not in kebab-case`},
		{"a negative timeout", tool.Tool{Name: "a", Description: "d", Timeout: -1}, "must not be negative"},
		{"a negative concurrency", tool.Tool{Name: "a", Description: "d", Concurrency: -1}, "must not be negative"},
		{"metadata without a JSON form", tool.Tool{Name: "a", Description: "d", Metadata: metadata("f", func() {})}, "metadata.f has no JSON form"},
		{"a risk as text", tool.Tool{Name: "a", Description: "d", Metadata: metadata("mutates", "true")}, `metadata "mutates" must be true or false, and is "true"`},
		{"a risk as number", tool.Tool{Name: "a", Description: "d", Metadata: metadata("dangerous", 1)}, `metadata "dangerous" must be true or false, and is 1`},
		{"a risk as nothing", tool.Tool{Name: "a", Description: "d", Metadata: metadata("readOnly", nil)}, `metadata "readOnly" must be true or false`},
		{"a risk in other letters", tool.Tool{Name: "a", Description: "d", Metadata: metadata("Mutates", true)}, `metadata "Mutates" means nothing; write "mutates"`},
		{"a risk by another word", tool.Tool{Name: "a", Description: "d", Metadata: metadata("mutating", true)}, `metadata "mutating" means nothing; write "mutates"`},
		{"a risk with a dash", tool.Tool{Name: "a", Description: "d", Metadata: metadata("read-only", true)}, `metadata "read-only" means nothing; write "readOnly"`},
		{"a capability as text", tool.Tool{Name: "a", Description: "d", Metadata: metadata("capabilities", "fileWrite")}, `metadata "capabilities" must be a list of names`},
		{"a capability that is not known", tool.Tool{Name: "a", Description: "d", Metadata: metadata("capabilities", []any{"fileWrite", "shell"})}, `metadata "capabilities" has "shell"; known are fileWrite, shellExecute, networkAccess`},
		{"metadata of others", tool.Tool{Name: "a", Description: "d", Metadata: metadata("mutates", false, "capabilities", []string{"fileWrite"}, "owner", "me")}, ""},
		{"an example that does not fit", tool.Tool{Name: "a", Description: "d", Input: object, Examples: []tool.Example{{Input: json.RawMessage(`{}`)}, {Input: json.RawMessage(`{"n":"x"}`)}}}, "Examples[1].Input: value does not match its schema: /n: must be an integer"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if err := tc.tool.Check(); err != nil {
				got = err.Error()
			}
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q in it", got, tc.want)
			}
		})
	}
}

func TestCheck_NamesEveryProblemAtOnce(t *testing.T) {
	err := (&tool.Tool{Tags: []string{"A"}, Timeout: -1}).Check()
	for _, want := range []string{"Name", "Description", `tag "A"`, "Timeout"} {
		if err == nil || !strings.Contains(advice.Text(err), want) {
			t.Errorf("got %v, want %s in it", err, want)
		}
	}
}

func TestTool_WithoutAHandlerIsNotServed(t *testing.T) {
	declared := &tool.Tool{Name: "a", Description: "d"}
	if declared.Served() {
		t.Error("got served, want not")
	}
	declared.Handler = func(context.Context, json.RawMessage) (tool.Result, error) { return tool.Result{}, nil }
	if !declared.Served() {
		t.Error("got not served, want served")
	}
}
