// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/drover-agents/drover/event"

// A display shows a run to whoever started it: as lines in a pipe, as a live view on a terminal, as
// JSON for a program.
type display interface {
	// show is called with each event, in order; the last one is the done event.
	show(e event.Event)
	// close gives the terminal back. Nothing is shown afterwards.
	close()
}
