// SPDX-License-Identifier: Apache-2.0

package server_test

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
	"github.com/drover-agents/drover/server"
)

func ExampleLive() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := record.Open(filepath.Join(dir, "runs"))
	if err != nil {
		panic(err)
	}
	adapter := agenttest.New(agenttest.Emit(event.Text{Content: "All is well."}), agenttest.Done(""))
	p, err := prompt.FromText[string]("Review the last commit.")
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	live := server.NewLive(record.NewRecorder(store, nil), &server.LiveOptions{Stop: cancel})
	run := drover.Stream(ctx, adapter, p, &drover.Options{Recorder: live, Approver: live})
	for e, err := range run.Events() {
		if err == nil {
			live.Show(e) // parts of texts, for those who watch
		}
	}
	if err := live.Close(); err != nil {
		panic(err)
	}
	resp, err := run.Response()
	if err != nil {
		panic(err)
	}
	fmt.Println(resp.Status)
	// Output: success
}
