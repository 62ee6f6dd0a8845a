// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/drover-agents/drover/tool"
)

// Pipe makes a tool that runs parts one after the other: the value of each, a JSON object, is the
// input of the next. It takes what the first takes and gives what the last gives; put a
// [Postprocess] around a part whose value the next cannot take.
//
// The first part that does not succeed ends the pipe. What the parts before it did stays done. A value
// that one part hides stays hidden to the end, since the next may pass it on.
func Pipe(name, description string, parts []*tool.Tool, opts ...tool.Option) (*tool.Tool, error) {
	if err := checkParts(name, parts); err != nil {
		return nil, err
	}
	t := several(name, description, parts)
	first, last := parts[0], parts[len(parts)-1]
	t.Input, t.Output = first.Input, last.Output
	handle(t, allServed(parts), false, pipeHandler(t, slices.Clone(parts)))
	assemble(t, parts, opts)
	return t, t.Check()
}

func pipeHandler(t *tool.Tool, parts []*tool.Tool) partHandler {
	return func(ctx context.Context, input json.RawMessage, dry bool) (tool.Result, error) {
		hidden := false
		for i, part := range parts {
			r := runPart(ctx, part, input, dry)
			if !r.OK() {
				return blame(part, r), nil
			}
			hidden = hidden || r.HideValue
			if i == len(parts)-1 {
				r.HideValue = hidden
				return r, nil
			}
			if input = jsonOf(r); len(input) == 0 || input[0] != '{' {
				return tool.Result{}, noObject(t, part, parts[i+1])
			}
			if err := misfit(t, part, parts[i+1], input); err != nil {
				return tool.Result{}, err
			}
		}
		return tool.Result{}, nil
	}
}

func noObject(t, part, next *tool.Tool) *tool.Error {
	return &tool.Error{
		Code: tool.CodeInvalidOutput, Category: tool.CategoryInternal,
		Message: fmt.Sprintf(partNoObject, part.Name, next.Name, t.Name, t.Name, part.Name),
	}
}

// misfit is an error if the next part does not take the value of a part. The next part would report
// it too, but about arguments that the caller of the pipe did not pass.
func misfit(t, part, next *tool.Tool, value json.RawMessage) error {
	if next.Input == nil {
		return nil
	}
	err := next.Input.Validate(value)
	if err == nil {
		return nil
	}
	return &tool.Error{
		Code: tool.CodeInvalidInput, Category: tool.CategoryValidation, Err: err,
		Message: fmt.Sprintf(partMisfit, next.Name, part.Name, err, t.Name, part.Name),
	}
}
