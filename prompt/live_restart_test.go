// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/drover-agents/drover/session"
)

// The first request ends the run and counts; the next rendering has what was asked for.
func TestARestartShowsWhatTheModelAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ses := session.New(nil)
		opts := &LiveOptions{RenderOptions: RenderOptions{Session: ses}, Restart: true}
		l := mustLive(t, library(), opts)
		ctx, stop := l.Context(t.Context())
		defer stop()
		before := l.toolNames()
		begun := time.Now()
		go l.callOpen(t, "manual.deploy", "task")
		<-ctx.Done()
		if took := time.Since(begun); took != 0 {
			t.Errorf("the run was told after %s, want at once", took)
		}
		e, ok := errors.AsType[*ExpansionRequired](context.Cause(ctx))
		want := &ExpansionRequired{map[string]Visibility{"manual": Full, "manual.deploy": Full}, "I want to know.", []string{"manual.deploy"}}
		if diff := cmp.Diff(want, e); !ok || diff != "" {
			t.Errorf("the cause (-want +got):\n%s", diff)
		}
		if r := l.callOpen(t, "notes"); !r.OK() || l.Expansion() != e {
			t.Errorf("a second request gave %q and %v, want the first to count", r.Render(), l.Expansion())
		}
		if _, err := l.Open(t.Context(), "notes"); err != e {
			t.Errorf("a program gets %v, want %v", err, e)
		}
		if diff := cmp.Diff(before, l.toolNames()); diff != "" {
			t.Errorf("tools of the run that ends (-want +got):\n%s", diff)
		}
		if err := e.Apply(t.Context(), ses); err != nil {
			t.Fatal(err)
		}
		again := mustLive(t, library(), opts)
		if diff := cmp.Diff([]string{"start", "look", "build", "deploy", ReadSection}, again.toolNames()); diff != "" {
			t.Errorf("tools of the new run (-want +got):\n%s", diff)
		}
		late, stopLate := l.Context(t.Context())
		defer stopLate()
		if context.Cause(late) != e {
			t.Errorf("a context that is made later ends with %v, want %v", context.Cause(late), e)
		}
	})
}

// The result is held back while the run is being ended, so that the model is not asked what to do with
// it, but not forever, and not if nobody can end the run.
func TestTheCallThatAsksForARestartWaitsForTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		listen bool
		want   time.Duration
	}{"nobody listens": {false, 0}, "nobody ends the call": {true, restartGrace}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := mustLive(t, library(), &LiveOptions{Restart: true})
				if c.listen {
					_, stop := l.Context(t.Context())
					defer stop()
				}
				begun := time.Now()
				r := l.callOpen(t, "manual")
				if took := time.Since(begun); !r.OK() || took != c.want || !strings.Contains(r.Render(), "new turn") {
					t.Errorf("after %s the model reads %q, want %s", took, r.Render(), c.want)
				}
			})
		})
	}
}

func TestWhatCannotBeOpenedCausesNoRestart(t *testing.T) {
	l := mustLive(t, library(), &LiveOptions{Restart: true})
	if r := l.callOpen(t, "nowhere"); r.OK() || l.Expansion() != nil {
		t.Errorf("got %q and %v", r.Render(), l.Expansion())
	}
}
