// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// A build makes an adapter of a configuration.
type build struct {
	config    Config
	base      claude.Options
	isolation *isolation.Isolation
	said      defaults
	errs      []error
}

// refuse adds what is wrong with a field.
func (b *build) refuse(field, format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf("claudecode: Config.%s: %s", field, fmt.Sprintf(format, args...)))
}

// settle sets an option to what a field says, else to what Base says, else to its default.
func settle[T comparable](b *build, field string, option *T, said, byDefault T) {
	var nothing T
	switch {
	case said == nothing:
		*option = cmp.Or(*option, byDefault)
	case *option != nothing && *option != said:
		b.refuse(field, "is %v, and Base says %v\n  next: say it once", said, *option)
	default:
		*option = said
	}
}

func (b *build) client() {
	c, o := b.config.Client, &b.base
	modes := []claude.PermissionMode{
		"", claude.ModeDefault, claude.ModeAcceptEdits, claude.ModePlan, claude.ModeBypassPermissions, claude.ModeDontAsk, claude.ModeAuto,
	}
	if !slices.Contains(modes, c.PermissionMode) {
		b.refuse("Client.PermissionMode", "%q is not one of %s", c.PermissionMode, words(modes[1:]))
	} else {
		settle(b, "Client.PermissionMode", &o.PermissionMode, c.PermissionMode, claude.ModeBypassPermissions)
	}
	settle(b, "Client.Dir", &o.Dir, c.Dir, "")
	b.said.dir = c.Dir
	b.limits()
	b.sources()
	o.AddDirs = slices.Concat(o.AddDirs, c.AddDirs)
	o.Betas = slices.Concat(o.Betas, c.Betas)
	o.PartialMessages = o.PartialMessages || c.PartialMessages
	if c.ShowStderr {
		next := o.Stderr
		o.Stderr = func(line string) {
			fmt.Fprintln(os.Stderr, line)
			if next != nil {
				next(line)
			}
		}
	}
	b.said.noTranscript = c.NoTranscript
}

func (b *build) limits() {
	c, o := b.config.Client, &b.base
	if c.MaxTurns < 0 {
		b.refuse("Client.MaxTurns", "%d is below zero\n  next: leave it out for no limit", c.MaxTurns)
	} else {
		settle(b, "Client.MaxTurns", &o.MaxTurns, c.MaxTurns, 0)
	}
	if c.MaxBudgetUSD < 0 || math.IsNaN(c.MaxBudgetUSD) || math.IsInf(c.MaxBudgetUSD, 0) {
		b.refuse("Client.MaxBudgetUSD", "%v is no number of dollars\n  next: leave it out for no limit", c.MaxBudgetUSD)
		return
	}
	if o.MaxBudgetUSD != nil {
		b.said.maxBudgetUSD = *o.MaxBudgetUSD
	}
	settle(b, "Client.MaxBudgetUSD", &b.said.maxBudgetUSD, c.MaxBudgetUSD, 0)
}

// sources are the settings files that are read.
func (b *build) sources() {
	said := b.config.Client.SettingSources
	for _, source := range said {
		switch source {
		case "user":
		case "project", "local":
			b.refuse("Client.SettingSources", "%s settings are in the workspace, where the agent can write them\n  next: put them into Base.Settings", source)
		default:
			b.refuse("Client.SettingSources", "%q is not one of user, project, local", source)
		}
	}
	switch {
	case said != nil:
		b.base.SettingSources = slices.Clone(said)
	case b.base.SettingSources == nil:
		b.base.SettingSources = claudecell.SettingSources()
	}
}

// walls are those of the isolation, with what other fields say about them.
func (b *build) walls() {
	c := b.config.Client
	env := maps.Clone(c.Env)
	if b.config.Model.MaxTokens > 0 {
		set(&env, maxTokensVariable, strconv.Itoa(b.config.Model.MaxTokens))
	}
	if b.base.Spawner != nil && c.Isolation == nil && (c.Sandbox != nil || len(env) > 0) {
		b.refuse("Client.Isolation", "is needed for Sandbox, Env and MaxTokens where Base has a Spawner, which is the caller's own way to keep the CLI apart\n  next: leave the Spawner out, or put variables into Base.Env")
		return
	}
	if c.Sandbox != nil {
		b.sandbox(*c.Sandbox)
	}
	if len(env) > 0 {
		b.variables(env)
	}
}

// own is an isolation that may be changed.
func (b *build) own() *isolation.Isolation {
	own := orZero(b.isolation)
	b.isolation = &own
	return b.isolation
}

func (b *build) sandbox(settings claude.Sandbox) {
	i := b.own()
	if i.Sandbox != nil || i.Network != nil {
		b.refuse("Client.Sandbox", "Isolation has walls of its own\n  next: say it once")
		return
	}
	var err error
	if i.Sandbox, i.Network, err = claudecell.FromSettings(settings); err != nil {
		b.refuse("Client.Sandbox", "%v", err)
	}
}

func (b *build) variables(env map[string]string) {
	i := b.own()
	maps.Copy(env, i.Env)
	i.Env = env
	if err := claudecell.ValidateEnv(i.Env); err != nil {
		b.refuse("Client.Env", "%v", err)
	}
}

func (b *build) tools() {
	for _, name := range b.config.AllowedTools {
		if strings.Contains(name, "(") {
			b.refuse("AllowedTools", "%q has an argument, which only a Host enforces\n  next: put it into Settings.Tools", name)
		}
	}
	b.said.allowed = slices.Clone(b.config.AllowedTools)
	b.said.denied = slices.Clone(b.config.DisallowedTools)
}

// errOutputEnds is why ContinueAfterOutput is refused.
var errOutputEnds = errors.New("the CLI ends the turn with the structured answer, and ignores hooks that say otherwise\n" +
	"  next: leave it out; to have an answer refused before it counts, use drover.Options.Completion or agent.Hooks.Answering")

// refused are fields that nothing can be done about. Those of the model are told together.
func (b *build) refused() {
	if b.config.Client.ContinueAfterOutput {
		b.refuse("Client.ContinueAfterOutput", "%v", errOutputEnds)
	}
	m := b.config.Model
	given := map[string]bool{
		"FrequencyPenalty": m.FrequencyPenalty != nil, "PresencePenalty": m.PresencePenalty != nil, "Seed": m.Seed != nil,
		"Stop": m.Stop != nil, "Temperature": m.Temperature != nil, "TopP": m.TopP != nil,
	}
	maps.DeleteFunc(given, func(_ string, isGiven bool) bool { return !isGiven })
	if len(given) > 0 {
		names := slices.Sorted(maps.Keys(given))
		b.refuse("Model", "the CLI has no way to pass these on: %s\n  next: leave them out", strings.Join(names, ", "))
	}
}

func words[T ~string](list []T) string {
	var plain []string
	for _, word := range list {
		plain = append(plain, string(word))
	}
	return strings.Join(plain, ", ")
}
