// SPDX-License-Identifier: Apache-2.0

package bedrock_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/claudetest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
)

// searcher is a model that runs a command, then answers "Done.".
func searcher(command string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			io.WriteString(w, `{"inferenceProfileSummaries":[]}`)
			return
		}
		body, _ := io.ReadAll(r.Body)
		input, _ := json.Marshal(map[string]string{"command": command})
		events := turn(`{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}`, "input_json_delta", "partial_json", string(input), "tool_use")
		if strings.Contains(string(body), "tool_result") {
			events = turn(`{"type":"text","text":""}`, "text_delta", "text", "Done.", "end_turn")
		}
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		for _, e := range events {
			w.Write(frame(e))
			w.(http.Flusher).Flush()
		}
	}
}

// The whole way: the host has Bedrock in its environment and a profile in its home; the CLI works in a cell;
// requests come to Bedrock signed; and of AWS nothing but a region is inside.
func TestCLI_UsesBedrockFromACell(t *testing.T) {
	decoys(t)
	for name, planting := range map[string]func(t *testing.T, home string) []string{
		"a profile": func(t *testing.T, home string) []string {
			writeFile(t, filepath.Join(home, ".aws", "credentials"), "[work]\naws_access_key_id = "+plantedID+"\naws_secret_access_key = "+plantedSecret+"\n")
			writeFile(t, filepath.Join(home, ".aws", "config"), "[profile work]\nregion = "+region+"\n")
			return []string{"AWS_PROFILE=work"}
		},
		"variables": func(*testing.T, string) []string {
			return []string{"AWS_ACCESS_KEY_ID=" + plantedID, "AWS_SECRET_ACCESS_KEY=" + plantedSecret}
		},
		"a bearer token": func(*testing.T, string) []string { return []string{"AWS_BEARER_TOKEN_BEDROCK=planted-bearer"} },
	} {
		t.Run(name, func(t *testing.T) {
			cli := claudetest.CLI(t)
			home := t.TempDir()
			found := filepath.Join(cli.Work, "found.txt")
			fake := newFakeBedrock(t, searcher("{ env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'; ls -a ~; cat ~/.aws/* "+home+"/.aws/*; grep -rs planted ~ /tmp; } > "+found+" 2>&1; true"))
			environ := append(planting(t, home),
				"PATH=/usr/bin:/bin", "CLAUDE_CODE_USE_BEDROCK=1", "AWS_REGION="+region, "AWS_EC2_METADATA_DISABLED=true",
				"ANTHROPIC_BEDROCK_BASE_URL="+fake.URL)
			runner, err := agent.NewRunner(claudecode.New(&claude.Options{
				CLIPath: cli.Path, Dir: cli.Work, PermissionMode: claude.ModeBypassPermissions, StrictMCP: true,
			}).In(&isolation.Isolation{
				IncludeHostEnv: true, // what may go in goes in
				Host:           isolation.Host{Environ: func() []string { return environ }, Home: home},
			}), nil)
			if err != nil {
				t.Fatal(err)
			}
			var done event.Done
			var used gateway.Usage
			for e, err := range runner.Run(t.Context(), agent.Request{Prompt: "Look around."}) {
				if err != nil {
					t.Fatal(err)
				}
				if d, ok := e.Payload.(event.Done); ok {
					done = d
					if err := json.Unmarshal(e.Metadata[claudecode.GatewayUsage], &used); err != nil {
						t.Error(err)
					}
				}
			}
			if done.Status != event.DoneSuccess || done.Result != "Done." {
				t.Fatalf("the run ended with %+v", done)
			}
			if want := (gateway.Tokens{Input: 18, Output: 14}); used.Total.Tokens != want || used.Total.Requests != 2 {
				t.Errorf("the gateway counted %+v, want two requests and %+v", used.Total, want)
			}
			seen := fake.requests()
			if len(seen) < 2 {
				t.Errorf("Bedrock saw %d requests, want two turns", len(seen))
			}
			for _, r := range seen {
				if auth := r.Header.Get("Authorization"); !strings.Contains(auth, plantedID) && auth != "Bearer planted-bearer" || strings.Contains(r.RequestURI, "drover-run-") {
					t.Errorf("%s %s came with %q", r.Method, r.RequestURI, auth)
				}
			}
			inside, err := os.ReadFile(found)
			if err != nil || !strings.Contains(string(inside), "CLAUDE_CODE_USE_BEDROCK=1") || !strings.Contains(string(inside), "AWS_REGION="+region) {
				t.Fatalf("the command did not run: %q (%v)", inside, err)
			}
			for _, secret := range []string{plantedID, plantedSecret, "planted-bearer", "AKIADECOY", "AWS_PROFILE", "AWS_BEARER", "AWS_ACCESS", "AWS_SECRET", "aws_access"} {
				if strings.Contains(string(inside), secret) {
					t.Errorf("%s is in the cell", secret)
				}
			}
		})
	}
}
