// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/drover-agents/drover/event"
)

// A jsonDisplay writes one event per line, for programs.
type jsonDisplay struct {
	out, errs io.Writer
	// failed is told when an event could not be written.
	failed func(error)
}

func (d *jsonDisplay) show(e event.Event) {
	line, err := e.MarshalJSON()
	if err == nil {
		_, err = d.out.Write(append(line, '\n'))
	}
	if err != nil {
		d.failed(err)
	}
}

func (d *jsonDisplay) stopping() { fmt.Fprintln(d.errs, "drover: stopping the agent") }
func (d *jsonDisplay) close()    {}

// A guardedWriter tells when nobody can be written to any more. From then on it writes nothing.
type guardedWriter struct {
	to     io.Writer
	failed func(error)

	mu   sync.Mutex
	lost error
}

func (w *guardedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lost != nil {
		return 0, w.lost
	}
	n, err := w.to.Write(p)
	if err != nil {
		w.lost = err
		w.failed(err)
	}
	return n, err
}
