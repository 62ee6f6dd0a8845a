// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/cmd/drover/internal/runs"
	"github.com/drover-agents/drover/internal/ident"
	"github.com/drover-agents/drover/internal/leftover"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/terminal"
)

const runsHelp = `Runs lists the runs that were kept, the latest first: each run of drover run and drover demo is, with every event, the
transcript, the settings, the changes in its workspace, its cost and its end. Secrets are replaced; see docs/runs.md.

Words list the runs that have all of them in their prompt, name, folder, id or error.

RUN is the id of a run, the beginning of one, last for the latest, or a file, by a path with a slash or a name that ends in .zip or
.jsonl: a bundle of drover runs export, a log of a session, a recording of --record.

With --nats the runs of a fleet are listed instead, wherever they run; see docs/fleet.md.

The runs are in $XDG_STATE_HOME/drover/runs, by default ~/.local/state/drover/runs. The latest 2,000 are kept, for 90 days, up to
4 GiB; ` + envKeep + `=runs=500,age=30d,size=1GiB sets other limits, and ` + envKeep + `=no or --no-keep keeps nothing.`

func newRunsCommand() *cobra.Command {
	var (
		f       runsFilter
		onFleet fleetFlags
		queued  bool
		limit   int
		asJSON  bool
	)
	cmd := &cobra.Command{
		Use:   "runs [flags] [word...]",
		Short: "List, show and compare the runs that were kept",
		Long:  runsHelp,
		Args: func(cmd *cobra.Command, words []string) error {
			if len(words) > 1 {
				if near := ident.Nearest(words[0], subcommands(cmd)); len(near) > 0 {
					return advice.Wrap(usageError("there is no command drover runs %s; did you mean %s?", words[0], near[0]), "if it is a word to look for, put others first")
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, words []string) error {
			if limit < 0 {
				return advice.Wrap(usageError("--limit: %d is below zero", limit), "give the number of runs, or 0 for all")
			}
			switch {
			case len(onFleet.urls) > 0:
				return withoutSecrets(listFleet(cmd, &onFleet, &f, words, limit, asJSON), onFleet.secrets())
			case queued:
				return listQueue(cmd, words, limit, asJSON)
			}
			return listRuns(cmd, &f, words, limit, asJSON)
		},
	}
	f.addFlags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 30, "how many are listed; 0 means all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one object per line as JSON")
	cmd.Flags().BoolVar(&queued, "queued", false, "runs that wait in the queue of drover serve")
	onFleet.addFlags(cmd.Flags())
	cmd.AddCommand(newRunsCancelCommand(), newRunsRetryCommand(), newRunsShowCommand(), newRunsCompareCommand(), newRunsResumeCommand(), newRunsRemoveCommand(), newRunsExportCommand(),
		newRunsImportCommand(), newRunsCostCommand(), newRunsSQLCommand())
	return cmd
}

// findRun opens the run that an argument names.
func findRun(ref string) (*record.Run, error) {
	if isFile(ref) {
		return openRunFile(ref)
	}
	store, err := openRuns("")
	if err != nil {
		return nil, err
	}
	var run *record.Run
	if ref == "last" {
		run, err = store.Last()
	} else if run, err = store.Find(ref); errors.Is(err, fs.ErrNotExist) {
		if old, ok := oldDemo(ref); ok {
			return record.OpenLog(old, secretValues(nil)...)
		}
	}
	if err != nil {
		return nil, ending{exitUsage, err}
	}
	return run, nil
}

// isFile reports whether an argument names a file: by its form alone, so that a file in the current folder cannot pass for a run.
func isFile(ref string) bool {
	return strings.ContainsRune(ref, '/') || strings.ContainsRune(ref, os.PathSeparator) || slices.Contains([]string{".zip", ".jsonl"}, filepath.Ext(ref))
}

// openRunFile opens a bundle, a log of a session, or a folder with one.
func openRunFile(path string) (*record.Run, error) {
	run, err := record.OpenFile(path, secretValues(nil)...)
	if err != nil {
		return nil, ending{exitUsage, err}
	}
	return run, nil
}

// oldDemo is the folder in which an earlier version has kept a demo, by its name.
func oldDemo(name string) (string, bool) {
	state, err := leftover.StateFolder()
	if err != nil || name != filepath.Base(name) {
		return "", false
	}
	path := filepath.Join(state, "demo", name)
	_, err = os.Stat(filepath.Join(path, "session.jsonl"))
	return path, err == nil
}

func oneRun(cmd *cobra.Command, args []string) error {
	if len(args) == 1 {
		return nil
	}
	return advice.Wrap(usageError("%s takes one RUN, and there are %d", cmd.CommandPath(), len(args)), "drover runs lists them; last is the latest")
}

// buffered has f write to standard output in large pieces. A terminal gets no control characters; a file gets a patch as it is.
func buffered(cmd *cobra.Command, f func(w io.Writer) error) error {
	w := bufio.NewWriter(cmd.OutOrStdout())
	if terminal.Width(cmd.OutOrStdout()) > 0 {
		return errors.Join(f(runs.Visible(w)), w.Flush())
	}
	return errors.Join(f(w), w.Flush())
}

func newRunsShowCommand() *cobra.Command {
	var parts struct{ events, transcript, diff, cost, prompt, session, decisions bool }
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show a run, or a part of it",
		Args:  oneRun,

		ValidArgsFunction: completeRuns(1, true, anyRun),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var chosen []string
			cmd.Flags().Visit(func(f *pflag.Flag) { chosen = append(chosen, "--"+f.Name) })
			if len(chosen) > 1 {
				return advice.Wrap(usageError("%s exclude each other", strings.Join(chosen, " and ")), "choose one")
			}
			run, err := findRun(args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, run.Close()) }()
			for _, text := range run.Damage() {
				fmt.Fprintln(cmd.ErrOrStderr(), "drover:", text)
			}
			return buffered(cmd, func(w io.Writer) error {
				switch {
				case parts.events:
					return runs.Events(w, run)
				case parts.session:
					return runs.Session(w, run)
				case parts.transcript:
					return runs.Transcript(w, run)
				case parts.diff:
					return runs.Diff(w, run)
				}
				d, damage := run.Details()
				var err error
				switch {
				case parts.cost:
					err = runs.Cost(w, d)
				case parts.prompt:
					err = runs.Prompt(w, d)
				case parts.decisions:
					err = runs.Decisions(w, run, d)
				default:
					err = runs.Show(w, run, d, time.Now(), terminal.Width(cmd.OutOrStdout()))
				}
				return errors.Join(err, damage)
			})
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&parts.events, "events", false, "the events, one per line as JSON")
	f.BoolVar(&parts.transcript, "transcript", false, "what the agent wrote down, one entry per line as JSON")
	f.BoolVar(&parts.diff, "diff", false, "the changes in its workspace, as a patch for git apply")
	f.BoolVar(&parts.cost, "cost", false, "the tokens and dollars by model")
	f.BoolVar(&parts.prompt, "prompt", false, "the prompt as the agent got it")
	f.BoolVar(&parts.session, "session", false, "the state of the session at the end: plan, files, policies")
	f.BoolVar(&parts.decisions, "decisions", false, "each tool call with what was decided about it, by which policies")
	return cmd
}

func newRunsCompareCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "compare A B",
		Short: "Show where two runs part: prompt, settings, tools, calls, answer, changes, cost",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 {
				return nil
			}
			return advice.Wrap(usageError("compare takes two runs, and there are %d", len(args)), "drover runs compare A B; drover runs lists them")
		},
		ValidArgsFunction: completeRuns(2, true, anyRun),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			a, err := findRun(args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, a.Close()) }()
			b, err := findRun(args[1])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.Close()) }()
			c, err := record.Compare(a, b)
			if err != nil {
				return err
			}
			return buffered(cmd, func(w io.Writer) error { return runs.Compare(w, a, b, c) })
		},
	}
}

// resumePrompt is the prompt of a run that is continued without one.
const resumePrompt = "Continue where you stopped. First check what is already done; do not repeat it."

func newRunsResumeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume RUN [prompt] [flags of drover run]",
		Short: "Continue the conversation of a run, with its flags",
		Long: `Resume continues the conversation of a run in its folder, with the flags that it had and those that are added here. Without a
prompt the agent is asked to continue where it stopped. It works for runs that have failed, and for those whose program was killed.

A run that is kept elsewhere, in a bundle or a file, has no conversation here: it can be shown and compared.`,
		DisableFlagParsing: true,
		ValidArgsFunction:  completeRuns(1, false, isOver),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || slices.Contains([]string{"-h", "--help"}, args[0]) {
				return cmd.Help()
			}
			again, folder, err := resumeArguments(args[0], args[1:])
			if err != nil {
				return err
			}
			if err := os.Chdir(folder); err != nil {
				return advice.Wrap(fmt.Errorf("the folder of the run cannot be used: %w", err), "make it again, or begin another run")
			}
			run := newRunCommand()
			run.SilenceUsage, run.SilenceErrors = true, true
			run.SetFlagErrorFunc(flagError)
			run.SetIn(cmd.InOrStdin())
			run.SetOut(cmd.OutOrStdout())
			run.SetErr(cmd.ErrOrStderr())
			run.SetArgs(again)
			return run.ExecuteContext(cmd.Context())
		},
	}
	return cmd
}

// resumeArguments are the arguments of drover run that continue a run, and its folder.
func resumeArguments(ref string, more []string) (args []string, folder string, err error) {
	run, err := findRun(ref)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	short := runs.ShortID(run.ID)
	refuse := func(why, next string) ([]string, string, error) {
		return nil, "", advice.Wrap(usageError("run %s cannot be continued: %s", short, why), "%s", next)
	}
	switch {
	case run.State == record.Running:
		return refuse("it is in progress", "wait until it has ended")
	case run.Imported != "" || !inStore(run):
		return refuse("it is kept in "+cmp.Or(run.Imported, run.Path)+", without its conversation", "drover runs show shows it")
	case len(run.Command) < 2 || run.Command[1] != "run":
		return refuse("drover run has not started it", "begin another run")
	}
	flags := keptFlags(run.Command[2:])
	if i := slices.IndexFunc(flags, func(arg string) bool { return strings.Contains(arg, "[redacted]") }); i >= 0 {
		return refuse("its flags have a secret, which is not kept", "drover run --resume TOKEN, with the flags that it needs")
	}
	token, err := resumeToken(run)
	if err != nil {
		return nil, "", err
	}
	if !ident.ValidUUID(token) {
		return refuse("its conversation was not stored", "begin another run")
	}
	args = append([]string{"--resume=" + token}, flags...)
	file := slices.ContainsFunc(flags, func(arg string) bool { return arg == "-f" || strings.HasPrefix(arg, "--file") })
	args = append(args, more...)
	if !file && !hasPrompt(more) {
		args = append(args, resumePrompt)
	}
	return args, run.Folder, nil
}

// resumeToken is the token of a run's conversation. That of a run without an end is the name which its agent gave it.
func resumeToken(run *record.Run) (string, error) {
	if run.End != nil && run.End.ResumeToken != "" {
		return run.End.ResumeToken, nil
	}
	d, err := run.Details()
	if err != nil {
		return "", err
	}
	return d.SessionID, nil
}

// inStore reports whether a run is in the folder of kept runs.
func inStore(run *record.Run) bool {
	store, err := openRuns("")
	return err == nil && store.Folder(run) != ""
}

// ofOneRun are flags that say nothing of the next run.
var ofOneRun = []string{"resume", "continue", "record", "replay", "model-script", "json", "quiet", "diff", "served", "watch"}

// keptFlags are the flags in the arguments of a run, without those that were for that run alone, and without its prompt.
func keptFlags(args []string) (kept []string) {
	known := newRunCommand().Flags()
	eachArgument(known, args, func(flag *pflag.Flag, words []string) {
		if flag != nil && !slices.Contains(ofOneRun, flag.Name) {
			kept = append(kept, words...)
		}
	})
	return kept
}

func hasPrompt(args []string) (found bool) {
	eachArgument(newRunCommand().Flags(), args, func(flag *pflag.Flag, words []string) { found = found || flag == nil })
	return found
}

// eachArgument calls f for each flag with its value, and for each other argument with a nil flag.
func eachArgument(known *pflag.FlagSet, args []string, f func(flag *pflag.Flag, words []string)) {
	for len(args) > 0 {
		word, used := args[0], 1
		var flag *pflag.Flag
		name, long := strings.CutPrefix(word, "--")
		name, _, valued := strings.Cut(name, "=")
		switch {
		case word == "--":
			for _, rest := range args[1:] {
				f(nil, []string{rest})
			}
			return
		case long:
			flag = known.Lookup(name)
		case len(word) > 1 && word[0] == '-':
			flag = known.ShorthandLookup(word[1:2])
			valued = len(word) > 2
		}
		if flag != nil && !valued && flag.NoOptDefVal == "" {
			used = min(2, len(args))
		}
		f(flag, args[:used])
		args = args[used:]
	}
}

func newRunsRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rm RUN...",
		Short: "Remove runs",
		Long:  "Rm removes runs that were kept. One that is in progress is not removed. Conversations of drover run --resume stay.",
		Args:  cobra.MinimumNArgs(1),

		ValidArgsFunction: completeRuns(math.MaxInt, false, isOver),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := openRuns("")
			if err != nil {
				return err
			}
			var chosen []*record.Run // all of them before one is removed
			for _, ref := range args {
				run, err := findRun(ref)
				if err != nil {
					return err
				}
				if store.Folder(run) == "" {
					return advice.Wrap(usageError("%s is a file, not a kept run", ref), "remove it as a file")
				}
				chosen = append(chosen, run)
			}
			for _, run := range chosen {
				if err := store.Remove(store.Folder(run)); errors.Is(err, record.ErrRunning) {
					return advice.Wrap(usageError("run %s is in progress", runs.ShortID(run.ID)), "wait until it has ended")
				} else if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func newRunsExportCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "Write a run as one file, a bundle, that drover runs show opens elsewhere",
		Args:  oneRun,

		ValidArgsFunction: completeRuns(1, true, anyRun),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			run, err := findRun(args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, run.Close()) }()
			path := cmp.Or(to, runs.ShortID(run.ID)+".drover.zip")
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return advice.Wrap(usageError("the bundle cannot be written: %w", err), "name a new file with -o")
			}
			if err := errors.Join(run.Export(f), f.Close()); err != nil {
				return errors.Join(err, os.Remove(path))
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
	cmd.Flags().StringVarP(&to, "output", "o", "", "the file (default: the beginning of the id, and .drover.zip)")
	return cmd
}

func newRunsImportCommand() *cobra.Command {
	var secrets nameList
	cmd := &cobra.Command{
		Use:   "import FILE...",
		Short: "Take bundles and logs of sessions in among the kept runs",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := openRuns("")
			if err != nil {
				return err
			}
			for _, path := range args {
				run, err := openRunFile(path)
				if err != nil {
					return err
				}
				taken, err := store.Import(run, secretValues(secrets))
				if err = errors.Join(err, run.Close()); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), taken.ID)
			}
			return nil
		},
	}
	cmd.Flags().Var(&secrets, "secret", "a variable whose value is replaced; repeatable")
	return cmd
}
