// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"time"

	"github.com/drover-agents/drover/event"
)

// redrawEvery is how often the status line may change.
const redrawEvery = 100 * time.Millisecond

// A live view shows a run on a terminal: finished lines above, and below them a status line with the activity or a question.
//
// Between two writes the cursor is at the beginning of the status line. So the line can be cleared, with all rows into which
// a terminal that became narrower has broken it, by erasing from the cursor on; lines above are never touched.
type live struct {
	keyboard *keyboard
	screen   *os.File
	turn     chan struct{} // held while a question is open
	over     chan struct{} // closed by Close
	ended    sync.WaitGroup

	mu       sync.Mutex
	layout   layout
	lines    *lines
	shown    string // the status line on the screen
	stale    bool   // it is to be drawn again even if it has not changed
	question *question
	halting  bool // the run is being stopped
	finished bool // the done event was shown
	closed   bool
}

func newLive(in, out *os.File, opts Options, l layout) *live {
	v := &live{
		keyboard: newKeyboard(in), screen: out, layout: l, lines: newLines(opts),
		turn: make(chan struct{}, 1), over: make(chan struct{}),
	}
	v.keyboard.silence()
	signals := make(chan os.Signal, 1)
	notifyTerminal(signals)
	v.ended.Go(func() { v.keepDrawn(signals) })
	return v
}

// keepDrawn redraws the status line when something in it has changed.
func (v *live) keepDrawn(signals chan os.Signal) {
	defer signal.Stop(signals)
	tick := time.Tick(redrawEvery)
	for {
		select {
		case <-v.over:
			return
		case <-signals:
			v.renew()
		case <-tick:
			v.mu.Lock()
			v.drawLocked(nil)
			v.mu.Unlock()
		}
	}
}

// renew draws for a terminal that has another size, or that others have used in between.
func (v *live) renew() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed {
		return
	}
	v.layout.width = widthOf(v.screen)
	if v.question != nil && v.question.open {
		v.keyboard.listen()
	} else {
		v.keyboard.silence()
	}
	v.stale = true
	v.drawLocked(nil)
}

// drawLocked writes finished lines, and the status line below them if it has changed.
func (v *live) drawLocked(above []string) {
	status := v.statusLocked()
	if v.closed || len(above) == 0 && status == v.shown && !v.stale {
		return
	}
	var b strings.Builder
	if v.shown != "" {
		b.WriteString("\r\x1b[J")
	}
	for _, line := range above {
		b.WriteString(line + "\r\n")
	}
	if status != "" {
		b.WriteString(status + "\r")
	}
	v.shown, v.stale = status, false
	_, _ = io.WriteString(v.screen, b.String()) // a lost terminal has no reader for the error
}

// statusLocked is the status line. It leaves the last column free, where terminals disagree on what the cursor does.
func (v *live) statusLocked() string {
	room := v.layout.width - 1
	switch {
	case v.question != nil:
		return v.question.line(room)
	case v.finished || v.lines.opts.Quiet:
		return ""
	}
	return v.layout.coloured(part{v.lines.status(room, v.halting, time.Since(v.lines.opts.started)), toneQuiet})
}

func (v *live) Show(e event.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	rows := v.lines.rows(e)
	if v.question != nil { // it comes from a call: no text before it is the answer
		rows = append(rows, v.lines.flush()...)
	}
	above := v.laidOut(rows)
	done, isDone := e.Payload.(event.Done)
	if isDone {
		v.finished = true
		above = append(above, v.answerLocked(done)...)
	}
	if len(above) > 0 {
		v.drawLocked(above)
	}
}

// laidOut are the lines of rows, as far as they are wanted.
func (v *live) laidOut(rows []row) []string {
	var lines []string
	if v.lines.opts.Quiet {
		return nil
	}
	for _, r := range rows {
		lines = append(lines, v.layout.lines(r)...)
	}
	return lines
}

// answerLocked is what follows the last row.
func (v *live) answerLocked(done event.Done) []string {
	var b strings.Builder
	v.lines.writeAnswer(&b, done)
	if b.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

func (v *live) Stopping() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.halting = true
	if !v.lines.opts.Quiet && !v.finished {
		v.drawLocked([]string{Clip(v.lines.interrupted(), v.layout.width)})
	}
}

// Close clears the status line and leaves the terminal as it was.
func (v *live) Close() {
	v.mu.Lock()
	if v.closed {
		v.mu.Unlock()
		return
	}
	v.finished, v.question = true, nil
	v.drawLocked(v.laidOut(v.lines.flush()))
	v.closed = true
	v.keyboard.restore()
	close(v.over)
	v.mu.Unlock()
	v.ended.Wait()
}
