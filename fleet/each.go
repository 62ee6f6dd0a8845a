// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// HandleEach makes an agent of a function that opens a [Handler] for each attempt at a run: for agents whose adapter depends on
// the request. Run is the id of the run. The attempt ends with the error of end, which gets the one of the attempt, nil if it
// has an answer; end is called once, also if the handler panics, and when the answer of an earlier attempt is used.
func HandleEach[Req, Resp any](name string, open func(ctx context.Context, run string, request Req) (h Handler[Req, Resp], end func(error) error, err error)) Agent {
	return Agent{name, func(ctx context.Context, t *task) (output json.RawMessage, err error) {
		var request Req
		if err := json.Unmarshal(t.request, &request); err != nil {
			return nil, Permanent(fmt.Errorf("the request is not one of agent %s: %w", name, err))
		}
		h, end, err := open(ctx, t.log.id, request)
		if err != nil {
			return nil, err
		}
		failed := true
		defer func() {
			if failed {
				_ = end(errPanicked) // the panic is what is reported
			}
		}()
		output, err = Handle(name, h).handle(ctx, t)
		failed = false
		return output, end(err)
	}}
}

// Permanent marks an error of a [Handler] that another attempt would have too: the run is dead at once.
func Permanent(err error) error { return permanentError{err} }

var errPanicked = errors.New("the handler panicked")
