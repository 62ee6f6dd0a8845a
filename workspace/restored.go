// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"slices"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/safetext"
)

// KindRestored is the kind of [Restored] events. From JSON they are decoded as an [event.Extension].
const KindRestored event.Kind = "workspace:restored"

// Restored records that a call failed, and that its changes were rolled back.
type Restored struct {
	CallID event.CallID `json:"toolUseId"`
	Tool   string       `json:"tool"`
	RolledBack
	// Error is why some changes could not be rolled back. Empty if all were.
	Error string `json:"error,omitzero"`
}

// EventKind implements [event.Payload].
func (Restored) EventKind() event.Kind { return KindRestored }

// String is the tool, how many paths were rolled back, and how many could not be: "Bash: 2 paths rolled back, 1 conflict".
func (r Restored) String() string {
	text := r.Tool + ": " + safetext.Plural(len(r.RolledBack.Restored), "path") + " rolled back"
	if n := len(r.Conflicts); n > 0 {
		text += ", " + safetext.Plural(n, "conflict")
	}
	if r.Error != "" {
		text += ": " + r.Error
	}
	return text
}

// Undo is [Tx.Rollback] for a call that has failed. It emits the rollback, and returns a text for the model, or "".
// With [Options.KeepFailedShell] the files of a command stay.
func (tx *Tx) Undo(ctx context.Context) string {
	if tx.w.opts.KeepFailedShell && tx.call.Shell {
		tx.Commit()
		return ""
	}
	if !tx.rollback(ctx) {
		return ""
	}
	r := Restored{CallID: tx.call.ID, Tool: tx.call.Tool, RolledBack: tx.result}
	if tx.err != nil {
		r.Error = advice.Text(tx.err)
	}
	if len(r.Restored) == 0 && len(r.Conflicts) == 0 && r.Error == "" { // the call had changed nothing
		return ""
	}
	tx.w.remember(r)
	if tx.call.Emit != nil {
		tx.call.Emit(r)
	}
	return r.text()
}

const rememberedRollbacks = 1000

func (w *Workspace) remember(r Restored) {
	w.txs.mu.Lock()
	defer w.txs.mu.Unlock()
	w.txs.restored = append(w.txs.restored, r)
	if more := len(w.txs.restored) - rememberedRollbacks; more > 0 {
		w.txs.restored = slices.Delete(w.txs.restored, 0, more)
	}
}

// Restored are the last thousand rollbacks of failed calls, the oldest first.
func (w *Workspace) Restored() []Restored {
	w.txs.mu.Lock()
	defer w.txs.mu.Unlock()
	return slices.Clone(w.txs.restored)
}
