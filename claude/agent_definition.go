// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safetext"
)

// An AgentDefinition describes a subagent. Description and Prompt are required. A nil list means
// "as the parent agent", an empty one "none".
type AgentDefinition struct {
	// Description states for the model when to use the agent.
	Description string `json:"description"`
	// Prompt is the agent's system prompt.
	Prompt          string   `json:"prompt"`
	Tools           []string `json:"tools,omitzero"`
	DisallowedTools []string `json:"disallowedTools,omitzero"`
	// Model is an alias, a model id, or "inherit". Empty means the CLI's default.
	Model         string           `json:"model,omitzero"`
	MCPServers    []AgentMCPServer `json:"mcpServers,omitzero"`
	Skills        []string         `json:"skills,omitzero"`
	InitialPrompt string           `json:"initialPrompt,omitzero"`
	// MaxTurns limits the agent. Zero means no limit.
	MaxTurns   int   `json:"maxTurns,omitzero"`
	Background *bool `json:"background,omitzero"`
	// Memory is "user", "project" or "local". Empty means none.
	Memory         string         `json:"memory,omitzero"`
	Effort         AgentEffort    `json:"effort,omitzero"`
	PermissionMode PermissionMode `json:"permissionMode,omitzero"`
	// AutoCompactWindow is the size in tokens, from 100,000 on, at which the agent's conversation is
	// compacted. Zero means the CLI's default.
	AutoCompactWindow int   `json:"autoCompactWindow,omitzero"`
	OmitClaudeMD      *bool `json:"omitClaudeMd,omitzero"`
	// Observer names an agent that watches this one; ObserverMessage is sent to it.
	Observer        string `json:"observer,omitzero"`
	ObserverMessage string `json:"observerMessage,omitzero"`
}

// An AgentMCPServer is an MCP server of an agent: the name of one that the session has, or with Config one of its own.
type AgentMCPServer struct {
	Name string
	// Config marshals to an MCP server configuration. Nil refers to the session's server.
	Config any
}

// MarshalJSON gives the name alone, or an object from name to configuration.
func (s AgentMCPServer) MarshalJSON() ([]byte, error) {
	if s.Config == nil {
		return plainjson.Marshal(s.Name)
	}
	return plainjson.Marshal(map[string]any{s.Name: s.Config})
}

// An AgentEffort is a level ("low", "medium", "high", "xhigh", "max") or a number in digits.
type AgentEffort string

// MarshalJSON gives a number for digits and a string otherwise.
func (e AgentEffort) MarshalJSON() ([]byte, error) {
	if n, err := strconv.Atoi(string(e)); err == nil {
		return json.Marshal(n)
	}
	return json.Marshal(string(e))
}

// validateAgents returns what is wrong with the agents, as joined OptionErrors.
func validateAgents(agents map[string]AgentDefinition) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(agents)) {
		for _, reason := range agents[name].problems() {
			errs = append(errs, &OptionError{fmt.Sprintf("Agents[%q]", name), reason})
		}
		if name == "" {
			errs = append(errs, &OptionError{"Agents", "an agent has no name"})
		}
	}
	return errors.Join(errs...)
}

func (a AgentDefinition) problems() []string {
	var ps []string
	if a.Description == "" {
		ps = append(ps, "Description is empty; the model would not know when to use the agent")
	}
	if a.Prompt == "" {
		ps = append(ps, "Prompt is empty")
	}
	for _, text := range [][2]string{{"Description", a.Description}, {"Prompt", a.Prompt}, {"InitialPrompt", a.InitialPrompt}} {
		if problem := safetext.PromptProblem(text[1]); problem != "" {
			ps = append(ps, text[0]+" "+problem)
		}
	}
	if a.MaxTurns < 0 {
		ps = append(ps, "MaxTurns is negative; use 0 for no limit")
	}
	if !slices.Contains([]string{"", "user", "project", "local"}, a.Memory) {
		ps = append(ps, fmt.Sprintf("Memory %q is not one of user, project, local", a.Memory))
	}
	if a.AutoCompactWindow != 0 && (a.AutoCompactWindow < 100_000 || a.AutoCompactWindow > 1_000_000) {
		ps = append(ps, fmt.Sprintf("AutoCompactWindow %d is not from 100,000 to 1,000,000 tokens", a.AutoCompactWindow))
	}
	for _, s := range a.Skills {
		if err := validateSkillName(s); err != nil {
			ps = append(ps, err.Error())
		}
	}
	return ps
}
