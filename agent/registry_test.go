// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
)

func named(name string) *agenttest.Adapter { return &agenttest.Adapter{Name: name} }

func TestRegistry_FindsAdaptersByName(t *testing.T) {
	codex, claude := named("codex"), named("claude-code")
	r, err := agent.NewRegistry(codex, claude)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Lookup("codex"); err != nil || got != agent.Adapter(codex) {
		t.Errorf("Lookup = %v, %v", got, err)
	}
	if got, want := r.Names(), []string{"claude-code", "codex"}; !slices.Equal(got, want) {
		t.Errorf("Names = %v, want %v", got, want)
	}
}

func TestRegistry_NeedsNoInstalledAgent(t *testing.T) {
	missing := &agenttest.Adapter{Readiness: agent.Readiness{State: agent.StateMissing}}
	r, err := agent.NewRegistry(missing)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Lookup("scripted")
	if err != nil || got.Ready(t.Context()).Available() {
		t.Errorf("Lookup = %v, %v; want an adapter that is not available", got, err)
	}
}

func TestRegistry_RefusesInvalidAdapters(t *testing.T) {
	cases := []struct {
		name     string
		adapters []agent.Adapter
		want     string
		is       error
	}{
		{"the same name twice", []agent.Adapter{named("a"), named("b"), named("a")}, `an adapter for "a" already`, agent.ErrDuplicate},
		{"no name", []agent.Adapter{nameless{named("")}}, "has no name", nil},
		{"nil", []agent.Adapter{nil}, "nil adapter", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := agent.NewRegistry(c.adapters...)
			if err == nil || !strings.Contains(advice.Text(err), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestRegistry_UnknownAgentErrorListsTheKnownOnes(t *testing.T) {
	r := new(agent.Registry) // the zero value is ready to use
	_, err := r.Lookup("codex")
	if want := "agent: no such agent: \"codex\"\n  next: choose one of those there are: none"; err == nil || advice.Text(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
	for _, name := range []string{"b", "a"} {
		if err := r.Add(named(name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err = r.Lookup("codex")
	if want := "agent: no such agent: \"codex\"\n  next: choose one of those there are: a, b"; err == nil || advice.Text(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestRegistry_IsSafeForConcurrentUse(t *testing.T) {
	r := new(agent.Registry)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			name := strconv.Itoa(i % 10)
			_ = r.Add(named(name)) // refused for most
			_, _ = r.Lookup(name)
			r.Names()
		})
	}
	all.Wait()
	if names := r.Names(); len(names) != 10 {
		t.Errorf("names are %v, want ten", names)
	}
}
