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

// The first request ends the run; the next rendering has what was asked for.
func TestRestart_NextRenderingShowsRequestedSections(t *testing.T) {
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
		if took := time.Since(begun); took != gatherTime {
			t.Errorf("the run ended after %s, want %s", took, gatherTime)
		}
		e, ok := errors.AsType[*ExpansionRequired](context.Cause(ctx))
		want := &ExpansionRequired{map[string]Visibility{"manual": Full, "manual.deploy": Full}, "I want to know.", []string{"manual.deploy"}}
		if diff := cmp.Diff(want, e); !ok || diff != "" {
			t.Errorf("the cause (-want +got):\n%s", diff)
		}
		if _, err := l.Open(t.Context(), "manual.deploy"); !cmp.Equal(err, error(want)) {
			t.Errorf("a program gets %v, want %v", err, want)
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
		if cause := context.Cause(late); !cmp.Equal(cause, error(want)) {
			t.Errorf("a context that is made later ends with %v, want %v", cause, want)
		}
	})
}

// A model may ask several times in one message. Its agent makes these calls at once, or nearly.
func TestRestart_RequestsOfOneMessageAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustLive(t, library(), &LiveOptions{Restart: true})
		ctx, stop := l.Context(t.Context())
		defer stop()
		go l.callOpen(t, "manual.deploy")
		time.Sleep(gatherTime / 2)
		go l.callOpen(t, "notes")
		<-ctx.Done()
		want := &ExpansionRequired{map[string]Visibility{"manual": Full, "manual.deploy": Full, "notes": Full}, "I want to know.", []string{"manual.deploy", "notes"}}
		if diff := cmp.Diff(error(want), context.Cause(ctx)); diff != "" {
			t.Errorf("the cause (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, l.Expansion()); diff != "" {
			t.Errorf("the expansion (-want +got):\n%s", diff)
		}
	})
}

// The result is held back while the run is being ended, so that the model is not asked what to do with
// it, but not forever, and not if no caller can end the run.
func TestRestart_CallWaitsForTheEndOfTheRun(t *testing.T) {
	for name, c := range map[string]struct {
		listen bool
		want   time.Duration
	}{"no listener": {false, 0}, "no end of the call": {true, restartGrace}} {
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

func TestRestart_RejectedKeysCauseNoRestart(t *testing.T) {
	l := mustLive(t, library(), &LiveOptions{Restart: true})
	if r := l.callOpen(t, "nowhere"); r.OK() || l.Expansion() != nil {
		t.Errorf("got %q and %v", r.Render(), l.Expansion())
	}
}
