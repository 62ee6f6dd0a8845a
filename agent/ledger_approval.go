// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"errors"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/plainjson"
)

// An approval is what is known of a call of a tool of this program with one input. The zero value is nothing.
type approval int

const (
	approvalGiven approval = iota + 1 // once
	approvalUsed
	approvalOpposed // one hook denied it or wants a question; approvals by other hooks do not count
)

// An approvalKey is a call with one input, whichever of those that had the id: hosts remember decisions by it too.
type approvalKey struct {
	id           event.CallID
	name, digest string
}

// decideOwn is an error unless the call was allowed. A repeat of a used id is another call.
func (l *Ledger) decideOwn(ctx context.Context, p *passage) error {
	l.mu.Lock()
	key := l.approvalKeyLocked(p, p.shown)
	known, _ := l.approvals.Get(key)
	l.approvals.Put(key, approvalUsed)
	raw, opts := p.shown.raw, l.opts
	l.mu.Unlock()
	if opts.Host == nil || known == approvalGiven {
		return nil
	}
	call := p.ToolCall
	if known == approvalUsed || call.ID == "" {
		call.ID = event.CallID(ident.NewUUID())
	}
	call.Dir = opts.Dir
	d := opts.Host.Decide(ctx, call)
	if d.Verdict != event.Allow {
		return errors.New(cmp.Or(d.Reason, notPermitted(call.Name)))
	}
	if d.Input != nil && !plainjson.Equal(d.Input, raw) {
		return errors.New(otherInputOnly(call.Name))
	}
	return nil
}

func (l *Ledger) approvalKeyLocked(p *passage, in *input) approvalKey {
	if in.digest == "" {
		in.digest = plainjson.Digest(in.raw)
	}
	return approvalKey{p.ID, p.Name, in.digest}
}

// noteApprovalLocked notes the answer about a call with an input. An opposition is not overridden by another hook, which
// the agent asks at the same time, but by a permission question. A late answer to such a question does not approve a
// call that has run. Tools of the agent itself never come to us.
func (l *Ledger) noteApprovalLocked(p *passage, in *input, is approval) {
	if _, native := l.opts.Catalogue.Native(p.Name); native || p.ID == "" {
		return
	}
	key := l.approvalKeyLocked(p, in)
	known, _ := l.approvals.Get(key)
	if p.by == byQuestion && known == approvalUsed && is == approvalGiven || p.by == byHook && known == approvalOpposed {
		return
	}
	l.approvals.Put(key, is)
}
