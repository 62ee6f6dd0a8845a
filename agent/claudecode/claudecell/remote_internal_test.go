// SPDX-License-Identifier: Apache-2.0

package claudecell

import (
	"slices"
	"testing"

	"github.com/drover-agents/drover/claude"
)

func TestRemoteTools_AreThoseThatTheOptionsName(t *testing.T) {
	for name, tc := range map[string]struct {
		options claude.Options
		want    []string
	}{
		"no tools":                    {},
		"searches among the tools":    {claude.Options{Tools: []string{"Bash", "WebSearch"}}, []string{"web_search"}},
		"searches that are allowed":   {claude.Options{AllowedTools: []string{"WebSearch(x)"}}, []string{"web_search"}},
		"fetching is the agent's own": {claude.Options{Tools: []string{"WebFetch"}}, nil},
	} {
		if got := Program(&tc.options).RemoteTools; !slices.Equal(got, tc.want) {
			t.Errorf("%s: the tools are %q, want %q", name, got, tc.want)
		}
	}
}
