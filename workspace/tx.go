// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
)

// ErrNoCheckpoints means that a workspace was opened without checkpoints.
var ErrNoCheckpoints = errors.New("workspace: it has no checkpoints\n  next: open it without NoCheckpoints")

// A Call is a tool call that may change the files of a workspace.
type Call struct {
	// ID is the id of the call, and Tool the name of its tool.
	ID, Tool string
	// Paths are what it may change, relative to the workspace, each with everything below it. Nil means
	// that it may change everything: it then waits until it is alone.
	Paths []string
}

// A Tx is a transaction of one call over the files of a workspace: they stay as the call leaves them, or
// become again what they were before it.
type Tx struct {
	w      *Workspace
	call   Call
	claim  *claim // nil in a transaction that is part of another
	before *Checkpoint
	joined bool // somebody has taken the transaction over who will end it
	emit   func(event.Payload)

	once   sync.Once
	result RolledBack
	err    error
}

var txKey = tool.NewKey[*Tx]("workspace transaction")

// Begin begins the transaction of a call, and returns the context for what belongs to it. It waits until
// no other call is at work that could change the same paths. Begun in the context of another transaction,
// it is part of that one: it can be rolled back alone, and goes with it.
func (w *Workspace) Begin(ctx context.Context, call Call) (context.Context, *Tx, error) {
	if w.tree == nil {
		return nil, nil, ErrNoCheckpoints
	}
	paths, err := w.claimed(call.Paths)
	if err != nil {
		return nil, nil, err
	}
	tx := &Tx{w: w, call: Call{ID: call.ID, Tool: call.Tool, Paths: paths}}
	if outer, in := txKey.From(ctx); !in || outer.w != w {
		if tx.claim, err = w.turns.take(ctx, paths); err != nil {
			return nil, nil, fmt.Errorf("workspace: call %s of %s did not get its turn: %w", call.ID, call.Tool, err)
		}
	}
	if tx.before, err = w.tree.Checkpoint(ctx); err != nil {
		tx.release()
		return nil, nil, fmt.Errorf("workspace: the checkpoint before call %s of %s: %w", call.ID, call.Tool, err)
	}
	return txKey.With(With(ctx, w), tx), tx, nil
}

// claimed are the paths that a call claims: for what is not there yet, the topmost folder that it would
// make as well.
func (w *Workspace) claimed(paths []string) ([]string, error) {
	if paths == nil {
		return nil, nil
	}
	claimed := []string{}
	for _, p := range paths {
		if !filepath.IsLocal(filepath.FromSlash(p)) {
			return nil, &SecurityError{Path: p, Reason: "is not in the workspace", Next: "name paths relative to it"}
		}
		claimed = append(claimed, w.topMissing(path.Clean(p)))
	}
	return claimed, nil
}

// topMissing is the shortest path towards p that does not exist, or p.
func (w *Workspace) topMissing(p string) string {
	for at := path.Dir(p); at != "."; at = path.Dir(at) {
		if _, err := os.Lstat(filepath.Join(w.root, filepath.FromSlash(at))); !errors.Is(err, fs.ErrNotExist) {
			return p
		}
		p = at
	}
	return p
}

// Commit ends the transaction: the files stay as they are. It does nothing if the transaction is over.
func (tx *Tx) Commit() { tx.once.Do(tx.release) }

// Rollback ends the transaction, and makes the files what they were when it began. What other calls have
// changed meanwhile stays. If the transaction is over already it says what its rollback did.
func (tx *Tx) Rollback(ctx context.Context) (RolledBack, error) {
	tx.rollback(ctx)
	return tx.result, tx.err
}

// rollback reports whether the transaction was open.
func (tx *Tx) rollback(ctx context.Context) (first bool) {
	tx.once.Do(func() {
		first = true
		defer tx.release()
		tx.result, tx.err = tx.w.tree.Rollback(ctx, tx.before, &RollbackOptions{Only: tx.call.Paths})
		if tx.err != nil {
			tx.err = fmt.Errorf("workspace: rolling back call %s of %s: %w", tx.call.ID, tx.call.Tool, tx.err)
		}
	})
	return first
}

func (tx *Tx) release() {
	if tx.before != nil {
		tx.before.Release()
	}
	if tx.claim != nil {
		tx.w.turns.give(tx.claim)
	}
}

// relative is where a path of a tool's input lies in the workspace. Known is false if that cannot be said:
// a folder above it is a link, or cannot be looked at. In is false for what lies elsewhere.
func (w *Workspace) relative(dir, name string) (rel string, in, known bool) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	rel, err := filepath.Rel(w.root, filepath.Clean(name))
	if err != nil {
		return "", false, true
	}
	if !filepath.IsLocal(rel) {
		return "", false, !w.leadsIn(name)
	}
	return filepath.ToSlash(rel), true, w.plain(rel)
}

// plain reports whether no element of a path of the workspace is a link.
func (w *Workspace) plain(rel string) bool {
	for at := rel; at != "."; at = filepath.Dir(at) {
		info, err := os.Lstat(filepath.Join(w.root, at))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Type() == fs.ModeSymlink {
			return false
		}
	}
	return true
}

// leadsIn reports whether a path from elsewhere may lead into the workspace through links.
func (w *Workspace) leadsIn(name string) bool {
	for at := filepath.Clean(name); ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			rel, err := filepath.Rel(w.root, real)
			return err != nil || filepath.IsLocal(rel)
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// openCalls are the transactions of calls that hooks have begun.
type openCalls struct {
	mu    sync.Mutex
	calls map[string]*openCall
}

type openCall struct {
	cancel context.CancelFunc // gives up waiting
	ready  chan struct{}      // closed when tx and err are there
	tx     *Tx
	err    error
}

// begin begins the transaction of a call, once: who comes second waits for the first.
func (o *openCalls) begin(ctx context.Context, b *Binding, call Call) error {
	o.mu.Lock()
	open, there := o.calls[call.ID]
	if !there {
		open = &openCall{ready: make(chan struct{})}
		ctx, open.cancel = context.WithCancel(ctx)
		if o.calls == nil {
			o.calls = map[string]*openCall{}
		}
		o.calls[call.ID] = open
	}
	o.mu.Unlock()
	if there {
		select {
		case <-open.ready:
			return open.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer close(open.ready)
	_, open.tx, open.err = b.w.Begin(ctx, call)
	if open.err != nil {
		o.remove(call.ID)
		return open.err
	}
	open.tx.emit = b.emit
	return nil
}

func (o *openCalls) remove(id string) *openCall {
	o.mu.Lock()
	defer o.mu.Unlock()
	open := o.calls[id]
	delete(o.calls, id)
	return open
}

// end takes the transaction of a call out, or nil. One that still waits for its turn gives up.
func (o *openCalls) end(id string) *Tx {
	open := o.remove(id)
	if open == nil {
		return nil
	}
	open.cancel()
	<-open.ready
	return open.tx
}

// transactions are the calls of a workspace.
type transactions struct {
	turns turns

	mu       sync.Mutex
	bindings []*Binding
	restored []Restored
}

// join is the open transaction of a call that a hook has begun, or nil.
func (w *Workspace) join(id, name string) *Tx {
	w.mu.Lock()
	bindings := slices.Clone(w.bindings)
	w.mu.Unlock()
	for _, b := range bindings {
		if tx := b.calls.join(id, name); tx != nil {
			return tx
		}
	}
	return nil
}

// join is the open transaction of a call of a tool of this program. A call without a known id is that of
// the same tool, which is alone.
func (o *openCalls) join(id, name string) *Tx {
	o.mu.Lock()
	defer o.mu.Unlock()
	if open, there := o.calls[id]; there && isClosed(open.ready) {
		return open.tx
	}
	for _, open := range o.calls {
		if isClosed(open.ready) && open.tx != nil && !open.tx.joined && open.tx.call.Paths == nil && toolName(open.tx.call.Tool) == name {
			open.tx.joined = true
			return open.tx
		}
	}
	return nil
}

// toolName is the name of a tool of an MCP server without that of the server.
func toolName(full string) string {
	if parts := strings.SplitN(full, "__", 3); len(parts) == 3 && parts[0] == "mcp" {
		return parts[2]
	}
	return full
}

// ids are the calls that are open, sorted.
func (o *openCalls) ids() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var ids []string
	for id := range o.calls {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
