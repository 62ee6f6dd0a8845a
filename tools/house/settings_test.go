// SPDX-License-Identifier: Apache-2.0

package house

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// settingsOwner declares what a run can be set to. Options and requests embed it.
const settingsOwner = "agent.Settings"

// formerSettings are names under which a setting was also declared.
var formerSettings = []string{"AllowedTools", "Cwd", "MaxBudgetUSD", "MaxCostUSD", "Reasoning", "WorkDir"}

// fieldsLikeSettings have the name of a setting without being settings: structs, or single fields of one, with the reason.
var fieldsLikeSettings = map[string]string{
	"event.Init": "a report of the agent", "event.TokenRecord": "a report", "event.OutputTokens.Reasoning": "a count of tokens",
	"event.ToolCall": "a report", "session.PromptRendered": "a record", "session.RenderedTools": "a record", "session.ToolInvoked": "a record",
	"gateway.Ask": "a request of the agent to the model", "gateway.Folders": "a record", "gateway.ModelCall": "a report", "gateway.Reading": "a request of the agent",
	"gateway.Refused": "a report", "gateway.Remote": "what the service runs for the model", "gateway.Route": "a request of the agent",
	"gateway-gatewaytest.Answer": "an answer of a scripted model", "gateway-gatewaytest.Question": "a request of the agent",
	"telemetry.Start": "a report", "drover.RunStart.Dir": "the working directory, as far as it is known",
	"record.Info": "a record", "record.Details": "a record", "record.ModelUse": "a record", "record-index.Row": "a record",

	"server.Start": "a request, which can only narrow what the server allows", "server.Offer": "a report of what a request may ask for", "server.Summary": "a report",

	"agent.Submission": "facts for a hook", "gate.CallContext": "facts about a call", "gate.Facts": "facts about a call",
	"gate.AgentConfig": "what a gate asks of an agent's own permissions", "gate.Policy.Permissions": "what the policy was made of",
	"gate.Policy.Tools":       "tools that the policy knows",
	"agent-agenttest.Adapter": "the catalogue of a scripted agent", "drovertest.Capabilities": "what the agent under test can do",

	"guard.Budget": "the type of Settings.Budget", "tool.Options.Budget": "calls and time of a registry's tools",
	"agentfile.File":                "the keys of the file format, from which File.Options fills Settings",
	"agentfile.Project":             "the keys of the project file, by which the command narrows Settings",
	"tool.KnownNames.Servers":       "names of servers",
	"agent.LedgerOptions":           "an adapter passes on the folder in which calls are made",
	"gateway.RunOptions":            "an adapter passes on the limits that the gateway enforces",
	"isolation.OpenOptions":         "an adapter passes on the limits that the gateway enforces",
	"isolation.Program":             "the program in a cell: an adapter describes its agent with it",
	"isolation.Inside":              "the folder as the cell shows it",
	"launch.Command":                "the folder of a process",
	"tool-mcp.Command":              "the folder of a server's process",
	"agent-claudecode.MountOptions": "permissions for the tools of one server", "agent-claudecode-claudecell.HomeOptions": "the folder that a home is made for",
	"workspace.WriteBackOptions": "where to write to", "prompt-overrides.Store": "where overrides are stored",

	"fleet.Options.Dir":    "the folder of the embedded server",
	"terminal.Options.Dir": "the folder to which the view shows paths as relative",

	"prompt.Descriptor": "a report on a prompt", "prompt.HiddenSection": "a report on a prompt", "prompt.Opened": "a report on a prompt", "prompt.Rendered": "a report on a prompt",
	"prompt.Section.Tools": "tools that the section describes, with their code", "prompt.Section.Workspace": "the workspace that the section describes",
	"prompt.Overrides": "descriptions of tools in other words", "prompt.SkillFrontMatter": "a field of the skill format",
}

var listedField = regexp.MustCompile(`(?m)^type (\w+), field (\w+) `)

// A setting is declared once. A second struct that takes it would be a second way to set it.
func TestSettings_DeclaredOnce(t *testing.T) {
	fields := map[string][]string{} // by package and type
	for _, file := range committed(t) {
		pkg, isListing := strings.CutSuffix(strings.TrimPrefix(file, "api/"), ".txt")
		if !isListing || !strings.HasPrefix(file, "api/") {
			continue
		}
		if pkg == "claude" || strings.HasPrefix(pkg, "claude-") { // the wire client has the names of the SDKs
			continue
		}
		for _, m := range listedField.FindAllStringSubmatch(read(t, file), -1) {
			fields[pkg+"."+m[1]] = append(fields[pkg+"."+m[1]], m[2])
		}
	}
	settings := slices.Concat(fields[settingsOwner], formerSettings)
	if len(fields[settingsOwner]) < 10 {
		t.Fatalf("%s has the fields %v", settingsOwner, fields[settingsOwner])
	}
	found := map[string]bool{}
	for owner, names := range fields {
		for _, name := range names {
			_, whole := fieldsLikeSettings[owner]
			_, single := fieldsLikeSettings[owner+"."+name]
			switch {
			case owner == settingsOwner || !slices.Contains(settings, name):
			case whole:
				found[owner] = true
			case single:
				found[owner+"."+name] = true
			default:
				t.Errorf("%s.%s is a setting of a run\n  next: take it from %s, or list here what else it means", owner, name, settingsOwner)
			}
		}
	}
	for listed := range fieldsLikeSettings {
		if !found[listed] {
			t.Errorf("%s is listed and has no such field", listed)
		}
	}
}
