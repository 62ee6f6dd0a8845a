// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"path/filepath"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/tool"
)

// workspaces holds the directory that the agent was started in.
var workspaces = tool.NewKey[string]("workspace")

// workspaceOf is where the CLI will be started, as it is called once links are followed: the CLI tells
// the model this name. It is empty if that cannot be found out; then the CLI cannot start there either.
func workspaceOf(o *claude.Options) string {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

// hooksIn lets the engine know the workspace where a hook asks it.
func hooksIn(workspace string, h claude.Hook) claude.Hook {
	inner := h.Func
	if inner == nil || h.Event != claude.HookPreToolUse && h.Event != claude.HookPermissionRequest {
		return h
	}
	h.Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		return inner(workspaces.With(ctx, workspace), in)
	}
	return h
}

// asksIn is hooksIn for the permission callback.
func asksIn(workspace string, ask claude.CanUseTool) claude.CanUseTool {
	return func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
		return ask(workspaces.With(ctx, workspace), req)
	}
}
