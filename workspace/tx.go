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
	"unicode/utf8"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/tool"
	"github.com/drover-agents/drover/workspace/internal/filetree"
)

// ErrNoCheckpoints means that a workspace was opened without checkpoints.
var ErrNoCheckpoints = advice.Wrap(errors.New("workspace: it has no checkpoints"), "open it without NoCheckpoints")

// A Call is a tool call that may change the files of a workspace.
type Call struct {
	// ID is the id of the call, and Tool the name of its tool.
	ID   event.CallID
	Tool string
	// Paths are what it may change, relative to the workspace, each with everything below it. Nil means
	// that it may change everything: it then waits until it is alone.
	Paths []string
	// Shell means that it runs a command: [Options.KeepFailedShell] is about such calls.
	Shell bool
	// Agent means that an agent makes the call. If its tool is one of this program, [ToolTx] finds the transaction
	// by the id, or by the name of a tool whose call has no id, and ends it.
	Agent bool
	// Emit receives the rollback of the call, as [Restored]. Nil means that it is not reported.
	Emit func(event.Payload)
}

// A Tx is a transaction of one call over the files of a workspace: they stay as the call leaves them, or
// become again what they were before it.
type Tx struct {
	w      *Workspace
	call   Call
	outer  *Tx // what it is part of, or nil
	claim  *claim
	before *Checkpoint
	parts  turns // of those that are part of it
	joined bool  // a tool of this program has taken the transaction over and will end it

	once   sync.Once
	result RolledBack
	err    error

	ending sync.Mutex
	over   bool
}

var txKey = tool.NewKey[*Tx]("workspace transaction")

// TxFrom returns the transaction that a context belongs to, or nil.
func TxFrom(ctx context.Context) *Tx {
	tx, _ := txKey.From(ctx)
	return tx
}

// WithTx returns a context that belongs to a transaction. Nil changes nothing.
func WithTx(ctx context.Context, tx *Tx) context.Context {
	if tx == nil {
		return ctx
	}
	return txKey.With(ctx, tx)
}

// Call is the call of the transaction, with the paths that it has claimed.
func (tx *Tx) Call() Call { return tx.call }

type transactions struct {
	turns turns

	mu       sync.Mutex
	agents   []*Tx // that are open, of calls that agents make
	restored []Restored
}

// join is the open transaction of a call of a tool of this program that an agent has begun, or nil. A call without a
// known id is that of the same tool, which is alone.
func (w *Workspace) join(call *tool.Call) *Tx {
	w.txs.mu.Lock()
	defer w.txs.mu.Unlock()
	for _, tx := range w.txs.agents {
		if call.ID != "" && tx.call.ID == call.ID {
			return tx
		}
	}
	for _, tx := range w.txs.agents {
		if !tx.joined && tx.call.Paths == nil && call.IsOf(tx.call.Tool) {
			tx.joined = true
			return tx
		}
	}
	return nil
}

// Begin begins the transaction of a call, and returns the context for what belongs to it. It waits until
// no other call is at work that could change the same paths. Begun in the context of another transaction,
// it is part of that one: it waits for other parts alone, can be rolled back alone, and goes with it.
func (w *Workspace) Begin(ctx context.Context, call Call) (context.Context, *Tx, error) {
	if w.tree == nil {
		return nil, nil, ErrNoCheckpoints
	}
	tx := &Tx{w: w, call: call}
	if outer, in := txKey.From(ctx); in && outer.w == w && outer.whileOpen(func() {}) {
		tx.outer = outer
	}
	var err error
	if tx.claim, err = w.turn(ctx, tx.order(), call.Paths); err != nil {
		return nil, nil, fmt.Errorf("workspace: call %s of %s did not get its turn: %w", call.ID, call.Tool, err)
	}
	tx.call.Paths = tx.claim.paths
	if tx.before, err = w.tree.Checkpoint(ctx); err != nil {
		tx.release()
		return nil, nil, fmt.Errorf("workspace: the checkpoint before call %s of %s: %w", call.ID, call.Tool, err)
	}
	if call.Agent {
		w.txs.mu.Lock()
		w.txs.agents = append(w.txs.agents, tx)
		w.txs.mu.Unlock()
	}
	return txKey.With(With(ctx, w), tx), tx, nil
}

func (tx *Tx) order() *turns {
	if tx.outer != nil {
		return &tx.outer.parts
	}
	return &tx.w.txs.turns
}

// turn waits for a turn. If the paths lead elsewhere by then, it waits again, the last time for everything.
func (w *Workspace) turn(ctx context.Context, order *turns, paths []string) (*claim, error) {
	claimed, err := w.claimed(ctx, paths)
	for last := false; err == nil; last = true {
		c, err := order.take(ctx, claimed)
		if err != nil || claimed == nil {
			return c, err
		}
		now, err := w.claimed(ctx, paths)
		if err == nil && now != nil && slices.Equal(claimed, now) {
			return c, nil
		}
		order.give(c)
		if err != nil {
			return nil, err
		}
		if claimed = now; last {
			claimed = nil
		}
	}
	return nil, err
}

// claimed are the paths that a call claims: for what is not there yet, the topmost folder that it would
// make as well. Where a path may lead elsewhere that is everything, and nil.
func (w *Workspace) claimed(ctx context.Context, paths []string) ([]string, error) {
	if paths == nil {
		return nil, nil
	}
	if err := w.tree.lock(ctx); err != nil {
		return nil, err
	}
	defer w.tree.unlock()
	claimed := []string{}
	for _, p := range paths {
		if !filepath.IsLocal(filepath.FromSlash(p)) {
			return nil, &SecurityError{Path: p, Reason: "is not in the workspace", Next: "name paths relative to it"}
		}
		if p = path.Clean(p); !w.plain(p) {
			return nil, nil
		}
		claimed = append(claimed, w.topMissing(p))
	}
	return claimed, nil
}

// topMissing is the shortest path towards p that does not exist, or p.
func (w *Workspace) topMissing(p string) string {
	for at := path.Dir(p); at != "."; at = path.Dir(at) {
		if _, err := w.tree.root.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			return p
		}
		p = at
	}
	return p
}

// Commit ends the transaction: the files stay as they are. It does nothing if the transaction is over.
func (tx *Tx) Commit() { tx.once.Do(func() { tx.end(); tx.release() }) }

// Rollback ends the transaction, and makes the files what they were when it began. Changes of other calls stay. If
// the transaction is over already, it returns the result of its rollback. If the outer transaction is over, it fails
// and changes nothing: other calls may have begun by then.
func (tx *Tx) Rollback(ctx context.Context) (RolledBack, error) {
	tx.rollback(ctx)
	return tx.result, tx.err
}

var errWholeIsOver = errors.New("the call that it was part of is over")

// rollback reports whether the transaction was open.
func (tx *Tx) rollback(ctx context.Context) (first bool) {
	tx.once.Do(func() {
		first = true
		defer tx.release()
		tx.end()
		tx.err = errWholeIsOver
		undo := func() {
			tx.result, tx.err = tx.w.tree.Rollback(ctx, tx.before, &RollbackOptions{Only: tx.call.Paths})
		}
		if tx.outer == nil {
			undo()
		} else {
			tx.outer.whileOpen(undo)
		}
		if tx.err != nil {
			tx.err = fmt.Errorf("workspace: rolling back call %s of %s: %w", tx.call.ID, tx.call.Tool, tx.err)
		}
	})
	return first
}

// whileOpen does something unless the transaction, or one that it is part of, is over. It cannot end meanwhile.
func (tx *Tx) whileOpen(do func()) bool {
	tx.ending.Lock()
	defer tx.ending.Unlock()
	switch {
	case tx.over:
		return false
	case tx.outer != nil:
		return tx.outer.whileOpen(do)
	}
	do()
	return true
}

func (tx *Tx) end() {
	tx.ending.Lock()
	defer tx.ending.Unlock()
	tx.over = true
}

func (tx *Tx) release() {
	if tx.call.Agent {
		tx.w.txs.mu.Lock()
		tx.w.txs.agents = slices.DeleteFunc(tx.w.txs.agents, func(other *Tx) bool { return other == tx })
		tx.w.txs.mu.Unlock()
	}
	if tx.before != nil {
		tx.before.Release()
	}
	tx.order().give(tx.claim)
}

// CallOf is what a tool call may change, by the catalogue of the agent that makes it, and whether it may change files at
// all. A call that only has others made changes nothing by itself: to wait for those while holding the workspace would be
// to wait for ever. ReadOnly reports tools that are not in the catalogue and change no files; nil means none.
func (w *Workspace) CallOf(of *tool.Catalogue, c event.ToolCall, readOnly func(name string) bool) (call Call, changes bool) {
	call = Call{ID: c.ID, Tool: c.Name}
	native, known := of.Native(c.Name)
	if !known {
		return call, readOnly == nil || !readOnly(c.Name)
	}
	call.Shell = native.Command != ""
	switch {
	case native.Caller || native.Needs&(tool.FileWrite|tool.ShellExecute) == 0 && !native.Risk.Has(tool.Mutates):
		return call, false
	case native.Needs != tool.FileWrite:
		return call, true
	}
	paths, all := native.PathsIn(c.Input)
	if !all || len(paths) == 0 || len(paths) > 1 && native.Scan == nil {
		return call, true
	}
	call.Paths, changes = w.callPaths(c.Dir, paths...)
	return call, changes
}

// callPaths returns the paths for a [Call] that changes the files which its input names. Nil means all: there are no
// names, or one may lead elsewhere. Relative names are in dir. Changes is false if no name leads into the workspace.
func (w *Workspace) callPaths(dir string, names ...string) (paths []string, changes bool) {
	for _, name := range names {
		if !literal(name) || dir == "" && !filepath.IsAbs(name) {
			return nil, true
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		rel, err := filepath.Rel(w.root, filepath.Clean(name))
		switch {
		case err != nil: // on another drive
		case filepath.IsLocal(rel):
			paths = append(paths, filepath.ToSlash(rel))
		case w.leadsIn(name):
			return nil, true
		}
	}
	return paths, paths != nil || len(names) == 0
}

// literal reports whether every agent takes a path as it is: some expand a tilde, trim spaces, or compose
// what Unicode can write in two ways.
func literal(name string) bool {
	return name != "" && name == strings.TrimSpace(name) && !strings.HasPrefix(name, "~") &&
		!strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
}

// plain reports whether a path leads to nothing but itself: no element is a link, and the file has no other name.
func (w *Workspace) plain(p string) bool {
	for at := p; at != "."; at = path.Dir(at) {
		entry, err := w.tree.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil, entry.Kind == filetree.Link, at == p && entry.Kind == filetree.File && entry.Stamp.Links > 1:
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
		if info, err := os.Lstat(at); err == nil && info.Mode().Type() == fs.ModeSymlink {
			return true // to what is not there yet
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}
