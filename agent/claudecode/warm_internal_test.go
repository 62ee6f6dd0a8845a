// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"reflect"
	"testing"

	"github.com/drover-agents/drover/agent"
)

// A request that was prepared is compared with its servers, and keeps its own.
func TestSame_ServersOfARequest(t *testing.T) {
	servers := func() map[string]agent.Server {
		return map[string]agent.Server{"a": {Command: []string{"run", "it"}, Env: map[string]string{"K": "v"}}}
	}
	equal := func(a, b agent.Request) bool { return same(reflect.ValueOf(a), reflect.ValueOf(b)) }
	prepared := agent.Request{Settings: agent.Settings{Servers: servers(), DisallowedTools: []string{"x"}}}
	kept := frozen(prepared)
	if !equal(kept, agent.Request{Settings: agent.Settings{Servers: servers(), DisallowedTools: []string{"x"}}}) {
		t.Error("a request is not the same as itself")
	}
	for name, other := range map[string]map[string]agent.Server{
		"none":             nil,
		"another name":     {"b": servers()["a"]},
		"another argument": {"a": {Command: []string{"run", "that"}, Env: map[string]string{"K": "v"}}},
		"another variable": {"a": {Command: []string{"run", "it"}, Env: map[string]string{"K": "w"}}},
	} {
		if equal(kept, agent.Request{Settings: agent.Settings{Servers: other, DisallowedTools: []string{"x"}}}) {
			t.Errorf("%s: the requests count as the same", name)
		}
	}
	prepared.Servers["a"].Env["K"], prepared.Servers["a"].Command[1] = "changed", "changed"
	prepared.DisallowedTools[0] = "changed"
	if equal(kept, prepared) || kept.Servers["a"].Env["K"] != "v" || kept.DisallowedTools[0] != "x" {
		t.Error("the prepared request was changed afterwards")
	}
}
