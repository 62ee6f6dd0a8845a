// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/tool"
)

// A refusal is the error for a request that Claude Code cannot honour.
func refusal(field, format string, args ...any) error {
	return fmt.Errorf("claudecode: Request.%s: %s", field, fmt.Sprintf(format, args...))
}

// overlay lays a request over options, which are a copy of the base: whatever they point to belongs to
// other runs too and is replaced, never changed.
func overlay(o *claude.Options, req agent.Request) error {
	setIf(&o.Dir, req.Dir)
	setIf(&o.Model, req.Model)
	setIf(&o.MaxTurns, req.MaxTurns)
	if req.MaxBudgetUSD != 0 {
		o.MaxBudgetUSD = new(req.MaxBudgetUSD)
	}
	if req.OutputSchema != nil {
		o.OutputSchema = req.OutputSchema
	}
	o.PartialMessages = o.PartialMessages || req.PartialText
	o.SystemPrompt = systemPrompt(o.SystemPrompt, req.SystemPrompt)
	return errors.Join(overlayTools(o, req), overlayEffort(o, req.Effort))
}

// setIf sets an option unless the request says nothing about it.
func setIf[T comparable](option *T, value T) {
	var nothing T
	if value != nothing {
		*option = value
	}
}

// systemPrompt is the prompt of the request, else of the base, else the CLI's own.
func systemPrompt(base claude.SystemPrompt, own string) claude.SystemPrompt {
	switch {
	case own != "":
		return claude.SystemText(own)
	case base != nil:
		return base
	}
	return claude.PresetPrompt{}
}

// efforts are the words for how hard the model works, and what the CLI calls them.
var efforts = map[string]claude.Effort{
	"minimal": claude.EffortLow, "low": claude.EffortLow, "medium": claude.EffortMedium, "high": claude.EffortHigh,
	"xhigh": claude.EffortXHigh, "max": claude.EffortMax, ultracode: claude.EffortXHigh,
}

// ultracode is the highest effort together with a setting by which the model divides work among many
// subagents. It is also the name of the setting.
const ultracode = "ultracode"

// overlayEffort sets the effort. The setting is part of it: a file of the user may switch it on, so
// every other word switches it off.
func overlayEffort(o *claude.Options, word string) error {
	if word == "" {
		return nil
	}
	effort, known := efforts[word]
	if !known {
		return refusal("Effort", "%q is not one of minimal, low, medium, high, xhigh, max, ultracode", word)
	}
	o.Effort = effort
	if o.SettingsFile != "" {
		if word == ultracode {
			return refusal("Effort", "ultracode needs a setting, which cannot be added to a SettingsFile\n  next: read the file and pass it as Settings")
		}
		return nil
	}
	settings, err := withSetting(o.Settings, ultracode, word == ultracode)
	if err != nil {
		return refusal("Effort", "Settings of the base: %v", err)
	}
	o.Settings = settings
	return nil
}

// withSetting is settings JSON with one more key.
func withSetting(settings json.RawMessage, key string, value any) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	if len(settings) > 0 {
		if err := json.Unmarshal(settings, &all); err != nil {
			return nil, fmt.Errorf("not a JSON object: %w", err)
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if all == nil { // it was null
		all = map[string]json.RawMessage{}
	}
	all[key] = raw
	return json.Marshal(all)
}

// overlayTools sets which tools there are. A list is a boundary: with it, no MCP server counts that the
// options do not name, and an empty one leaves nothing that the CLI could be told of elsewhere.
//
// Without a host the list also says what runs without a question, and so do tools of this program. With
// a host that would be a way around it.
func overlayTools(o *claude.Options, req agent.Request) error {
	own := ownTools{req.Tools}
	o.DisallowedTools = slices.Concat(o.DisallowedTools, own.full(req.DisallowedTools))
	switch {
	case req.AllowedTools == nil:
		if req.Tools != nil && req.Host == nil {
			o.AllowedTools = append(slices.Clone(o.AllowedTools), toolPrefix)
		}
		return nil
	case len(req.AllowedTools) == 0:
		o.Tools, o.AllowedTools, o.SettingSources, o.StrictMCP = []string{}, nil, []string{}, true
		o.MCPServers, o.MCPConfig = nil, ""
		return nil
	}
	o.Tools, o.StrictMCP = own.builtin(req.AllowedTools), true
	o.AllowedTools = nil
	if req.Host == nil {
		o.AllowedTools = own.full(req.AllowedTools)
	}
	return boundServers(o, own.full(req.AllowedTools))
}

// toolPrefix begins the names of the tools of Request.Tools, and names all of them.
const toolPrefix = "mcp__" + agent.ToolServer

// ownTools are the tools of this program, which lists may name with or without their server.
type ownTools struct{ registry *tool.Registry }

func (t ownTools) has(name string) bool {
	if t.registry == nil {
		return false
	}
	_, there := t.registry.Lookup(name)
	return there
}

// full are the names as the CLI knows them.
func (t ownTools) full(names []string) []string {
	var all []string
	for _, name := range names {
		if t.has(name) {
			name = toolPrefix + "__" + name
		}
		all = append(all, name)
	}
	return all
}

// builtin are the tools of the CLI among those named, each once and without arguments.
func (t ownTools) builtin(names []string) []string {
	list := []string{}
	for _, name := range names {
		base, _, _ := strings.Cut(strings.TrimSpace(name), "(")
		if !t.has(name) && !strings.HasPrefix(base, "mcp__") && !slices.Contains(list, base) {
			list = append(list, base)
		}
	}
	return list
}

// within tells which of our tools are within the lists of a request. Tools may be added during the run:
// a list of what there is has to name those in full.
func (t ownTools) within(req agent.Request) func(*tool.Tool) bool {
	allowed := serverTools(t.full(req.AllowedTools))
	taken := slices.Clone(req.DisallowedTools)
	return func(own *tool.Tool) bool {
		full := toolPrefix + "__" + own.Name
		if slices.Contains(taken, own.Name) || slices.Contains(taken, full) {
			return false
		}
		return req.AllowedTools == nil || allowed.has(full)
	}
}

// serveTools serves the tools of the request. What it returns is to be called after the run.
func serveTools(o *claude.Options, req agent.Request) (release func(), err error) {
	if req.Tools == nil || req.AllowedTools != nil && len(req.AllowedTools) == 0 {
		return func() {}, nil
	}
	if _, taken := o.MCPServers[agent.ToolServer]; taken {
		return nil, refusal("Tools", "the base has an MCP server %q already; give that one another name", agent.ToolServer)
	}
	server, err := tool.NewSDKServer(req.Tools, &tool.SDKServerOptions{
		SDKToolOptions: tool.SDKToolOptions{Only: ownTools{req.Tools}.within(req)},
		Name:           agent.ToolServer, Version: claude.Version, Logger: o.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("claudecode: Request.Tools: %w", err)
	}
	servers := maps.Clone(o.MCPServers)
	if servers == nil {
		servers = map[string]claude.MCPServer{}
	}
	servers[agent.ToolServer] = server.Server()
	o.MCPServers = servers
	return server.Close, nil
}
