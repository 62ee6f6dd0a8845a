// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
)

// A session whose log is on the embedded server of a folder.
func Example() {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := keepPlan(context.Background(), dir); err != nil {
		fmt.Println(err)
	}
	// Output: review.42 has 1 entries
}

func keepPlan(ctx context.Context, dir string) error {
	f, err := fleet.Open(ctx, &fleet.Options{Dir: dir})
	if err != nil {
		return err
	}
	defer f.Close()
	log, err := f.OpenLog(ctx, "review.42", "worker-1")
	if err != nil {
		return err
	}
	s, err := session.Open(log, &session.Options{ID: "review.42"})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Dispatch(ctx, session.Plan{Steps: []session.PlanStep{{Description: "read the change"}}}); err != nil {
		return err
	}
	fmt.Println(s.ID(), "has", log.Last(), "entries")
	return nil
}

// A schedule that reviews what is new on each working day.
func ExampleFleet_PutSchedule() {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	f, err := fleet.Open(context.Background(), &fleet.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	s := fleet.Schedule{
		Name: "morning", Agent: "reviewer", Request: json.RawMessage(`{"change": "all of yesterday"}`),
		Cron: "30 6 * * mon-fri", TimeZone: "Europe/Berlin",
	}
	if err := keepSchedule(context.Background(), f, s); err != nil {
		fmt.Println(err)
		return
	}
	next, err := s.Next(time.Date(2026, 10, 23, 12, 0, 0, 0, time.UTC)) // a Friday; the clocks go back on Sunday
	fmt.Println(next.Format(time.RFC3339), err)
	// Output: 2026-10-26T06:30:00+01:00 <nil>
}

func keepSchedule(ctx context.Context, f *fleet.Fleet, s fleet.Schedule) error {
	if err := f.PutSchedule(ctx, s); err != nil {
		return err
	}
	return f.SetLimit(ctx, "reviewer", fleet.Limit{DollarsPerDay: 20, Runs: 4})
}

// A Review is a request.
type Review struct{ Change string }

// An agent that reviews changes: here one that follows a script.
func ExampleHandle() {
	dir, err := os.MkdirTemp("", "fleet")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	f, err := fleet.Open(context.Background(), &fleet.Options{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	adapter := agenttest.New(agenttest.Emit(event.Done{Status: event.DoneSuccess, Result: "Looks fine."}))
	reviewer := fleet.Handle("reviewer", fleet.Handler[Review, string]{
		Adapter: adapter,
		Prepare: func(_ context.Context, r Review, _ *session.Session) (*prompt.Prompt[string], *drover.Options, error) {
			p, err := prompt.FromText[string]("Review this change:\n" + r.Change)
			return p, nil, err
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	worker := fleet.Worker{Fleet: f, Agents: []fleet.Agent{reviewer}, Concurrency: 2}
	var wg sync.WaitGroup
	wg.Go(func() { _ = worker.Run(ctx) })
	defer wg.Wait()
	defer stop()

	run, err := f.Submit(ctx, "reviewer", Review{"- a\n+ b"}, &fleet.SubmitOptions{Key: "change-42"})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := run.Wait(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	var text string
	if err := result.Decode(&text); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.State, text)
	// Output: succeeded Looks fine.
}
