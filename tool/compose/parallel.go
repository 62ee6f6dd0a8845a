// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

// ParallelOptions configures [Parallel]. The zero value runs all parts at once, and the first failure stops the others.
type ParallelOptions struct {
	// Concurrency bounds how many parts run at once. Zero means all.
	Concurrency int
	// Collect lets all parts come to their end. A part that failed then has an object with the one
	// key "error" in place of its value, and the whole fails only if all parts did. A part that is
	// denied, is cancelled or needs approval still gives the whole that outcome.
	Collect bool
}

// Parallel makes a tool that gives the same input to all parts, at the same time. Its value is an
// object with the value of each part under the part's name, or its message where it has no value.
//
// The parts must describe the same parameters, or none; where they do not, say with [tool.WithInput] what
// the whole takes, and bring each part to take it with [Preprocess] or [Bind]. A joint schema cannot
// be made of theirs: parts that refuse what they do not know cannot be satisfied together.
//
// A part that needs approval or is denied counts before one that failed, and that before one that was stopped because of it.
func Parallel(name, description string, parts []*tool.Tool, o ParallelOptions, opts ...tool.Option) (*tool.Tool, error) {
	if err := checkParts(name, parts); err != nil {
		return nil, err
	}
	t := several(name, description, parts)
	var problem error
	if t.Input, problem = commonInput(parts); problem != nil {
		t.Input = nil // an option may say it
	}
	p := &parallel{whole: t, parts: slices.Clone(parts), ParallelOptions: o}
	handle(t, allServed(parts), allDry(parts), p.run)
	assemble(t, parts, opts)
	if t.Input == nil && problem != nil {
		return nil, fmt.Errorf("compose: %q: %w", name, problem)
	}
	if err := uniqueNames(parts); err != nil {
		return nil, fmt.Errorf("compose: %q: %w", name, err)
	}
	return t, t.Check()
}

// commonInput is the schema that all parts have, leaving out those that take any object.
func commonInput(parts []*tool.Tool) (*schema.Schema, error) {
	var common *tool.Tool
	for _, part := range parts {
		switch {
		case part.Input == nil:
		case common == nil:
			common = part
		case !plainjson.Equal(common.Input.JSON(), part.Input.JSON()):
			return nil, fmt.Errorf("parts %s and %s have different parameters; set with WithInput what the whole takes, "+
				"and bring the parts to take it with Preprocess or Bind", common.Name, part.Name)
		}
	}
	if common == nil {
		return nil, nil
	}
	return common.Input, nil
}

func uniqueNames(parts []*tool.Tool) error {
	seen := map[string]bool{}
	for _, part := range parts {
		if seen[part.Name] {
			return fmt.Errorf("two parts are called %s, but the value has one key for each name; use WithName", part.Name)
		}
		seen[part.Name] = true
	}
	return nil
}

type parallel struct {
	ParallelOptions
	whole *tool.Tool
	parts []*tool.Tool
}

func (p *parallel) run(ctx context.Context, input json.RawMessage, dry bool) (tool.Result, error) {
	results, first := p.runAll(ctx, input, dry)
	if i := p.culprit(results, first); i >= 0 {
		return blame(p.parts[i], results[i]), nil
	}
	return p.join(results), nil
}

// runAll runs the parts and waits for all of them. first is the one that stopped the others, or -1.
func (p *parallel) runAll(ctx context.Context, input json.RawMessage, dry bool) (results []tool.Result, first int) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limit := p.Concurrency
	if limit <= 0 {
		limit = len(p.parts)
	}
	var (
		wg    sync.WaitGroup
		once  sync.Once
		slots = make(chan struct{}, limit)
	)
	results, first = make([]tool.Result, len(p.parts)), -1
	for i, part := range p.parts {
		slots <- struct{}{} // a part that does not stop in time gives its slot up nonetheless: see Run
		wg.Go(func() {
			defer func() { <-slots }()
			results[i] = runPart(ctx, part, input, dry)
			if !p.Collect && !results[i].OK() {
				once.Do(func() {
					first = i
					stop(fmt.Errorf(partStopped, part.Name))
				})
			}
		})
	}
	wg.Wait()
	return results, first
}

// culprit is the part whose outcome is that of the whole; -1 if the whole succeeds.
func (p *parallel) culprit(results []tool.Result, first int) int {
	for _, outcome := range []tool.Outcome{tool.Denied, tool.NeedsApproval} {
		if i := firstWith(results, outcome); i >= 0 {
			return i
		}
	}
	if first >= 0 {
		return first
	}
	if i := firstWith(results, tool.Cancelled); i >= 0 {
		return i
	}
	if firstWith(results, tool.Success) < 0 {
		return 0
	}
	return -1
}

func firstWith(results []tool.Result, outcome tool.Outcome) int {
	return slices.IndexFunc(results, func(r tool.Result) bool { return r.Outcome == outcome })
}

type partFailure struct {
	Error struct {
		Code      string        `json:"code,omitzero"`
		Category  tool.Category `json:"category,omitzero"`
		Message   string        `json:"message"`
		Retryable bool          `json:"retryable,omitzero"`
	} `json:"error"`
}

// join makes one result of all. Where values are hidden, the model reads the messages of the parts.
func (p *parallel) join(results []tool.Result) tool.Result {
	values := make(map[string]json.RawMessage, len(results))
	whole := tool.Result{Outcome: tool.Success, Value: values, HideValue: p.whole.HideValue}
	var messages []string
	for i, r := range results {
		name := p.parts[i].Name
		values[name] = placeOf(r)
		whole.Images = append(whole.Images, r.Images...)
		whole.HideValue = whole.HideValue || r.HideValue
		if text := r.Message; !r.OK() {
			messages = append(messages, name+": "+r.Render())
		} else if text != "" {
			messages = append(messages, name+": "+text)
		}
	}
	if whole.HideValue {
		whole.Message = strings.Join(messages, "\n")
	}
	return whole
}

func placeOf(r tool.Result) json.RawMessage {
	if !r.OK() {
		var f partFailure
		f.Error.Code, f.Error.Category = r.Err.Code, r.Err.Category
		f.Error.Message, f.Error.Retryable = r.Err.Message, r.Err.Retryable
		raw, _ := plainjson.TryMarshal(f) // strings always have a JSON form
		return raw
	}
	if raw := jsonOf(r); raw != nil {
		return raw
	}
	text := r.Message
	if r.Value != nil {
		text = tool.Unserializable
	}
	raw, _ := plainjson.TryMarshal(text)
	return raw
}
