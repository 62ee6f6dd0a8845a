// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
)

// childStore has the store of a child process, which records runs until it is killed.
const childStore = "DROVER_TEST_STORE"

// perChild is how many runs a child records.
const perChild = 60

// child evaluates in a store, and prints "begun <id>" for each run that has begun, and "ended <id>" for each that has ended.
func child(dir string) int {
	store, err := record.Open(dir)
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	p, err := prompt.FromText[string]("Look.")
	if err != nil {
		fmt.Println("failed", err)
		return 1
	}
	for range perChild {
		a := agenttest.New(func(r *agenttest.Run) {
			if _, err := store.Find(r.Request.RunID); err == nil {
				fmt.Println("begun", r.Request.RunID)
			}
			for i := range 20 {
				r.Yield(event.Event{Payload: event.Text{Content: strings.Repeat(fmt.Sprint("text ", i), 50)}}, nil)
			}
		}, agenttest.Done(""))
		resp, err := drover.Evaluate(context.Background(), a, p, &drover.Options{Recorder: record.NewRecorder(store, nil)})
		switch {
		case err != nil:
			fmt.Println("failed", err)
		case resp.NotRecorded != nil && strings.Contains(resp.NotRecorded.Error(), "the run cannot be kept"):
			fmt.Println("refused", resp.NotRecorded)
		case resp.NotRecorded != nil:
			fmt.Println("not-recorded", resp.RunID, resp.NotRecorded)
		default:
			fmt.Println("ended", resp.RunID)
		}
	}
	return 0
}

// acknowledged are the ids that a child has printed, by the word before them.
type acknowledged map[string][]string

func readChild(out io.Reader) acknowledged {
	got := acknowledged{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		id, _, _ := strings.Cut(rest, " ")
		got[word] = append(got[word], id)
	}
	return got
}

// startChild starts this test program as a child that records in a store.
func startChild(t *testing.T, store *record.Store) (*exec.Cmd, io.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = []string{childStore + "=" + store.Dir(), "TMPDIR=" + t.TempDir(), "GORACE=exitcode=66"}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// checkStore fails if a run that was acknowledged is not in the store, or one in it is damaged.
func checkStore(t *testing.T, store *record.Store, all ...acknowledged) {
	t.Helper()
	for _, got := range all {
		for _, id := range slices.Concat(got["begun"], got["ended"], got["not-recorded"]) {
			find(t, store, id)
		}
		for _, id := range got["ended"] {
			if run := find(t, store, id); run.State != record.Ended || run.End.Problem != "" || int64(len(entries(t, run))) != run.End.Entries {
				t.Errorf("run %s is %s with %d entries, its end %+v", id, run.State, len(entries(t, run)), run.End)
			}
		}
	}
	folders, err := store.Folders()
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		run, err := store.Run(folder)
		if err != nil {
			t.Error(err)
			continue
		}
		if run.State == record.Running {
			t.Errorf("%s is in progress, and its program is gone", folder)
		}
		entries(t, run)
		for _, err := range run.Transcript() {
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// Ten processes record in one store, and some are killed at any moment. What they acknowledged is there, and whole.
func TestRecorder_ManyProcessesOfWhichSomeAreKilled(t *testing.T) {
	store := openStore(t)
	var (
		wg  sync.WaitGroup
		all = make([]acknowledged, 10)
	)
	for i := range all {
		cmd, out := startChild(t, store)
		killed := i%3 == 0
		if killed {
			time.AfterFunc(time.Duration(50+rand.IntN(700))*time.Millisecond, func() { _ = cmd.Process.Kill() })
		}
		wg.Go(func() {
			all[i] = readChild(out)
			if err := cmd.Wait(); !killed && err != nil {
				t.Errorf("a child failed: %v", err)
			}
		})
	}
	wg.Wait()
	ended := 0
	for _, got := range all {
		ended += len(got["ended"])
		if len(got["failed"])+len(got["refused"])+len(got["not-recorded"]) > 0 {
			t.Errorf("a child could not record: %v", got)
		}
	}
	if ended < 6*perChild {
		t.Errorf("%d runs ended, want at least those of six processes", ended)
	}
	checkStore(t, store, all...)
}
