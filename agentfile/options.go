// SPDX-License-Identifier: Apache-2.0

package agentfile

import (
	"fmt"
	"slices"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/pathglob"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// Options returns the options of the file for an evaluation of its prompt. The time limit begins now.
func (f *File) Options() *drover.Options {
	o := &drover.Options{
		Settings: agent.Settings{
			Model: f.Model, Effort: f.Effort, SystemPrompt: f.System.Replace, AppendSystemPrompt: f.System.Append,
			MaxTurns: f.Limits.Turns,
			Tools:    f.allowed(), DisallowedTools: slices.Clone(f.Tools.Deny), UnknownTools: slices.Clone(f.Tools.Unknown), Servers: f.servers(),
			Permissions: &gate.Permissions{Mode: f.Policy.Mode, FileWrite: f.Policy.FileWrite, ShellExecute: f.Policy.ShellExecute, NetworkAccess: f.Policy.NetworkAccess},
		},
		ToolTimeout: time.Duration(f.Limits.ToolTime), Policies: f.policies(),
		Completion: f.checker(), MaxRounds: f.Completion.Rounds,
		RestartToOpen: hidesSkills(f.Sections), // an agent may take no skills while it works
	}
	if f.Limits.Time > 0 {
		o.Deadline = guard.FromNow(time.Duration(f.Limits.Time))
	}
	if f.Limits.Tokens > 0 || f.Limits.USD > 0 {
		o.Budget = &guard.Budget{MaxTotalTokens: f.Limits.Tokens, MaxCostUSD: f.Limits.USD}
	}
	o.Feedback = f.FeedbackRules(o.Deadline)
	return o
}

// allowed always has the tools that open hidden sections and read skills, because the prompt names them.
func (f *File) allowed() []string {
	list := slices.Clone(f.Tools.Allow)
	if list != nil && hides(f.Sections) {
		list = append(list, tool.NewMCPName(tool.DefaultServerName, "").String())
	}
	if list != nil && (len(f.Skills) > 0 || skilled(f.Sections)) {
		list = agent.WithSkillTool(list, catalogue.Tools())
	}
	return list
}

func (f *File) policies() []gate.Policy {
	var all []gate.Policy
	p := f.Policy
	if len(p.Allow)+len(p.Ask)+len(p.Deny) > 0 {
		all = append(all, gate.Rules(gate.RuleOptions{Allow: p.Allow, Ask: p.Ask, Deny: p.Deny}))
	}
	if p.ReadOnly {
		all = append(all, gate.FromRisk(gate.RiskOptions{ReadOnly: true, AgentTools: true}))
	}
	if p.ReadBeforeWrite {
		all = append(all, gate.ReadBeforeWrite(gate.ReadBeforeWriteOptions{}))
	}
	if len(p.RequireBefore) > 0 {
		all = append(all, gate.RequireBefore(p.RequireBefore))
	}
	return all
}

// checker is nil without a completion rule.
func (f *File) checker() guard.Checker {
	var all []guard.Checker
	if len(f.Completion.Files) > 0 {
		all = append(all, guard.FilesExist(f.Completion.Files...))
	}
	if len(f.Completion.Command) > 0 {
		all = append(all, guard.CommandSucceeds(f.Completion.Command...))
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return guard.AllOf(all...)
}

// FeedbackRules returns the feedback of the file for a run with a deadline.
func (f *File) FeedbackRules(d guard.Deadline) []guard.FeedbackRule {
	var rules []guard.FeedbackRule
	for i, b := range f.Feedback {
		trigger := guard.FeedbackTrigger{EveryCalls: b.EveryCalls, Every: time.Duration(b.Every), OnFileCreated: b.OnFileCreated}
		var provider guard.FeedbackProvider = guard.StaticFeedback{As: fmt.Sprintf("Note %d", i+1), Text: b.Text, Severity: b.Severity}
		if b.Deadline > 0 {
			provider = guard.DeadlineFeedback{Deadline: d, Low: time.Duration(b.Deadline)}
		}
		rules = append(rules, guard.FeedbackRule{Provider: provider, Trigger: trigger})
	}
	return rules
}

// Workspace returns the options of the workspace, or nil where the file has no mounts. It fails if a mount leads
// out of the folder of the file and of [File.Roots].
func (f *File) Workspace() (*workspace.Options, error) {
	if len(f.Mounts) == 0 {
		return nil, nil
	}
	found := problems{file: f.path, tree: f.tree}
	o := &workspace.Options{AllowedHostRoots: f.roots()}
	for i, m := range f.Mounts {
		host, err := f.resolve(m.Path)
		if err != nil {
			found.fail(at("/mounts", i)+"/path", err)
			continue
		}
		mount := workspace.HostMount{HostPath: host, MountPath: m.target(), Include: m.Include, Exclude: m.Exclude}
		if m.MaxBytes != nil {
			mount.MaxBytes = new(int64(*m.MaxBytes))
		}
		o.Mounts = append(o.Mounts, mount)
	}
	return o, found.join()
}

// WriteBack are globs of what may be written back: all but what is mounted read-only. Nil means that nothing may.
func (f *File) WriteBack() []string {
	var globs []string
	for _, m := range f.Mounts {
		if !m.ReadOnly {
			globs = append(globs, pathglob.Within(m.target())...)
		}
	}
	return globs
}

// IsolationOptions is the isolation that the file asks for.
func (f *File) IsolationOptions() *isolation.Isolation {
	in := &isolation.Isolation{}
	if f.Isolation.Level != nil {
		in.Weakest, in.Strongest = *f.Isolation.Level, *f.Isolation.Level
		in.Sandbox = &isolation.Sandbox{Disabled: in.Weakest == isolation.LevelHost}
	}
	if n := f.Isolation.Network; len(n.Domains) > 0 || n.Localhost {
		in.Network = &isolation.NetworkPolicy{AllowedDomains: slices.Clone(n.Domains), AllowLocalhost: n.Localhost}
	}
	return in
}

func (f *File) servers() map[string]agent.Server {
	all := map[string]agent.Server{}
	for name, s := range f.Servers {
		all[name] = agent.Server{Command: s.Command, Env: s.Env, URL: s.URL, Headers: s.Headers, Timeout: time.Duration(s.Timeout)}
	}
	return all
}
