// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// workDir is the working directory of a request: with a workspace, a folder of that. own is that of the adapter's
// Config, for requests that name none.
func workDir(req agent.Request, own string) (string, error) {
	if req.Workspace == nil {
		return req.Dir, nil
	}
	root, dir := req.Workspace.Root(), req.Dir
	if dir == "" && own != "" {
		if rel, err := filepath.Rel(root, own); err != nil || !filepath.IsAbs(own) || !filepath.IsLocal(rel) {
			return "", refusal("Dir", "%s, the folder of the adapter, is not in the workspace %s\n  next: leave Client.Dir empty, or do without the workspace", own, root)
		}
		dir = own
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	if rel, err := filepath.Rel(root, dir); err != nil || !filepath.IsLocal(rel) {
		return "", refusal("Dir", "%s is not in the workspace %s\n  next: name a folder of the workspace, or leave Dir empty", req.Dir, root)
	}
	return dir, nil
}

// bindWorkspace makes the calls of a run transactions of its workspace.
func bindWorkspace(ctx context.Context, o *claude.Options, req agent.Request, emit func(event.Payload)) (*WorkspaceBinding, error) {
	if req.Workspace == nil {
		return nil, nil
	}
	return BindWorkspace(o, req.Workspace, &WorkspaceOptions{Emit: emit, ReadOnly: toolsOf(req).readOnly, Within: ctx})
}

// readOnly reports whether a name is that of a tool of this program that only reads.
func (t ownTools) readOnly(name string) bool {
	bare, ours := strings.CutPrefix(name, t.prefix()+"__")
	if t.registry == nil || !ours {
		return false
	}
	own, found := t.registry.Lookup(bare)
	return found && own.Risks() == tool.ReadOnly
}

// leaveWorkspace rolls back what did not come to its end.
func (r *run) leaveWorkspace() {
	if r.place != nil {
		r.place.End()
	}
}
