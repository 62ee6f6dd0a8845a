// SPDX-License-Identifier: Apache-2.0

package bedrock_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/isolation"
)

// Bedrock by configuration alone: the model has its id there, and the effort reaches it.
func TestConfig_BedrockReachesItsModel(t *testing.T) {
	decoys(t)
	cli := claudetest.CLI(t)
	var effort string
	look := searcher("true")
	fake := newFakeBedrock(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			var body struct {
				Output struct {
					Effort string `json:"effort"`
				} `json:"output_config"`
			}
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			effort = body.Output.Effort
			r.Body = http.NoBody
		}
		look(w, r)
	})
	environ := []string{
		"CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION=" + region, "AWS_EC2_METADATA_DISABLED=true",
		"AWS_ACCESS_KEY_ID=" + plantedID, "AWS_SECRET_ACCESS_KEY=" + plantedSecret, "ANTHROPIC_BEDROCK_BASE_URL=" + fake.URL,
	}
	isolated, err := claudecell.ForBedrock("", isolation.Isolation{Host: isolation.Host{Environ: func() []string { return environ }, Home: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	adapter, err := claudecode.FromConfig(claudecode.Config{
		Isolation: isolated,
		Base:      &claude.Options{CLIPath: cli.Path, StrictMCP: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	for e, err := range adapter.Run(t.Context(), agent.Request{Prompt: "go", Settings: agent.Settings{Dir: cli.Work, Effort: "max", MaxTurns: 1}}) {
		if err != nil {
			t.Fatal(err)
		}
		if done, ok := e.Payload.(event.Done); ok && done.Status != event.DoneMaxTurns {
			t.Errorf("the run ends with %+v, want the one turn that was configured", done)
		}
	}
	var paths []string
	for _, r := range fake.requests() {
		paths = append(paths, r.URL.Path)
	}
	if all := strings.Join(paths, " "); !strings.Contains(all, "/model/eu.anthropic.claude-opus-4-6-v1/") || effort != "max" {
		t.Errorf("Bedrock was asked for %s with the effort %q", all, effort)
	}
}
