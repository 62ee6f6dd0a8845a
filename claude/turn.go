// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"sync"
	"time"
)

// A turnTracker decides when a turn is over.
//
// A result alone does not end it: with background agents a second turn and its result follow without a prompt. A CLI that
// reports its session state sends "idle" when it will do no more by itself; after a result that is the end. An older CLI
// reports no state; there the end is a result while no background agent or workflow is known to run. Shells and monitors do
// not count, since they may never end. A ceiling after the last result covers lost messages.
type turnTracker struct {
	ceiling time.Duration
	// ended is called, without the lock, when a turn is over; upTo is the number of the newest
	// prompt that the turn covers, forced is true if the ceiling ended it.
	ended func(upTo int, forced bool)

	mu       sync.Mutex
	prompts  int // prompts sent so far
	quiet    int // prompts that start no turn, whose empty result may still come
	open     bool
	resulted bool
	torn     bool // a line of the open turn could not be read, which may have been its result
	reports  bool // the CLI reports its session state
	state    string
	tasks    map[string]bool // background agents and workflows at work
	timer    *time.Timer
	timerRun int           // distinguishes a timer that fired late from the current one
	rest     chan struct{} // closed when the open turn has its result or ends
}

// prompt notes that a prompt is about to be written, and returns its number.
func (t *turnTracker) prompt() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.prompts++
	t.reopenLocked()
	return t.prompts
}

// quietPrompt notes that a prompt that starts no turn is about to be written. The CLI answers it with
// an empty result, which must not be taken for the end of a turn.
func (t *turnTracker) quietPrompt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.quiet++
}

// isQuiet reports whether a result belongs to a quiet prompt. A result with something in it may have
// covered those before it, so they are no longer waited for.
func (t *turnTracker) isQuiet(empty bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !empty || t.quiet == 0 {
		t.quiet = 0
		return false
	}
	t.quiet--
	return true
}

func (t *turnTracker) isOpen() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open
}

// resting returns a channel that is closed when the open turn has a result or ends; nil if no turn is open or it has its
// result already.
func (t *turnTracker) resting() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open || t.resulted {
		return nil
	}
	if t.rest == nil {
		t.rest = make(chan struct{})
	}
	return t.rest
}

// activity notes a message that only a running turn produces: the turn goes on, or a new one has begun without a prompt.
func (t *turnTracker) activity() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.open || t.resulted {
		t.reopenLocked()
	}
}

func (t *turnTracker) result() {
	t.mu.Lock()
	t.open, t.resulted = true, true
	t.restLocked()
	over := len(t.tasks) == 0
	if t.reports {
		over = t.state == "idle"
	}
	t.settle(over)
}

// malformed notes a line that could not be read. If it was the result, the turn has none; if that is not
// known, the turn has none when the CLI reports that it is idle. Before the CLI reports that it works on
// the prompt, the line cannot be a result.
func (t *turnTracker) malformed(isResult bool) {
	t.mu.Lock()
	t.torn = t.torn || t.open && t.state != "" && t.state != "idle"
	t.mu.Unlock()
	if isResult {
		t.result()
	}
}

// sessionState notes the state that the CLI reports: running, requires_action or idle.
func (t *turnTracker) sessionState(state string) {
	t.mu.Lock()
	t.reports, t.state = true, state
	if state == "requires_action" {
		t.stopTimerLocked()
	}
	t.settle(state == "idle" && t.open && (t.resulted || t.torn))
}

// task notes that a background task began or ended. Only agents and workflows hold a turn open.
func (t *turnTracker) task(id, kind string, running bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !running {
		delete(t.tasks, id)
		return
	}
	if kind == "local_agent" || kind == "local_workflow" {
		if t.tasks == nil {
			t.tasks = map[string]bool{}
		}
		t.tasks[id] = true
	}
}

// stop forgets the timer. It is called when no more lines will come.
func (t *turnTracker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopTimerLocked()
	t.restLocked()
}

// settle ends the turn if it is over, or starts the ceiling if it has a result. It unlocks t.mu.
func (t *turnTracker) settle(over bool) {
	if !over {
		if t.open && t.resulted && t.state != "requires_action" {
			t.startTimerLocked()
		}
		t.mu.Unlock()
		return
	}
	t.open, t.resulted, t.torn = false, false, false
	t.stopTimerLocked()
	t.restLocked()
	upTo := t.prompts
	t.mu.Unlock()
	t.ended(upTo, false)
}

func (t *turnTracker) reopenLocked() {
	t.open, t.resulted = true, false
	t.stopTimerLocked()
}

func (t *turnTracker) startTimerLocked() {
	if t.timer != nil || t.ceiling < 0 {
		return
	}
	run := t.timerRun
	t.timer = time.AfterFunc(t.ceiling, func() { t.expire(run) })
}

func (t *turnTracker) stopTimerLocked() {
	t.timerRun++
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

func (t *turnTracker) expire(run int) {
	t.mu.Lock()
	if run != t.timerRun || !t.open {
		t.mu.Unlock()
		return
	}
	t.open, t.resulted, t.torn = false, false, false
	t.stopTimerLocked()
	upTo := t.prompts
	t.mu.Unlock()
	t.ended(upTo, true)
}

func (t *turnTracker) restLocked() {
	if t.rest != nil {
		close(t.rest)
		t.rest = nil
	}
}
