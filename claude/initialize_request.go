// SPDX-License-Identifier: Apache-2.0

package claude

// initializeRequest is the handshake: options that the CLI reads from its first line instead of from
// flags, because they may be large or need a host that answers.
type initializeRequest struct {
	Hooks                  any                        `json:"hooks,omitempty"`
	SDKMCPServers          []string                   `json:"sdkMcpServers,omitempty"`
	SDKMCPServerConfigs    map[string]inProcessConfig `json:"sdkMcpServerConfigs,omitempty"`
	SDKMCPServerManifests  map[string]*MCPManifest    `json:"sdkMcpServerManifests,omitempty"`
	SystemPrompt           []string                   `json:"systemPrompt,omitempty"`
	AppendSystemPrompt     string                     `json:"appendSystemPrompt,omitempty"`
	SystemPromptSnapshot   *bool                      `json:"systemPromptSnapshot,omitempty"`
	ExcludeDynamicSections bool                       `json:"excludeDynamicSections,omitempty"`
	PlanModeInstructions   string                     `json:"planModeInstructions,omitempty"`
	ToolAliases            map[string]string          `json:"toolAliases,omitempty"`
	Agents                 map[string]AgentDefinition `json:"agents,omitempty"`
	Title                  string                     `json:"title,omitempty"`
	Skills                 *[]string                  `json:"skills,omitempty"`
	PromptSuggestions      bool                       `json:"promptSuggestions,omitempty"`
	AgentProgressSummaries bool                       `json:"agentProgressSummaries,omitempty"`
	ForwardSubagentText    bool                       `json:"forwardSubagentText,omitempty"`
	SupportedDialogKinds   []string                   `json:"supportedDialogKinds,omitempty"`
	PerTaskStopAffordance  bool                       `json:"perTaskStopAffordance,omitempty"`
	Plugins                []initializePlugin         `json:"plugins,omitempty"`
}

type initializePlugin struct {
	Type             string `json:"type"`
	Path             string `json:"path"`
	SkipMCPDiscovery bool   `json:"skipMcpDiscovery,omitempty"`
}

// initialize builds the handshake with the registration of hooks, and the servers in this program with their manifests.
func (o *Options) initialize(hooks any, servers map[string]*MCPInProcess, manifests map[string]*MCPManifest) *initializeRequest {
	r := &initializeRequest{
		Hooks:                  hooks,
		PlanModeInstructions:   o.PlanModeInstructions,
		ToolAliases:            o.ToolAliases,
		Agents:                 o.Agents,
		Title:                  o.Title,
		PromptSuggestions:      o.PromptSuggestions,
		AgentProgressSummaries: o.ProgressSummaries,
		ForwardSubagentText:    o.ForwardSubagentText,
		SupportedDialogKinds:   o.DialogKinds,
		PerTaskStopAffordance:  o.PerTaskStop,
	}
	if o.Skills != nil && !o.Skills.All {
		names := append([]string{}, o.Skills.Names...) // no skills are [], not null
		r.Skills = &names
	}
	if o.PluginsInInitialize {
		for _, p := range o.Plugins {
			r.Plugins = append(r.Plugins, initializePlugin{"local", p.Path, p.SkipMCP})
		}
	}
	r.setSystemPrompt(o.SystemPrompt)
	r.setServers(servers, manifests)
	return r
}

func (r *initializeRequest) setSystemPrompt(prompt SystemPrompt) {
	switch p := plainPrompt(prompt).(type) {
	case nil:
		r.SystemPrompt = []string{""}
	case TextPrompt:
		r.SystemPrompt = p.Blocks
		r.SystemPromptSnapshot = p.Snapshot
		if len(p.Blocks) == 0 {
			r.SystemPrompt = []string{""}
		}
	case PresetPrompt:
		r.AppendSystemPrompt = p.Append
		r.ExcludeDynamicSections = p.ExcludeDynamicSections
		r.SystemPromptSnapshot = p.Snapshot
	}
}

// inProcessConfig is the part of the handshake about a server in this program, beside its name.
type inProcessConfig struct {
	Timeout int64           `json:"timeout,omitempty"` // milliseconds
	Tools   []MCPToolPolicy `json:"tools,omitempty"`
}

func (r *initializeRequest) setServers(servers map[string]*MCPInProcess, manifests map[string]*MCPManifest) {
	r.SDKMCPServers = sortedKeys(servers)
	if len(manifests) > 0 {
		r.SDKMCPServerManifests = manifests
	}
	for name, s := range servers {
		if s.Timeout == 0 && s.Tools == nil {
			continue
		}
		if r.SDKMCPServerConfigs == nil {
			r.SDKMCPServerConfigs = map[string]inProcessConfig{}
		}
		r.SDKMCPServerConfigs[name] = inProcessConfig{s.Timeout.Milliseconds(), s.Tools}
	}
}
