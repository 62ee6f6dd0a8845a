// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"github.com/drover-agents/drover/agent/claudecode/catalogue"
	"github.com/drover-agents/drover/event"
)

// ForClaude is [Must] for a gate that knows the tools of Claude Code.
func ForClaude(policies ...Policy) *Gate {
	return Must(append([]Policy{KnowsAgent(catalogue.Tools())}, policies...)...)
}

// ClaudesCall is a call as policies of such a gate see it.
func ClaudesCall(call event.ToolCall) Call { return ForClaude().canonical(call, "") }
