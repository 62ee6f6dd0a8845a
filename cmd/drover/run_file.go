// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	root "github.com/drover-agents/drover" // tests have a function of its name
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agentfile"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/tool"
)

// fileFlags choose an agent that is kept as a file.
type fileFlags struct {
	path  string
	args  argList
	roots pathList
	// agent is the content of the file. It is nil without one.
	agent *agentfile.File
	// lowered are the flags whose limits are those of a file, with its key and path.
	lowered map[string]string
}

type argList map[string]string

func (l *argList) Type() string { return "name=value" }

func (l *argList) String() string {
	var all []string
	for name, value := range *l {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

func (l *argList) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if name = strings.TrimSpace(name); !ok || name == "" {
		return advice.Wrap(errors.New("it is no argument"), "write --arg name=value, or --arg name=@file for the text of a file")
	}
	if _, twice := (*l)[name]; twice {
		return advice.Wrap(fmt.Errorf("argument %s given twice", name), "give it once")
	}
	if value == "@-" && slices.Contains(slices.Collect(maps.Values(*l)), fromInput) {
		return advice.Wrap(errors.New("standard input is another argument already"), "put one of the two texts into a file: --arg %s=@file", name)
	}
	value, err := argValue(value)
	if err != nil {
		return err
	}
	if problem := safetext.PromptProblem(value); problem != "" && value != fromInput {
		return advice.Wrap(fmt.Errorf("the value of %s %s", name, problem), "give the value as UTF-8 text")
	}
	if *l == nil {
		*l = argList{}
	}
	(*l)[name] = value
	return nil
}

// fromInput is the value of an argument until standard input was read for it. No command line has it.
const fromInput = "\x00"

// argValue is a value as it is meant: @file is the text of a file, @- standard input, and @@ is @.
func argValue(text string) (string, error) {
	if text == "@-" {
		return fromInput, nil
	}
	path, is := strings.CutPrefix(text, "@")
	if !is || strings.HasPrefix(path, "@") {
		return path, nil
	}
	content, err := plainfile.Read(path, maxTextFile)
	if err != nil {
		return "", advice.Wrap(err, "name a file, or write @@ for a value that begins with @")
	}
	return strings.TrimSuffix(string(content), "\n"), nil
}

// checkFile refuses flags that mean something only with a file, or nothing with one.
func (o *runOptions) checkFile() error {
	switch {
	case o.file.path == "" && len(o.file.args) > 0:
		return advice.Wrap(usageError("--arg is for an agent that is kept as a file"), "name it with -f")
	case o.file.path == "" && len(o.file.roots) > 0:
		return advice.Wrap(usageError("--allow-root is for an agent that is kept as a file"), "name it with -f")
	case o.file.path != "" && o.schemaFile != "":
		return advice.Wrap(usageError("--schema and -f exclude each other: the file declares the answer"),
			"write it under output in %s", o.file.path)
	}
	return nil
}

// loadFile reads the agent, checks its arguments and applies the flags to it. Without -f it does nothing.
func (o *runOptions) loadFile() error {
	if o.file.path == "" {
		return nil
	}
	if err := o.readFile(); err != nil {
		return err
	}
	if !slices.Contains(slices.Collect(maps.Values(o.file.args)), fromInput) { // else when that was read
		if err := o.checkArguments(); err != nil {
			return err
		}
	}
	return o.applyFile()
}

// readFile reads the agent.
func (o *runOptions) readFile() error {
	f, err := agentfile.Load(o.file.path)
	if err != nil {
		return usageError("-f: %w", err)
	}
	for _, root := range o.file.roots {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			return advice.Wrap(usageError("--allow-root: %s is not a folder", root), "name a folder that is there")
		}
	}
	f.Roots = o.file.roots
	o.file.agent = f
	return nil
}

// applyFile joins what the agent and the flags say.
func (o *runOptions) applyFile() error {
	f := o.file.agent
	o.model = cmp.Or(o.model, f.Model)
	o.lowerLimits(f.Limits, o.file.path)
	return errors.Join(o.checkPermissions(), o.narrowTools(), o.joinIsolation(), o.joinMounts())
}

// checkArguments refuses arguments that the agent does not have, or cannot have.
func (o *runOptions) checkArguments() error {
	_, err := o.file.agent.Prompt(o.file.args)
	switch {
	case errors.Is(err, agentfile.ErrArgs):
		return advice.Wrap(usageError("%w", err), "give arguments as --arg name=value")
	case err != nil:
		return usageError("-f: %w", err)
	}
	return nil
}

// lowerLimits takes the smaller of two limits each.
func (o *runOptions) lowerLimits(l agentfile.Limits, path string) {
	lower(o, &o.maxTurns, turnLimit(l.Turns), "--max-turns", "limits.turns of "+path)
	lower(o, &o.maxUSD, dollarLimit(l.USD), "--max-usd", "limits.usd of "+path)
	lower(o, &o.maxTokens, turnLimit(l.Tokens), "--max-tokens", "limits.tokens of "+path)
	lower(o, &o.timeout, timeLimit(l.Time), "--timeout", "limits.time of "+path)
}

func lower[T ~int | ~float64 | ~int64](o *runOptions, limit *T, other T, flag, key string) {
	if other > 0 && (*limit == 0 || other < *limit) {
		*limit = other
		if o.file.lowered == nil {
			o.file.lowered = map[string]string{}
		}
		o.file.lowered[flag] = key
	}
}

// limitName is what set a limit: a flag, or the file.
func (o *runOptions) limitName(flag string) string { return cmp.Or(o.file.lowered[flag], flag) }

// filePolicy is the policy of the file, empty without one.
func (o *runOptions) filePolicy() agentfile.Policy {
	if o.file.agent == nil {
		return agentfile.Policy{}
	}
	return o.file.agent.Policy
}

func (o *runOptions) fileLevel(c tool.Capability) gate.Level {
	p := o.filePolicy()
	switch c {
	case tool.FileWrite:
		return p.FileWrite
	case tool.ShellExecute:
		return p.ShellExecute
	}
	return p.NetworkAccess
}

// effectivePermissions are those of the flags, or else of the file.
func (o *runOptions) effectivePermissions() *gate.Permissions {
	level := func(c tool.Capability) gate.Level { return cmp.Or(o.permissions.level(c), o.fileLevel(c)) }
	return &gate.Permissions{
		Mode:      cmp.Or(gate.Mode(o.permissions.mode), o.filePolicy().Mode),
		FileWrite: level(tool.FileWrite), ShellExecute: level(tool.ShellExecute), NetworkAccess: level(tool.NetworkAccess),
	}
}

// checkPermissions refuses flags that give what the file denies.
func (o *runOptions) checkPermissions() error {
	for _, c := range capabilities {
		if given := o.permissions.level(c); o.fileLevel(c) == gate.LevelDeny && given != gate.LevelUnset && given != gate.LevelDeny {
			return advice.Wrap(usageError("%s denies %s, and --%s does not", o.file.path, c, given),
				"leave the flag out, or change policy in the file")
		}
	}
	return nil
}

// narrowTools refuses tools that the file does not have.
func (o *runOptions) narrowTools() error {
	allowed := o.file.agent.Tools.Allow
	for _, name := range o.tools {
		if allowed != nil && !slices.Contains(allowed, name) {
			return advice.Wrap(usageError("--tools names %s, which is not in tools.allow of %s", name, o.file.path),
				"choose among %s", strings.Join(allowed, ", "))
		}
	}
	return nil
}

// joinIsolation adds the isolation of the file to that of the flags. A level that is weaker than a cell must be
// named by the user: a file cannot choose it by itself.
func (o *runOptions) joinIsolation() error {
	given := isolation.Level(o.isolation.level)
	f := o.file.agent
	if asked := f.Isolation.Level; asked != nil && *asked != given {
		if given == isolation.LevelCell {
			return advice.Wrap(usageError("%s asks for the isolation level %s, which is weaker than a cell", f.Path(), asked), "add --isolation %s if you trust the file", asked)
		}
		return advice.Wrap(usageError("%s asks for the isolation level %s, and --isolation gives %s", f.Path(), asked, given),
			"leave one of the two out")
	}
	if n := f.Isolation.Network; given == isolation.LevelHost && (len(n.Domains) > 0 || n.Localhost) {
		return advice.Wrap(usageError("%s limits what tools may reach, and --isolation host keeps nothing from the agent", f.Path()),
			"leave the flag out, or isolation.network in the file")
	}
	if err := o.checkNetwork(f); err != nil {
		return err
	}
	o.isolation.domains = append(slices.Clone(o.isolation.domains), f.Isolation.Network.Domains...)
	o.isolation.localhost = o.isolation.localhost || f.Isolation.Network.Localhost
	return nil
}

func (o *runOptions) joinMounts() error {
	f := o.file.agent
	w, err := f.Workspace()
	if err != nil {
		return usageError("-f: %w", err)
	}
	if w == nil {
		return nil
	}
	o.files.roots = append(w.AllowedHostRoots, o.files.rootsOfFlags()...) // what becomes a link while it is mounted leads nowhere else
	if slices.ContainsFunc(f.Mounts, func(m agentfile.Mount) bool { return m.ReadOnly }) {
		o.files.only = f.WriteBack()
		for _, m := range o.files.mounts {
			o.files.only = append(o.files.only, mountGlobs(m)...)
		}
		if o.files.writeBack && len(o.files.only) == 0 {
			return advice.Wrap(usageError("--write-back has nothing to bring back: all mounts of %s are readOnly", f.Path()),
				"leave the flag out, or change the file")
		}
	}
	if o.files.file = "mounts of " + f.Path(); len(o.files.mounts) > 0 {
		o.files.file = "--mount and " + o.files.file
	}
	o.files.mounts = append(slices.Clone(o.files.mounts), w.Mounts...)
	return nil
}

func (j *job) evaluation(ctx context.Context, approver gate.Approver) *root.Options {
	o, e, f := &j.options, &root.Options{}, j.options.file.agent
	if f != nil {
		e = f.Options()
	}
	e.Dir, e.Resume, e.PartialText = j.dir, o.resume, approver != nil // a person watches
	e.RunContext.RunID = o.live.served
	if j.workspace != nil {
		e.Workspace = j.workspace.Workspace
	}
	e.Model, e.MaxTurns, e.Budget = o.model, int(o.maxTurns), o.budget()
	e.SideCallsPerTurn = int(o.others)
	e.Deadline = guard.Deadline{}
	if end, limited := ctx.Deadline(); limited {
		e.Deadline = guard.At(end.Add(deadlineGrace))
		if f != nil {
			e.Feedback = f.FeedbackRules(guard.At(end))
		}
	}
	if o.tools != nil {
		e.Tools = o.tools
	}
	e.UnknownTools = o.unknownTools()
	e.Permissions = o.effectivePermissions()
	e.Policies, e.Approver = append(e.Policies, j.policies()...), approver
	e.Telemetry, e.Recorder = j.export.options(), j.recorder
	o.narrow(e)
	return e
}

// deadlineGrace is how much later the evaluation's deadline is than the time limit of the run, which is the one to report.
const deadlineGrace = time.Second
