// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/tool"
)

// capabilities are what --allow, --ask and --deny name.
var capabilities = []tool.Capability{tool.FileWrite, tool.ShellExecute, tool.NetworkAccess}

func capabilityNames() []string {
	var names []string
	for _, c := range capabilities {
		names = append(names, c.String())
	}
	return names
}

// findCapability finds a capability by its name, in capitals or small letters.
func findCapability(name string) (tool.Capability, error) {
	for _, c := range capabilities {
		if strings.EqualFold(name, c.String()) {
			return c, nil
		}
	}
	return 0, advice.Wrap(fmt.Errorf("there is no capability %q", name), "choose among %s", strings.Join(capabilityNames(), ", "))
}

// permissionFlags collect the mode, and the capabilities of the three other flags, each once.
type permissionFlags struct {
	mode  permissionMode
	given map[tool.Capability]string // the flag that names it
}

// A permissionMode is the mode that --permission-mode names.
type permissionMode gate.Mode

func (m *permissionMode) Type() string   { return "mode" }
func (m *permissionMode) String() string { return string(*m) }

func (m *permissionMode) Set(value string) error {
	if mode := gate.Mode(value); mode != gate.ModeAsk && mode != gate.ModeAllow {
		return advice.Wrap(fmt.Errorf("there is no mode %q", value),
			"choose %s, to be asked, or %s, to allow inside the cell", gate.ModeAsk, gate.ModeAllow)
	}
	*m = permissionMode(value)
	return nil
}

var levels = map[string]gate.Level{"allow": gate.LevelAllow, "ask": gate.LevelAsk, "deny": gate.LevelDeny}

func (p *permissionFlags) flag(name string) *permissionFlag { return &permissionFlag{name, p} }

func (p *permissionFlags) level(c tool.Capability) gate.Level { return levels[p.given[c]] }

type permissionFlag struct {
	name string
	all  *permissionFlags
}

func (f *permissionFlag) Type() string { return "capability" }

func (f *permissionFlag) String() string {
	if f.all == nil { // the zero value, by which a default is recognised
		return ""
	}
	var names []string
	for _, c := range capabilities {
		if f.all.given[c] == f.name {
			names = append(names, c.String())
		}
	}
	return strings.Join(names, ",")
}

func (f *permissionFlag) Set(value string) error {
	names := splitList(value)
	if len(names) == 0 {
		return advice.Wrap(errors.New("it names no capability"), "choose among %s", strings.Join(capabilityNames(), ", "))
	}
	for _, name := range names {
		c, err := findCapability(name)
		if err != nil {
			return err
		}
		if other := f.all.given[c]; other != "" && other != f.name {
			return advice.Wrap(fmt.Errorf("--%s names %s already", other, c), "name it in one of the two")
		}
		if f.all.given == nil {
			f.all.given = map[tool.Capability]string{}
		}
		f.all.given[c] = f.name
	}
	return nil
}

// A toolList is a list of tool names. Nil means that the flag is not set.
type toolList []string

func (l *toolList) Type() string   { return "names" }
func (l *toolList) String() string { return strings.Join(*l, ",") }

func (l *toolList) Set(value string) error {
	if *l == nil {
		*l = toolList{}
	}
	for _, name := range splitList(value) {
		if _, err := gate.New(gate.KnowsAgent(catalogue.Tools()), gate.Rules(gate.RuleOptions{Allow: []string{name}})); err != nil {
			return advice.Wrap(fmt.Errorf("%q is no tool", name),
				`write the name of a tool, or a tool with its argument: Read, "Bash(git log *)"`)
		}
		*l = append(*l, name)
	}
	return nil
}

// checkTools refuses names in --tools that no tool has. The names of the project file do not count: its author is not trusted.
func (o *runOptions) checkTools() error {
	known := tool.KnownNames{Catalogue: catalogue.Tools(), Servers: []string{tool.DefaultServerName}, Also: o.unknown, Option: "--unknown-tools"}
	if f := o.file.agent; f != nil {
		known.Also = slices.Concat(known.Also, f.Tools.Unknown)
		known.Servers = append(known.Servers, slices.Collect(maps.Keys(f.Servers))...)
	}
	if err := known.Check(o.tools...); err != nil {
		return usageError("--tools: %w", err)
	}
	return nil
}

// unknownTools are names that lists may have although no tool has them.
func (o *runOptions) unknownTools() []string {
	all := slices.Clone([]string(o.unknown))
	if f := o.file.agent; f != nil {
		all = append(all, f.Tools.Unknown...)
	}
	if o.project != nil {
		all = append(all, o.project.Tools.Unknown...)
	}
	return all
}

// splitList divides a list at its commas, but not at those in parentheses: Bash(git log, git show).
func splitList(list string) []string {
	depth := 0
	parts := strings.FieldsFunc(list, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return r == ',' && depth <= 0
	})
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return slices.DeleteFunc(parts, func(part string) bool { return part == "" })
}

// A textFlag is a text that must not be empty. An empty one is most often a variable of a shell that is
// not set, and to go on without it does something else than was meant: another model, a new conversation.
type textFlag struct {
	text *string
	kind string
}

func (f textFlag) Type() string { return f.kind }

func (f textFlag) String() string {
	if f.text == nil { // the zero value, by which a default is recognised
		return ""
	}
	return *f.text
}

func (f textFlag) Set(value string) error {
	if strings.TrimSpace(value) == "" {
		return advice.Wrap(errors.New("it is empty"), "give it a value, or leave the flag out")
	}
	*f.text = value
	return nil
}

var errNotAboveZero = advice.Wrap(errors.New("it must be above zero"), "leave the flag out for no limit")

// A turnLimit is a number of model calls. Zero means no limit.
type turnLimit int

func (l *turnLimit) Type() string   { return "number" }
func (l *turnLimit) String() string { return unlessZero(int(*l)) }

func (l *turnLimit) Set(value string) error {
	n, err := strconv.Atoi(value)
	switch {
	case err != nil:
		return errors.New("not an integer")
	case n <= 0:
		return errNotAboveZero
	}
	*l = turnLimit(n)
	return nil
}

// A dollarLimit is an amount of US dollars. Zero means no limit.
type dollarLimit float64

func (l *dollarLimit) Type() string   { return "amount" }
func (l *dollarLimit) String() string { return unlessZero(float64(*l)) }

func (l *dollarLimit) Set(value string) error {
	usd, err := strconv.ParseFloat(strings.TrimPrefix(value, "$"), 64)
	switch {
	case err != nil || math.IsNaN(usd) || math.IsInf(usd, 1):
		return advice.Wrap(errors.New("it is no amount"), "give dollars, like 0.50")
	case usd <= 0:
		return errNotAboveZero
	}
	*l = dollarLimit(usd)
	return nil
}

// A timeLimit is a time that a run may take. Zero means no limit.
type timeLimit time.Duration

func (l *timeLimit) Type() string   { return "time" }
func (l *timeLimit) String() string { return unlessZero(time.Duration(*l)) }

func (l *timeLimit) Set(value string) error {
	d, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return advice.Wrap(errors.New("it is not a time"), "give a number and a unit, like 90s or 10m")
	case d <= 0:
		return errNotAboveZero
	}
	*l = timeLimit(d)
	return nil
}

// unlessZero is the text of a value. Flags show a zero value as no default.
func unlessZero[T comparable](v T) string {
	var zero T
	if v == zero {
		return ""
	}
	return fmt.Sprint(v)
}

// goWords map the flag package's errors about invalid values to the words of the user.
var goWords = []struct {
	found      *regexp.Regexp
	with, next string
}{
	{regexp.MustCompile(`strconv\.ParseBool: .*`), "it is neither true nor false", ""},
	{regexp.MustCompile(`time: .*`), "it is not a time", "give a number and a unit, like 90s or 10m"},
}

// flagError states an error of the flags in words for people.
func flagError(cmd *cobra.Command, err error) error {
	text := err.Error()
	next := advice.Of(err)
	for _, words := range goWords {
		if words.found.MatchString(text) {
			text, next = words.found.ReplaceAllString(text, words.with), words.next
		}
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && next == "" {
		next = nearestFlags(cmd, unknown.GetSpecifiedName())
	}
	return advice.Wrap(usageError("%s", text), "%s", cmp.Or(next, cmd.CommandPath()+" --help shows the flags"))
}

// nearestFlags advises the flags of a command that a misspelled one may mean. Empty means that none is near.
func nearestFlags(cmd *cobra.Command, name string) string {
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			known = append(known, f.Name)
		}
	})
	near := ident.Nearest(name, known)
	if len(near) == 0 {
		return ""
	}
	return "write --" + strings.Join(near, " or --") + "; " + cmd.CommandPath() + " --help shows the flags"
}

// refuseUnknown makes an unknown argument of help and completion an error, not a success that prints the help.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				return err
			}
		case "completion":
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}
