// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/cmd/drover/internal/runs"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/leftover"
	"github.com/drover-agents/drover/internal/plainjson"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/record/index"
	"github.com/drover-agents/drover/terminal"
)

// runsFilter are the flags that choose runs.
type runsFilter struct {
	failed, running bool
	since           sinceTime
	agent, folder   string
}

// A sinceTime is a time that a flag gives as an age (2d, 12h) or a day.
type sinceTime struct{ time.Time }

func (t *sinceTime) Type() string { return "time" }

func (t *sinceTime) String() string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.DateOnly)
}

func (t *sinceTime) Set(text string) (err error) {
	if age, bad := parseAge(text); bad == nil {
		t.Time = time.Now().Add(-age)
		return nil
	}
	if t.Time, err = time.ParseInLocation(time.DateOnly, text, time.Local); err != nil {
		return advice.Wrap(fmt.Errorf("%q is neither an age nor a day", text), "give an age such as 12h or 2d, or a day such as 2026-11-19")
	}
	return nil
}

func (f *runsFilter) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&f.failed, "failed", false, "runs that failed, reached a limit, were interrupted or are lost")
	flags.BoolVar(&f.running, "running", false, "runs in progress")
	flags.Var(&f.since, "since", "runs that began since then: 12h, 2d, 2026-11-19")
	flags.StringVar(&f.agent, "agent", "", "runs of this agent, by the name of its file or of the program")
	flags.StringVar(&f.folder, "folder", "", "runs of this folder")
}

func (f *runsFilter) filter(words []string) (index.Filter, error) {
	filter := index.Filter{Failed: f.failed, Since: f.since.Time, Agent: f.agent, Words: words}
	if f.running {
		filter.State = record.Running
	}
	if f.folder != "" {
		folder, err := filepath.Abs(f.folder)
		if err != nil {
			return filter, err
		}
		filter.Folder = folder
	}
	return filter, nil
}

// withIndex calls f with an index that is up to date.
func withIndex(cmd *cobra.Command, f func(ctx context.Context, ix *index.Index) error) (err error) {
	store, err := openRuns("")
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	ix, err := index.Open(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ix.Close()) }()
	err = ix.Sync(ctx)
	for _, n := range ix.Notices() {
		report(cmd.ErrOrStderr(), advice.Wrap(errors.New(n.Text), "%s", n.Advice))
	}
	if err != nil {
		return err
	}
	return f(ctx, ix)
}

// The most runs that are offered, and that are read to find them.
const (
	offeredRuns  = 20
	searchedRuns = 500
)

// completeRuns offers what may be a RUN, of which a command takes so many: last and the latest runs that fit, each described. With
// files it leaves paths to the shell.
func completeRuns(most int, files bool, fits func(index.Row) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) (offers []string, directive cobra.ShellCompDirective) {
		directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		switch {
		case len(args) >= most:
			return nil, directive
		case files && strings.ContainsAny(typed, "./"):
			return nil, cobra.ShellCompDirectiveDefault
		}
		ctx, stop := context.WithTimeout(cmd.Context(), 2*time.Second)
		defer stop()
		cmd.SetContext(ctx)
		filter := index.Filter{Limit: searchedRuns}
		if typed != "" {
			filter.Words = []string{typed}
		}
		_ = withIndex(cmd, func(ctx context.Context, ix *index.Index) error { // a shell that completes shows no error
			rows, err := ix.Runs(ctx, filter)
			if files {
				rows = withOldDemos(rows, filter)
			}
			if len(rows) > 0 && strings.HasPrefix("last", typed) && fits(rows[0]) && !slices.Contains(args, "last") {
				offers = append(offers, cobra.CompletionWithDesc("last", "the latest run"))
			}
			for _, r := range rows {
				name := runs.Name(r)
				if len(typed) > len(name) {
					name = r.ID
				}
				if len(offers) < offeredRuns && fits(r) && strings.HasPrefix(name, typed) && !slices.Contains(args, name) {
					offers = append(offers, cobra.CompletionWithDesc(name, runs.Describe(r, time.Now())))
				}
			}
			return err
		})
		return offers, directive
	}
}

func anyRun(index.Row) bool { return true }

// isOver is for commands that refuse a run in progress.
func isOver(r index.Row) bool { return r.State != record.Running }

// noRuns is the text of an empty list. A word that was looked for may be a misspelled command.
func noRuns(cmd *cobra.Command, words []string) string {
	if len(words) == 0 {
		return "no runs"
	}
	text := "no runs with " + safetext.Line(strings.Join(words, " "))
	if near := ident.Nearest(words[0], subcommands(cmd)); len(near) > 0 {
		text += "; did you mean drover runs " + near[0] + "?"
	}
	return text
}

func subcommands(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return names
}

// listRuns is drover runs.
func listRuns(cmd *cobra.Command, f *runsFilter, words []string, limit int, asJSON bool) error {
	filter, err := f.filter(words)
	if err != nil {
		return err
	}
	filter.Limit = limit
	return withIndex(cmd, func(ctx context.Context, ix *index.Index) error {
		rows, err := ix.Runs(ctx, filter)
		if err != nil {
			return err
		}
		if !f.failed && !f.running && len(words) == 0 && f.agent == "" && f.folder == "" {
			rows = withOldDemos(rows, filter)
		}
		return buffered(cmd, func(w io.Writer) error {
			if asJSON {
				return runs.ListJSON(w, rows)
			}
			if len(rows) == 0 {
				_, err := fmt.Fprintln(w, noRuns(cmd, words))
				return err
			}
			return runs.List(w, rows, time.Now(), terminal.Width(cmd.OutOrStdout()))
		})
	})
}

// withOldDemos adds the demos that earlier versions have kept.
func withOldDemos(rows []index.Row, f index.Filter) []index.Row {
	state, err := leftover.StateFolder()
	if err != nil {
		return rows
	}
	folders, _ := os.ReadDir(filepath.Join(state, "demo")) // there may be none
	for _, folder := range folders {
		path, ok := oldDemo(folder.Name())
		if !ok {
			continue
		}
		run, err := record.OpenLog(path, secretValues(nil)...)
		if err != nil || run.Began.Before(f.Since) {
			continue
		}
		row := index.Row{Run: "", Path: path, ID: run.ID, Agent: run.Agent, Name: "demo", Prompt: run.Prompt, Folder: run.Folder, Model: run.Model, State: run.State, Began: run.Began}
		if run.End != nil {
			cost := run.End.Usage.TotalCostUSD()
			row.Status, row.Duration, row.CostUSD = run.End.Status, run.End.Duration, &cost
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b index.Row) int { return b.Began.Compare(a.Began) })
	if f.Limit > 0 {
		rows = rows[:min(len(rows), f.Limit)]
	}
	return rows
}

func newRunsCostCommand() *cobra.Command {
	var by string
	var f runsFilter
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Sum what runs cost, by day, agent, folder or model",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(costGroups, by) {
				return advice.Wrap(usageError("--by: there is no group %q", by), "choose among %s", strings.Join(costGroups, ", "))
			}
			filter, err := f.filter(nil)
			if err != nil {
				return err
			}
			return withIndex(cmd, func(ctx context.Context, ix *index.Index) error {
				sums, err := ix.Cost(ctx, by, filter)
				if err != nil {
					return err
				}
				return buffered(cmd, func(w io.Writer) error {
					if asJSON {
						return runs.CostJSON(w, by, sums)
					}
					return runs.Costs(w, by, sums)
				})
			})
		},
	}
	f.addFlags(cmd)
	cmd.Flags().StringVar(&by, "by", "day", "day, agent, folder or model")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one object per line as JSON")
	if err := cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(costGroups, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // a flag that there is not: a mistake in this file
	}
	return cmd
}

var costGroups = []string{"day", "agent", "folder", "model"}

func newRunsSQLCommand() *cobra.Command {
	var asJSON, tables bool
	cmd := &cobra.Command{
		Use:   "sql QUERY",
		Short: "Ask the database of kept runs",
		Long: `Sql prints the rows of a select over the tables runs, events, calls, tokens, decisions, errors and files. --tables lists their
columns; docs/runs-sql.md describes them. A query can only read these tables. It ends after 10 seconds, and prints at most 10,000 rows.`,
		Example: `  drover runs sql "select name, count(*), sum(cost_usd) from runs group by name"
  drover runs sql "select tool, policy, count(*) from decisions where verdict = 'deny' group by 1, 2"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if tables && len(args) == 0 || !tables && len(args) == 1 {
				return nil
			}
			return advice.Wrap(usageError("sql takes one query"), `drover runs sql "select * from runs limit 5", or drover runs sql --tables`)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if tables {
				return buffered(cmd, func(w io.Writer) error { return runs.Tables(w, index.Tables()) })
			}
			return withIndex(cmd, func(ctx context.Context, ix *index.Index) error {
				answer, err := ix.SQL(ctx, args[0], index.Limits{})
				if err != nil {
					return ending{exitUsage, err}
				}
				if answer.Truncated {
					defer report(cmd.ErrOrStderr(), advice.Wrap(errors.New("the answer has more rows than are printed"), "add a limit, or sum in the query"))
				}
				return buffered(cmd, func(w io.Writer) error { return printAnswer(w, answer, asJSON) })
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one object per line as JSON")
	cmd.Flags().BoolVar(&tables, "tables", false, "list the tables and their columns")
	return cmd
}

func printAnswer(w io.Writer, answer index.Answer, asJSON bool) error {
	if !asJSON {
		return runs.Answer(w, answer)
	}
	for _, row := range answer.Rows {
		fields := make([]string, 0, len(row))
		for i, value := range row {
			if raw, ok := value.([]byte); ok {
				value = string(raw)
			}
			name, err := plainjson.Marshal(answer.Columns[i])
			if err != nil {
				return err
			}
			text, err := plainjson.Marshal(value)
			if err != nil {
				text = json.RawMessage("null")
			}
			fields = append(fields, string(name)+":"+string(text))
		}
		if _, err := fmt.Fprintln(w, "{"+strings.Join(fields, ",")+"}"); err != nil {
			return err
		}
	}
	return nil
}
