// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/isolation"
)

// A Config is what an adapter can be given beyond the [agent.Settings] of its requests, which have the model, the effort,
// the working directory, the limits and the tools. The zero value is ready to use.
type Config struct {
	// PermissionMode decides what the CLI asks about. Empty means [claude.ModeBypassPermissions]: nothing. A
	// host of the request is asked in every mode.
	PermissionMode claude.PermissionMode
	// AddDirs are further folders that tools may use.
	AddDirs []string
	// Env are variables for the CLI. Those of Isolation.Env win.
	Env map[string]string
	// SettingSources are the settings files that are read. Nil means "user", those of the home that is made
	// for the run. "project" and "local" are refused: the agent can write them.
	SettingSources []string
	// Sandbox is the isolation in the terms of the CLI's own sandbox settings; see [claudecell.FromSettings]. With
	// Sandbox, Isolation.Sandbox and Isolation.Network must be nil.
	Sandbox *claude.Sandbox
	// Isolation is how the CLI is isolated from the machine. Nil means the default one. To run without isolation, set
	// [isolation.Isolation.Weakest] to [isolation.LevelHost].
	Isolation *isolation.Isolation
	// ShowStderr also writes the CLI's standard error to that of this program. Its end is part of errors either way.
	ShowStderr bool
	// Betas are beta features of the API.
	Betas []string
	// NoTranscript ignores [agent.Request.Transcript].
	NoTranscript bool
	// MaxTokens bounds each answer. Zero means the CLI's own bound for the model.
	MaxTokens int

	// ContinueAfterOutput is refused: the CLI ends the turn with the structured answer.
	ContinueAfterOutput bool
	// Temperature and the fields below are refused: the CLI has no way to pass them on.
	Temperature, TopP                 *float64
	Seed                              *int64
	Stop                              []string
	PresencePenalty, FrequencyPenalty *float64

	// Base has all other options of the CLI. The fields above win over the defaults of Base; where both are set they must
	// be equal. Lists and variables are joined. Requests win over its Model, Effort and limits.
	Base *claude.Options
}

// FromConfig makes an adapter. Where neither a request nor Base names a model or an effort, the model is
// [claudecell.DefaultModel], and the effort is high for models that take it. All problems of the configuration are
// reported together, and nothing is started; see [New] for what an adapter does.
func FromConfig(c Config) (*Adapter, error) {
	b := &build{config: c, base: orZero(c.Base), isolation: c.Isolation}
	b.client()
	b.isolate()
	b.refused()
	if len(b.errs) > 0 {
		return nil, errors.Join(b.errs...)
	}
	b.base.Model = cmp.Or(b.base.Model, claudecell.DefaultModel)
	if err := unheeded(&b.base); err != nil {
		return nil, fmt.Errorf("claudecode: Config.Base: %w", err)
	}
	if err := b.base.Validate(); err != nil {
		return nil, fmt.Errorf("claudecode: Config: %w", err)
	}
	a := New(&b.base).In(b.isolation)
	a.noTranscript, a.highEffort = c.NoTranscript, true
	return a, nil
}

type build struct {
	config    Config
	base      claude.Options
	isolation *isolation.Isolation
	errs      []error
}

func (b *build) refuse(field string, err error) {
	b.errs = append(b.errs, fmt.Errorf("claudecode: Config.%s: %w", field, err))
}

func (b *build) client() {
	c, o := b.config, &b.base
	modes := []claude.PermissionMode{
		"", claude.ModeDefault, claude.ModeAcceptEdits, claude.ModePlan, claude.ModeBypassPermissions, claude.ModeDontAsk, claude.ModeAuto,
	}
	switch {
	case !slices.Contains(modes, c.PermissionMode):
		b.refuse("PermissionMode", fmt.Errorf("%q is not one of %s", c.PermissionMode, words(modes[1:])))
	case c.PermissionMode != "" && o.PermissionMode != "" && o.PermissionMode != c.PermissionMode:
		b.refuse("PermissionMode", advice.Wrap(fmt.Errorf("%s differs from %s in Base", c.PermissionMode, o.PermissionMode), "set one of them"))
	default:
		o.PermissionMode = cmp.Or(c.PermissionMode, o.PermissionMode, claude.ModeBypassPermissions)
	}
	b.sources()
	o.AddDirs = slices.Concat(o.AddDirs, c.AddDirs)
	o.Betas = slices.Concat(o.Betas, c.Betas)
	if c.ShowStderr {
		next := o.Stderr
		o.Stderr = func(line string) {
			fmt.Fprintln(os.Stderr, line)
			if next != nil {
				next(line)
			}
		}
	}
}

func (b *build) sources() {
	named := b.config.SettingSources
	for _, source := range named {
		switch source {
		case "user":
		case "project", "local":
			b.refuse("SettingSources", advice.Wrap(fmt.Errorf("%s settings are in the workspace, where the agent can write them", source), "put them into Base.Settings"))
		default:
			b.refuse("SettingSources", fmt.Errorf("%q is not one of user, project, local", source))
		}
	}
	switch {
	case named != nil:
		b.base.SettingSources = slices.Clone(named)
	case b.base.SettingSources == nil:
		b.base.SettingSources = claudecell.SettingSources()
	}
}

// maxTokensVariable is the variable of the CLI that limits the length of an answer.
const maxTokensVariable = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"

// isolate makes the isolation of Isolation, Sandbox, Env and MaxTokens.
func (b *build) isolate() {
	c := b.config
	env := maps.Clone(c.Env)
	if c.MaxTokens > 0 {
		set(&env, maxTokensVariable, strconv.Itoa(c.MaxTokens))
	}
	if c.Sandbox == nil && len(env) == 0 {
		return
	}
	if b.base.Spawner != nil && c.Isolation == nil {
		b.refuse("Isolation", advice.Wrap(errors.New("is needed for Sandbox, Env and MaxTokens where Base has a Spawner, which isolates the CLI in its own way"), "leave the Spawner out, or put variables into Base.Env"))
		return
	}
	own := orZero(c.Isolation)
	b.isolation = &own
	switch {
	case c.Sandbox == nil:
	case own.Sandbox != nil || own.Network != nil:
		b.refuse("Sandbox", advice.Wrap(errors.New("the Isolation has a Sandbox or Network of its own"), "set one of them"))
	default:
		var err error
		if own.Sandbox, own.Network, err = claudecell.FromSettings(*c.Sandbox); err != nil {
			b.refuse("Sandbox", err)
		}
	}
	if len(env) > 0 {
		maps.Copy(env, own.Env)
		own.Env = env
		if err := claudecell.ValidateEnv(env); err != nil {
			b.refuse("Env", err)
		}
	}
}

var errOutputEnds = advice.Wrap(errors.New("the CLI ends the turn with the structured answer, and ignores hooks that say otherwise"), "leave it out; to have an answer refused before it counts, use drover.Options.Completion or agent.Hooks.Answering")

// refused reports fields that the CLI cannot honour, those of the model together.
func (b *build) refused() {
	c := b.config
	if c.ContinueAfterOutput {
		b.refuse("ContinueAfterOutput", errOutputEnds)
	}
	if c.MaxTokens < 0 {
		b.refuse("MaxTokens", advice.Wrap(fmt.Errorf("%d is below zero", c.MaxTokens), "leave it out for the CLI's own bound"))
	}
	given := map[string]bool{
		"FrequencyPenalty": c.FrequencyPenalty != nil, "PresencePenalty": c.PresencePenalty != nil, "Seed": c.Seed != nil,
		"Stop": c.Stop != nil, "Temperature": c.Temperature != nil, "TopP": c.TopP != nil,
	}
	maps.DeleteFunc(given, func(_ string, isGiven bool) bool { return !isGiven })
	if len(given) > 0 {
		names := strings.Join(slices.Sorted(maps.Keys(given)), ", ")
		b.errs = append(b.errs, advice.Wrap(fmt.Errorf("claudecode: Config: the CLI has no way to pass these on: %s", names), "leave them out"))
	}
}

func words[T ~string](list []T) string {
	var plain []string
	for _, word := range list {
		plain = append(plain, string(word))
	}
	return strings.Join(plain, ", ")
}

// withDefaults returns a request with Base's limit in dollars, if it has none, without a transcript that is switched off.
func (a *Adapter) withDefaults(req agent.Request) agent.Request {
	if own := orZero(req.Budget); own.MaxCostUSD == 0 && a.base.MaxBudgetUSD != nil {
		own.MaxCostUSD = *a.base.MaxBudgetUSD
		req.Budget = &own
	}
	if a.noTranscript {
		req.Transcript = nil
	}
	return req
}

// modelName is the name of a model in the form that the authentication needs. Where no authentication is found it is
// Anthropic's, and the run reports what is missing.
func (a *Adapter) modelName(model string) string {
	i := orZero(a.isolation)
	if i.Upstream != nil {
		if i.Upstream.Wire() == gateway.WireBedrock {
			return claudecell.ToBedrockModelID(model, gateway.RegionOf(i.Upstream))
		}
		return claudecell.ToAnthropicModelName(model)
	}
	if i.Host.Environ == nil { // as in a cell
		i.Host.Environ = a.base.Environ
	}
	if found, err := claudecell.Authenticate(&i); err == nil && found.Bedrock != nil {
		return claudecell.ToBedrockModelID(model, found.Bedrock.Region)
	}
	return claudecell.ToAnthropicModelName(model)
}
