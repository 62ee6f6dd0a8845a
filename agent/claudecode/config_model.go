// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"slices"

	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/gateway"
)

// A Reasoning is how hard a model thinks.
type Reasoning string

// The reasonings. Not every model takes every one of them; see [Efforts].
const (
	ReasoningLow    Reasoning = "low"
	ReasoningMedium Reasoning = "medium"
	ReasoningHigh   Reasoning = "high"
	ReasoningXHigh  Reasoning = "xhigh"
	ReasoningMax    Reasoning = "max"
	// ReasoningOff switches thinking off. Newer models refuse that.
	ReasoningOff Reasoning = "off"
	// ReasoningByModel says nothing: the model works as the CLI has it by default.
	ReasoningByModel Reasoning = "by model"
)

// maxTokensVariable is how the CLI is told how long an answer may be.
const maxTokensVariable = "CLAUDE_CODE_MAX_OUTPUT_TOKENS"

// model sets the model and how it works.
func (b *build) model() {
	if b.config.Model.MaxTokens < 0 {
		b.refuse("Model.MaxTokens", "%d is below zero\n  next: leave it out for the CLI's own bound", b.config.Model.MaxTokens)
	}
	settle(b, "Model.Model", &b.base.Model, b.config.Model.Model, claudecell.DefaultModel)
	b.base.Model = b.inForm(b.base.Model)
	b.reasoning()
}

// inForm is the name of a model in the form that the authentication needs. One that cannot be found is
// Anthropic's: the run will say what is wrong with it.
func (b *build) inForm(model string) string {
	i := orZero(b.isolation)
	if i.Upstream != nil {
		if i.Upstream.Wire() == gateway.WireBedrock {
			return claudecell.ToBedrockModelID(model, gateway.RegionOf(i.Upstream))
		}
		return claudecell.ToAnthropicModelName(model)
	}
	if i.Host.Environ == nil { // as in a cell
		i.Host.Environ = b.base.Environ
	}
	if found, err := claudecell.Authenticate(&i); err == nil && found.Bedrock != nil {
		return claudecell.ToBedrockModelID(model, found.Bedrock.Region)
	}
	return claudecell.ToAnthropicModelName(model)
}

// reasoning sets the effort, or switches thinking off.
func (b *build) reasoning() {
	const field = "Model.Reasoning"
	o, said := &b.base, b.config.Model.Reasoning
	switch said {
	case "":
		if o.Effort == "" && o.Thinking == nil && slices.Contains(Efforts(o.Model), claude.EffortHigh) {
			o.Effort, b.said.effort = claude.EffortHigh, true
		}
	case ReasoningByModel, ReasoningOff:
		if o.Effort != "" || o.Thinking != nil {
			b.refuse(field, "is %q, and Base has an Effort or Thinking\n  next: say it once", said)
			return
		}
		if said == ReasoningOff {
			o.Thinking = &claude.Thinking{Disabled: true}
		}
	case ReasoningLow, ReasoningMedium, ReasoningHigh, ReasoningXHigh, ReasoningMax:
		settle(b, field, &o.Effort, claude.Effort(said), "")
	default:
		b.refuse(field, "%q is not one of low, medium, high, xhigh, max, off, by model", said)
		return
	}
	if reason := unheeded(o); reason != "" {
		b.refuse(field, "%s", reason)
	}
}
