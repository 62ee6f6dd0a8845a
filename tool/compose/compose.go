// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// derive begins a tool of one part: it has the description, risk and capabilities of the part. The time limit stays with the part.
func derive(part *tool.Tool) *tool.Tool {
	t := part.With()
	t.Timeout, t.Handler, t.DryRun = 0, nil, nil
	return t
}

// several begins a tool that is made of several parts: it has their tags.
func several(name, description string, parts []*tool.Tool) *tool.Tool {
	t := &tool.Tool{Name: name, Description: description}
	for _, part := range parts {
		t.Tags = append(t.Tags, part.Tags...)
	}
	return t
}

func checkParts(name string, parts []*tool.Tool) error {
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
	return fmt.Errorf("compose: %q: %w", name, errors.Join(errs...))
}

func allServed(parts []*tool.Tool) bool {
	return !slices.ContainsFunc(parts, func(part *tool.Tool) bool { return !part.Served() })
}

func allDry(parts []*tool.Tool) bool {
	return !slices.ContainsFunc(parts, func(part *tool.Tool) bool { return part.DryRun == nil })
}

// A partHandler answers a call of a composed tool by running its part; dry means that the part is to say what it would do.
type partHandler func(ctx context.Context, input json.RawMessage, dry bool) (tool.Result, error)

func wrap(part *tool.Tool, opts []tool.Option, run partHandler) *tool.Tool {
	return wrapAs(derive(part), part, opts, run)
}

// wrapAs makes a tool of one part, from its fields before the options.
func wrapAs(t, part *tool.Tool, opts []tool.Option, run partHandler) *tool.Tool {
	handle(t, part.Handler != nil, part.DryRun != nil, run)
	assemble(t, []*tool.Tool{part}, opts)
	dropExamples(t)
	return t
}

func handle(t *tool.Tool, served, dry bool, run partHandler) {
	handler := func(dry bool) tool.Handler {
		return func(ctx context.Context, input json.RawMessage) (tool.Result, error) {
			r, err := run(ctx, input, dry)
			return conceal(t, r), err
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
func conceal(t *tool.Tool, r tool.Result) tool.Result {
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
func dropExamples(t *tool.Tool) {
	if t.Input == nil {
		return
	}
	t.Examples = slices.DeleteFunc(t.Examples, func(e tool.Example) bool { return t.Input.Validate(e.Input) != nil })
}

// assemble applies the options and then sees to it that nothing they or the parts say makes less of a risk.
func assemble(t *tool.Tool, parts []*tool.Tool, opts []tool.Option) {
	*t = *t.With(opts...)
	risk := new(tool.Tool).With(opts...).Risks() & (tool.Mutates | tool.Dangerous) // by the options alone
	harmless := true
	for _, part := range parts {
		risk |= part.Risks()
		harmless = harmless && part.Risks().Has(tool.ReadOnly)
		t.Capabilities |= part.Needs()
		t.HideValue = t.HideValue || part.HideValue
		t.Concurrency = stricter(t.Concurrency, part.Concurrency)
	}
	if !harmless || risk.Has(tool.Mutates) {
		risk &^= tool.ReadOnly
	}
	t.SetRisk(risk)
}

// runPart runs a part within the call of the tool that it is part of.
func runPart(ctx context.Context, part *tool.Tool, input json.RawMessage, dry bool) tool.Result {
	call, _ := tool.CallFrom(ctx)
	call.Name, call.Input, call.Timeout, call.DryRun = part.Name, input, 0, dry
	return part.Run(ctx, call)
}

// blame is the result of a whole whose part did not succeed.
func blame(part *tool.Tool, r tool.Result) tool.Result {
	e := *r.Err
	e.Message = fmt.Sprintf(partFailed, part.Name, e.Message)
	return tool.Result{Outcome: r.Outcome, Err: &e, Action: r.Action}
}

// jsonOf is the value of a result as JSON, hidden or not; nil if the result has no JSON value.
func jsonOf(r tool.Result) json.RawMessage {
	if r.Structured != nil || r.Value == nil {
		return r.Structured
	}
	raw, err := plainjson.TryMarshal(r.Value)
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

// stricter returns the lower of two bounds; zero means no bound.
func stricter(a, b int) int {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}
