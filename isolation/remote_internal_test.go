// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"slices"
	"testing"

	"github.com/drover-agents/drover/claude"
)

func TestRemote_FollowsTheNetworkPolicy(t *testing.T) {
	for _, tc := range []struct {
		name    string
		level   Level
		network *NetworkPolicy
		options claude.Options
		any     bool // the API may reach anything
		tools   []string
		hosts   map[string]bool
	}{
		{"no network", LevelCell, nil, claude.Options{}, false, nil, map[string]bool{"example.org": false, "127.0.0.1": false}},
		{"some hosts", LevelCell, &NetworkPolicy{AllowedDomains: []string{"example.org", "*.example.net"}}, claude.Options{}, false, nil, map[string]bool{"example.org": true, "a.example.net": true, "evil.example": false, "": false}},
		{"all hosts", LevelCell, &NetworkPolicy{AllowedDomains: []string{"*"}}, claude.Options{}, true, nil, nil},
		{"searches among the tools", LevelLandlock, nil, claude.Options{Tools: []string{"Bash", "WebSearch"}}, false, []string{"web_search"}, map[string]bool{"example.org": false}},
		{"searches that are allowed", LevelCell, nil, claude.Options{AllowedTools: []string{"WebSearch(x)"}}, false, []string{"web_search"}, nil},
		{"fetching is the agent's own", LevelCell, nil, claude.Options{Tools: []string{"WebFetch"}}, false, nil, nil},
		{"no walls around the network", LevelHost, nil, claude.Options{}, true, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &Cell{level: tc.level, isolation: Isolation{Network: tc.network}}
			got := c.remote(&tc.options)
			if (got == nil) != tc.any {
				t.Fatalf("got %+v", got)
			}
			if got == nil {
				return
			}
			if !slices.Equal(got.Tools, tc.tools) {
				t.Errorf("the tools are %q, want %q", got.Tools, tc.tools)
			}
			for host, want := range tc.hosts {
				if got.Host(host) != want {
					t.Errorf("the host %q: %t", host, !want)
				}
			}
		})
	}
}
