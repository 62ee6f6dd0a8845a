// SPDX-License-Identifier: Apache-2.0

// Package payload gives the payloads of events their types.
package payload

import (
	"encoding/json"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/workspace"
)

// extensions read the payloads of extensions that have a type of their own.
var extensions = map[event.Kind]func(event.Extension) event.Payload{
	claudecode.KindTask:       decoded[claudecode.Task],
	claudecode.KindTokens:     decoded[claudecode.Tokens],
	claudecode.KindCompaction: decoded[claudecode.Compaction],
	claudecode.KindRateLimit:  decoded[claudecode.RateLimit],
	isolation.KindProtection:  decoded[isolation.Protection],
	isolation.KindBreach:      decoded[isolation.Breach],
	workspace.KindRestored:    decoded[workspace.Restored],
	gateway.KindConnection:    decoded[proxy.Connection],
	gateway.KindLimit:         decoded[gateway.Limit],
	gateway.KindBackOff:       decoded[gateway.BackOff],
	gateway.KindModelCall:     decoded[gateway.ModelCall],

	drover.CompletionFailed{}.EventKind(): decoded[drover.CompletionFailed],
}

// Typed is the payload of an extension that came as JSON, in its own type where that is known.
func Typed(p event.Payload) event.Payload {
	if e, ok := p.(event.Extension); ok {
		if read, known := extensions[e.Kind]; known {
			return read(e)
		}
	}
	return p
}

func decoded[P event.Payload](e event.Extension) event.Payload {
	var p P
	if json.Unmarshal(e.Data, &p) != nil {
		return e
	}
	return p
}
