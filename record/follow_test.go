// SPDX-License-Identifier: Apache-2.0

//go:build unix

package record_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/internal/filelock"
	"github.com/drover-agents/drover/internal/plainfile"
	"github.com/drover-agents/drover/internal/testkit"
	"github.com/drover-agents/drover/record"
)

// inProgress makes a run that is in progress: a kept one without its end, whose lock this program has until the lock is closed.
func inProgress(t testing.TB, store *record.Store) (run *record.Run, lock *os.File) {
	t.Helper()
	kept := keep(t, store, nil, agenttest.Emit(event.Text{Content: "a"}), agenttest.Done(""))
	lock, err := os.OpenFile(filepath.Join(kept.Path, "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Close() })
	if err := errors.Join(os.Remove(filepath.Join(kept.Path, "end.json")), filelock.Lock(t.Context(), lock, time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if run, err = store.Find(kept.ID); err != nil || run.State != record.Running {
		t.Fatalf("the run is %+v, %v", run, err)
	}
	return run, lock
}

// Following runs that do nothing wakes no goroutine: the minutes of this test pass at once, because nothing waits for a time.
func TestFollow_IdleRunCausesNoWork(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system does not report changes of files here: they are looked at")
	}
	store := openStore(t)
	run, _ := inProgress(t, store)
	_, offset, _, err := store.Changes(0)
	if err != nil {
		t.Fatal(err)
	}
	outside := plainfile.NewWatch(t.TempDir()) // the goroutine of the system's reports is not in the bubble
	defer outside.Close()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 3 {
			own, other := *run, *run
			all.Go(func() {
				for _, err := range own.Follow(ctx, 0) {
					if err != nil {
						t.Error(err)
					}
				}
			})
			all.Go(func() {
				if err := other.AwaitEnd(ctx); !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		all.Go(func() {
			for changes, err := range store.Follow(ctx, offset) {
				t.Error("the journal has", changes, err)
			}
		})
		time.Sleep(time.Minute) // they have found that the run is not over
		before := testkit.WakeUps(t)
		time.Sleep(10 * time.Minute)
		if n := testkit.WakeUps(t) - before; n > 500 {
			t.Errorf("about %d wake-ups in ten minutes without changes", n)
		}
		cancel()
		all.Wait()
	})
}

// A program that is killed closes its lock without releasing it: its run is lost, and all who follow it learn that.
func TestFollow_LostRunEnds(t *testing.T) {
	store := openStore(t)
	for range 20 {
		run, lock := inProgress(t, store)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		own, other := *run, *run
		followed, awaited := make(chan error, 1), make(chan error, 1)
		begun := make(chan struct{})
		go func() {
			var failed error
			for line, err := range own.Follow(ctx, 0) {
				if failed = err; line.Pos == 1 {
					close(begun)
				}
			}
			followed <- failed
		}()
		go func() { awaited <- other.AwaitEnd(ctx) }()
		<-begun
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(<-followed, <-awaited); err != nil || own.State != record.Lost || other.State != record.Lost {
			t.Fatalf("the run is %s, and %s: %v", own.State, other.State, err)
		}
		cancel()
	}
}

// Readers that come at any moment have each event once and in order, whatever the pace of the program.
func TestFollow_EachReaderHasEachEventOnce(t *testing.T) {
	store := openStore(t)
	const texts = 2000
	begun := make(chan string, 1)
	steps := []agenttest.Step{func(r *agenttest.Run) { begun <- r.Request.RunID }}
	for i := range texts {
		steps = append(steps, agenttest.Emit(event.Text{Content: fmt.Sprint(i)}))
		if i%200 == 0 {
			steps = append(steps, func(*agenttest.Run) { time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond) }) // the pace of an agent
		}
	}
	evaluated := make(chan error, 1)
	go func() {
		_, err := drover.Evaluate(context.Background(), agenttest.New(append(steps, agenttest.Done(""))...), ask(t, "Look."), &drover.Options{Recorder: record.NewRecorder(store, nil)})
		evaluated <- err
	}()
	id := <-begun
	var readers sync.WaitGroup
	for range 8 {
		pause := time.Duration(rand.IntN(100)) * time.Millisecond
		readers.Go(func() {
			time.Sleep(pause) // it comes later
			run, err := store.Find(id)
			if err != nil {
				t.Error(err)
				return
			}
			last := int64(0)
			for line, err := range run.Follow(context.Background(), 0) {
				if err != nil || line.Pos != last+1 {
					t.Errorf("behind %d comes %d, %v", last, line.Pos, err)
					return
				}
				last = line.Pos
			}
			if run.State != record.Ended || last != run.End.Entries || last < texts {
				t.Errorf("the run is %s with %d entries, end %+v", run.State, last, run.End)
			}
		})
	}
	readers.Wait()
	if err := <-evaluated; err != nil {
		t.Error(err)
	}
}
