// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	root "github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/tool"
)

// loadProject reads the project file of the current folder and narrows the flags to it. The file of an agent and the flags choose
// the model before it does.
func (o *runOptions) loadProject() error {
	if o.noProject {
		return nil
	}
	p, err := agentfile.LoadProject(".")
	if err != nil {
		return advice.Wrap(usageError("%w", err), "--no-project-file leaves the file out")
	}
	if p == nil {
		return nil
	}
	o.project = p
	o.model = cmp.Or(o.model, p.Model)
	o.lowerLimits(p.Limits, p.Path())
	return nil
}

// reportProject prints what the project file sets.
func (o *runOptions) reportProject(errs io.Writer) {
	if o.project != nil {
		fmt.Fprintf(errs, "drover: %s sets: %s\n", o.project.Path(), o.project)
	}
}

// narrow takes away what the project file denies. It gives nothing.
func (o *runOptions) narrow(e *root.Options) {
	p := o.project
	if p == nil {
		return
	}
	e.Effort = cmp.Or(e.Effort, p.Effort)
	e.Tools = o.kept(e.Tools)
	e.DisallowedTools = append(e.DisallowedTools, o.served(p.Tools.Deny)...)
	e.Policies = append(e.Policies, p.Policies(tool.NewMCPName(tool.DefaultServerName, "").String())...)
}

// kept are the tools that a run keeps of a list, where nil is all. Arguments are for the policy.
func (o *runOptions) kept(tools []string) []string {
	only := o.project.Tools.Only
	switch {
	case only == nil:
		return tools
	case tools == nil:
		return append([]string{}, o.served(only)...)
	}
	kept := []string{}
	for _, name := range tools {
		for _, other := range only {
			if tool := narrower(name, other); tool != "" && !slices.Contains(kept, tool) {
				kept = append(kept, tool)
			}
		}
	}
	return kept
}

// narrower is what two entries of lists have in common, or "". One may name a server, and the other a tool of it.
func narrower(a, b string) string {
	bare := func(name string) string { name, _, _ = strings.Cut(name, "("); return strings.TrimSuffix(name, "__*") }
	switch {
	case bare(a) == bare(b), strings.HasPrefix(bare(a), bare(b)+"__"):
		return a
	case strings.HasPrefix(bare(b), bare(a)+"__"):
		return b
	}
	return ""
}

// served leaves out tools of MCP servers that the run does not have.
func (o *runOptions) served(names []string) []string {
	known := tool.KnownNames{Servers: []string{tool.DefaultServerName}}
	if f := o.file.agent; f != nil {
		known.Servers = slices.AppendSeq(known.Servers, maps.Keys(f.Servers))
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known.Check(name) != nil })
}
