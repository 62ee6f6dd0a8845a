// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// examOf answers after a time, or with "gave up" if it listens to its context.
func examOf(name string, after time.Duration, listens bool) exam {
	return exam{name, func(ctx context.Context) *Check {
		var done <-chan struct{}
		if listens {
			done = ctx.Done()
		}
		select {
		case <-done:
			return &Check{State: stateBroken, Detail: "gave up"}
		case <-time.After(after):
			return &Check{State: stateOK, Detail: "fine"}
		}
	}}
}

func TestExamine_ChecksRunConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exams := []exam{
			examOf("slow", 4*time.Second, true), examOf("quick", time.Second, true), examOf("slower", time.Hour, true), examOf("deaf", time.Hour, false),
			{"needless", func(context.Context) *Check { return nil }},
		}
		begin := time.Now()
		checks, err := examine(t.Context(), 5*time.Second, exams)
		if err != nil || time.Since(begin) != 5*time.Second+grace {
			t.Errorf("error %v after %v, want none after the bound and the grace", err, time.Since(begin))
		}
		want := []Check{
			{Name: "slow", State: stateOK, Detail: "fine"},
			{Name: "quick", State: stateOK, Detail: "fine"},
			{Name: "slower", State: stateBroken, Detail: "gave up"},
			{Name: "deaf", State: stateBroken, Detail: "no answer within 5s", Fix: []string{moreTime}},
		}
		if diff := cmp.Diff(want, checks); diff != "" {
			t.Errorf("checks (-want +got):\n%s", diff)
		}
		time.Sleep(2 * time.Hour) // the deaf one ends after all
	})
}

func TestExamine_CancelWaitsForTheGraceOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		begin := time.Now()
		_, err := examine(ctx, time.Minute, []exam{examOf("slow", time.Hour, true), examOf("deaf", time.Hour, false)})
		if !errors.Is(err, context.Canceled) || time.Since(begin) != 2*time.Second+grace {
			t.Errorf("error %v after %v, want canceled after the grace", err, time.Since(begin))
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestExamine_CancelEndsAtOnceIfChecksObeyIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		begin := time.Now()
		_, err := examine(ctx, time.Minute, []exam{examOf("slow", time.Hour, true)})
		if !errors.Is(err, context.Canceled) || time.Since(begin) != 2*time.Second {
			t.Errorf("error %v after %v, want canceled at once", err, time.Since(begin))
		}
	})
}
