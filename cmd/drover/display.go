// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
)

// A display shows a run to whoever started it: as lines in a pipe, as a live view on a terminal, as
// JSON for a program.
type display interface {
	// show is called with each event, in order; the last one is the done event.
	show(e event.Event)
	// stopping says that the run is being stopped, and what is thereby interrupted. It may be called
	// while show is.
	stopping()
	// close gives the terminal back. Nothing is shown afterwards. It may be called twice.
	close()
}

// displayOptions says how a run is shown to a person. The zero value is ready to use.
type displayOptions struct {
	// Quiet shows nothing but the answer. Questions are asked all the same.
	Quiet bool
	// Dir is the working directory. Paths below it are shown relative to it.
	Dir string
	// MaxUSD is the budget that the cost is shown against. Zero means none.
	MaxUSD float64
	// Answer writes the answer of a run in place of the result as it came.
	Answer func(w io.Writer, done event.Done) error

	// Width is the number of columns. Zero means those of the terminal, and 120 where there is none.
	Width int
	// Interrupt is called for ctrl-C while a question is open, when the terminal sends no signal.
	// Nil sends the signal to this program.
	Interrupt func()
	// Started is the time that lines count from. Zero means now.
	Started time.Time
}

// newDisplay makes a live view if in and out are terminals; its approver asks there. A terminal that
// cannot move its cursor gets plain lines, and an approver that asks between them. Everything else, and
// a program in the background, gets plain lines, and the approver is nil.
func newDisplay(in io.Reader, out io.Writer, opts displayOptions) (display, gate.Approver) {
	if opts.Started.IsZero() {
		opts.Started = time.Now()
	}
	if opts.Interrupt == nil {
		opts.Interrupt = interruptSelf
	}
	screen, isScreen := terminal(out)
	keyboard, isKeyboard := terminal(in)
	l := layout{width: cmp.Or(opts.Width, plainWidth)}
	dumb := os.Getenv("TERM") == "dumb"
	if isScreen {
		l = layout{width: cmp.Or(opts.Width, terminalWidth(screen)), colour: os.Getenv("NO_COLOR") == "" && !dumb}
	}
	switch {
	case !isScreen || !isKeyboard || !inForeground(int(keyboard.Fd())):
		return newPlain(out, opts, l), nil
	case dumb || !canLive:
		return newPlain(out, opts, l), gate.TerminalApprover(in, out)
	}
	v := newView(keyboard, screen, opts, l)
	return v, v
}

const plainWidth = 120

// terminal is the file of a terminal.
func terminal(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

func terminalWidth(f *os.File) int {
	if columns, _, err := term.GetSize(int(f.Fd())); err == nil && columns > 0 {
		return columns
	}
	return 80
}

func interruptSelf() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(os.Interrupt) // a system without signals has none to wait for either
	}
}
