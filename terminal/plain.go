// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/drover-agents/drover/event"
)

// plain writes lines for people, for pipes and files.
type plain struct {
	mu     sync.Mutex
	out    io.Writer
	layout layout
	lines  *lines
	// over means that the summary was shown: nothing can be stopped any more.
	over, closed bool
}

func newPlain(out io.Writer, opts Options, l layout) *plain {
	return &plain{out: out, layout: l, lines: newLines(opts)}
}

func (p *plain) Show(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	rows := p.lines.rows(e)
	if !p.lines.opts.Quiet {
		p.print(rows)
	}
	if done, ok := e.Payload.(event.Done); ok {
		p.over = true
		p.lines.writeAnswer(p.out, done)
	}
}

// print writes each row in one piece, so that lines of other programs come between, not inside.
func (p *plain) print(rows []row) {
	for _, r := range rows {
		p.printLines(p.layout.lines(r))
	}
}

func (p *plain) printLines(lines []string) {
	if len(lines) > 0 {
		fmt.Fprintln(p.out, strings.Join(lines, "\n"))
	}
}

func (p *plain) Stopping() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over && !p.closed && !p.lines.opts.Quiet {
		fmt.Fprintln(p.out, Clip(p.lines.interrupted(), p.layout.width))
	}
}

func (p *plain) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed && !p.lines.opts.Quiet {
		p.print(p.lines.flush())
	}
	p.closed = true
}
