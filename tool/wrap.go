// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"context"
	"encoding/json"
)

// Preprocess makes a tool whose input fn rewrites before t sees it. The input was checked against
// the parameters of the whole, which are those of t unless [WithInput] says others; what fn makes of
// it is checked against those of t. An error of fn is that of the call.
//
// If fn does more than compute, say so with a [Risk] or a [Capability].
func Preprocess(t *Tool, fn func(ctx context.Context, input json.RawMessage) (json.RawMessage, error), opts ...Option) *Tool {
	return wrap(t, opts, func(ctx context.Context, input json.RawMessage, dry bool) (Result, error) {
		input, err := fn(ctx, input)
		if err != nil {
			return Result{}, err
		}
		return runPart(ctx, t, input, dry), nil
	})
}

// Postprocess makes a tool whose results fn rewrites, those that succeeded and those that failed. It
// is not asked about a call that was denied, was cancelled or needs approval, nor about a dry run:
// these stay what they are. A value that was hidden stays hidden. An error of fn is that of the
// call.
//
// Structured is nil in what fn gets where it is but the JSON of the value, so that fn need only
// change the value. The whole promises no output unless [WithOutput] says one. If fn does more than
// compute, say so with a [Risk] or a [Capability].
func Postprocess(t *Tool, fn func(ctx context.Context, r Result) (Result, error), opts ...Option) *Tool {
	noOutput := optionFunc(func(whole *Tool) { whole.Output = nil })
	opts = append([]Option{noOutput}, opts...)
	return wrap(t, opts, func(ctx context.Context, input json.RawMessage, dry bool) (Result, error) {
		r := runPart(ctx, t, input, dry)
		if dry || !r.OK() && r.Outcome != Failed {
			return r, nil
		}
		hidden := r.HideValue
		r, err := fn(ctx, withoutDerived(r))
		r.HideValue = r.HideValue || hidden
		return r, err
	})
}

// withoutDerived takes the structured form away where Run would make it of the value again.
func withoutDerived(r Result) Result {
	if r.Value == nil || r.Structured == nil {
		return r
	}
	if raw, err := marshalPlain(r.Value); err == nil && bytes.Equal(raw, r.Structured) {
		r.Structured = nil
	}
	return r
}
