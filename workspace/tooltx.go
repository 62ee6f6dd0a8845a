// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"strings"

	"github.com/drover-agents/drover/tool"
)

// ToolTx runs each call of a registry in a transaction of the workspace: give it to [tool.Options] as Around. Handlers find
// the workspace by [From]. If a call fails, is denied, panics, runs out of time or is cancelled, its changes to the files
// are rolled back, and the model reads their list. Tools whose only risk is [tool.ReadOnly] run without a transaction.
//
// Inner, if it is not nil, runs within it: with [session.ToolTx], a call changes session and files or neither.
//
// A call that an agent makes uses the transaction that was begun for it, with [Call.Agent]. A call that another call
// makes through the registry in its own context is part of that one.
func ToolTx(w *Workspace, inner tool.Around) tool.Around {
	return func(ctx context.Context, call *tool.Call, next func(context.Context) tool.Result) tool.Result {
		run := next
		if inner != nil {
			run = func(ctx context.Context) tool.Result { return inner(ctx, call, next) }
		}
		ctx = With(ctx, w)
		if t, found := tool.Candidate(ctx); w.tree == nil || !found || t.Risks() == tool.ReadOnly {
			return run(ctx)
		}
		own, tx, err := w.beginTool(ctx, call)
		if err != nil {
			return tool.Fail(callRejected(err))
		}
		return tx.runTool(own, call, run)
	}
}

// beginTool begins the transaction of a call, or takes over the one that an adapter has begun.
func (w *Workspace) beginTool(ctx context.Context, call *tool.Call) (context.Context, *Tx, error) {
	if _, nested := txKey.From(ctx); !nested {
		if tx := w.join(call); tx != nil {
			return txKey.With(ctx, tx), tx, nil
		}
	}
	return w.Begin(ctx, Call{ID: call.ID, Tool: call.Name})
}

func (tx *Tx) runTool(ctx context.Context, call *tool.Call, run func(context.Context) tool.Result) tool.Result {
	ended := context.WithoutCancel(ctx)
	defer func() { tx.Undo(ended) }() // for a tool that ends the goroutine; else it is over
	result := run(ctx)
	if result.OK() && !call.DryRun {
		tx.Commit()
		return result
	}
	if text := tx.Undo(ended); text != "" && !result.OK() {
		result = withText(result, text)
	}
	return result
}

func withText(result tool.Result, more string) tool.Result {
	failure := tool.Error{Code: tool.CodeFailed, Category: tool.CategoryInternal}
	if result.Err != nil {
		failure = *result.Err
	}
	failure.Message = strings.TrimSpace(result.Render() + "\n" + more)
	result.Err = &failure
	return result
}
