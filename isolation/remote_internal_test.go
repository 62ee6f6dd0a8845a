// SPDX-License-Identifier: Apache-2.0

package isolation

import (
	"slices"
	"testing"
)

func TestRemote_FollowsTheNetworkPolicy(t *testing.T) {
	for _, tc := range []struct {
		name    string
		level   Level
		network *NetworkPolicy
		any     bool // the API may reach anything
		tools   []string
		hosts   map[string]bool
	}{
		{"no network", LevelCell, nil, false, nil, map[string]bool{"example.org": false, "127.0.0.1": false}},
		{"some hosts", LevelCell, &NetworkPolicy{AllowedDomains: []string{"example.org", "*.example.net"}}, false, nil, map[string]bool{"example.org": true, "a.example.net": true, "evil.example": false, "": false}},
		{"all hosts", LevelCell, &NetworkPolicy{AllowedDomains: []string{"*"}}, true, nil, nil},
		{"searches", LevelLandlock, nil, false, []string{"web_search"}, map[string]bool{"example.org": false}},
		{"no isolation of the network", LevelHost, nil, true, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := &Cell{level: tc.level, isolation: Isolation{Network: tc.network}}
			got := c.remote(tc.tools)
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
