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

	mu    sync.Mutex
	lines *lines // knows what is going on
	over  bool   // the done event was written: nothing can be stopped any more
}

func newJSONDisplay(out, errs io.Writer, failed func(error)) *jsonDisplay {
	return &jsonDisplay{out: out, errs: errs, failed: failed, lines: newLines(displayOptions{})}
}

func (d *jsonDisplay) show(e event.Event) {
	d.mu.Lock()
	d.lines.rows(e)
	_, d.over = e.Payload.(event.Done)
	d.mu.Unlock()
	line, err := e.MarshalJSON()
	if err == nil {
		_, err = d.out.Write(append(line, '\n'))
	}
	if err != nil {
		d.failed(err)
	}
}

func (d *jsonDisplay) stopping() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over {
		fmt.Fprintln(d.errs, "drover:", clip(d.lines.interrupted(), plainWidth))
	}
}

func (*jsonDisplay) close() {}

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
