// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/drover-agents/drover/claude/transcript"
)

// Validate reports everything that is wrong with the options, before anything is started. The
// error joins one [OptionError] for each fault.
func (o *Options) Validate() error {
	v := &validator{}
	v.process(o)
	v.model(o)
	v.permissions(o)
	v.sessions(o)
	v.settings(o)
	v.join(validateHooks(o.Hooks))
	return errors.Join(v.errs...)
}

type validator struct{ errs []error }

// refuse adds a fault if bad holds.
func (v *validator) refuse(bad bool, option, reason string, args ...any) {
	if bad {
		v.errs = append(v.errs, &OptionError{Option: option, Reason: fmt.Sprintf(reason, args...)})
	}
}

func (v *validator) join(err error) {
	if err != nil {
		v.errs = append(v.errs, err)
	}
}

func (v *validator) oneOf(option, value string, allowed ...string) {
	v.refuse(value != "" && !slices.Contains(allowed, value), option, "%q is not one of %s", value, strings.Join(allowed, ", "))
}

func (v *validator) process(o *Options) {
	v.refuse(o.Spawner != nil && o.User != "", "User", "cannot be combined with Spawner: the spawner chooses the user")
	v.refuse(o.MaxLineBytes < 0, "MaxLineBytes", "must not be negative")
	v.refuse(o.MaxBufferedBytes < 0, "MaxBufferedBytes", "must not be negative")
	v.refuse(o.InitializeTimeout < 0, "InitializeTimeout", "must not be negative")
	v.refuse(o.TraceState != "" && o.TraceParent == "", "TraceState", "needs TraceParent")
	for name, value := range o.Env.vars {
		bad := name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00")
		v.refuse(bad, "Env", "%q cannot be the name or value of a variable", name)
	}
	v.extraArgs(o)
}

// extraArgs refuses a flag that a field writes already: two values for one flag would leave it to
// the CLI which one counts.
func (v *validator) extraArgs(o *Options) {
	if len(o.ExtraArgs) == 0 {
		return
	}
	plain := *o
	plain.ExtraArgs = nil
	ours, err := plain.arguments()
	if err != nil {
		return // reported by the field at fault
	}
	written := flagNames(ours)
	for i, arg := range o.ExtraArgs {
		name, _, _ := strings.Cut(arg, "=")
		v.refuse(strings.HasPrefix(arg, "--") && written[name], fmt.Sprintf("ExtraArgs[%d]", i), "%s is written by a field of Options already", name)
		v.refuse(strings.Contains(arg, "\x00"), fmt.Sprintf("ExtraArgs[%d]", i), "holds a NUL byte")
	}
}

func (v *validator) model(o *Options) {
	v.refuse(o.Model != "" && slices.Contains(o.FallbackModels, o.Model), "FallbackModels", "%q is also the Model", o.Model)
	v.refuse(o.MaxTurns < 0, "MaxTurns", "must not be negative")
	v.refuse(o.TaskBudget < 0, "TaskBudget", "must not be negative")
	v.refuse(o.MaxBudgetUSD != nil && !(*o.MaxBudgetUSD >= 0), "MaxBudgetUSD", "must be a number of dollars, not negative")
	v.oneOf("Effort", string(o.Effort), "low", "medium", "high", "xhigh", "max")
	v.noComma("FallbackModels", o.FallbackModels)
	v.noComma("Betas", o.Betas)
	if t := o.Thinking; t != nil {
		v.refuse(t.BudgetTokens < 0, "Thinking.BudgetTokens", "must not be negative")
		v.refuse(t.Disabled && t.BudgetTokens > 0, "Thinking", "Disabled and BudgetTokens exclude each other")
		v.oneOf("Thinking.Display", t.Display, "summarized", "omitted")
	}
	if f, ok := o.SystemPrompt.(PromptFile); ok {
		v.refuse(f.Path == "", "SystemPrompt", "PromptFile has no Path")
	}
	if err := o.schemaFlag(new(argv)); err != nil {
		v.join(err)
	}
	for _, name := range sortedKeys(o.Agents) {
		v.refuse(name == "", "Agents", "an agent has no name")
		v.refuse(o.Agents[name].Prompt == "" || o.Agents[name].Description == "", fmt.Sprintf("Agents[%q]", name), "needs a Description and a Prompt")
	}
	v.skills(o)
}

func (v *validator) skills(o *Options) {
	if o.Skills == nil {
		return
	}
	v.refuse(o.Skills.All && len(o.Skills.Names) > 0, "Skills", "All and Names exclude each other")
	for i, name := range o.Skills.Names {
		if err := validateSkillName(name); err != nil {
			v.refuse(true, fmt.Sprintf("Skills.Names[%d]", i), "%v", err)
		}
	}
	for i, p := range o.Plugins {
		v.refuse(p.Path == "", fmt.Sprintf("Plugins[%d]", i), "has no Path")
	}
}

// noComma refuses values that would become two in a comma list.
func (v *validator) noComma(option string, values []string) {
	for i, value := range values {
		v.refuse(value == "" || strings.Contains(value, ","), fmt.Sprintf("%s[%d]", option, i), "%q cannot stand in a comma list", value)
	}
}

func (v *validator) permissions(o *Options) {
	v.oneOf("PermissionMode", string(o.PermissionMode), "default", "manual", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto")
	v.oneOf("PermissionPrompts", o.PermissionPrompts, "host", "none")
	v.oneOf("QuestionPreview", o.QuestionPreview, "markdown", "html")
	v.refuse(o.CanUseTool != nil && o.PermissionPromptTool != "", "PermissionPromptTool", "cannot be combined with CanUseTool: only one of them can answer")
	v.refuse(len(o.DialogKinds) > 0 && o.OnUserDialog == nil, "DialogKinds", "need OnUserDialog to answer them")
	v.refuse(o.OnUserDialog != nil && len(o.DialogKinds) == 0, "OnUserDialog", "is never called without DialogKinds")
	v.tools("Tools", o.Tools)
	v.tools("AllowedTools", o.AllowedTools)
	v.tools("DisallowedTools", o.DisallowedTools)
	for _, name := range sortedKeys(o.MCPServers) {
		v.server(fmt.Sprintf("MCPServers[%q]", name), name, o.MCPServers[name])
	}
}

func (v *validator) tools(option string, names []string) {
	for i, name := range names {
		v.refuse(strings.TrimSpace(name) == "", fmt.Sprintf("%s[%d]", option, i), "is empty")
	}
}

func (v *validator) server(option, name string, s MCPServer) {
	v.refuse(name == "", option, "has no name")
	if ours, ok := s.(*MCPInProcess); s == nil || (ok && ours == nil) {
		v.refuse(true, option, "is nil")
		return
	}
	if err := s.validate(); err != nil {
		v.refuse(true, option, "%v", err)
	}
}

func (v *validator) sessions(o *Options) {
	goesOn := o.Continue || o.Resume != ""
	v.refuse(o.Continue && o.Resume != "", "Continue", "cannot be combined with Resume")
	v.refuse(o.Fork && !goesOn, "Fork", "needs Resume or Continue")
	v.refuse(o.ResumeAt != "" && o.Resume == "", "ResumeAt", "needs Resume")
	v.refuse(o.ResumeDropsTurn != nil && !goesOn, "ResumeDropsTurn", "needs Resume or Continue")
	v.refuse(o.SessionID != "" && !isUUID(o.SessionID), "SessionID", "%q is not a UUID", o.SessionID)
	v.refuse(o.SessionID != "" && goesOn && !o.Fork, "SessionID", "needs Fork when a conversation is resumed")
	v.refuse(o.Store != nil && o.NoPersistence, "NoPersistence", "cannot be combined with Store: there would be nothing to copy")
	v.refuse(o.Store != nil && o.Checkpointing, "Checkpointing", "cannot be combined with Store: the copies of files are not in it")
	if o.Store != nil && o.Continue {
		_, lists := o.Store.(transcript.SessionLister)
		v.refuse(!lists, "Continue", "needs a Store that lists its sessions")
	}
	v.windowsIDs(o)
}

func (v *validator) windowsIDs(o *Options) {
	if runtime.GOOS != "windows" {
		return
	}
	for option, id := range map[string]string{"Resume": o.Resume, "ResumeAt": o.ResumeAt} {
		v.join(validateWindowsArgument(option, id))
	}
}

func (v *validator) settings(o *Options) {
	v.refuse(o.Settings != nil && o.SettingsFile != "", "SettingsFile", "cannot be combined with Settings")
	v.refuse(o.Sandbox != nil && o.SettingsFile != "", "Sandbox", "cannot be combined with SettingsFile: read the file and pass Settings")
	v.refuse(o.Settings != nil && !isObject(o.Settings), "Settings", "is not a JSON object")
	v.refuse(o.ManagedSettings != nil && !isObject(o.ManagedSettings), "ManagedSettings", "is not a JSON object")
	for i, source := range o.SettingSources {
		v.refuse(!slices.Contains([]string{"user", "project", "local"}, source), fmt.Sprintf("SettingSources[%d]", i), "%q is not one of user, project, local", source)
	}
	for i, dir := range o.AddDirs {
		v.refuse(dir == "", fmt.Sprintf("AddDirs[%d]", i), "is empty")
	}
	v.refuse(o.ProjectConfigRoot != "" && !filepath.IsAbs(o.ProjectConfigRoot), "ProjectConfigRoot", "%q is not an absolute path", o.ProjectConfigRoot)
}

var uuidPattern = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

func isUUID(s string) bool { return uuidPattern.MatchString(s) }

func isObject(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil && object != nil
}
