// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"errors"
	"fmt"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
)

// A Config is everything that can be configured about Claude Code, for [FromConfig]. The zero value is
// ready to use: [claudecell.DefaultModel] with high reasoning, all tools, no questions, a cell without
// network for tools.
//
// What the CLI cannot do is refused, with the name of the field.
type Config struct {
	Client ClientConfig
	Model  ModelConfig
	// AllowedTools are the tools that there are where a request does not say; nil means all. Tools of the
	// request itself are always among them. A name has no argument here: those are for
	// [agent.Settings.Tools], whose Host enforces them.
	AllowedTools []string
	// DisallowedTools are taken away, beside those of the request.
	DisallowedTools []string
	// Base has everything else that the CLI can be told. Where the fields above say nothing, Base holds
	// before their defaults. Where both say something they must say the same; lists and variables add up.
	Base *claude.Options
}

// A ClientConfig is how the CLI works. The zero value is ready to use.
type ClientConfig struct {
	// PermissionMode is what the CLI asks about. Empty means [claude.ModeBypassPermissions]: nothing. A
	// host of the request is asked in every mode.
	PermissionMode claude.PermissionMode
	// Dir is the working directory of requests that name none. Empty means the current one.
	Dir string
	// AddDirs are further folders that tools may use.
	AddDirs []string
	// Env are variables for the CLI. Those of Isolation.Env win.
	Env map[string]string
	// SettingSources are the settings files that are read. Nil means "user", those of the home that is made
	// for the run. "project" and "local" are refused: the agent can write them.
	SettingSources []string
	// Sandbox are walls in the words of the CLI's own sandbox settings; see [claudecell.FromSettings]. Nil
	// leaves them to Isolation, and with both, Isolation must say nothing about walls and network.
	Sandbox *claude.Sandbox
	// MaxTurns limits the model calls of one prompt. Zero means no limit.
	MaxTurns int
	// MaxBudgetUSD limits the cost of one run, in dollars. Zero means no limit.
	MaxBudgetUSD float64
	// PartialMessages yields text also while it is written.
	PartialMessages bool
	// ShowStderr also writes what the CLI writes to standard error to that of this program. Its end is part
	// of errors either way.
	ShowStderr bool
	// ContinueAfterOutput is refused: the CLI ends the turn with the structured answer, and nothing keeps it
	// from that.
	ContinueAfterOutput bool
	// Isolation is how the CLI is kept apart from the machine. Nil means the default one. To have no walls is
	// to say so: [isolation.Isolation.Weakest] with [isolation.LevelHost].
	Isolation *isolation.Isolation
	// Betas are beta features of the API.
	Betas []string
	// NoTranscript gives nobody the lines of the conversation, also where the request asks for them.
	NoTranscript bool
}

// A ModelConfig is which model works, and how. The zero value is ready to use.
type ModelConfig struct {
	// Model is a name at Anthropic or an id at Bedrock; either is turned into the form that the
	// authentication needs. Empty means [claudecell.DefaultModel].
	Model string
	// Reasoning is how hard the model thinks. Empty means ReasoningHigh, or nothing for a model that is known
	// to take no effort. What a model does not take is refused.
	Reasoning Reasoning
	// MaxTokens bounds each answer. Zero means the CLI's own bound for the model.
	MaxTokens int

	// Temperature and the fields below are refused: the CLI has no way to pass them on.
	Temperature, TopP                 *float64
	Seed                              *int64
	Stop                              []string
	PresencePenalty, FrequencyPenalty *float64
}

// FromConfig makes an adapter. Everything that is wrong with the configuration is told at once, and
// nothing is started; see [New] for what an adapter does.
func FromConfig(c Config) (*Adapter, error) {
	b := &build{config: c, base: orZero(c.Base), isolation: c.Client.Isolation}
	b.client()
	b.walls()
	b.tools()
	b.refused()
	b.model()
	if len(b.errs) > 0 {
		return nil, errors.Join(b.errs...)
	}
	if err := b.base.Validate(); err != nil {
		return nil, fmt.Errorf("claudecode: Config: %w", err)
	}
	a := New(&b.base).In(b.isolation)
	a.said = b.said
	return a, nil
}

// defaults are what a configuration says that is no option of the CLI.
type defaults struct {
	allowed, denied []string // AllowedTools, nil if they were not given, and DisallowedTools
	maxBudgetUSD    float64
	noTranscript    bool
	dir             string // Client.Dir
	effort          bool   // nobody asked for the effort of the base
}

// under is a request with what the configuration says where the request says nothing.
func (d defaults) under(req agent.Request) agent.Request {
	if req.Tools == nil && d.allowed != nil {
		req.Tools = append([]string{}, d.allowed...)
		if req.Registry != nil {
			req.Tools = append(req.Tools, toolsOf(req).prefix())
		}
	}
	if len(d.denied) > 0 {
		req.DisallowedTools = append(append([]string{}, d.denied...), req.DisallowedTools...)
	}
	if req.MaxBudgetUSD == 0 {
		req.MaxBudgetUSD = d.maxBudgetUSD
	}
	if d.noTranscript {
		req.Transcript = nil
	}
	return req
}

// checkEffort refuses an effort that the model of a run does not take. One that nobody asked for is left
// out instead.
func (d defaults) checkEffort(o *claude.Options, req agent.Request) error {
	reason := unheeded(o)
	if reason != "" && d.effort && req.Effort == "" {
		o.Effort = ""
		reason = unheeded(o)
	}
	switch {
	case reason == "":
		return nil
	case req.Effort == "":
		return refusal("Model", "%s", reason)
	}
	return refusal("Effort", "%s", reason)
}
