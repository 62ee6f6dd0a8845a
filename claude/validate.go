// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/claude/transcript"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/safetext"
)

// Validate returns all faults of the options, before a process is started. The error joins one [OptionError] for each fault.
func (o *Options) Validate() error {
	v := &validator{}
	v.process(o)
	v.model(o)
	v.permissions(o)
	v.sessions(o)
	v.settings(o)
	v.localPaths(o)
	v.join(validateHooks(o.Hooks))
	v.arguments(o)
	return errors.Join(v.errs...)
}

type validator struct{ errs []error }

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
	v.refuse(len(o.Runtime) > 0 && o.Runtime[0] == "", "Runtime", "names no program")
	v.variables(o)
}

// variables refuses variables that no operating system accepts.
func (v *validator) variables(o *Options) {
	for _, name := range sortedKeys(o.Env.vars) {
		bad := name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(o.Env.vars[name], "\x00")
		v.refuse(bad, "Env", "%q cannot be the name of a variable, or its value holds a NUL byte", name)
	}
	for _, x := range []struct{ option, value string }{
		{"TraceParent", o.TraceParent}, {"TraceState", o.TraceState}, {"ClientApp", o.ClientApp}, {"Dir", o.Dir}, {"CLIPath", o.CLIPath},
	} {
		v.refuse(strings.ContainsAny(x.value, "\x00\r\n"), x.option, "%q holds a line break or a NUL byte", x.value)
	}
}

// arguments checks the command line as a whole. A flag in ExtraArgs that a field writes already is
// refused: with two values for one flag, the CLI would choose.
func (v *validator) arguments(o *Options) {
	plain := *o
	plain.ExtraArgs = nil
	ours, err := plain.arguments()
	if err != nil {
		return // reported by the field at fault
	}
	for _, arg := range ours {
		name, _, _ := strings.Cut(arg, "=")
		v.refuse(strings.Contains(arg, "\x00"), optionOfFlag(name), "holds a NUL byte")
	}
	written := flagNames(ours)
	for i, arg := range o.ExtraArgs {
		option := fmt.Sprintf("ExtraArgs[%d]", i)
		name := longFlag(arg)
		v.refuse(written[name], option, "%s is written by a field of Options already (%s)", name, optionOfFlag(name))
		v.refuse(name == "--print" || name == "--prompt", option, "%s makes the CLI take its prompt from the command line", name)
		v.refuse(strings.Contains(arg, "\x00"), option, "holds a NUL byte")
	}
}

// localPaths refuses missing paths that the CLI would silently ignore. It does not check them if there
// is a spawner, which may start the CLI where other files are.
func (v *validator) localPaths(o *Options) {
	if o.Spawner != nil {
		return
	}
	exists := func(option, path string) {
		if path == "" || strings.Contains(path, "\x00") {
			return // reported by the option itself
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(o.Dir, path)
		}
		_, err := os.Stat(path)
		v.refuse(errors.Is(err, os.ErrNotExist), option, "%s does not exist", path)
	}
	for i, p := range o.Plugins {
		exists(fmt.Sprintf("Plugins[%d]", i), p.Path)
	}
	for i, dir := range o.AddDirs {
		exists(fmt.Sprintf("AddDirs[%d]", i), dir)
	}
}

func (v *validator) model(o *Options) {
	v.refuse(o.Model != "" && slices.Contains(o.FallbackModels, o.Model), "FallbackModels", "%q is also the Model", o.Model)
	v.refuse(o.MaxTurns < 0, "MaxTurns", "must not be negative")
	v.refuse(o.TaskBudget < 0, "TaskBudget", "must not be negative")
	v.refuse(o.MaxBudgetUSD != nil && !(*o.MaxBudgetUSD > 0 && !math.IsInf(*o.MaxBudgetUSD, 1)), "MaxBudgetUSD", "must be a number of dollars above zero; nil means no limit")
	v.oneOf("Effort", string(o.Effort), "low", "medium", "high", "xhigh", "max")
	v.noComma("FallbackModels", o.FallbackModels)
	v.noComma("Betas", o.Betas)
	if t := o.Thinking; t != nil {
		v.refuse(t.BudgetTokens < 0, "Thinking.BudgetTokens", "must not be negative")
		v.refuse(t.Disabled && t.BudgetTokens > 0, "Thinking", "Disabled and BudgetTokens exclude each other")
		v.oneOf("Thinking.Display", t.Display, "summarized", "omitted", "highlights")
	}
	switch p := plainPrompt(o.SystemPrompt).(type) {
	case PromptFile:
		v.refuse(p.Path == "", "SystemPrompt", "PromptFile has no Path")
	case TextPrompt:
		for i, block := range p.Blocks {
			v.promptText(fmt.Sprintf("SystemPrompt.Blocks[%d]", i), block)
		}
	case PresetPrompt:
		v.promptText("SystemPrompt.Append", p.Append)
	}
	v.promptText("PlanModeInstructions", o.PlanModeInstructions)
	if err := o.schemaFlag(new(argv)); err != nil {
		v.join(err)
	}
	v.join(validateAgents(o.Agents))
	v.skills(o)
	for i, p := range o.Plugins {
		v.refuse(p.Path == "", fmt.Sprintf("Plugins[%d]", i), "has no Path")
	}
	v.refuse(o.PluginsInInitialize && len(o.Plugins) == 0, "PluginsInInitialize", "needs Plugins")
}

func (v *validator) promptText(option, text string) {
	if problem := safetext.PromptProblem(text); problem != "" {
		v.refuse(true, option, "%s", problem)
	}
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
}

// noComma refuses values that would become two in a comma list.
func (v *validator) noComma(option string, values []string) {
	for i, value := range values {
		v.refuse(value == "" || strings.ContainsAny(value, ", \t\r\n"), fmt.Sprintf("%s[%d]", option, i), "%q cannot be part of a comma list", value)
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
		v.refuse(outsideParentheses(name, ','), fmt.Sprintf("%s[%d]", option, i), "%q would become two tools", name)
	}
}

// outsideParentheses reports whether s has c as a separator: not within a rule such as "Bash(git log, git diff)".
func outsideParentheses(s string, c rune) bool {
	depth := 0
	for _, r := range s {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == c && depth <= 0:
			return true
		}
	}
	return false
}

func (v *validator) server(option, name string, s MCPServer) {
	v.refuse(name == "", option, "has no name")
	if isNil(s) {
		v.refuse(true, option, "is nil")
		return
	}
	if err := s.validate(); err != nil {
		v.refuse(true, option, "%v", err)
	}
}

func (v *validator) sessions(o *Options) {
	resumes := o.resumes()
	v.refuse(resumes && o.startsByItself() && !o.awaitsInitialize(), "Env", "with %s the CLI continues an interrupted turn before it has its hooks; leave it out", resumeInterrupted)
	v.refuse(o.Continue && o.Resume != "", "Continue", "cannot be combined with Resume")
	v.refuse(o.Fork && !resumes, "Fork", "needs Resume or Continue")
	v.refuse(o.ResumeAt != "" && o.Resume == "", "ResumeAt", "needs Resume")
	v.refuse(o.ResumeDropsTurn != nil && o.ResumeAt == "", "ResumeDropsTurn", "needs ResumeAt")
	v.refuse(o.Title != "" && resumes && !o.Fork, "Title", "names a new conversation; use Client.RenameSession for a resumed one")
	v.refuse(o.SessionID != "" && !ident.ValidUUID(o.SessionID), "SessionID", "%q is not a UUID", o.SessionID)
	v.refuse(o.SessionID != "" && resumes && !o.Fork, "SessionID", "needs Fork when a conversation is resumed")
	v.refuse(o.Store != nil && o.NoPersistence, "NoPersistence", "cannot be combined with Store: there is no transcript to copy")
	v.refuse(o.Store != nil && o.Checkpointing, "Checkpointing", "cannot be combined with Store: the copies of files are not in it")
	if o.Store != nil && o.Continue {
		_, lists := o.Store.(transcript.SessionLister)
		v.refuse(!lists, "Continue", "needs a Store that lists its sessions")
	}
	v.refuse(o.StoreLoadTimeout < 0, "StoreLoadTimeout", "must not be negative")
	v.refuse(o.Store == nil && o.StoreEager, "StoreEager", "needs Store")
	v.refuse(o.Store == nil && o.StoreLoadTimeout > 0, "StoreLoadTimeout", "needs Store")
	if runtime.GOOS == "windows" {
		v.windowsIDs(o)
	}
}

func (v *validator) windowsIDs(o *Options) {
	v.join(validateWindowsArgument("Resume", o.Resume))
	v.join(validateWindowsArgument("ResumeAt", o.ResumeAt))
	if o.ResumeDropsTurn != nil {
		v.join(validateWindowsArgument("ResumeDropsTurn", *o.ResumeDropsTurn))
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
	v.sandbox(o)
	v.refuse(o.ProjectConfigRoot != "" && !filepath.IsAbs(o.ProjectConfigRoot), "ProjectConfigRoot", "%q is not an absolute path", o.ProjectConfigRoot)
}

// sandbox refuses values that make the CLI silently drop a whole block of restrictions.
func (v *validator) sandbox(o *Options) {
	if o.Sandbox == nil {
		return
	}
	if _, err := o.Sandbox.object(); err != nil {
		v.refuse(true, "Sandbox", "%v", err)
	}
	c := o.Sandbox.Credentials
	if c == nil {
		return
	}
	for i, secret := range c.EnvVars {
		option := fmt.Sprintf("Sandbox.Credentials.EnvVars[%d]", i)
		v.refuse(!variablePattern().MatchString(secret.Name) || secret.Path != "", option, "needs the Name of a variable, and no Path")
		v.refuse(secret.Mode != "deny" && secret.Mode != "mask", option, "Mode %q is not one of deny, mask", secret.Mode)
	}
	for i, secret := range c.Files {
		option := fmt.Sprintf("Sandbox.Credentials.Files[%d]", i)
		v.refuse(secret.Path == "" || secret.Name != "", option, "needs a Path, and no Name")
		v.refuse(secret.Mode != "deny" && secret.Mode != "mask", option, "Mode %q is not one of deny, mask", secret.Mode)
	}
}

var variablePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`) })

func isObject(raw json.RawMessage) bool {
	var object map[string]json.RawMessage
	return json.Unmarshal(raw, &object) == nil && object != nil
}
