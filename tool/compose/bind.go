// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

// Bind makes a tool in which some arguments of t have fixed values. The model neither sees them nor can it give them: a call
// that tries is refused. The error names values that t has no parameter for, and values that do not fit.
//
// Rules about several parameters at once, such as anyOf beside the properties, are not shown any
// more. They hold as before, since t checks the whole.
func Bind(t *tool.Tool, values map[string]any, opts ...tool.Option) (*tool.Tool, error) {
	if err := checkParts("Bind", []*tool.Tool{t}); err != nil {
		return nil, err
	}
	b, err := newBinding(t, values)
	if err != nil {
		return nil, fmt.Errorf("compose: %q: Bind: %w", t.Name, err)
	}
	bound := derive(t)
	bound.Input, bound.Examples = b.free, nil
	bound = wrapAs(bound, t, opts, func(ctx context.Context, input json.RawMessage, dry bool) (tool.Result, error) {
		input, err := b.complete(input)
		if err != nil {
			return tool.Result{}, err
		}
		return runPart(ctx, t, input, dry), nil
	})
	return bound, bound.Check()
}

// A binding is the fixed arguments, in the order of their names, and the schema of the others.
type binding struct {
	fixed []member
	free  *schema.Schema
}

func newBinding(t *tool.Tool, values map[string]any) (*binding, error) {
	b := &binding{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		raw, err := plainjson.TryMarshal(values[name])
		if err != nil {
			return nil, fmt.Errorf("value of %q: %w", name, err)
		}
		b.fixed = append(b.fixed, member{name, raw})
	}
	if t.Input == nil {
		return nil, errors.New("the tool declares no parameters")
	}
	return b, b.split(t.Input)
}

// split parts a schema into that of the fixed arguments, against which it checks them, and that of the others.
func (b *binding) split(whole *schema.Schema) error {
	if bytes.Contains(whole.JSON(), []byte(`"$ref":"#"`)) {
		return errors.New(`the schema of the parameters refers to itself with "$ref":"#"; move what it refers to into $defs`)
	}
	if err := b.checkNames(whole.Properties()); err != nil {
		return err
	}
	all, err := membersOf(whole.JSON())
	if err != nil {
		return err
	}
	fixed, err := restrict(all, b.isFixed)
	if err != nil {
		return err
	}
	if err := fixed.Validate(joinMembers(b.fixed)); err != nil {
		return err
	}
	b.free, err = restrict(all, func(name string) bool { return !b.isFixed(name) })
	return err
}

func (b *binding) isFixed(name string) bool {
	return slices.ContainsFunc(b.fixed, func(m member) bool { return m.name == name })
}

// checkNames names the fixed arguments for which there is no parameter.
func (b *binding) checkNames(parameters []string) error {
	var unknown []string
	for _, f := range b.fixed {
		if !slices.Contains(parameters, f.name) {
			unknown = append(unknown, fmt.Sprintf("%q", f.name))
		}
	}
	if unknown != nil {
		return fmt.Errorf("no parameter is called %s", strings.Join(unknown, ", "))
	}
	return nil
}

// jointRules are keywords that look at several properties at once. They cannot be judged where some of these are missing.
var jointRules = []string{
	"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const", "minProperties", "maxProperties",
	"dependencies", "dependentRequired", "dependentSchemas",
}

// restrict gives the schema of those properties that keep chooses.
func restrict(whole []member, keep func(name string) bool) (*schema.Schema, error) {
	var kept []member
	for _, m := range whole {
		var err error
		switch {
		case slices.Contains(jointRules, m.name):
			continue
		case m.name == "properties":
			m.value, err = keepProperties(m.value, keep)
		case m.name == "required":
			m.value, err = keepNames(m.value, keep)
		}
		if err != nil {
			return nil, err
		}
		kept = append(kept, m)
	}
	return schema.Parse(joinMembers(kept))
}

func keepProperties(properties json.RawMessage, keep func(name string) bool) (json.RawMessage, error) {
	all, err := membersOf(properties)
	return joinMembers(slices.DeleteFunc(all, func(m member) bool { return !keep(m.name) })), err
}

func keepNames(list json.RawMessage, keep func(name string) bool) (json.RawMessage, error) {
	var names []string
	if err := json.Unmarshal(list, &names); err != nil {
		return nil, err
	}
	return plainjson.TryMarshal(slices.DeleteFunc(names, func(name string) bool { return !keep(name) }))
}

// complete adds the fixed arguments. It refuses them in the input also where only the case of the
// letters differs: decoders in Go do not tell these apart.
func (b *binding) complete(input json.RawMessage) (json.RawMessage, error) {
	given, err := membersOf(input)
	if err != nil {
		return nil, tool.InvalidInput(err)
	}
	for _, g := range given {
		for _, f := range b.fixed {
			if strings.EqualFold(g.name, f.name) {
				return nil, tool.InvalidInput(fmt.Errorf(fixedArgument, g.name))
			}
		}
	}
	return joinMembers(append(given, b.fixed...)), nil
}
