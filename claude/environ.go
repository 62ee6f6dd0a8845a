// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Version is the version of this library, as the CLI reports it to the model's service.
const Version = "0.2.0"

// notInherited are variables of the caller that must not reach the CLI. CLAUDECODE makes the CLI act
// as nested, CLAUDE_CODE_ENTRYPOINT and CLAUDE_AGENT_SDK_VERSION name another program, NODE_OPTIONS
// changes how a script CLI runs, and resumeInterrupted makes a resumed CLI work before it has its hooks.
var notInherited = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION", "NODE_OPTIONS", resumeInterrupted}

// variables is an environment under construction. On Windows a name is the same in capitals and
// small letters; the spelling of the last one set is kept.
type variables struct {
	fold   bool
	values map[string]variable // by key
}

type variable struct{ name, value string }

func newVariables(goos string) *variables {
	return &variables{fold: goos == "windows", values: map[string]variable{}}
}

func (v *variables) key(name string) string {
	if v.fold {
		return strings.ToUpper(name)
	}
	return name
}

func (v *variables) set(name, value string) { v.values[v.key(name)] = variable{name, value} }
func (v *variables) get(name string) string { return v.values[v.key(name)].value }
func (v *variables) remove(names ...string) {
	for _, name := range names {
		delete(v.values, v.key(name))
	}
}

func (v *variables) setIf(on bool, name, value string) {
	if on {
		v.set(name, value)
	}
}

// entries are the variables as "NAME=value", sorted.
func (v *variables) entries() []string {
	entries := make([]string, 0, len(v.values))
	for _, x := range v.values {
		entries = append(entries, x.name+"="+x.value)
	}
	slices.Sort(entries)
	return entries
}

// environment is the whole environment of the CLI, sorted. host is the caller's own environment.
func (o *Options) environment(host []string) []string {
	return o.environmentOn(runtime.GOOS, host)
}

// environmentOn has the operating system as data, so that the rules for Windows can be tested elsewhere.
func (o *Options) environmentOn(goos string, host []string) []string {
	vars := newVariables(goos)
	if !o.Env.exact {
		vars.inherit(host)
	}
	o.addOwn(vars)
	o.addGiven(vars)
	vars.remove("CLAUDECODE")
	vars.set("CLAUDE_AGENT_SDK_VERSION", Version)
	if betas := mergedList(vars.get("ANTHROPIC_BETAS"), o.Betas); betas != "" {
		vars.set("ANTHROPIC_BETAS", betas)
	}
	return vars.entries()
}

func (v *variables) inherit(host []string) {
	for _, entry := range host {
		name, value, ok := strings.Cut(entry, "=")
		if ok && name != "" {
			v.set(name, value)
		}
	}
	v.remove(notInherited...)
}

// addOwn adds the variables that carry options. Options.Env overrides them.
func (o *Options) addOwn(vars *variables) {
	vars.set("CLAUDE_CODE_ENTRYPOINT", "sdk-go")
	vars.set("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1")
	vars.setIf(o.Checkpointing, "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true")
	vars.setIf(o.NoBackgroundTasks, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")
	vars.setIf(o.QuestionPreview != "", "CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", o.QuestionPreview)
	vars.setIf(o.ClientApp != "", "CLAUDE_AGENT_SDK_CLIENT_APP", o.ClientApp)
	if o.TraceParent != "" {
		vars.remove("TRACEPARENT", "TRACESTATE")
		vars.set("TRACEPARENT", o.TraceParent)
		vars.setIf(o.TraceState != "", "TRACESTATE", o.TraceState)
	}
	if dir, err := filepath.Abs(o.Dir); err == nil && o.Dir != "" {
		vars.set("PWD", dir)
	}
}

// addGiven adds Options.Env, which overrides the rest. Its trace parent replaces the pair: both must come from one span.
func (o *Options) addGiven(vars *variables) {
	given := newVariables("")
	given.fold = vars.fold
	for name, value := range o.Env.vars {
		given.set(name, value)
	}
	if given.get("TRACEPARENT") != "" {
		vars.remove("TRACEPARENT", "TRACESTATE")
	}
	for _, x := range given.values {
		vars.set(x.name, x.value)
	}
}

// mergedList is a comma list with the values of more that it lacks.
func mergedList(list string, more []string) string {
	var all []string
	for _, value := range append(strings.Split(list, ","), more...) {
		if value = strings.TrimSpace(value); value != "" && !slices.Contains(all, value) {
			all = append(all, value)
		}
	}
	return strings.Join(all, ",")
}
