// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/drover-agents/drover/claude"
)

func TestVersion_DescribesTheBuild(t *testing.T) {
	info := &debug.BuildInfo{Main: debug.Module{Path: "example.com/fork", Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123abc"}, {Key: "vcs.time", Value: "2026-11-18T20:00:00Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	got := describeBuild(info).text()
	for _, line := range []string{
		"drover       1.2.3\n", "module       example.com/fork\n", "commit       0123abc 2026-11-18T20:00:00Z, modified\n", "go           go1.",
		"claude-code  tested " + claude.OldestTested + " to " + claude.PinnedVersion + "\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is not in:\n%s", line, got)
		}
	}
	releaseVersion = claude.Version // a release of exactly the code's version
	released := describeBuild(&debug.BuildInfo{Main: debug.Module{Version: "v0.0.0-20261119034738-d5bceab5c056"}}).Version
	if releaseVersion = ""; released != claude.Version {
		t.Errorf("a release describes itself as %s, want %s", released, claude.Version)
	}
	for _, info := range []*debug.BuildInfo{nil, {}, {Main: debug.Module{Version: "(devel)"}}} {
		if b := describeBuild(info); b.Version != claude.Version || b.Module != "github.com/drover-agents/drover" || !strings.Contains(b.text(), "commit       unknown\n") {
			t.Errorf("a build without details is %+v", b)
		}
	}
}

// Standard output of what a program reads is one JSON value, or what the command is for, and nothing else.
func TestStreams_OutputForProgramsIsJSON(t *testing.T) {
	for _, args := range [][]string{{"version", "--json"}, {"schema"}, {"doctor", "--json", "--offline"}} {
		_, out, _ := command(t, args...)
		var value map[string]any
		if err := json.Unmarshal([]byte(out), &value); err != nil || len(value) == 0 {
			t.Errorf("%v prints %q: %v", args, out, err)
		}
	}
	var b build
	if _, out, _ := command(t, "version", "--json"); json.Unmarshal([]byte(out), &b) != nil || b.Agents[0].Pinned != claude.PinnedVersion || b.Version == "" {
		t.Errorf("the version is %s", out)
	}
}
