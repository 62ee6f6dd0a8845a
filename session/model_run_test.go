// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/session"
)

func drawEvent(t *rapid.T) any {
	small := rapid.IntRange(1, 4)
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) any { return added{rapid.OneOf(small, rapid.Just(13)).Draw(t, "n")} }),
		rapid.Custom(func(t *rapid.T) any { return remark{rapid.StringN(0, 3, 9).Draw(t, "text")} }),
		rapid.Custom(func(t *rapid.T) any { return item{small.Draw(t, "id"), small.Draw(t, "name"), small.Draw(t, "owner")} }),
	).Draw(t, "event")
}

// The heart of the package's tests: whatever is done to a session, its slices are what the plain model
// computes by definition.
func TestSession_EqualsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		worlds := []*world{{disk: newDisk()}}
		worlds[0].open(t)
		here := func() *world { return worlds[rapid.IntRange(0, len(worlds)-1).Draw(t, "world")] }
		for range rapid.IntRange(1, testkit.Size(40, 60)).Draw(t, "steps") {
			w := here()
			if w.disk != nil {
				w.disk.full = rapid.IntRange(0, 9).Draw(t, "full") == 0
			}
			if c := w.step(t); c != nil && len(worlds) < 4 {
				worlds = append(worlds, c)
			}
			w.check(t, rapid.UintRange(0, 255).Draw(t, "compared"))
		}
		for _, w := range worlds {
			w.check(t, 255)
		}
	})
}

// step does one thing to a world. It returns a new one if there is one.
func (w *world) step(t *rapid.T) *world {
	steps := map[string]func(){
		"dispatch": func() { w.dispatch(t, drawEvent(t)) },
		"begin":    func() { w.begin(t) },
		"commit":   func() { w.commit(t) },
		"rollback": func() { w.rollback(t) },
		"snapshot": func() { w.snaps = append(w.snaps, w.s.Snapshot()) },
		"restore":  func() { w.restore(t) },
		"seed": func() {
			to := []item{{1, 1, 9}, {2, 3, 9}}
			w.do(t, func(ctx context.Context) error { return session.Seed(ctx, w.s, to...) }, seededItems(to))
		},
		"clear": func() {
			w.do(t, func(ctx context.Context) error { return session.Clear[added](ctx, w.s) }, clearedAdds{})
		},
		"reset":  func() { w.do(t, w.s.Reset, reset{}) },
		"late":   func() { w.registerLate() },
		"notes":  func() { w.noteLog = !w.noteLog; w.defineNotes(w.s) },
		"key":    func() { w.byName = !w.byName; w.defineItems(w.s) },
		"reopen": func() { w.reopen(t) },
	}
	// What happens most often is named more than once.
	names := []string{"dispatch", "dispatch", "dispatch", "begin", "begin", "commit", "rollback", "snapshot", "restore", "seed", "clear", "reset", "late", "notes", "key", "reopen", "clone"}
	name := rapid.SampledFrom(names).Draw(t, "step")
	if name == "clone" {
		return w.clone(t)
	}
	steps[name]()
	return nil
}

func (w *world) registerLate() {
	if !w.hasLate {
		w.hasLate = true
		w.defineLate(w.s)
	}
}
