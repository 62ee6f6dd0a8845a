// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
)

// ContextUsage is the content of the model's context window. All counts are tokens.
type ContextUsage struct {
	Categories           []ContextCategory `json:"categories"`
	TotalTokens          int               `json:"totalTokens"`
	MaxTokens            int               `json:"maxTokens"`
	RawMaxTokens         int               `json:"rawMaxTokens"`
	Percentage           float64           `json:"percentage"`
	Model                string            `json:"model"`
	AutoCompactThreshold int               `json:"autoCompactThreshold"`
	IsAutoCompactEnabled bool              `json:"isAutoCompactEnabled"`
	MemoryFiles          []ContextFile     `json:"memoryFiles"`
	MCPTools             []ContextMCPTool  `json:"mcpTools"`
	// APIUsage is the usage of the last request, nil before the first.
	APIUsage *ContextAPIUsage `json:"apiUsage"`
	// Raw also has the drawing of the CLI's own display and the details by agent and skill.
	Raw json.RawMessage `json:"-"`
}

func (u *ContextUsage) keepRaw(raw json.RawMessage) { u.Raw = raw }

// A ContextCategory is a share of the context window.
type ContextCategory struct {
	ID     string `json:"id"` // empty on older CLIs
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
	Kind   string `json:"kind"` // "used", "buffer" or "free"
}

// A ContextFile is a memory file in the context.
type ContextFile struct {
	Path   string `json:"path"`
	Type   string `json:"type"`
	Tokens int    `json:"tokens"`
}

// A ContextMCPTool is the share of one MCP tool.
type ContextMCPTool struct {
	Name       string `json:"name"`
	ServerName string `json:"serverName"`
	Tokens     int    `json:"tokens"`
	IsLoaded   bool   `json:"isLoaded"`
}

// ContextAPIUsage is the token count of one request.
type ContextAPIUsage struct {
	InputTokens              int `json:"input_tokens"`
	OutputTokens             int `json:"output_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
}

// ContextUsage returns the content of the context window. Detail is "" for the CLI's default, "summary" or "full".
func (c *Client) ContextUsage(ctx context.Context, detail string) (ContextUsage, error) {
	return controlRequest[ContextUsage](ctx, c, "get_context_usage", withField(controlFields{}, "detail", detail))
}

// SessionUsage holds the totals of the session. The CLI calls this report experimental.
type SessionUsage struct {
	Session struct {
		TotalCostUSD       float64                    `json:"total_cost_usd"`
		TotalAPIDurationMS float64                    `json:"total_api_duration_ms"`
		TotalDurationMS    float64                    `json:"total_duration_ms"`
		TotalLinesAdded    int                        `json:"total_lines_added"`
		TotalLinesRemoved  int                        `json:"total_lines_removed"`
		ModelUsage         map[string]json.RawMessage `json:"model_usage"`
	} `json:"session"`
	SubscriptionType    *string         `json:"subscription_type"`
	RateLimitsAvailable bool            `json:"rate_limits_available"`
	RateLimits          json.RawMessage `json:"rate_limits"`
	Raw                 json.RawMessage `json:"-"`
}

func (u *SessionUsage) keepRaw(raw json.RawMessage) { u.Raw = raw }

// Usage asks for the totals of the session; skipBehaviors leaves out the costly part.
func (c *Client) Usage(ctx context.Context, skipBehaviors bool) (SessionUsage, error) {
	return controlRequest[SessionUsage](ctx, c, "get_usage", withField(controlFields{}, "skip_behaviors", skipBehaviors))
}

// SessionCost returns the CLI's own text about the cost of the session.
func (c *Client) SessionCost(ctx context.Context) (string, error) {
	return controlField[string](ctx, c, "get_session_cost", nil, "text")
}

// A SettingsReport lists the settings in force.
type SettingsReport struct {
	// Effective is the merge of all sources.
	Effective json.RawMessage  `json:"effective"`
	Sources   []SettingsSource `json:"sources"`
	Applied   AppliedSettings  `json:"applied"`
	Raw       json.RawMessage  `json:"-"`
}

func (r *SettingsReport) keepRaw(raw json.RawMessage) { r.Raw = raw }

// A SettingsSource is one of the files or arguments that settings come from.
type SettingsSource struct {
	Source   string          `json:"source"`
	Settings json.RawMessage `json:"settings"`
}

// AppliedSettings are the values that the session runs with.
type AppliedSettings struct {
	Model string `json:"model"`
	// Effort is nil for a model without effort levels.
	Effort *string `json:"effort"`
}

// Settings returns the settings in force.
func (c *Client) Settings(ctx context.Context) (SettingsReport, error) {
	return controlRequest[SettingsReport](ctx, c, "get_settings", nil)
}

// ApplyFlagSettings changes settings as if given at launch. Nil removes a key. The CLI refuses all if one is invalid.
func (c *Client) ApplyFlagSettings(ctx context.Context, settings any) error {
	return c.command(ctx, "apply_flag_settings", controlFields{"settings": settings})
}

// UpdateSettings writes to a settings file. The CLI allows few keys: "outputStyle" of
// "localSettings" and "effortLevel" of "userSettings".
func (c *Client) UpdateSettings(ctx context.Context, source string, settings any) error {
	return c.command(ctx, "update_settings", controlFields{"source": source, "settings": settings})
}

// PermissionRules are the rules in force.
type PermissionRules struct {
	Rules                []ActiveRule         `json:"rules"`
	WorkspaceDirectories []WorkspaceDirectory `json:"workspaceDirectories"`
	OriginalCwd          string               `json:"originalCwd"`
	ManagedOnly          bool                 `json:"managedOnly"`
	Errors               json.RawMessage      `json:"errors"`
	Withheld             json.RawMessage      `json:"withheld"`
}

// An ActiveRule is a rule in the CLI's notation, "Bash(git *)".
type ActiveRule struct {
	Behavior    PermissionBehavior `json:"behavior"`
	Source      string             `json:"source"`
	Rule        string             `json:"rule"`
	Editability string             `json:"editability"`
}

// A WorkspaceDirectory is a directory that the agent may work in beside its own.
type WorkspaceDirectory struct {
	Path   string `json:"path"`
	Source string `json:"source"`
}

// PermissionRules lists the permission rules in force.
func (c *Client) PermissionRules(ctx context.Context) (PermissionRules, error) {
	return controlField[PermissionRules](ctx, c, "list_permission_rules", nil, "state")
}

// A HooksListing describes the hooks from settings and plugins. Callbacks of this program are not among them.
type HooksListing struct {
	Hooks []ListedHook `json:"hooks"`
	// Catalog describes all events that the CLI knows.
	Catalog []ListedEvent   `json:"eventCatalog"`
	Policy  json.RawMessage `json:"policy"`
	Raw     json.RawMessage `json:"-"`
}

func (l *HooksListing) keepRaw(raw json.RawMessage) { l.Raw = raw }

// A ListedHook is a hook from a settings file or a plugin.
type ListedHook struct {
	Event       HookEvent `json:"event"`
	Matcher     string    `json:"matcher"`
	Source      string    `json:"source"`
	Type        string    `json:"type"`
	CommandText string    `json:"commandText"`
}

// A ListedEvent is an event that the CLI knows.
type ListedEvent struct {
	Name            HookEvent `json:"name"`
	Summary         string    `json:"summary"`
	SupportsMatcher bool      `json:"supportsMatcher"`
}

// HooksListing lists the hooks from settings and plugins.
func (c *Client) HooksListing(ctx context.Context) (HooksListing, error) {
	return controlRequest[HooksListing](ctx, c, "get_hooks_listing", nil)
}
