// SPDX-License-Identifier: Apache-2.0

package drover

import (
	"context"

	"github.com/drover-agents/drover/event"
)

// judge says whether a turn was the last. If not, next is what the user says now.
func (e *evaluation) judge(_ context.Context, t *turn) (o *outcome, next string, err error) {
	if t.Status != event.DoneSuccess {
		return nil, "", e.turnError(t)
	}
	e.stage = StageParse
	value, err := e.parse(t.Output)
	if err != nil {
		return nil, "", err
	}
	return &outcome{Summary: e.summary, value: value}, "", nil
}
