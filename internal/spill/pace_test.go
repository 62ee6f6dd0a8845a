// SPDX-License-Identifier: Apache-2.0

package spill

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func pushAll(t *testing.T, q *Queue, n, size int) (took time.Duration) {
	t.Helper()
	start := time.Now()
	for range n {
		if err := q.Push(Item{Data: make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
	}
	return time.Since(start)
}

func TestPush_WaitsOnceForAStalledConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Paced: true})
		defer q.Discard()
		if got := pushAll(t, q, 200, 64<<10); got == 0 || got > maxPatience {
			t.Errorf("pushing 12 MB took %v, want one wait of at most %v", got, maxPatience)
		}
		if _, err := q.Pop(context.Background()); err != nil {
			t.Fatal(err)
		}
		if got := pushAll(t, q, 20, 64<<10); got == 0 || got > maxPatience {
			t.Errorf("pushing after the consumer moved took %v, want one wait of at most %v", got, maxPatience)
		}
	})
}

func TestPush_StaysCloseToAWorkingConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Paced: true})
		const n, size = 3000, 4 << 10
		highest := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range n {
				if _, err := q.Pop(context.Background()); err != nil {
					t.Error(err)
					return
				}
				highest = max(highest, q.Bytes())
				time.Sleep(10 * time.Microsecond) // 400 MB/s
			}
		}()
		pushAll(t, q, n, size)
		<-done
		if limit := 2 * softLimit; highest > limit {
			t.Errorf("up to %d bytes were queued, want at most %d", highest, limit)
		}
		if got := q.Spilled(); got != 0 {
			t.Errorf("%d items went to disk, want none", got)
		}
	})
}

func TestPush_BelowTheSoftLimitDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options{Paced: true})
		defer q.Discard()
		if got := pushAll(t, q, 100, 1<<10); got != 0 {
			t.Errorf("pushing 100 KB took %v, want no wait", got)
		}
	})
}

func TestPush_HurryNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unpaced, hurried := New(Options{}), New(Options{Paced: true})
		hurried.Hurry()
		for _, q := range []*Queue{unpaced, hurried} {
			if got := pushAll(t, q, 200, 64<<10); got != 0 {
				t.Errorf("pushing 12 MB without a reader took %v, want no wait", got)
			}
			q.Discard()
		}
	})
}
