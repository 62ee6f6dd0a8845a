// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	root "github.com/drover-agents/drover" // tests have a function of its name
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/cmd/drover/internal/terminal"
	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/isolation"
)

func newDemoCommand() *cobra.Command {
	var scripted bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Review a small bundled project in a cell, with or without a key",
		Long: `Demo has an agent review a small bundled project: the real Claude Code CLI in a cell, with one tool of
Go, a budget, a deadline, and a check that sends an incomplete review back. The agent sees the project
read-only. What happened is kept in a folder that is named at the end.

A model answers if the environment has a key or a token for Anthropic, or Bedrock switched on
(CLAUDE_CODE_USE_BEDROCK=1). Otherwise, and with --scripted or ` + envDemo + `=script, a script on loopback does:
it needs no key, and nothing leaves this machine. The tools are really run in both cases.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &demo{in: cmd.InOrStdin(), scripted: scripted}
			return d.guarded(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().BoolVar(&scripted, "scripted", false, "a script answers, whatever the environment has")
	return cmd
}

// The limits of a review. A real one takes a small part of them.
const (
	demoUSD    = 0.5
	demoTokens = 400_000
	demoTime   = 3 * time.Minute
)

// A demo is one review, from the folders that it needs to what is left of it.
type demo struct {
	in       io.Reader
	out      io.Writer
	scripted bool

	project project
	model   *demoModel
	record  *record
}

// guarded ends the demo when nobody can be shown anything.
func (d *demo) guarded(parent context.Context, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if !terminal.Is(out) { // those are never lost without a signal
		out = &guardedWriter{to: out, failed: func(err error) { cancel(outputLost{err}) }}
	}
	d.out = out
	err := d.run(ctx)
	if lost, is := errors.AsType[outputLost](context.Cause(ctx)); is {
		return ending{exitError, lost.told()}
	}
	return err
}

// run sets everything up, and has the agent work.
func (d *demo) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "drover-demo-")
	if err != nil {
		return fmt.Errorf("a private folder for the demo: %w\n  next: set TMPDIR to a folder that can be written to", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if d.project, err = unpackProject(dir); err != nil {
		return err
	}
	if d.model, err = chooseDemoModel(d.scripted, d.project); err != nil {
		return err
	}
	defer func() { _ = d.model.close() }()
	adapter := claudecode.New(demoCLI()).In(d.walls())
	defer func() { err = errors.Join(err, adapter.Close()) }()
	ready := adapter.Ready(ctx)
	if err := ready.Err(); err != nil {
		return err
	}
	if d.record, err = newRecord(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.record.close()) }()
	d.introduce(ready)
	return d.review(ctx, adapter)
}

// introduce says what is about to happen.
func (d *demo) introduce(ready agent.Readiness) {
	state := strings.ReplaceAll(string(ready.State), string(agent.StateReady), "ok")
	fmt.Fprintf(d.out, "set-up    claude %s  %s\n", ready.Version, state)
	fmt.Fprintf(d.out, "model     %s\n", d.model.says)
	fmt.Fprintf(d.out, "task      a review of the bundled shop, which is read-only, with one Go tool\n")
	fmt.Fprintf(d.out, "limits    %s, %s tokens, %.0f minutes; what leaves out a file is sent back\n\n", wording.Dollars(demoUSD), wording.Thousands(demoTokens), demoTime.Minutes())
}

// walls are around the agent: a cell that shows it the project, which it cannot change there. Where there is
// no cell the sandbox of the CLI will do for a model whose every word is known.
func (d *demo) walls() *isolation.Isolation {
	in := &isolation.Isolation{
		Sandbox:  &isolation.Sandbox{ReadablePaths: []string{d.project.shop}},
		Upstream: d.model.upstream, Auth: d.model.auth, Host: d.project.host(),
	}
	if d.model.upstream != nil {
		in.Weakest = isolation.LevelSandbox
	}
	return in
}

// demoCLI keeps nothing of the run, and shows the tool of ours at once.
func demoCLI() *claude.Options {
	return &claude.Options{
		Env: claude.InheritEnv(map[string]string{"ENABLE_TOOL_SEARCH": "false"}), StrictMCP: true, NoPersistence: true,
		SettingSources: claudecell.SettingSources(),
	}
}

// review has the agent work and shows it. The summary comes also when it is stopped.
func (d *demo) review(ctx context.Context, adapter agent.Adapter) error {
	p, err := d.project.prompt()
	if err != nil {
		return err
	}
	display, approver := terminal.New(d.in, d.out, terminal.Options{Dir: d.project.dir, MaxUSD: demoUSD, Answer: writeReview})
	defer display.Close()
	defer afterEnd(ctx, display.Stopping)()
	run := root.Stream(ctx, adapter, p, d.options(approver))
	began := false
	for e, err := range run.Events() {
		if err != nil {
			break // Response has it too
		}
		if began = began || e.Kind != event.KindDone; began {
			display.Show(e)
		}
	}
	display.Close() // before anything else is said
	resp, err := run.Response()
	if err != nil && !began { // there is nothing to look at
		return err
	}
	d.record.tell(d.out, resp, d.model)
	if err == nil && !resp.Completion.Done {
		return fmt.Errorf("the review was sent back as often as it may be, and leaves out a file: %s\n  next: run the demo again", resp.Completion.Feedback)
	}
	return err
}

// options are the bounds of the review. The gate refuses changes of files, and the walls what gets past it.
func (d *demo) options(approver gate.Approver) *root.Options {
	return &root.Options{
		Session:    d.record.session,
		Transcript: d.record.options(),
		Settings: agent.Settings{
			Dir:         d.project.work,
			Tools:       []string{"Read", "Write", "Grep", "Glob", "Bash", "count_lines"},
			Permissions: &gate.Permissions{FileWrite: gate.LevelDeny, ShellExecute: gate.LevelAllow, NetworkAccess: gate.LevelDeny},
			Budget:      &guard.Budget{MaxCostUSD: demoUSD, MaxTotalTokens: demoTokens},
			PartialText: approver != nil, // somebody watches
		},
		Deadline:   guard.FromNow(demoTime),
		Approver:   approver,
		Completion: d.project.check(),
		MaxRounds:  3,
	}
}
