// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/tool"
)

func TestKnownNames_Check(t *testing.T) {
	own := tool.MustRegistry(nil)
	type nothing struct{}
	if err := own.Add(tool.Must("count_lines", "Counts.", func(context.Context, nothing) (string, error) { return "", nil })); err != nil {
		t.Fatal(err)
	}
	known := tool.KnownNames{
		Catalogue: &tool.Catalogue{Agent: "x", Natives: []tool.Native{{Name: "Read"}, {Name: "Bash"}, {Name: "WebFetch"}}},
		Registry:  own, Servers: []string{"my.lint"}, Also: []string{"Frob", "mcp__theirs"}, Option: "UnknownTools",
	}
	const orElse = "; if it is a tool of a newer agent, or is added later, name it in UnknownTools too"
	for name, want := range map[string]string{
		"Read": "", "Bash(git:*)": "", " Bash (git log *) ": "", "count_lines": "", "default:count_lines": "", "Frob": "", "*": "",
		"mcp__drover": "", "mcp__drover__*": "", "mcp__drover__count_lines": "", "mcp__wink__count_lines": "", "mcp__drover__other": "",
		"mcp__my.lint": "", "mcp__my_lint__anything": "", "mcp__theirs__x": "", "mcp__theirs": "",
		"Raed":                    "there is no tool Raed\n  next: write Read" + orElse,
		"bash(ls)":                "there is no tool bash\n  next: write Bash" + orElse,
		"countlines":              "there is no tool countlines\n  next: write count_lines" + orElse,
		"Frobnicate":              "there is no tool Frobnicate\n  next: correct the name" + orElse,
		"Read,Bash":               "there is no tool Read,Bash\n  next: correct the name" + orElse,
		"mcp__drover__cout_lines": "there is no tool mcp__drover__cout_lines\n  next: write mcp__drover__count_lines" + orElse,
		"mcp__mylnt__check":       "there is no tool mcp__mylnt__check\n  next: write mcp__my_lint__check" + orElse,
		"mcp__other":              "there is no tool mcp__other\n  next: correct the name" + orElse,
	} {
		if got := advice.Text(known.Check("Read", name)); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	if err := (tool.KnownNames{}).Check("Raed", "mcp__x__y"); err != nil {
		t.Errorf("where nothing is known: %v", err)
	}
}

func TestKnownNames_NearestIsNamedOnce(t *testing.T) {
	err := tool.KnownNames{Servers: []string{tool.DefaultServerName}}.Check("mcp__drovr__x")
	if got := advice.Of(err); !strings.HasPrefix(got, "write mcp__drover__x") || strings.Contains(got, " or ") {
		t.Errorf("the advice is %q", got)
	}
}
