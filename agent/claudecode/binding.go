// SPDX-License-Identifier: Apache-2.0

package claudecode

import (
	"errors"
	"os"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/claude"
)

var errNoHost = advice.Wrap(errors.New("claudecode: the request has Permissions, but no Host that enforces them"), "run it with an agent.Runner, which makes one, or set Request.Host to a gate.Engine")

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

// bindDecider binds a host that is not a gate.
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

// avoidRootBypass uses the default mode instead of bypassPermissions where the CLI would refuse to
// start: for root, outside of a sandbox. It makes no difference, since the hook of the host decides
// about every call, and what it allows runs without a question in either mode.
func avoidRootBypass(o *claude.Options) {
	wrapped := environ(o, "CLAUDE_CODE_BUBBLEWRAP")
	sandboxed := environ(o, "IS_SANDBOX") == "1" || wrapped != "" && wrapped != "0"
	if o.PermissionMode == claude.ModeBypassPermissions && os.Geteuid() == 0 && o.User == "" && !sandboxed {
		o.PermissionMode = claude.ModeDefault
	}
}
