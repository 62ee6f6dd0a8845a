// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// WithName gives a tool that is made of another a name and a description of its own. An empty text
// leaves what is there.
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

// derive begins a tool that is made of one part: what is said of the part is said of it too. The
// time limit stays with the part, which runs with it.
func derive(part *Tool) *Tool {
	t := *part
	t.Tags = slices.Clone(part.Tags)
	t.Metadata = maps.Clone(part.Metadata)
	t.Examples = slices.Clone(part.Examples)
	t.Timeout, t.Handler, t.DryRun = 0, nil, nil
	return &t
}

// several begins a tool that is made of several parts: of what is said of them it has the tags.
func several(name, description string, parts []*Tool) *Tool {
	t := &Tool{Name: name, Description: description}
	for _, part := range parts {
		t.Tags = append(t.Tags, part.Tags...)
	}
	return t
}

func checkParts(name string, parts []*Tool) error {
	var errs []error
	if len(parts) == 0 {
		errs = append(errs, errors.New("it has no parts"))
	}
	for i, part := range parts {
		if part == nil {
			errs = append(errs, fmt.Errorf("parts[%d] is nil", i))
		} else if err := part.Check(); err != nil {
			errs = append(errs, fmt.Errorf("parts[%d]: %w", i, err))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("tool: %q: %w", name, errors.Join(errs...))
}

func allServed(parts []*Tool) bool {
	return !slices.ContainsFunc(parts, func(part *Tool) bool { return !part.Served() })
}

func allDry(parts []*Tool) bool {
	return !slices.ContainsFunc(parts, func(part *Tool) bool { return part.DryRun == nil })
}

// A partHandler answers a call of a composed tool by running its part; dry means that the part is to
// say what it would do.
type partHandler func(ctx context.Context, input json.RawMessage, dry bool) (Result, error)

// wrap makes a tool of one part.
func wrap(part *Tool, opts []Option, run partHandler) *Tool {
	t := derive(part)
	t.handle(part.Handler != nil, part.DryRun != nil, run)
	t.assemble([]*Tool{part}, opts)
	t.dropExamples()
	return t
}

func (t *Tool) handle(served, dry bool, run partHandler) {
	handler := func(dry bool) Handler {
		return func(ctx context.Context, input json.RawMessage) (Result, error) {
			r, err := run(ctx, input, dry)
			return t.conceal(r), err
		}
	}
	if served {
		t.Handler = handler(false)
	}
	if dry {
		t.DryRun = handler(true)
	}
}

// conceal takes the structured form away from a value that this tool hides and its part does not.
func (t *Tool) conceal(r Result) Result {
	if !t.HideValue && !r.HideValue {
		return r
	}
	if r.Value == nil && r.Structured != nil {
		r.Value = r.Structured
	}
	r.HideValue, r.Structured = true, nil
	return r
}

// dropExamples drops those that the part gave and an option of the whole made wrong.
func (t *Tool) dropExamples() {
	if t.Input == nil {
		return
	}
	t.Examples = slices.DeleteFunc(t.Examples, func(e Example) bool { return t.Input.Validate(e.Input) != nil })
}

// assemble applies the options and then sees to it that nothing they or the parts say makes less of
// a risk.
func (t *Tool) assemble(parts []*Tool, opts []Option) {
	var added Tool // by the options alone
	for _, o := range opts {
		o.apply(&added)
		o.apply(t)
	}
	risk := added.Risks() & (Mutates | Dangerous)
	harmless := true
	for _, part := range parts {
		risk |= part.Risks()
		harmless = harmless && part.Risks().Has(ReadOnly)
		t.Capabilities |= part.Needs()
		t.HideValue = t.HideValue || part.HideValue
		t.Concurrency = stricter(t.Concurrency, part.Concurrency)
	}
	if !harmless || risk.Has(Mutates) {
		risk &^= ReadOnly
	}
	t.setRisk(risk)
}

// setRisk makes the fields, the tags and the metadata say the same.
func (t *Tool) setRisk(risk Risk) {
	t.Risk = risk
	for key, r := range map[string]Risk{metaMutates: Mutates, metaReadOnly: ReadOnly, metaDangerous: Dangerous} {
		if _, ok := t.Metadata[key]; ok {
			t.Metadata[key] = risk.Has(r)
		}
	}
	t.Tags = slices.DeleteFunc(t.Tags, func(tag string) bool {
		return slices.Contains([]string{tagMutating, tagReadOnly, tagReadOnlyDashed, tagDangerous}, strings.ToLower(tag))
	})
	t.settle()
}

// runPart runs a part within the call of the tool that it is part of.
func runPart(ctx context.Context, part *Tool, input json.RawMessage, dry bool) Result {
	call, _ := CallFrom(ctx)
	call.Name, call.Input, call.Timeout, call.DryRun = part.Name, input, 0, dry
	return part.Run(ctx, call)
}

// blame is the result of a whole whose part did not succeed.
func blame(part *Tool, r Result) Result {
	e := *r.Err
	e.Message = fmt.Sprintf("Part %s: %s", part.Name, e.Message)
	return Result{Outcome: r.Outcome, Err: &e, Action: r.Action}
}

// jsonOf is the value of a result as JSON, hidden or not; nil where there is none.
func jsonOf(r Result) json.RawMessage {
	if r.Structured != nil || r.Value == nil {
		return r.Structured
	}
	raw, err := marshalPlain(r.Value)
	if err != nil {
		return nil
	}
	return raw
}

// pause waits, or fails when the context ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tooLong reports whether the context is sure to end before d is over.
func tooLong(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && d > 0 && time.Until(deadline) <= d
}
