// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"maps"
	"slices"
	"strings"
)

// Version is the version of this library, as the CLI reports it to the model's service.
const Version = "0.1.0"

// notInherited are variables of the caller that must not reach the CLI: CLAUDECODE makes it think
// it is nested, CLAUDE_CODE_ENTRYPOINT and CLAUDE_AGENT_SDK_VERSION would name somebody else, and
// NODE_OPTIONS changes how a script CLI runs.
var notInherited = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_AGENT_SDK_VERSION", "NODE_OPTIONS"}

// environment is the whole environment of the CLI, sorted. host is the caller's own environment.
func (o *Options) environment(host []string) []string {
	vars := map[string]string{}
	if !o.Env.exact {
		inherit(vars, host, o.TraceParent != "")
	}
	o.addOwn(vars)
	maps.Copy(vars, o.Env.vars)
	delete(vars, "CLAUDECODE")
	vars["CLAUDE_AGENT_SDK_VERSION"] = Version
	env := make([]string, 0, len(vars))
	for name, value := range vars {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

func inherit(vars map[string]string, host []string, freshTrace bool) {
	for _, entry := range host {
		name, value, ok := strings.Cut(entry, "=")
		if !ok || name == "" || slices.Contains(notInherited, name) {
			continue
		}
		if freshTrace && (name == "TRACEPARENT" || name == "TRACESTATE") {
			continue
		}
		vars[name] = value
	}
}

// addOwn adds the variables that carry options. Options.Env is laid over them: it wins.
func (o *Options) addOwn(vars map[string]string) {
	set := func(name, value string, on bool) {
		if on {
			vars[name] = value
		}
	}
	vars["CLAUDE_CODE_ENTRYPOINT"] = "sdk-go"
	vars["CLAUDE_CODE_SDK_READS_SESSION_STATE"] = "1"
	set("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true", o.Checkpointing)
	set("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT", o.QuestionPreview, o.QuestionPreview != "")
	set("TRACEPARENT", o.TraceParent, o.TraceParent != "")
	set("TRACESTATE", o.TraceState, o.TraceParent != "" && o.TraceState != "")
	set("PWD", o.Dir, o.Dir != "")
}
