// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"fmt"
	"os"

	"github.com/drover-agents/drover/fleet"
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
