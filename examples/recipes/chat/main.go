// SPDX-License-Identifier: Apache-2.0

// Command chat is a conversation about the current folder. It asks before the agent changes anything.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/prompt"
)

func main() {
	if err := chat(context.Background(), bufio.NewScanner(os.Stdin)); err != nil {
		log.Fatal(advice.Text(err))
	}
}

func chat(ctx context.Context, lines *bufio.Scanner) error {
	p, err := prompt.FromText[string]("Answer questions about this folder. Begin with a greeting.")
	if err != nil {
		return err
	}
	approve := gate.ApproverFunc(func(_ context.Context, q gate.Question) (gate.Answer, error) {
		fmt.Printf("%s %s? [y/n] ", q.Call.Name, q.Call.Input)
		if lines.Scan() && lines.Text() == "y" {
			return gate.Answer{Verdict: event.Allow}, nil
		}
		return gate.Answer{Reason: "The user said no."}, nil
	})
	c := drover.Converse(claudecode.New(nil), p, &drover.Options{
		Settings: agent.Settings{Dir: ".", Permissions: &gate.Permissions{Mode: gate.ModeAsk}},
		Approver: approve,
	})
	defer c.Close()
	resp, err := c.Begin(ctx)
	for err == nil {
		fmt.Println(resp.Output)
		if !lines.Scan() || lines.Text() == "" {
			return c.Close()
		}
		resp, err = c.Send(ctx, lines.Text())
	}
	return err
}
