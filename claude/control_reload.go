// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
)

// ReloadPluginsOptions configures [Client.ReloadPlugins]. The zero value reloads at once.
type ReloadPluginsOptions struct {
	// HoldOnCacheImpact keeps the new plugins back where they would invalidate the prompt cache.
	HoldOnCacheImpact bool
	// AddPlugins marshals to the list of plugins to add. Nil adds none.
	AddPlugins any
	// RefuseIfBusy fails instead of waiting while a turn runs.
	RefuseIfBusy bool
}

// A PluginReload is the state after a reload.
type PluginReload struct {
	Commands   []SlashCommand    `json:"commands"`
	Agents     []AgentInfo       `json:"agents"`
	Plugins    []LoadedPlugin    `json:"plugins"`
	MCPServers []MCPServerStatus `json:"mcpServers"`
	ErrorCount int               `json:"error_count"`
	// Held is set when HoldOnCacheImpact kept the plugins back.
	Held        bool            `json:"held"`
	CacheImpact json.RawMessage `json:"cache_impact"`
	Raw         json.RawMessage `json:"-"`
}

func (r *PluginReload) keepRaw(raw json.RawMessage) { r.Raw = raw }

// A LoadedPlugin is a plugin of the session.
type LoadedPlugin struct {
	Name    string `json:"name"`
	Path    string `json:"path"`
	Source  string `json:"source"`
	Version string `json:"version"`
}

// ReloadPlugins reads the plugins again.
func (c *Client) ReloadPlugins(ctx context.Context, opt ReloadPluginsOptions) (PluginReload, error) {
	f := withField(withField(controlFields{}, "hold_on_cache_impact", opt.HoldOnCacheImpact), "refuse_if_busy", opt.RefuseIfBusy)
	if opt.AddPlugins != nil {
		f["add_plugins"] = opt.AddPlugins
	}
	return controlRequest[PluginReload](ctx, c, "reload_plugins", f)
}

// ReloadSkills reads the skills again and lists them. The CLI does not watch their folders. If a tool
// writes a skill and calls ReloadSkills before it returns, the model has the skill in its next request,
// in the same turn. The folders are those of SettingSources and Plugins; Options.Skills limits the names.
func (c *Client) ReloadSkills(ctx context.Context) ([]SlashCommand, error) {
	return controlField[[]SlashCommand](ctx, c, "reload_skills", nil, "skills")
}

// ReloadOutputStyles reads the output styles again and lists their names.
func (c *Client) ReloadOutputStyles(ctx context.Context) ([]string, error) {
	return controlField[[]string](ctx, c, "reload_output_styles", nil, "available_output_styles")
}
