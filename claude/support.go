// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A CLI that is too old for an option fails in one of two ways. An unknown flag ends it, with a line on
// standard error; an unknown field of the handshake, of a prompt or of the settings is silently
// ignored. Both must end in an error that names the option.

// checkSupport refuses options that the CLI of this introduction would ignore.
func (o *Options) checkSupport(init *InitializeResult) error {
	var errs []error
	for _, x := range o.ignoredByOld() {
		if x.inUse && lacks(init.Version, x.since) {
			errs = append(errs, &OptionError{x.option, fmt.Sprintf("is not known to the CLI%s, which would ignore it; use CLI %s", spaced(init.Version), PinnedVersion)})
		}
	}
	if len(errs) > 0 {
		return fmt.Errorf("%w: %w", ErrTooOld, errors.Join(errs...))
	}
	return errors.Join(o.checkAgent(init), o.checkPlugins(init))
}

// lacks reports whether a CLI is too old for a feature of a version. An empty version means a CLI that
// does not report it, which is an old one; an unreadable version counts as new. A feature that is known
// to be in the pinned version and not in the oldest tested one is assumed in those between.
func lacks(version, since string) bool {
	if version == "" {
		return true
	}
	if since == PinnedVersion {
		order, err := CompareVersions(version, OldestTested)
		return err == nil && order <= 0
	}
	order, err := CompareVersions(version, since)
	return err == nil && order < 0
}

func spaced(version string) string {
	if version == "" {
		return ""
	}
	return " " + version
}

// checkAgent refuses an agent that does not exist: the CLI would go on with its own.
func (o *Options) checkAgent(init *InitializeResult) error {
	if o.Agent == "" || len(init.Agents) == 0 { // a CLI that lists none does not report its agents
		return nil
	}
	var names []string
	for _, a := range init.Agents {
		if a.Name == o.Agent || strings.HasSuffix(a.Name, ":"+o.Agent) {
			return nil
		}
		names = append(names, a.Name)
	}
	if _, ours := o.Agents[o.Agent]; ours {
		return nil
	}
	return &OptionError{"Agent", fmt.Sprintf("unknown agent %q; the CLI has %s", o.Agent, strings.Join(names, ", "))}
}

// checkPlugins refuses to go on without the plugins of the handshake.
func (o *Options) checkPlugins(init *InitializeResult) error {
	if !o.PluginsInInitialize || len(o.Plugins) == 0 || (init.PluginsApplied != nil && *init.PluginsApplied) {
		return nil
	}
	return &OptionError{"Plugins", "the CLI did not load all of them; check that each Path is a plugin"}
}

// A laterOption is something that the oldest tested CLI ignores.
type laterOption struct {
	option string
	inUse  bool
	since  string // the first version known to have it
}

// ignoredByOld are the options that the oldest tested CLI silently ignores. It refuses unknown flags itself.
func (o *Options) ignoredByOld() []laterOption {
	later := []laterOption{
		{"VerbatimPrompts", o.VerbatimPrompts, verbatimSince},
		{"PerTaskStop", o.PerTaskStop, PinnedVersion},
	}
	switch p := plainPrompt(o.SystemPrompt).(type) {
	case TextPrompt:
		later = append(later, laterOption{"SystemPrompt.Snapshot", p.Snapshot != nil, PinnedVersion})
	case PresetPrompt:
		later = append(later, laterOption{"SystemPrompt.Snapshot", p.Snapshot != nil, PinnedVersion})
	}
	for _, name := range sortedKeys(o.Agents) {
		later = append(later, o.Agents[name].ignoredByOld(name)...)
	}
	servers := o.inProcess()
	for _, name := range sortedKeys(servers) {
		s := servers[name]
		option := fmt.Sprintf("MCPServers[%q]", name)
		later = append(later, laterOption{option + ".Timeout", s.Timeout != 0, PinnedVersion}, laterOption{option + ".Tools", len(s.Tools) > 0, PinnedVersion})
	}
	return append(later, o.Sandbox.ignoredByOld()...)
}

// verbatimSince is the first CLI that sends prompts as they are when asked to.
const verbatimSince = "2.1.248"

func (a AgentDefinition) ignoredByOld(name string) []laterOption {
	option := func(field string) string { return fmt.Sprintf("Agents[%q].%s", name, field) }
	return []laterOption{
		{option("AutoCompactWindow"), a.AutoCompactWindow != 0, PinnedVersion},
		{option("Effort"), a.Effort != "", PinnedVersion},
		{option("OmitClaudeMD"), a.OmitClaudeMD != nil, PinnedVersion},
		{option("Observer"), a.Observer != "" || a.ObserverMessage != "", PinnedVersion},
	}
}

func (s *Sandbox) ignoredByOld() []laterOption {
	if s == nil {
		return nil
	}
	later := []laterOption{{"Sandbox.AllowNestedUserNamespaces", s.AllowNestedUserNamespaces != nil, PinnedVersion}}
	if s.Network != nil {
		later = append(later, laterOption{"Sandbox.Network.StrictAllowlist", s.Network.StrictAllowlist != nil, PinnedVersion})
	}
	if s.Filesystem != nil {
		later = append(later, laterOption{"Sandbox.Filesystem.Disabled", s.Filesystem.Disabled != nil, PinnedVersion})
	}
	if c := s.Credentials; c != nil {
		masks := func(x SandboxSecret) bool { return x.Mode == "mask" }
		later = append(later,
			laterOption{"Sandbox.Credentials.AllowPlaintextInject", c.AllowPlaintextInject != nil, PinnedVersion},
			laterOption{"Sandbox.Credentials.AWSPairs", len(c.AWSPairs) > 0, PinnedVersion},
			laterOption{"Sandbox.Credentials.SigV4", c.SigV4 != nil, PinnedVersion},
			laterOption{"Sandbox.Credentials.Files", slices.ContainsFunc(c.Files, masks), PinnedVersion},
			laterOption{"Sandbox.Credentials.EnvVars", slices.ContainsFunc(c.EnvVars, masks), PinnedVersion})
	}
	return later
}

// warnMissingTools logs the names in Options.Tools that the CLI has no tool for. The CLI does not
// report them, and only the first message of a turn lists its tools.
func (c *Client) warnMissingTools(init *SystemInit) {
	for _, name := range c.opts.Tools {
		there := slices.ContainsFunc(init.Tools, func(tool string) bool {
			return tool == name || tool == "Task" && name == "Agent" // one tool under two names
		})
		if !there && name != "default" {
			c.log.Warn("claude: Options.Tools names a tool that this CLI does not have", "tool", name, "has", strings.Join(init.Tools, ", "))
		}
	}
}

// refusedFlag finds the flag that a CLI did not know, or whose value it did not.
var refusedFlag = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`error: (?:unknown option '|option '(?:-\w, )?)(-[^\s'=]+)`)
})

// startError names the option that ended a CLI that refused its command line; other errors stay as they are.
func (o *Options) startError(err error) error {
	ended, ok := errors.AsType[*ProcessError](err)
	if !ok {
		return err
	}
	match := refusedFlag().FindStringSubmatch(ended.StderrTail)
	if match == nil {
		return err
	}
	if i := slices.IndexFunc(o.ExtraArgs, func(arg string) bool { return longFlag(arg) == longFlag(match[1]) }); i >= 0 {
		return fmt.Errorf("%w: %w", &OptionError{fmt.Sprintf("ExtraArgs[%d]", i), "this CLI refuses " + match[1]}, err)
	}
	if match[1] == awaitInitialize && o.resumes() && !o.PluginsInInitialize {
		return fmt.Errorf("%w: %w: %w", ErrTooOld, &OptionError{"Resume", "this CLI runs deferred calls before it has its hooks, and whether the conversation has one cannot be seen from here; " +
			"set Store, or use CLI " + PinnedVersion}, err)
	}
	option := &OptionError{optionOfFlag(match[1]), fmt.Sprintf("this CLI refuses %s; it needs a newer one, such as %s", match[1], PinnedVersion)}
	return fmt.Errorf("%w: %w: %w", ErrTooOld, option, err)
}

// checkSandbox makes sure that the CLI has taken every key of the sandbox: one that it cannot read
// makes it drop a block, or the whole sandbox, and go on without.
func (c *Client) checkSandbox(ctx context.Context) error {
	if c.opts.Sandbox == nil {
		return nil
	}
	want, err := c.opts.Sandbox.object()
	if err != nil {
		return &OptionError{"Sandbox", err.Error()}
	}
	report, err := c.Settings(ctx)
	if err != nil {
		return fmt.Errorf("claude: asking whether the sandbox is in force: %w", err)
	}
	var effective struct {
		Sandbox map[string]any `json:"sandbox"`
	}
	if err := json.Unmarshal(report.Effective, &effective); err != nil {
		return fmt.Errorf("claude: asking whether the sandbox is in force: %w", err)
	}
	if lost := lostKey("Sandbox", want, effective.Sandbox); lost != "" {
		return &OptionError{"Sandbox", "the CLI did not take " + lost + "; check its value"}
	}
	return nil
}

// lostKey is the path of a key of want that got lacks, or empty. Values may differ: other settings can be stricter.
func lostKey(path string, want, got map[string]any) string {
	if got == nil {
		return path
	}
	for _, key := range sortedKeys(want) {
		value, there := got[key]
		at := path + "." + key
		if !there {
			return at
		}
		inner, ok := want[key].(map[string]any)
		if !ok {
			continue
		}
		theirs, _ := value.(map[string]any)
		if lost := lostKey(at, inner, theirs); lost != "" {
			return lost
		}
	}
	return ""
}
