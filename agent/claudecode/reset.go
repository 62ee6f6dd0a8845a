// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
)

var _ agent.Resetter = (*run)(nil)

// clearCommand makes the CLI start a conversation from scratch.
const clearCommand = "/clear"

// Reset implements [agent.Resetter]. It is refused while a task works in the background, and once a callback
// of base has changed the CLI's permission rules: both would outlive the conversation. If it fails later, the
// conversation is of no use any more. Files and detached processes that the agent has left are not touched, and
// the model reads that there was such a command.
func (r *run) Reset(ctx context.Context) error {
	if err := r.occupy(); err != nil {
		return err
	}
	defer r.busy.Unlock()
	if err := r.clearable(ctx); err != nil {
		return advice.Wrap(fmt.Errorf("claudecode: the conversation cannot be reset: %w", err), "close it and open another one")
	}
	if err := r.clear(ctx); err != nil {
		r.broken = advice.Wrap(fmt.Errorf("claudecode: the conversation was not reset: %w", err), "close it and open another one")
		return r.broken
	}
	return nil
}

// clearable is an error if something would be left of the conversation, and changes nothing.
func (r *run) clearable(ctx context.Context) error {
	rested := r.settle(ctx, restTime)
	switch {
	case r.broken != nil:
		return r.broken
	case !rested:
		return errRestless
	case r.opts.VerbatimPrompts:
		return errors.New("with VerbatimPrompts the CLI takes no commands")
	case len(r.normal.taskCalls) > 0:
		return errors.New("a task is still at work in the background")
	case r.rules.changed.Load():
		return errors.New("the permission rules of the CLI were changed")
	}
	return nil
}

// clear begins a new conversation in the same process, and checks that it is one.
func (r *run) clear(ctx context.Context) error {
	r.conversation.send(clearCommand)
	begun, end, err := r.awaitTurn(ctx)
	if err == nil {
		err = end.Err()
	}
	if err != nil {
		return err
	}
	before := r.init
	switch {
	case begun == nil || begun.SessionID == "" || begun.SessionID == cmp.Or(r.normal.session, r.session.begun):
		return errors.New("the CLI goes on with the old one")
	case before != nil && (begun.CWD != before.CWD || begun.PermissionMode != before.PermissionMode || begun.Model != before.Model):
		return fmt.Errorf("the CLI is in %q with %s and %s, and began in %q with %s and %s",
			begun.CWD, begun.Model, begun.PermissionMode, before.CWD, before.Model, before.PermissionMode)
	}
	r.init, r.late = begun, nil
	r.normal = r.normal.fresh()
	r.session = continuity{begun: begun.SessionID, session: begun.SessionID, kept: r.session.kept}
	within, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	_ = r.conversation.client.Load().Stored(within) // the old conversation is free then; the next turn reports what was not stored
	return nil
}

// awaitTurn waits until the CLI has carried out a command, and returns how that began and ended. Its messages are discarded.
func (r *run) awaitTurn(ctx context.Context) (begun *claude.SystemInit, end *claude.TurnEnd, err error) {
	for {
		select {
		case next, more := <-r.conversation.outputs:
			if !more || next.failed != nil {
				return nil, nil, gone(next.failed)
			}
			switch m := next.message.(type) {
			case *claude.SystemInit:
				begun = m
			case *claude.ConversationReset:
				r.normal.usage.reset(m)
			case *claude.TurnEnd:
				return begun, m, nil
			}
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		case <-r.life.Done():
			return nil, nil, errClosed
		}
	}
}

// fresh is the normaliser of another conversation. The CLI's count of what was used may go on.
func (n *normaliser) fresh() normaliser {
	return normaliser{req: n.req, ledger: n.ledger, wrapped: n.wrapped, now: n.now, newID: n.newID, usage: n.usage}
}

// ruleChanges know whether a callback has changed the permission rules of the CLI, which forgets them only when it ends.
type ruleChanges struct{ changed atomic.Bool }

// observe listens to the answers of those who can change the rules.
func (c *ruleChanges) observe(o *claude.Options) {
	if ask := o.CanUseTool; ask != nil {
		o.CanUseTool = func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
			result, err := ask(ctx, req)
			c.saw(result)
			return result, err
		}
	}
	for i, h := range o.Hooks {
		if inner := h.Func; h.Event == claude.HookPermissionRequest && inner != nil {
			o.Hooks[i].Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
				out, err := inner(ctx, in)
				if answer, ok := out.(*claude.PermissionRequestOutput); ok && answer != nil {
					c.saw(answer.Answer)
				}
				return out, err
			}
		}
	}
}

func (c *ruleChanges) saw(result claude.PermissionResult) {
	if allow, ok := allowed(result); ok && len(allow.UpdatedPermissions) > 0 {
		c.changed.Store(true)
	}
}
