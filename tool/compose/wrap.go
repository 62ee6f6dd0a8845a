// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/tool"
)

// Preprocess makes a tool whose input fn rewrites before t sees it. The input was checked against
// the parameters of the whole, which are those of t unless [tool.WithInput] says others; what fn makes of
// it is checked against those of t. An error of fn is that of the call.
//
// If fn does more than compute, say so with a [tool.Risk] or a [tool.Capability].
func Preprocess(t *tool.Tool, fn func(ctx context.Context, input json.RawMessage) (json.RawMessage, error), opts ...tool.Option) *tool.Tool {
	return wrap(t, opts, func(ctx context.Context, input json.RawMessage, dry bool) (tool.Result, error) {
		input, err := fn(ctx, input)
		if err != nil {
			return tool.Result{}, err
		}
		return runPart(ctx, t, input, dry), nil
	})
}

// Postprocess makes a tool whose results fn rewrites, those that succeeded and those that failed. It is not asked about a
// call that was denied, was cancelled or needs approval, nor about a dry run: these stay what they are. A value that was
// hidden stays hidden. An error of fn is that of the call.
//
// Structured is nil in what fn gets where it is but the JSON of the value, so that fn need only
// change the value. The whole promises no output unless [tool.WithOutput] says one. If fn does more than
// compute, say so with a [tool.Risk] or a [tool.Capability].
func Postprocess(t *tool.Tool, fn func(ctx context.Context, r tool.Result) (tool.Result, error), opts ...tool.Option) *tool.Tool {
	whole := derive(t)
	whole.Output = nil
	return wrapAs(whole, t, opts, func(ctx context.Context, input json.RawMessage, dry bool) (tool.Result, error) {
		r := runPart(ctx, t, input, dry)
		if dry || !r.OK() && r.Outcome != tool.Failed {
			return r, nil
		}
		hidden := r.HideValue
		r, err := fn(ctx, withoutDerived(r))
		r.HideValue = r.HideValue || hidden
		return r, err
	})
}

// withoutDerived takes the structured form away where Run would make it of the value again.
func withoutDerived(r tool.Result) tool.Result {
	if r.Value == nil || r.Structured == nil {
		return r
	}
	if raw, err := plainjson.TryMarshal(r.Value); err == nil && bytes.Equal(raw, r.Structured) {
		r.Structured = nil
	}
	return r
}
