// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/cmd/drover/internal/runs"
	"github.com/drover-agents/drover/fleet"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/server"
	"github.com/drover-agents/drover/terminal"
)

// A fleetRow is a run of a list: of a fleet, or of the queue of drover serve.
type fleetRow struct {
	ID string `json:"id"`
	fleet.Status
}

// listFleet is drover runs --nats.
func listFleet(cmd *cobra.Command, at *fleetFlags, f *runsFilter, words []string, limit int, asJSON bool) (err error) {
	if f.folder != "" {
		return advice.Wrap(usageError("--folder: the runs of a fleet have no folder"), "leave it out, or leave --nats out")
	}
	if err := at.check(); err != nil {
		return err
	}
	ctx := cmd.Context()
	opened, err := at.open(ctx, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	var all []*fleet.Run
	for run, err := range opened.Runs(ctx) {
		if err != nil {
			return err
		}
		if agent, _, _ := strings.Cut(run.ID(), "."); f.agent == "" || f.agent == agent {
			all = append(all, run)
		}
	}
	var rows []fleetRow
	for _, run := range slices.Backward(all) {
		status, err := run.Status(ctx)
		if errors.Is(err, fleet.ErrNoRun) { // it was removed meanwhile
			continue
		}
		if err != nil {
			return err
		}
		row := fleetRow{run.ID(), *status}
		if row.matches(f, words) {
			rows = append(rows, row)
		}
		if len(rows) == limit && limit > 0 {
			break
		}
	}
	return printFleet(cmd, rows, asJSON)
}

func (r fleetRow) matches(f *runsFilter, words []string) bool {
	text := strings.ToLower(r.ID + " " + string(r.State) + " " + r.reason())
	lacks := func(word string) bool { return !strings.Contains(text, strings.ToLower(word)) }
	return !(f.failed && r.State != fleet.Dead && r.State != fleet.Cancelled || f.running && r.State != fleet.Running ||
		r.Submitted.Before(f.since.Time) || slices.ContainsFunc(words, lacks))
}

func (r fleetRow) reason() string {
	if r.Result == nil {
		return ""
	}
	return r.Result.Reason
}

// listQueue is drover runs --queued: what waits in the drover serve of this user.
func listQueue(cmd *cobra.Command, words []string, limit int, asJSON bool) error {
	return withServer(cmd.Context(), new(fleetFlags), func(ctx context.Context, api *runningServer) error {
		query := url.Values{"state": {string(server.Queued)}, "q": {strings.Join(words, " ")}}
		if limit > 0 {
			query.Set("limit", fmt.Sprint(limit))
		}
		var list server.RunList
		if err := api.call(ctx, http.MethodGet, "/v1/runs?"+query.Encode(), nil, &list); err != nil {
			return err
		}
		var rows []fleetRow
		for _, r := range list.Runs {
			rows = append(rows, fleetRow{r.ID, fleet.Status{State: fleet.State(r.State), Submitted: r.Began}})
		}
		return printFleet(cmd, rows, asJSON)
	})
}

func printFleet(cmd *cobra.Command, rows []fleetRow, asJSON bool) error {
	return buffered(cmd, func(w io.Writer) error {
		if !asJSON && len(rows) == 0 {
			_, err := fmt.Fprintln(w, "no runs")
			return err
		}
		if !asJSON {
			if _, err := fmt.Fprintf(w, "%-44s  %-9s  %-15s  %8s  %s\n", "run", "state", "submitted", "attempts", "reason"); err != nil {
				return err
			}
		}
		width, now := terminal.Width(cmd.OutOrStdout()), time.Now()
		for _, r := range rows {
			var err error
			if asJSON {
				err = printJSON(w, r)
			} else {
				text := fmt.Sprintf("%-44s  %-9s  %-15s  %8d  %s", r.ID, r.State, runs.Ago(now.Sub(r.Submitted)), r.Attempts, safetext.FirstLine(r.reason()))
				if width > 0 {
					text = terminal.Clip(text, width)
				}
				_, err = fmt.Fprintln(w, strings.TrimRight(safetext.Line(text), " "))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// withServer calls f with the drover serve of this user.
func withServer(ctx context.Context, at *fleetFlags, f func(context.Context, *runningServer) error) error {
	config, err := at.tlsConfig()
	if err != nil {
		return err
	}
	transport := &http.Transport{TLSClientConfig: config}
	defer transport.CloseIdleConnections()
	api, err := findServer(ctx, &http.Client{Transport: transport})
	if errors.Is(err, errNoServer) {
		return advice.Wrap(usageError("there is no queue: %w, and --nats names no cluster", err),
			"start drover serve --queue, or name the servers of a NATS cluster with --nats nats://host:4222")
	}
	if err != nil {
		return err
	}
	return f(ctx, api)
}

// newRunsEndCommand is drover runs cancel or retry.
func newRunsEndCommand(name, short, long string, onFleet func(context.Context, *fleet.Run) error, operation string) *cobra.Command {
	at := &fleetFlags{}
	cmd := &cobra.Command{
		Use:   name + " [flags] RUN",
		Short: short,
		Long:  long + " RUN is the whole id, as drover submit and drover runs --nats print it. Without --nats it is a run of the\ndrover serve of this user.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return nil
			}
			return advice.Wrap(usageError("%s takes one RUN, and there are %d", cmd.CommandPath(), len(args)), "drover runs --nats lists those of a fleet, and drover runs --queued those that wait in drover serve")
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return withoutSecrets(endRun(cmd, at, args[0], onFleet, operation), at.secrets())
		},
		ValidArgsFunction:     cobra.NoFileCompletions,
		DisableFlagsInUseLine: true,
	}
	cmd.Flags().SortFlags = false
	at.addFlags(cmd.Flags())
	return cmd
}

func endRun(cmd *cobra.Command, at *fleetFlags, id string, onFleet func(context.Context, *fleet.Run) error, operation string) (err error) {
	if err := at.check(); err != nil {
		return err
	}
	ctx := cmd.Context()
	if len(at.urls) == 0 {
		return withServer(ctx, at, func(ctx context.Context, api *runningServer) error {
			err := api.call(ctx, http.MethodPost, "/v1/runs/"+url.PathEscape(id)+"/"+operation, nil, nil)
			if p, is := errors.AsType[*server.Problem](err); is && p.Status == http.StatusNotFound {
				return ending{exitUsage, err}
			}
			return err
		})
	}
	f, err := at.open(ctx, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	run, err := f.Run(ctx, id)
	if errors.Is(err, fleet.ErrNoRun) {
		return advice.Wrap(usageError("%w", err), "drover runs --nats %s lists the runs of the fleet", cmp.Or(at.urls.String(), "url"))
	}
	if err != nil {
		return err
	}
	return onFleet(ctx, run)
}

func newRunsCancelCommand() *cobra.Command {
	return newRunsEndCommand("cancel", "End a run of a fleet, or of drover serve", "Cancel ends a run, whether it waits or is under way.",
		func(ctx context.Context, r *fleet.Run) error { return r.Cancel(ctx) }, "stop")
}

func newRunsRetryCommand() *cobra.Command {
	return newRunsEndCommand("retry", "Queue a run of a fleet, or of drover serve, again", "Retry queues a run again that has ended without an answer. It continues from its log.",
		func(ctx context.Context, r *fleet.Run) error { return r.Retry(ctx) }, "retry")
}
