// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"sync"

	"github.com/drover-agents/drover/event"
)

// A jsonView writes one event per line.
type jsonView struct {
	out, errs io.Writer
	// failed is called when an event could not be written.
	failed func(error)

	mu    sync.Mutex
	lines *lines // knows what is going on
	over  bool   // the done event was written: nothing can be stopped any more
}

// NewJSON makes a view for a program: one event per line of out, as JSON, and what is interrupted to errs. It calls
// failed when an event could not be written.
func NewJSON(out, errs io.Writer, opts Options, failed func(error)) View {
	return &jsonView{out: out, errs: errs, failed: failed, lines: newLines(opts)}
}

func (d *jsonView) Show(e event.Event) {
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

func (d *jsonView) Stopping() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over {
		fmt.Fprintln(d.errs, "drover:", Clip(d.lines.interrupted(), plainWidth))
	}
}

func (*jsonView) Close() {}
