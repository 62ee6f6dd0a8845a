// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace"
)

// workDir is the working directory of a request: with a workspace, a folder of that.
func workDir(req agent.Request) (string, error) {
	if req.Workspace == nil {
		return req.Dir, nil
	}
	root, dir := req.Workspace.Root(), req.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	if rel, err := filepath.Rel(root, dir); err != nil || !filepath.IsLocal(rel) {
		return "", advice.Wrap(refusal("Dir", "%s is not in the workspace %s", req.Dir, root),
			"name a folder of the workspace, or leave Dir empty")
	}
	return dir, nil
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

// WorkspaceOptions configures [BindWorkspace]. Nil and the zero value are ready to use.
type WorkspaceOptions struct {
	// Emit, Within and ReadOnly are those of [agent.LedgerOptions].
	Emit     func(event.Payload)
	Within   context.Context
	ReadOnly func(name string) bool
}

// A WorkspaceBinding makes the calls of one run of the CLI transactions of a workspace.
type WorkspaceBinding struct{ calls *agent.Ledger }

// BindWorkspace makes every call of the CLI that may change files a transaction of the workspace: one that fails
// leaves the files as they were before it, and the model reads which were restored. To that end a call
// whose paths are not known, such as a command, is held until no other is at work, and nothing runs in
// the background. Bind it after everything else that has hooks: a call that those deny never begins.
//
// Calls that only have others made in their name, by subagents and skills, are not transactions; those that
// they make are. Tools that change nothing, by the catalogue, are left alone.
//
// Give each message of the run to [WorkspaceBinding.Saw], and call [WorkspaceBinding.End] at its end: a call that a rule of
// the CLI itself refuses would else keep the others waiting. An [Adapter] whose request has the workspace does all of it.
//
// Without checkpoints it binds nothing.
func BindWorkspace(o *claude.Options, w *workspace.Workspace, opts *WorkspaceOptions) (*WorkspaceBinding, error) {
	own := orZero(opts)
	l := agent.NewLedger(&agent.LedgerOptions{
		Catalogue: catalogue.Tools(), Workspace: w, ReadOnly: own.ReadOnly, Within: own.Within, Emit: own.Emit,
	})
	if w.Tree() == nil {
		return &WorkspaceBinding{l}, nil
	}
	return &WorkspaceBinding{l}, bindCalls(o, agent.Request{Settings: agent.Settings{Workspace: w}}, l)
}

// Saw passes a message of the run to the binding.
func (b *WorkspaceBinding) Saw(m claude.Message) { endOfCalls(b.calls, m) }

// End rolls back the calls that have not ended. Call it when nothing of the run is left that could write.
func (b *WorkspaceBinding) End() { b.calls.Close() }
