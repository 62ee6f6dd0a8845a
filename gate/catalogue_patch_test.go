// SPDX-License-Identifier: Apache-2.0

package gate_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/tool"
)

// patching is the catalogue of an agent that writes files with patches.
var patching = &tool.Catalogue{
	Agent: "patcher", WriteRule: "amend",
	Natives: []tool.Native{{
		Name: "amend", Risk: tool.Mutates, Needs: tool.FileWrite, Files: tool.WritesFile,
		Fields: tool.Fields{Scan: func(input json.RawMessage) (paths []string, ok bool) {
			var patch struct{ Changes []struct{ At string } }
			if json.Unmarshal(input, &patch) != nil {
				return nil, false
			}
			for _, change := range patch.Changes {
				paths = append(paths, change.At)
			}
			return paths, true
		}},
	}},
}

// A patch may be made if every file may be written to, also where its links lead.
func TestPatch_EveryFileIsJudged(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(root, name) }
	for _, err := range []error{
		os.Mkdir(in("src"), 0o755), os.WriteFile(in("src/old"), nil, 0o644), os.WriteFile(in("src/other"), nil, 0o644), os.Mkdir(in("secret"), 0o755),
		os.Symlink(in("secret"), in("src/door")),
	} {
		if err != nil {
			t.Skipf("cannot make links here: %v; run the tests where a user may", err)
		}
	}
	var many []string
	for range 20 {
		many = append(many, "src/new")
	}
	for name, x := range map[string]struct {
		files []string
		want  [3]event.Verdict // by writable paths, by a rule, by what has been read
	}{
		"one":                  {[]string{"src/old"}, [3]event.Verdict{event.Allow, event.Allow, event.Allow}},
		"two":                  {[]string{"src/old", "src/new"}, [3]event.Verdict{event.Allow, event.Allow, event.Allow}},
		"many":                 {many, [3]event.Verdict{event.Allow, event.Allow, event.Allow}},
		"the second elsewhere": {[]string{"src/old", "secret/new"}, [3]event.Verdict{event.Deny, event.Deny, event.Allow}},
		"the second by a link": {[]string{"src/old", "src/door/new"}, [3]event.Verdict{event.Deny, event.Deny, event.Allow}},
		"the second not read":  {[]string{"src/old", "src/other"}, [3]event.Verdict{event.Allow, event.Allow, event.Deny}},
		"none":                 {nil, [3]event.Verdict{event.Deny, event.Deny, event.Deny}},
		"the last elsewhere":   {append(many[:len(many):len(many)], "secret/new"), [3]event.Verdict{event.Deny, event.Deny, event.Allow}},
	} {
		t.Run(name, func(t *testing.T) {
			var patch struct {
				Changes []map[string]string `json:"changes"`
			}
			for _, file := range x.files {
				patch.Changes = append(patch.Changes, map[string]string{"at": file})
			}
			input, _ := json.Marshal(patch)
			for i, policy := range []gate.Policy{
				gate.FromCapabilities(&gate.Permissions{FileWrite: gate.LevelAllow, WritablePaths: []string{"src"}}),
				gate.AllowTools("amend(/src/**)"),
				gate.ReadBeforeWrite(gate.ReadBeforeWriteOptions{}),
			} {
				engine := gate.NewEngine(gate.Must(gate.KnowsAgent(patching), policy, gate.Default(event.Allow)), &gate.EngineOptions{
					Facts: func(_ context.Context, c gate.Call) gate.Facts {
						return gate.Facts{Dir: root, ReadPaths: map[string]bool{in("src/old"): true}, Target: gate.FindTarget(c, root)}
					},
				})
				got := engine.Decide(t.Context(), event.ToolCall{Name: "amend", Input: input})
				if got.Verdict != x.want[i] {
					t.Errorf("%s: %s (%s), want %s", policy.Name, got.Verdict, got.Reason, x.want[i])
				}
			}
		})
	}
}

func TestNew_Catalogues(t *testing.T) {
	for name, x := range map[string]struct {
		policies []gate.Policy
		want     string
	}{
		"two agents":                  {[]gate.Policy{gate.KnowsAgent(patching), gate.KnowsAgent(catalogue.Tools())}, "two catalogues, of patcher and claude-code"},
		"one agent, twice":            {[]gate.Policy{gate.KnowsAgent(patching), gate.KnowsAgent(patching)}, ""},
		"an argument of no agent":     {[]gate.Policy{gate.AllowTools("Bash(ls)")}, "add gate.KnowsAgent"},
		"an argument of a tool":       {[]gate.Policy{gate.AllowTools("save(/src/**)"), gate.Knows("ours", tool.Tools{declared(t, "save")})}, ""},
		"an argument, by a full name": {[]gate.Policy{gate.AllowTools("mcp__files__save(/src/**)")}, ""},
		"an argument of another's":    {[]gate.Policy{gate.AllowTools("amend(/src/**)"), gate.KnowsAgent(patching)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := gate.New(x.policies...)
			if (err == nil) != (x.want == "") || err != nil && !strings.Contains(advice.Text(err), x.want) {
				t.Errorf("got %v, want %q", err, x.want)
			}
		})
	}
}
