// SPDX-License-Identifier: Apache-2.0

package drover_test

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"testing"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// A reader that panics, or ends its goroutine, has left.
func TestStream_PanickingReaderHasLeft(t *testing.T) {
	for name, leave := range map[string]func(){
		"it panics":              func() { panic("enough") },
		"its goroutine is ended": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			var dir string
			k := &keeper{Adapter: agenttest.New(func(r *agenttest.Run) {
				dir = r.Request.Workspace.Root()
				r.Yield(event.New(event.Text{Content: "x"}), nil)
			}, agenttest.Block())}
			run := drover.Stream(t.Context(), k, newPrompt[prompt.Text](t), nil)
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { _ = recover() }()
				for range run.Events() {
					leave()
				}
			})
			wg.Wait()
			if _, err := os.Stat(dir); k.closed != 1 || !os.IsNotExist(err) {
				t.Errorf("%d agents were ended, and the folder is %v", k.closed, err)
			}
		})
	}
}

// An evaluation whose end cannot be recorded reports no success to any receiver.
func TestEvaluate_UnrecordedEndIsNotASuccess(t *testing.T) {
	ended := 0
	for room := range 20 {
		s, err := session.Open(&fullStore{session.NewMemoryStore(), room}, nil)
		if err != nil {
			continue
		}
		run := drover.Stream(t.Context(), agenttest.New(answers()), reviewPrompt(t), &drover.Options{Settings: agent.Settings{Dir: t.TempDir()}, Session: s})
		var last event.Done
		for e := range run.Events() {
			last, _ = e.Payload.(event.Done)
			if last.Status != "" {
				ended++
				break
			}
		}
		resp, err := run.Response()
		if (err == nil) != (last.Status == event.DoneSuccess) || (err == nil) != (resp != nil) {
			t.Errorf("room for %d: the end says %s, the error is %v", room, last.Status, err)
		}
		if failure, ok := errors.AsType[*drover.EvaluationError](err); ok && failure.Summary.Status == event.DoneSuccess {
			t.Errorf("room for %d: the summary of the failure says success", room)
		}
	}
	if ended == 0 {
		t.Error("nothing has ended")
	}
}
