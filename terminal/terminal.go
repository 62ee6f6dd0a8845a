// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/tool"
)

// A View shows one run. [New] makes it for a person, [NewJSON] for a program. It receives the events of the run and
// writes them to its output; it decides nothing.
type View interface {
	// Show is called with each event, in order; the last one is the done event.
	Show(e event.Event)
	// Stopping shows that the run is being stopped, and the interrupted calls. It may be called while Show is.
	Stopping()
	// Close gives the terminal back. Nothing is shown afterwards. It may be called twice.
	Close()
}

// Options set how a run is shown to a person. The zero value is ready to use.
type Options struct {
	// Quiet shows nothing but the answer. Questions are asked all the same.
	Quiet bool
	// Dir is the working directory. Paths below it are shown relative to it.
	Dir string
	// MaxUSD is the budget that the cost is shown against. Zero means none.
	MaxUSD float64
	// Catalogue is what is known of the tools of the agent: its adapter has it. It says which file a call is about,
	// and what an edit changes. Calls of other tools are shown by their command or address, or else by their input.
	Catalogue *tool.Catalogue
	// Reword rewrites the texts of errors and their advice. A command names its flags in them where packages name options. Nil
	// leaves them as they are.
	Reword func(text string) string
	// Answer writes the answer of a run in a form of its own.
	Answer func(w io.Writer, done event.Done) error

	started time.Time // lines count from here
}

// New makes a live view if in and out are terminals; its approver asks there. A terminal that
// cannot move its cursor gets plain lines, and an approver that asks between them. Everything else, and
// a program in the background, gets plain lines, and the approver is nil.
func New(in io.Reader, out io.Writer, opts Options) (View, gate.Approver) {
	opts.started = time.Now()
	screen, isScreen := fileOf(out)
	keyboard, isKeyboard := fileOf(in)
	l := layout{width: plainWidth}
	dumb := os.Getenv("TERM") == "dumb"
	if isScreen {
		l = layout{width: widthOf(screen), colour: os.Getenv("NO_COLOR") == "" && !dumb}
	}
	switch {
	case !isScreen || !isKeyboard || !inForeground(int(keyboard.Fd())):
		return newPlain(out, opts, l), nil
	case dumb || !canLive:
		return newPlain(out, opts, l), gate.TerminalApprover(in, out)
	}
	v := newLive(keyboard, screen, opts, l)
	return v, v
}

// reworded is a text as the program wants it, or as it is.
func (o *Options) reworded(text string) string {
	if o.Reword == nil {
		return text
	}
	return o.Reword(text)
}

// text is the text of an error for people.
func (o *Options) text(text string) string { return safetext.Text(o.reworded(text)) }

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	_, is := fileOf(stream)
	return is
}

// Width returns the columns of the terminal that out writes to. It is zero if out is not a terminal.
func Width(out io.Writer) int {
	screen, is := fileOf(out)
	if !is {
		return 0
	}
	return widthOf(screen)
}

// plainWidth is the width of lines that are not written to a terminal.
const plainWidth = 120

func fileOf(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	return f, ok && term.IsTerminal(int(f.Fd()))
}

func widthOf(f *os.File) int {
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
