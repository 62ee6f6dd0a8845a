// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"iter"

	"github.com/drover-agents/drover/event"
)

// Wait reads a stream to its end and returns the done event. The error is that of a run that was
// refused or failed; a run that was interrupted or reached a limit has none, see [event.Done.Status].
func Wait(stream iter.Seq2[event.Event, error]) (event.Done, error) {
	var failure error
	for e, err := range stream {
		if err != nil {
			return event.Done{}, err
		}
		switch p := e.Payload.(type) {
		case event.Error:
			failure = p
		case event.Done:
			if p.Status != event.DoneError {
				return p, nil
			}
			if failure == nil {
				failure = event.Error{Message: p.Result}
			}
			return p, failure
		}
	}
	return event.Done{}, errors.New("agent: the stream ended without a done event")
}
