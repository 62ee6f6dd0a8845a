// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/drover-agents/drover/schema"
)

// None is the parameter type of tools that take none.
type None = struct{}

// New makes a tool of a typed function, for evaluations, gates, programs and MCP clients alike; use
// claude.NewTool only in a program that drives the CLI with package claude alone.
//
// The schema of the parameters comes from P, a struct or a map; [schema.ForType] lists the tags. Unknown keys are refused.
//
// R is the result: any type with a JSON form, whose schema becomes Output if it is an object that
// the model reads as JSON; a [Reply], to add a message or images; or a [Result], to say everything.
// fn may be nil: the tool is then declared, but not served.
func New[P, R any](name, description string, fn func(context.Context, P) (R, error), opts ...Option) (*Tool, error) {
	t := &Tool{Name: name, Description: description}
	params, err := schema.For[P]()
	if err != nil {
		return nil, fmt.Errorf("tool: %q: parameters: %w", name, err)
	}
	t.Input = params
	output, err := outputSchema[R]()
	if err != nil {
		return nil, fmt.Errorf("tool: %q: result: %w", name, err)
	}
	t.Output = output
	for _, o := range opts {
		o.apply(t)
	}
	if t.HideValue && t.Output == output {
		t.Output = nil // nothing structured is given out
	}
	t.settle()
	if fn != nil {
		t.Handler = typedHandler(fn, t.Input != params)
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

// Must is [New] for tools written into a program; it panics on an error, which only a wrong declaration can cause.
func Must[P, R any](name, description string, fn func(context.Context, P) (R, error), opts ...Option) *Tool {
	t, err := New(name, description, fn, opts...)
	if err != nil {
		panic(err)
	}
	return t
}

// outputSchema describes R, or gives nil where nothing can be promised about it.
func outputSchema[R any]() (*schema.Schema, error) {
	t := elem(reflect.TypeFor[R]())
	if r, ok := reflect.Zero(t).Interface().(replier); ok {
		t = elem(r.valueType())
	}
	if t == reflect.TypeFor[Result]() || t.Kind() == reflect.Interface || reflect.PointerTo(t).Implements(reflect.TypeFor[Renderer]()) {
		return nil, nil
	}
	s, err := schema.ForOutputType(t)
	if err != nil || !s.IsObject() {
		return nil, err
	}
	return s, nil
}

func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// typedHandler decodes the arguments and wraps the result. Where the schema of the tool is not that
// of P, the arguments are checked against P's too: the caller checked only the other one.
func typedHandler[P, R any](fn func(context.Context, P) (R, error), other bool) Handler {
	params, _ := schema.For[P]() // New has seen that it works
	return func(ctx context.Context, input json.RawMessage) (Result, error) {
		var p P
		if other {
			if err := params.Validate(input); err != nil {
				return Result{}, InvalidInput(err)
			}
		}
		if err := json.Unmarshal(input, &p); err != nil {
			return Result{}, InvalidInput(err)
		}
		r, err := fn(ctx, p)
		if err := meant(err); err != nil {
			return Result{}, err
		}
		return resultOf(r), nil
	}
}
