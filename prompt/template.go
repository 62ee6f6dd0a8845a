// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"errors"
	"reflect"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/schema"
)

// A Definition is what a template is made of: a Text, or Namespace, Key and at least one section.
type Definition struct {
	// Namespace and Key name the prompt. They are lower-cased; then they have lower-case letters,
	// digits, ".", "_" and "-", begin with a letter or digit, and have at most 64. With a Text both may be
	// empty: they are "drover" and "text" then.
	Namespace, Key string
	// Name is for events, errors and people. Empty means "namespace:key".
	Name string
	// Text is a prompt of one text. It comes before the sections, exactly as it is written: without a heading, and "$" is
	// not a placeholder. It is a section with the key "prompt" that cannot be overridden.
	Text     string
	Sections []*Section
	// Policies come after those of the sections.
	Policies []gate.Policy
	// Params declares structs for all sections.
	Params Params
	// ExtraKeys lets the answer have properties that its type does not know; they are dropped. The
	// zero value has the agent's answer refused for them.
	ExtraKeys bool
	// Output describes the answer of a [JSON] prompt. It is refused for other output types, which describe themselves.
	Output *schema.Schema
}

// A Template is a checked definition of a prompt whose answer is an Out: a struct, a slice, a map or a scalar, [Text] for
// an answer in plain text, or [JSON] for one that only a schema describes. It never changes.
type Template[Out any] struct {
	t *template
}

// New makes a template of sections. The error has everything that is wrong, one [*Error] each.
func New[Out any](namespace, key string, sections ...*Section) (*Template[Out], error) {
	return Define[Out](Definition{Namespace: namespace, Key: key, Sections: sections})
}

// Must is [New] for templates written into a program; it panics on an error, which only a wrong definition can cause.
func Must[Out any](namespace, key string, sections ...*Section) *Template[Out] {
	t, err := New[Out](namespace, key, sections...)
	if err != nil {
		panic(err)
	}
	return t
}

// Define makes a template of a definition. The error has everything that is wrong, one [*Error] each.
func Define[Out any](d Definition) (*Template[Out], error) {
	t, err := compile(d, outputOf[Out])
	if err != nil {
		return nil, err
	}
	return &Template[Out]{t}, nil
}

// FromText makes a prompt of one text, which needs no name, no section and no title. The text is sent as it is written. The
// answer is an Out as in [Template], or with string the text of the agent.
func FromText[Out any](text string) (*Prompt[Out], error) {
	if strings.TrimSpace(text) == "" {
		return nil, errNoText
	}
	t, err := compile(Definition{Text: text}, func(d Definition) (output, error) {
		if reflect.TypeFor[Out]() == reflect.TypeFor[string]() {
			return output{}, nil
		}
		return outputOf[Out](d)
	})
	if err != nil {
		return nil, err
	}
	return &Prompt[Out]{t.unbound()}, nil
}

var errNoText = advice.Wrap(errors.New("prompt: the text is empty"), "write what the agent is to do")

// Key returns the key, lower-cased.
func (t *Template[Out]) Key() string { return t.t.key }

// Name returns the name.
func (t *Template[Out]) Name() string { return t.t.name }

// Descriptor describes all sections and tools, whatever a run shows of them. The caller must not change it.
func (t *Template[Out]) Descriptor() *Descriptor { return t.t.descriptor }

// Bind gives the params their values: at most one struct of each type, by value or by pointer. The
// error names what is missing, what nothing asks for and what is there twice, and the sections.
func (t *Template[Out]) Bind(params ...any) (*Prompt[Out], error) {
	b, err := t.t.bind(nil, params)
	if err != nil {
		return nil, err
	}
	return &Prompt[Out]{b}, nil
}

// A Prompt is a template with the values of its params. It never changes.
type Prompt[Out any] struct {
	b *binding
}

// NewPrompt makes a template and a prompt of it. With placeholders it can be rendered only after [Prompt.Bind].
func NewPrompt[Out any](namespace, key string, sections ...*Section) (*Prompt[Out], error) {
	t, err := New[Out](namespace, key, sections...)
	if err != nil {
		return nil, err
	}
	return &Prompt[Out]{t.t.unbound()}, nil
}

// Bind returns a prompt with these values and those that p has of other types. See [Template.Bind].
func (p *Prompt[Out]) Bind(params ...any) (*Prompt[Out], error) {
	b, err := p.b.t.bind(p.b.values, params)
	if err != nil {
		return nil, err
	}
	return &Prompt[Out]{b}, nil
}

// Template returns the template.
func (p *Prompt[Out]) Template() *Template[Out] { return &Template[Out]{p.b.t} }

// Namespace returns the namespace of the template.
func (p *Prompt[Out]) Namespace() string { return p.b.t.namespace }

// Key returns the key of the template.
func (p *Prompt[Out]) Key() string { return p.b.t.key }

// Name returns the name of the template.
func (p *Prompt[Out]) Name() string { return p.b.t.name }

// Params returns the structs that are bound, in the order of their type names. Defaults are not among them.
func (p *Prompt[Out]) Params() []any {
	var all []any
	for _, typ := range sortedTypes(p.b.values) {
		all = append(all, p.b.values[typ].value)
	}
	return all
}

// Descriptor describes all sections and tools of the template.
func (p *Prompt[Out]) Descriptor() *Descriptor { return p.b.t.descriptor }
