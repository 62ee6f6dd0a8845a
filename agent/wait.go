// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
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
			if !p.Recoverable {
				failure = p
			}
		case event.Done:
			return p, failed(p, failure)
		}
	}
	return event.Done{}, errors.New("agent: the stream ended without a done event")
}

// failed is the error of a run: that of its error event, else that of the done event.
func failed(done event.Done, failure error) error {
	switch {
	case done.Status != event.DoneError:
		return nil
	case failure != nil:
		return failure
	}
	return event.Error{Message: cmp.Or(done.Result, "the agent failed and gave no reason")}
}
