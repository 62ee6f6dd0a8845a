// SPDX-License-Identifier: Apache-2.0

// Command cell has an agent work on its own, in a cell: it sees one folder, its tools reach the hosts that
// are named and no other, and it is stopped in the middle of its turn when it has cost too much. The
// answers of the model can be recorded, and replayed without a key.
//
//	cell -allow style.example.com -record run.jsonl "Apply our style guide."
//	cell -allow style.example.com -replay run.jsonl "Apply our style guide."
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/gateway/proxy"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
)

// A task is the prompt of the agent with its limits.
type task struct {
	prompt         string
	domains        []string
	budget         guard.Budget
	record, replay string // files; empty means none
}

func main() {
	domains := flag.String("allow", "", "hosts that tools may reach, with commas between")
	dollars := flag.Float64("usd", 0.50, "stop when this is spent")
	record := flag.String("record", "", "write the model's traffic to this file")
	replay := flag.String("replay", "", "have this file answer")
	flag.Parse()
	t := task{prompt: flag.Arg(0), budget: guard.Budget{MaxCostUSD: *dollars}, record: *record, replay: *replay}
	t.domains = strings.FieldsFunc(*domains, func(r rune) bool { return r == ',' })
	if err := run(context.Background(), os.Stdout, &claude.Options{}, t); err != nil {
		log.Fatal(err)
	}
}

// run takes what the CLI is started with; Dir is the folder.
func run(ctx context.Context, out io.Writer, opts *claude.Options, t task) (err error) {
	in := &isolation.Isolation{
		Network:  isolation.WithDomains(t.domains...),
		Limits:   isolation.Limits{Memory: 4 << 30, Processes: 256},
		Trackers: []*guard.Tracker{guard.NewTracker(t.budget)},
		Host:     isolation.Host{Environ: opts.Environ}, // which has the key; the cell does not
	}
	tape, err := t.tape(ctx, in, opts.Dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tape()) }()
	opts.PermissionMode = claude.ModeBypassPermissions // no approval is needed: the cell isolates the agent
	runner, err := agent.NewRunner(claudecode.New(opts).In(in), nil)
	if err != nil {
		return err
	}
	for e, err := range runner.Run(ctx, agent.Request{Prompt: t.prompt}) {
		if err != nil {
			return err
		}
		switch what := e.Payload.(type) {
		case isolation.Protection:
			fmt.Fprintf(out, "isolation: %s\n", what.Level)
		case proxy.Connection:
			fmt.Fprintf(out, "%s: %s\n", what.Host, what.Verdict)
		case gateway.Limit:
			fmt.Fprintf(out, "limit: %s\n", what.Limit)
		case event.Done:
			fmt.Fprintf(out, "%s: %s\n", what.Status, what.Result)
		}
	}
	return nil
}

// tape puts a recorder or a recording between the agent and its model. The returned function must be called after the run.
func (t task) tape(ctx context.Context, in *isolation.Isolation, dir string) (end func() error, err error) {
	folders := gateway.Folders{Dir: dir, Temp: os.TempDir()}
	switch {
	case t.replay != "":
		player, err := gateway.Replay(t.replay, gateway.ReplayOptions{Folders: folders})
		if err != nil {
			return nil, err
		}
		in.Upstream = player
		return player.Err, nil // which request was not in the recording
	case t.record != "":
		upstream, err := claudecell.OpenUpstream(ctx, in)
		if err != nil {
			return nil, err
		}
		recorder, err := gateway.Record(upstream, t.record, gateway.RecordOptions{Folders: folders})
		if err != nil {
			return nil, err
		}
		in.Upstream = recorder
		return recorder.Close, nil
	}
	return func() error { return nil }, nil
}
