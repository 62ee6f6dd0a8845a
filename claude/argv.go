// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/schema"
)

// argv collects flags, each as one token "--flag=value": a value that starts with a dash can never become a flag.
type argv []string

func (a *argv) bare(flag string, on bool) {
	if on {
		*a = append(*a, "--"+flag)
	}
}

func (a *argv) value(flag, value string) { *a = append(*a, "--"+flag+"="+value) }

func (a *argv) text(flag, value string) {
	if value != "" {
		a.value(flag, value)
	}
}

func (a *argv) number(flag string, n int) {
	if n != 0 {
		a.value(flag, strconv.Itoa(n))
	}
}

// list writes a comma list; an empty list is written too, a nil one is not.
func (a *argv) list(flag string, values []string) {
	if values != nil {
		a.value(flag, strings.Join(values, ","))
	}
}

// arguments is the command line of the CLI. The prompt and large values go over stdin.
func (o *Options) arguments() ([]string, error) {
	a := argv{"--output-format=stream-json", "--verbose", "--input-format=stream-json"}
	o.modelFlags(&a)
	o.permissionFlags(&a)
	o.sessionFlags(&a)
	for _, add := range []func(*argv) error{o.schemaFlag, o.settingsFlags, o.mcpFlags} {
		if err := add(&a); err != nil {
			return nil, err
		}
	}
	o.pluginFlags(&a)
	o.outputFlags(&a)
	return append(a, o.ExtraArgs...), nil
}

func (o *Options) modelFlags(a *argv) {
	a.text("model", o.Model)
	a.text("fallback-model", strings.Join(o.FallbackModels, ","))
	a.text("effort", string(o.Effort))
	a.number("max-turns", o.MaxTurns)
	a.number("task-budget", o.TaskBudget)
	if o.MaxBudgetUSD != nil {
		a.value("max-budget-usd", strconv.FormatFloat(*o.MaxBudgetUSD, 'f', -1, 64))
	}
	o.thinkingFlags(a)
	if f, ok := plainPrompt(o.SystemPrompt).(PromptFile); ok {
		a.value("system-prompt-file", f.Path)
	}
	a.text("agent", o.Agent)
}

func (o *Options) thinkingFlags(a *argv) {
	t := o.Thinking
	if t == nil {
		return
	}
	switch {
	case t.Disabled:
		a.value("thinking", "disabled")
	case t.BudgetTokens > 0:
		a.number("max-thinking-tokens", t.BudgetTokens)
	default:
		a.value("thinking", "adaptive")
	}
	a.text("thinking-display", t.Display)
}

func (o *Options) permissionFlags(a *argv) {
	a.list("tools", o.Tools)
	a.list("allowedTools", o.allowedTools())
	if len(o.DisallowedTools) > 0 {
		a.list("disallowedTools", o.DisallowedTools)
	}
	a.text("permission-mode", string(o.PermissionMode))
	a.bare("allow-dangerously-skip-permissions", o.AllowBypass)
	a.text("permission-prompts", o.PermissionPrompts)
	switch {
	case o.CanUseTool != nil:
		a.value("permission-prompt-tool", "stdio")
	default:
		a.text("permission-prompt-tool", o.PermissionPromptTool)
	}
}

// allowedTools are the allowed tools with what Skills adds to them, or nil if no tool is allowed.
func (o *Options) allowedTools() []string {
	allowed := slices.Clone(o.AllowedTools)
	if s := o.Skills; s != nil {
		if s.All {
			allowed = append(allowed, "Skill")
		}
		for _, name := range s.Names {
			allowed = append(allowed, "Skill("+name+")")
		}
	}
	if len(allowed) == 0 {
		return nil
	}
	return allowed
}

func (o *Options) sessionFlags(a *argv) {
	a.bare("continue", o.Continue)
	a.text("resume", o.Resume)
	a.bare("fork-session", o.Fork)
	a.text("session-id", o.SessionID)
	a.text("resume-session-at", o.ResumeAt)
	if o.ResumeDropsTurn != nil {
		a.value("resume-drops-turn", *o.ResumeDropsTurn)
	}
	a.bare("no-session-persistence", o.NoPersistence)
	a.bare("session-mirror", o.Store != nil || o.recordsFiles())
}

// schemaFlag uses the flag, because the CLI refuses a bad schema loudly there and silently in the handshake.
func (o *Options) schemaFlag(a *argv) error {
	if o.OutputSchema == nil {
		return nil
	}
	s, err := schema.Parse(o.OutputSchema)
	if err != nil {
		return &OptionError{Option: "OutputSchema", Reason: err.Error()}
	}
	forCLI, _, err := schema.ForCLI(s)
	if err != nil {
		return &OptionError{Option: "OutputSchema", Reason: err.Error()}
	}
	a.value("json-schema", string(forCLI))
	return nil
}

func (o *Options) settingsFlags(a *argv) error {
	settings, err := mergeSettings(o.Settings, o.Sandbox)
	if err != nil {
		return err
	}
	if len(settings) > 0 {
		a.value("settings", string(settings))
	}
	a.text("settings", o.SettingsFile)
	if o.ManagedSettings != nil {
		a.value("managed-settings", string(o.ManagedSettings))
	}
	a.list("setting-sources", o.SettingSources)
	for _, dir := range o.AddDirs {
		a.value("add-dir", dir)
	}
	a.text("project-config-root", o.ProjectConfigRoot)
	return nil
}

// mcpFlags names the servers outside this process; those inside are named in the handshake, and those
// with permissions for single tools after it.
func (o *Options) mcpFlags(a *argv) error {
	servers := map[string]json.RawMessage{}
	for name, s := range o.MCPServers {
		if _, ours := s.(*MCPInProcess); ours || isNil(s) || hasPolicies(s) {
			continue // a nil one is reported by Validate
		}
		config, err := s.configJSON(name)
		if err != nil {
			return &OptionError{Option: fmt.Sprintf("MCPServers[%q]", name), Reason: err.Error()}
		}
		servers[name] = config
	}
	if len(servers) > 0 {
		text, err := json.Marshal(map[string]any{"mcpServers": servers})
		if err != nil {
			return &OptionError{Option: "MCPServers", Reason: err.Error()}
		}
		a.value("mcp-config", string(text))
	}
	a.text("mcp-config", o.MCPConfig)
	a.bare("strict-mcp-config", o.StrictMCP)
	return nil
}

func (o *Options) pluginFlags(a *argv) {
	a.bare("await-initialize", o.PluginsInInitialize)
	if o.PluginsInInitialize {
		return
	}
	for _, p := range o.Plugins {
		if p.SkipMCP {
			a.value("plugin-dir-no-mcp", p.Path)
		} else {
			a.value("plugin-dir", p.Path)
		}
	}
}

func (o *Options) outputFlags(a *argv) {
	a.bare("include-partial-messages", o.PartialMessages)
	a.bare("include-hook-events", o.HookEvents)
	a.bare("replay-user-messages", o.ReplayUserMessages)
	a.bare("debug", o.Debug)
	a.text("debug-file", o.DebugFile)
}

// flagNames are the names of the flags in args, for the check of ExtraArgs.
func flagNames(args []string) map[string]bool {
	names := map[string]bool{}
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		names[name] = true
	}
	return names
}

// longFlag is the name of the flag in a token, in the spelling that arguments uses; "" if the token is not a flag.
func longFlag(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	if long, ok := otherSpellings[name]; ok {
		return long
	}
	if strings.HasPrefix(name, "--") {
		return name
	}
	return ""
}

var otherSpellings = map[string]string{
	"-c": "--continue", "-d": "--debug", "-p": "--print", "-r": "--resume",
	"--allowed-tools": "--allowedTools", "--disallowed-tools": "--disallowedTools",
}

// flagOptions are the fields that write a flag whose name differs from theirs.
var flagOptions = map[string]string{
	"--add-dir": "AddDirs", "--allow-dangerously-skip-permissions": "AllowBypass", "--await-initialize": "PluginsInInitialize",
	"--fallback-model": "FallbackModels", "--fork-session": "Fork", "--include-hook-events": "HookEvents",
	"--include-partial-messages": "PartialMessages", "--json-schema": "OutputSchema", "--max-thinking-tokens": "Thinking.BudgetTokens",
	"--mcp-config": "MCPServers or MCPConfig", "--no-session-persistence": "NoPersistence", "--plugin-dir": "Plugins",
	"--plugin-dir-no-mcp": "Plugins", "--resume-session-at": "ResumeAt", "--session-mirror": "Store or Recorder",
	"--settings": "Settings, SettingsFile or Sandbox", "--strict-mcp-config": "StrictMCP", "--system-prompt-file": "SystemPrompt",
	"--thinking-display": "Thinking.Display", "--max-budget-usd": "MaxBudgetUSD",
	"--allowedTools": "AllowedTools or Skills", "--permission-prompt-tool": "CanUseTool or PermissionPromptTool",
	"--session-id": "SessionID",
}

// optionOfFlag is the field of Options that writes a flag: by its own name, or "--max-turns" as MaxTurns.
func optionOfFlag(flag string) string {
	if option, ok := flagOptions[flag]; ok {
		return option
	}
	var b strings.Builder
	for word := range strings.SplitSeq(strings.TrimPrefix(flag, "--"), "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
