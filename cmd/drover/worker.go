// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/fleet"
)

const workerHelp = `Worker runs agents for a fleet: it takes requests from the queue of a NATS cluster, and records each run in the fleet's log and among the
runs of this user. Start as many workers as are needed, on any machine. See docs/fleet.md.

AGENT is an agent file, or a folder of them. A request has the name of an agent and its arguments, and nothing else. The flags of
drover run bound what each run may do. Tool calls that ask are denied, because no one is there to answer. Agents without mounts
work in the current folder.

Ctrl-C or SIGTERM stops the worker: it takes no more requests, and runs have --drain to finish. Those that do not are handed
back, and another worker continues them. A second ctrl-C ends the worker at once; its runs are continued when their lease is over.`

// workerOptions are the flags and arguments of drover worker.
type workerOptions struct {
	bounds      serveOptions // the agents, and the flags of drover run
	fleet       fleetFlags
	name        string
	concurrency int
	drain       timeLimit
	lease       timeLimit
}

func newWorkerCommand() *cobra.Command {
	o := &workerOptions{drain: timeLimit(30 * time.Second), lease: timeLimit(30 * time.Second)}
	cmd := &cobra.Command{
		Use:   "worker [flags] --nats url AGENT...",
		Short: "Run agents for a fleet on a NATS cluster",
		Long:  workerHelp,
		Example: `  drover worker agents/ --nats nats://localhost:4222 --max-usd 1 --allow fileWrite
  drover worker review.yaml --nats tls://a:4222,tls://b:4222,tls://c:4222 --credentials worker.creds --concurrency 4`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.bounds.agents, o.bounds.words = args, serveWords(cmd)
			return o.work(cmd.Context(), streams{in: cmd.InOrStdin(), out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()})
		},
		ValidArgsFunction:     completeFiles("yaml", "yml"),
		DisableFlagsInUseLine: true,
	}
	f := cmd.Flags()
	f.SortFlags = false
	o.fleet.addFlags(f)
	f.Var(textFlag{&o.name, "name"}, "name", "the name of this worker in logs (default: host and process)")
	f.IntVarP(&o.concurrency, "concurrency", "n", 1, "how many runs of each agent this worker has at a time")
	f.Var(&o.drain, "drain", "how long runs may go on when the worker is stopped")
	f.Var(&o.lease, "lease", "how long a run stays with a worker that gives no sign of life; the same for all workers of an agent")
	o.bounds.addRunFlags(f)
	return cmd
}

func (o *workerOptions) check() error {
	switch {
	case len(o.fleet.urls) == 0:
		return advice.Wrap(usageError("a worker needs a fleet on a NATS cluster"),
			"name its servers with --nats nats://host:4222; or start drover serve --queue, which has the queue and its workers inside and needs no other program")
	case len(o.bounds.agents) == 0:
		return advice.Wrap(usageError("a worker needs agents"), "name agent files, or a folder of them: drover worker agents/ --nats %s", o.fleet.urls.String())
	case o.concurrency < 1:
		return advice.Wrap(usageError("--concurrency: %d is below one", o.concurrency), "give the number of runs that each agent may have at a time")
	}
	return errors.Join(o.fleet.check(), o.bounds.run.check())
}

// work runs requests until the command is stopped.
func (o *workerOptions) work(ctx context.Context, s streams) (err error) {
	if err := o.check(); err != nil {
		return withoutSecrets(err, o.fleet.secrets())
	}
	starter, err := newStarter(&o.bounds)
	if err != nil {
		return err
	}
	f, err := o.fleet.open(ctx, s.errs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := fleet.Worker{
		Fleet: f, Name: cmp.Or(o.name, workerName()), Concurrency: o.concurrency, Lease: time.Duration(o.lease), Drain: time.Duration(o.drain),
	}
	exported := openExport(ctx)
	defer exported.close(ctx, s.errs)
	runner := &fleetRunner{starter: starter, fleet: f, worker: w.Name, export: exported, out: newSafeErrors(s.out, nil), errs: s.errs}
	if w.Agents, err = runner.agents(ctx); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(starter.agents))
	fmt.Fprintf(runner.out, "worker    %s serves %s\n", w.Name, strings.Join(names, ", "))
	defer afterEnd(ctx, func() {
		fmt.Fprintf(runner.out, "worker    %s is stopping; runs have %s to finish\n", w.Name, o.drain.String())
	})()
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	select {
	case err = <-done:
	case <-killed(ctx): // what it has started ends with it
		return ending{exitInterrupted, errors.New("stopped; another worker continues the runs when their lease is over")}
	}
	if _, stopped := errors.AsType[stopSignal](context.Cause(ctx)); stopped && err == nil {
		fmt.Fprintf(runner.out, "worker    %s has stopped\n", w.Name)
	}
	return err
}

func workerName() string {
	host, _ := os.Hostname() // a name is enough
	return fmt.Sprintf("%s-%d", cmp.Or(host, "worker"), os.Getpid())
}

// A lineWriter begins each line with a name. Each write must have whole lines.
type lineWriter struct {
	to   io.Writer
	name string
}

func (w lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if _, err := io.WriteString(w.to, w.name+line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}
