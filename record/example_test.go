// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/agenttest"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/record"
)

func ExampleRecorder() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx := context.Background()
	adapter := agenttest.New(agenttest.Emit(event.Text{Content: "All is well."}), agenttest.Done(""))
	p, err := prompt.FromText[string]("Review the last commit.")
	if err != nil {
		panic(err)
	}

	store, err := record.Open(filepath.Join(dir, "runs"))
	if err != nil {
		panic(err)
	}
	resp, err := drover.Evaluate(ctx, adapter, p, &drover.Options{
		Recorder: record.NewRecorder(store, &record.RecorderOptions{Name: "reviewer", Secrets: []string{os.Getenv("DEPLOY_KEY")}}),
	})
	if err != nil {
		panic(err)
	}

	run, err := store.Find(resp.RunID)
	if err != nil {
		panic(err)
	}
	details, err := run.Details()
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Name, run.End.Status, details.Texts)
	// Output: reviewer success [All is well.]
}
