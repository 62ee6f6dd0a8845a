// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/internal/plainjson"
)

func TestAgentDefinition_JSON(t *testing.T) {
	tests := []struct {
		name  string
		agent AgentDefinition
		want  string
	}{
		{"required only", AgentDefinition{Description: "d", Prompt: "p"}, `{"description":"d","prompt":"p"}`},
		{"empty lists are kept", AgentDefinition{Tools: []string{}, Skills: []string{}, Background: new(false)}, `{"description":"","prompt":"","tools":[],"skills":[],"background":false}`},
		{
			"everything",
			AgentDefinition{
				Description: "d", Prompt: "p", Tools: []string{"Read"}, DisallowedTools: []string{"Bash"}, Model: "inherit",
				MCPServers: []AgentMCPServer{{Name: "a"}, {Name: "b", Config: map[string]string{"command": "x"}}}, Skills: []string{"s"}, InitialPrompt: "i", MaxTurns: 3,
				Background: new(true), Memory: "user", Effort: "high", PermissionMode: ModePlan, AutoCompactWindow: 9, OmitClaudeMD: new(true), Observer: "o", ObserverMessage: "m",
			},
			`{"description":"d","prompt":"p","tools":["Read"],"disallowedTools":["Bash"],"model":"inherit","mcpServers":["a",{"b":{"command":"x"}}],"skills":["s"],"initialPrompt":"i","maxTurns":3,` +
				`"background":true,"memory":"user","effort":"high","permissionMode":"plan","autoCompactWindow":9,"omitClaudeMd":true,"observer":"o","observerMessage":"m"}`,
		},
		{"effort as a number", AgentDefinition{Effort: "12"}, `{"description":"","prompt":"","effort":12}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := plainjson.Marshal(tt.agent)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestValidateAgents_NamesEveryFault(t *testing.T) {
	ok := map[string]AgentDefinition{"a": {Description: "d", Prompt: "p", Memory: "local", Skills: []string{"s"}}}
	if err := validateAgents(ok); err != nil {
		t.Errorf("refused: %v", err)
	}
	err := validateAgents(map[string]AgentDefinition{"b": {MaxTurns: -1, Memory: "cloud", Skills: []string{"x),Bash("}}, "": {Description: "d", Prompt: "p"}})
	for _, want := range []string{`Agents["b"]: Description`, `Agents["b"]: Prompt`, "MaxTurns is negative", `Memory "cloud"`, "skill name", "an agent has no name"} {
		if err == nil || !strings.Contains(advice.Text(err), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}
