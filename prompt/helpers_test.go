// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

type findParams struct {
	Query string `json:"query" doc:"what to look for" minLength:"1"`
	Limit *int   `json:"limit,omitempty"`
}

// named makes a tool that finds things, under any name.
func named(name string, opts ...tool.Option) *tool.Tool {
	return tool.Must(name, "Finds things.", func(_ context.Context, p findParams) (tool.Result, error) {
		return tool.Text("found " + p.Query), nil
	}, opts...)
}

func skill(name string) *Skill { return &Skill{name: name, hash: "hash of " + name} }

func policy(name string) gate.Policy { return gate.Policy{Name: name} }

type fileArgs struct {
	Path  string `prompt:"path"`
	Lines int    `json:"lines,omitempty"`
}

type modeArgs struct{ Strict bool }

func mustDefine[Out any](t testing.TB, d Definition) *Template[Out] {
	t.Helper()
	if d.Namespace == "" {
		d.Namespace, d.Key = "demo", "test"
	}
	made, err := Define[Out](d)
	if err != nil {
		t.Fatalf("Define: %v", err)
	}
	return made
}

func mustBind(t testing.TB, sections []*Section, params ...any) *Prompt[Text] {
	t.Helper()
	p, err := mustDefine[Text](t, Definition{Sections: sections}).Bind(params...)
	if err != nil {
		t.Fatalf("Bind: %v", err)
	}
	return p
}

func mustRender[Out any](t testing.TB, p *Prompt[Out], opts *RenderOptions) *Rendered {
	t.Helper()
	r, err := p.Render(opts)
	if err != nil {
		t.Fatalf("Render: %v", err)
	}
	return r
}

// wantErrors compares the first lines of joined errors with what is wanted, in order.
func wantErrors(t *testing.T, err, condition error, want ...string) {
	t.Helper()
	if !errors.Is(err, condition) {
		t.Fatalf("got %v, want an error that is %v", err, condition)
	}
	lines := slices.DeleteFunc(strings.Split(advice.Text(err), "\n"), func(l string) bool { return strings.HasPrefix(l, "  next: ") })
	if !slices.Equal(lines, want) {
		t.Errorf("got the errors\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func toolNames(tools []*tool.Tool) []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return names
}

func policyNames(policies []gate.Policy) []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.Name)
	}
	return names
}
