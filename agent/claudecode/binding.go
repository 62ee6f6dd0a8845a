// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
)

var errNoHost = errors.New("claudecode: the request has Permissions, but no Host that enforces them\n" +
	"  next: run it with an agent.Runner, which makes one, or set Request.Host to a gate.Engine")

// bindAll puts the host and the hooks of a request into the options of its run. What is vouched for are inputs as
// Rewrite has made them: nobody has judged the old ones.
func bindAll(o *claude.Options, req agent.Request, home func() string, tell func(event.Payload)) error {
	if err := bind(o, req); err != nil {
		return err
	}
	if req.Host != nil {
		o.Hooks = append(o.Hooks[:len(o.Hooks):len(o.Hooks)], denyOwnFiles(home))
		newVouchers(req.Host, o.Dir).observe(o)
	}
	return bindHooks(o, req, tell)
}

// bind puts the host of a request into the options of its run.
func bind(o *claude.Options, req agent.Request) error {
	switch host := req.Host.(type) {
	case nil:
		if req.Permissions != nil {
			return errNoHost
		}
		return nil
	case gated:
		return bindGate(o, host)
	default:
		return bindDecider(o, host)
	}
}

// bindDecider has a host decide that is no gate.
func bindDecider(o *claude.Options, host agent.Host) error {
	if err := o.RequireHooks(); err != nil {
		return err
	}
	hooks := []claude.Hook{Hook(host)}
	for _, h := range o.Hooks {
		hooks = append(hooks, Judged(host, h))
	}
	o.Hooks = hooks
	o.CanUseTool = Permission(host, o.CanUseTool)
	return nil
}

// avoidRootBypass takes the default mode in place of bypassPermissions where the CLI would refuse to
// start: for root, outside of a sandbox. It makes no difference, since the hook of the host decides
// about every call, and what it allows runs without a question in either mode.
func avoidRootBypass(o *claude.Options) {
	if o.PermissionMode == claude.ModeBypassPermissions && refusesBypass(o) {
		o.PermissionMode = claude.ModeDefault
	}
}

// refusesBypass reports whether the CLI would refuse bypassPermissions.
func refusesBypass(o *claude.Options) bool {
	if os.Geteuid() != 0 || o.User != "" {
		return false
	}
	return !slices.ContainsFunc(o.Environ(), func(entry string) bool {
		wrapped, ok := strings.CutPrefix(entry, "CLAUDE_CODE_BUBBLEWRAP=")
		return entry == "IS_SANDBOX=1" || ok && wrapped != "" && wrapped != "0"
	})
}

// denials remembers which calls were denied, by whoever was asked about them in this program. The CLI
// does not say so: to the model a denial is an error like any other.
type denials struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (d *denials) has(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ids[id]
}

func (d *denials) add(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ids == nil {
		d.ids = map[string]bool{}
	}
	d.ids[id] = true
}

// observe listens to the answers that the hooks and the permission callback give.
func (d *denials) observe(o *claude.Options) {
	var hooks []claude.Hook
	for _, h := range o.Hooks {
		hooks = append(hooks, d.observed(h))
	}
	o.Hooks = hooks
	if ask := o.CanUseTool; ask != nil {
		o.CanUseTool = func(ctx context.Context, req *claude.PermissionRequest) (claude.PermissionResult, error) {
			denied := true // a callback that panics denies
			defer func() {
				if denied {
					d.add(req.ToolUseID)
				}
			}()
			result, err := ask(ctx, req)
			denied = err != nil || !claude.Allows(result)
			return result, err
		}
	}
}

func (d *denials) observed(h claude.Hook) claude.Hook {
	inner := h.Func
	if h.Event != claude.HookPreToolUse || inner == nil {
		return h
	}
	h.Func = func(ctx context.Context, in claude.HookInput) (claude.HookOutput, error) {
		denied := true // a hook that panics denies
		defer func() {
			if call, ok := in.(*claude.PreToolUseInput); ok && denied {
				d.add(call.ToolUseID)
			}
		}()
		out, err := inner(ctx, in)
		denied = err != nil || claude.Denies(out)
		return out, err
	}
	return h
}
