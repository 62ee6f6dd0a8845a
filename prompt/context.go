// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"

	"github.com/drover-agents/drover/tool"
)

// A Bound prompt is a [*Prompt] of any output type.
type Bound interface {
	Namespace() string
	Key() string
	Name() string
	Render(opts *RenderOptions) (*Rendered, error)
	Live(ctx context.Context, opts *LiveOptions) (*Live, error)
	Workspace(opts *RenderOptions) (Workspace, error)
}

var (
	boundKey    = tool.NewKey[Bound]("prompt")
	renderedKey = tool.NewKey[*Rendered]("rendered prompt")
)

// With returns a context in which [From] finds the prompt, and [RenderedFrom] what its run began with.
func With(ctx context.Context, p Bound, rendered *Rendered) context.Context {
	return renderedKey.With(boundKey.With(ctx, p), rendered)
}

// From returns the prompt that a tool's handler works for, and whether there is one. drover.Evaluate puts it there.
func From(ctx context.Context) (Bound, bool) { return boundKey.From(ctx) }

// RenderedFrom returns the rendered prompt that the run of a tool's handler began with, and whether there is one.
// It must not be changed.
func RenderedFrom(ctx context.Context) (*Rendered, bool) { return renderedKey.From(ctx) }
