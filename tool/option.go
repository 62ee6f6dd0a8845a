// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"maps"
	"slices"
	"time"

	"github.com/drover-agents/drover/schema"
)

// An Option sets a property of a tool, in [New] or [Tool.With]: a [Risk], a [Capability], or the result of a With function.
type Option interface{ apply(t *Tool) }

type optionFunc func(t *Tool)

func (f optionFunc) apply(t *Tool) { f(t) }

func (r Risk) apply(t *Tool)       { t.Risk |= r }
func (c Capability) apply(t *Tool) { t.Capabilities |= c }

// WithTags adds tags.
func WithTags(tags ...string) Option {
	return optionFunc(func(t *Tool) { t.Tags = append(t.Tags, tags...) })
}

// WithMetadata adds metadata; see [Tool.Metadata].
func WithMetadata(metadata map[string]any) Option {
	return optionFunc(func(t *Tool) {
		if t.Metadata == nil {
			t.Metadata = map[string]any{}
		}
		maps.Copy(t.Metadata, metadata)
	})
}

// WithID sets namespace and version; see [Tool.ID].
func WithID(namespace, version string) Option {
	return optionFunc(func(t *Tool) { t.Namespace, t.Version = namespace, version })
}

// WithTitle sets the name for people.
func WithTitle(title string) Option { return optionFunc(func(t *Tool) { t.Title = title }) }

// WithExamples adds examples of calls, which must fit the parameters.
func WithExamples(examples ...Example) Option {
	return optionFunc(func(t *Tool) { t.Examples = append(t.Examples, examples...) })
}

// WithTimeout bounds each call.
func WithTimeout(d time.Duration) Option { return optionFunc(func(t *Tool) { t.Timeout = d }) }

// WithConcurrency bounds how many calls run at once in a registry.
func WithConcurrency(n int) Option { return optionFunc(func(t *Tool) { t.Concurrency = n }) }

// WithDeprecation sets why the tool should not be used any more.
func WithDeprecation(text string) Option { return optionFunc(func(t *Tool) { t.Deprecated = text }) }

// WithHiddenValue keeps values out of the model's context: it reads the message alone.
func WithHiddenValue() Option { return optionFunc(func(t *Tool) { t.HideValue = true }) }

// WithAlwaysLoad shows the tool to the model from the start. Without it Claude Code may show the model
// no more than a tool ToolSearch to look for it with, which a gate must then allow.
func WithAlwaysLoad() Option { return optionFunc(func(t *Tool) { t.AlwaysLoad = true }) }

// WithSearchHint helps the model's search for tools to find the tool.
func WithSearchHint(hint string) Option { return optionFunc(func(t *Tool) { t.SearchHint = hint }) }

// WithInput replaces the schema of the parameters. Arguments must fit it and the Go type.
func WithInput(s *schema.Schema) Option { return optionFunc(func(t *Tool) { t.Input = s }) }

// WithOutput replaces the schema of the structured result.
func WithOutput(s *schema.Schema) Option { return optionFunc(func(t *Tool) { t.Output = s }) }

// WithDryRun sets what answers a dry run.
func WithDryRun(h Handler) Option { return optionFunc(func(t *Tool) { t.DryRun = h }) }

// WithName sets the name and the description of a tool that is made of another: see [Tool.With]. Empty texts change nothing.
func WithName(name, description string) Option {
	return optionFunc(func(t *Tool) {
		if name != "" {
			t.Name = name
		}
		if description != "" {
			t.Description = description
		}
	})
}

// With returns a copy of the tool to which the options are applied. Neither changes the other.
func (t *Tool) With(opts ...Option) *Tool {
	with := *t
	with.Tags, with.Metadata, with.Examples = slices.Clone(t.Tags), maps.Clone(t.Metadata), slices.Clone(t.Examples)
	for _, o := range opts {
		o.apply(&with)
	}
	with.settle()
	return &with
}

// settle makes tags of the risks, in the tool and in queries for tags alike, and each tag once.
func (t *Tool) settle() {
	risks := t.Risks()
	tags := slices.Clone(t.Tags) // the caller keeps the list it gave
	for _, p := range []struct {
		risk Risk
		tag  string
	}{{Mutates, tagMutating}, {ReadOnly, tagReadOnly}, {Dangerous, tagDangerous}} {
		if risks.Has(p.risk) {
			tags = append(tags, p.tag)
		}
	}
	var once []string
	for _, tag := range tags {
		if !slices.Contains(once, tag) {
			once = append(once, tag)
		}
	}
	t.Tags = once
}
