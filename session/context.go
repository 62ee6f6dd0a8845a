// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"

	"github.com/drover-agents/drover/tool"
)

var key = tool.NewKey[*Session]("session")

// With returns a context in which [From] finds the session.
func With(ctx context.Context, s *Session) context.Context { return key.With(ctx, s) }

// From returns the session that a tool's handler works in, and whether there is one.
func From(ctx context.Context) (*Session, bool) { return key.From(ctx) }
