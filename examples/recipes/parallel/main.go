// SPDX-License-Identifier: Apache-2.0

// Command parallel has one agent for each folder that it is given work on a copy. Changes are written back if the check holds.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/workspace"
)

func main() {
	adapter := claudecode.New(nil)
	var all sync.WaitGroup
	for _, folder := range os.Args[1:] {
		all.Go(func() {
			if err := work(context.Background(), adapter, folder); err != nil {
				log.Print(folder, ": ", advice.Text(err))
			}
		})
	}
	all.Wait()
	if err := adapter.Close(); err != nil {
		log.Fatal(advice.Text(err))
	}
}

func work(ctx context.Context, adapter agent.Adapter, folder string) (err error) {
	copies, err := workspace.Open(ctx, &workspace.Options{Mounts: []workspace.HostMount{{HostPath: folder, MountPath: "project"}}, AllowedHostRoots: []string{folder}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copies.Close()) }()
	p, err := prompt.FromText[string]("Write a LICENSE file into the folder project.")
	if err != nil {
		return err
	}
	_, err = drover.Evaluate(ctx, adapter, p, &drover.Options{
		Settings:   agent.Settings{Workspace: copies, Budget: &guard.Budget{MaxCostUSD: 0.50}},
		Completion: guard.FilesExist("project/LICENSE"),
	})
	if err != nil {
		return err // also if the check did not hold: nothing is written back
	}
	done, err := copies.WriteBack(ctx, nil)
	if err == nil {
		fmt.Printf("%s: %d written\n", folder, len(done.Written))
	}
	return err
}
