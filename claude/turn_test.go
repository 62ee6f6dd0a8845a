// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ends records the turns that a tracker ended.
type ends struct {
	mu     sync.Mutex
	upTo   []int
	forced []bool
}

func (e *ends) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.upTo)
}

func newTracker(ceiling time.Duration) (*turnTracker, *ends) {
	e := &ends{}
	return &turnTracker{ceiling: ceiling, ended: func(upTo int, forced bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.upTo = append(e.upTo, upTo)
		e.forced = append(e.forced, forced)
	}}, e
}

func TestTurnTracker_Rule(t *testing.T) {
	for _, tt := range []struct {
		name string
		play func(*turnTracker)
		want []int // the newest prompt covered by each turn that ended
	}{
		{"a result while running is not the end", func(tr *turnTracker) {
			tr.prompt()
			tr.sessionState("running")
			tr.result()
		}, nil},
		{"idle after the result is", func(tr *turnTracker) {
			tr.prompt()
			tr.sessionState("running")
			tr.result()
			tr.sessionState("idle")
		}, []int{1}},
		{"idle from before the prompt does not end it", func(tr *turnTracker) {
			tr.sessionState("idle")
			tr.prompt()
			tr.sessionState("idle")
		}, nil},
		{"a result that comes while idle ends it", func(tr *turnTracker) {
			tr.prompt()
			tr.sessionState("idle")
			tr.result()
		}, []int{1}},
		{"a background agent: two results, one end", func(tr *turnTracker) {
			tr.prompt()
			tr.sessionState("running")
			tr.task("a", "local_agent", true)
			tr.result()
			tr.task("a", "", false)
			tr.activity()
			tr.result()
			tr.sessionState("idle")
		}, []int{1}},
		{"prompts answered together end together", func(tr *turnTracker) {
			tr.prompt()
			tr.sessionState("running")
			tr.prompt()
			tr.prompt()
			tr.result()
			tr.sessionState("idle")
		}, []int{3}},
		{"a turn that began by itself ends by itself", func(tr *turnTracker) {
			tr.prompt()
			tr.sessionState("running")
			tr.result()
			tr.sessionState("idle")
			tr.sessionState("running")
			tr.activity()
			tr.result()
			tr.sessionState("idle")
		}, []int{1, 1}},
		{"a torn result ends with the rest", func(tr *turnTracker) {
			tr.prompt()
			tr.sessionState("running")
			tr.malformed(true)
			tr.sessionState("idle")
			tr.sessionState("idle")
		}, []int{1}},
		{"a torn line without a result ends with the rest", func(tr *turnTracker) {
			tr.prompt()
			tr.sessionState("running")
			tr.malformed(false)
			tr.sessionState("idle")
		}, []int{1}},
		{"a torn line between turns ends nothing", func(tr *turnTracker) {
			tr.malformed(false)
			tr.prompt()
			tr.sessionState("idle")
		}, nil},
		{"a torn line before the CLI begins ends nothing", func(tr *turnTracker) {
			tr.prompt()
			tr.malformed(false)
			tr.sessionState("idle")
			tr.sessionState("running")
			tr.sessionState("idle")
		}, nil},
		{"a torn line and then the result: one end", func(tr *turnTracker) {
			tr.prompt()
			tr.sessionState("running")
			tr.malformed(false)
			tr.result()
			tr.sessionState("idle")
			tr.prompt()
			tr.sessionState("running")
			tr.sessionState("idle")
		}, []int{1}},
		{"an old CLI: a torn result ends it", func(tr *turnTracker) {
			tr.prompt()
			tr.malformed(true)
		}, []int{1}},
		{"an old CLI reports no state: the result ends it", func(tr *turnTracker) {
			tr.prompt()
			tr.result()
		}, []int{1}},
		{"an old CLI with an agent at work: the next result ends it", func(tr *turnTracker) {
			tr.prompt()
			tr.task("a", "local_agent", true)
			tr.result()
			tr.task("a", "", false)
			tr.result()
		}, []int{1}},
		{"an old CLI with a shell at work: shells are not waited for", func(tr *turnTracker) {
			tr.prompt()
			tr.task("sh", "local_bash", true)
			tr.result()
		}, []int{1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tr, e := newTracker(-1)
			tt.play(tr)
			if !slices.Equal(e.upTo, tt.want) {
				t.Errorf("turns that ended cover prompts %v, want %v", e.upTo, tt.want)
			}
		})
	}
}

// The empty result of a prompt that starts no turn ends none, in whatever order it comes.
func TestTurnTracker_QuietPromptEndsNoTurn(t *testing.T) {
	tr, e := newTracker(-1)
	tr.quietPrompt()
	tr.prompt()
	if !tr.isQuiet(true) || tr.isQuiet(true) {
		t.Error("one empty result belongs to the quiet prompt, the next one does not")
	}
	tr.quietPrompt()
	if tr.isQuiet(false) || tr.isQuiet(true) {
		t.Error("a result with an answer has covered the quiet prompt")
	}
	if e.count() != 0 {
		t.Error("a turn ended")
	}
}

func TestTurnTracker_CeilingEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, e := newTracker(time.Minute)
		tr.prompt()
		tr.sessionState("running")
		tr.result()
		time.Sleep(59 * time.Second)
		tr.sessionState("requires_action") // a person is asked: no deadline runs
		time.Sleep(time.Hour)
		tr.sessionState("running")
		synctest.Wait()
		if e.count() != 0 {
			t.Fatalf("the turn ended while a question was open")
		}
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if !slices.Equal(e.forced, []bool{true}) {
			t.Errorf("ends forced by the ceiling: %v, want one", e.forced)
		}
	})
}

func TestTurnTracker_ActivityResetsTheCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr, e := newTracker(time.Minute)
		tr.prompt()
		tr.sessionState("running")
		tr.result()
		time.Sleep(59 * time.Second)
		tr.activity()
		time.Sleep(time.Hour)
		synctest.Wait()
		if e.count() != 0 {
			t.Errorf("a turn that goes on was ended by the ceiling of its first result")
		}
		tr.stop()
	})
}
