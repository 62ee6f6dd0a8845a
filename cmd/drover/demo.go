// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	root "github.com/drover-agents/drover" // tests have a function of its name
	"github.com/drover-agents/drover/advice"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/agent/claudecode/claudecell"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/cmd/drover/internal/runs"
	"github.com/drover-agents/drover/cmd/drover/internal/wording"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/gateway"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/record"
	"github.com/drover-agents/drover/server"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/terminal"
)

func newDemoCommand() *cobra.Command {
	var scripted bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Review a small bundled project in a cell, with or without a key",
		Long: `Demo has an agent review a small bundled project: the real Claude Code CLI in a cell, with one tool of
Go, a budget, a deadline, and a check that sends an incomplete review back. The agent sees the project
read-only. The recording is stored in a folder that is printed at the end. On a terminal, a page shows the run, and stays until you press Enter.

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
	record  *demoRecord
	page    *watchPage // on a terminal
}

// guarded ends the demo when the output is lost.
func (d *demo) guarded(parent context.Context, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if !terminal.Is(out) { // those are never lost without a signal
		out = &guardedWriter{to: out, failed: func(err error) { cancel(outputLost{err}) }}
	}
	d.out = out
	err := d.run(ctx)
	if lost, is := errors.AsType[outputLost](context.Cause(ctx)); is {
		return ending{exitError, lost.explain()}
	}
	return err
}

func (d *demo) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "drover-demo-")
	if err != nil {
		return advice.Wrap(fmt.Errorf("a private folder for the demo: %w", err), "set TMPDIR to a folder that can be written to")
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if d.project, err = unpackProject(dir); err != nil {
		return err
	}
	if d.model, err = chooseDemoModel(d.scripted, d.project); err != nil {
		return err
	}
	defer func() { _ = d.model.close() }()
	adapter := claudecode.New(demoCLI()).In(d.isolation())
	defer func() { err = errors.Join(err, adapter.Close()) }()
	ready := adapter.Ready(ctx)
	if err := ready.Err(); err != nil {
		return err
	}
	if d.record, err = newDemoRecord(); err != nil {
		return err
	}
	if terminal.Is(d.in) && terminal.Is(d.out) {
		if d.page, err = openPage(ctx, d.record.store, ""); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.page.Close()) }()
	}
	d.introduce(ready)
	err = d.review(ctx, adapter)
	if d.page != nil && err == nil { // else the error comes first
		fmt.Fprintf(d.out, "Page     %s\n         it stays until you press Enter\n", d.page.Address)
		awaitEnter(ctx, d.in)
	}
	return err
}

func (d *demo) introduce(ready agent.Readiness) {
	state := strings.ReplaceAll(string(ready.State), string(agent.StateReady), "ok")
	fmt.Fprintf(d.out, "set-up    claude %s  %s\n", ready.Version, state)
	fmt.Fprintf(d.out, "model     %s\n", d.model.description)
	fmt.Fprintf(d.out, "task      a review of the bundled shop, which is read-only, with one Go tool\n")
	fmt.Fprintf(d.out, "limits    %s, %s tokens, %.0f minutes; what leaves out a file is sent back\n", safetext.Dollars(demoUSD), safetext.Thousands(demoTokens), demoTime.Minutes())
	if d.page != nil {
		fmt.Fprintf(d.out, "page      %s\n", d.page.Address)
	}
	fmt.Fprintln(d.out)
}

// isolation is the isolation of the agent: a cell that shows it the project read-only. Where there is no cell, the
// sandbox of the CLI is enough for the scripted model.
func (d *demo) isolation() *isolation.Isolation {
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
func (d *demo) review(ctx context.Context, adapter agent.Adapter) (err error) {
	p, err := d.project.prompt()
	if err != nil {
		return err
	}
	view, approver := terminal.New(d.in, d.out, terminal.Options{Dir: d.project.dir, MaxUSD: demoUSD, Answer: writeReview, Catalogue: adapter.Catalogue(), Reword: wording.Flags})
	defer view.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer afterEnd(ctx, view.Stopping)()
	live := server.NewLive(d.record.recorder, &server.LiveOptions{Approver: approver, Stop: func() { cancel(errStoppedElsewhere) }})
	defer func() { err = errors.Join(err, live.Close()) }()
	if approver != nil {
		approver = live
	}
	o := d.options(approver)
	o.Recorder = live
	run := root.Stream(ctx, adapter, p, o)
	began := false
	for e, err := range run.Events() {
		if err != nil {
			break // Response has it too
		}
		if began = began || e.Kind != event.KindDone; began {
			live.Show(e)
			view.Show(e)
		}
	}
	view.Close() // before anything else is printed
	resp, err := run.Response()
	if err != nil && !began { // there is nothing to look at
		return err
	}
	if incomplete, ok := root.IncompleteResponse[review](err); ok {
		resp, err = incomplete, advice.Wrap(err, "run the demo again")
	}
	runID := ""
	if failure, ok := errors.AsType[*root.EvaluationError](err); ok {
		runID = failure.Summary.RunID
	} else if resp != nil {
		runID = resp.RunID
	}
	d.record.print(d.out, resp, d.model, runID)
	return err
}

// options are the bounds of the review. The gate refuses changes of files, and the isolation blocks the others.
func (d *demo) options(approver gate.Approver) *root.Options {
	return &root.Options{
		Session: d.record.session,
		Settings: agent.Settings{
			Dir:         d.project.work,
			Tools:       []string{"Read", "Write", "Grep", "Glob", "Bash", "count_lines"},
			Permissions: &gate.Permissions{FileWrite: gate.LevelDeny, ShellExecute: gate.LevelAllow, NetworkAccess: gate.LevelDeny},
			Budget:      &guard.Budget{MaxCostUSD: demoUSD, MaxTotalTokens: demoTokens},
			PartialText: approver != nil, // a person watches
		},
		Deadline:   guard.FromNow(demoTime),
		Approver:   approver,
		Completion: d.project.check(),
		MaxRounds:  3,
	}
}

// envDemo chooses the model of the demo: "script", or empty for the one of the environment.
const envDemo = "DROVER_DEMO"

type demoModel struct {
	// description names it, and how to get the other one.
	description string
	// upstream is the script. Nil means the model of auth.
	upstream gateway.Upstream
	auth     isolation.Auth
	close    func() error
}

// chooseDemoModel chooses the model of the environment, or else the script.
func chooseDemoModel(scripted bool, p project) (*demoModel, error) {
	switch given := os.Getenv(envDemo); given {
	case "":
	case "script":
		scripted = true
	default:
		return nil, advice.Wrap(usageError("%s is %q", envDemo, given), "set it to script, or unset it")
	}
	if scripted {
		return p.startScript("scripted, as asked: no key is used, and nothing is charged")
	}
	found, err := p.findCredentials()
	if bad, ok := errors.AsType[*isolation.AuthError](err); ok && found == nil {
		return p.startScript(scriptedSince(bad))
	}
	if err != nil {
		return nil, err
	}
	return &demoModel{description: describeCredentials(found), auth: isolation.Auth{Only: found.Mode}, close: func() error { return nil }}, nil
}

func (p project) findCredentials() (*claudecell.Finding, error) {
	return claudecell.Authenticate(&isolation.Isolation{Host: p.host()})
}

// host is this machine without the settings and login of its claude, which could choose another model than the demo prints.
func (p project) host() isolation.Host {
	none := filepath.Join(p.dir, "settings") // which is not there, and where the agent can put nothing
	environ := append(os.Environ(), "CLAUDE_CONFIG_DIR="+none)
	return isolation.Host{Environ: func() []string { return environ }}
}

// scriptedSince states why there is no model, and how to get one.
func scriptedSince(bad *isolation.AuthError) string {
	for _, name := range slices.Concat(credentialNames, cloudNames) {
		if os.Getenv(name) != "" {
			return "scripted, since " + bad.Reason
		}
	}
	return "scripted, no key needed; a real one answers if a key or Bedrock is set"
}

func describeCredentials(found *claudecell.Finding) string {
	service := "Anthropic"
	if found.Bedrock != nil {
		service = "Bedrock in " + found.Bedrock.Region
	}
	return fmt.Sprintf("%s, by %s; %s=script or --scripted needs none", service, found.Name, envDemo)
}

// startScript has the script answer, on loopback.
func (p project) startScript(description string) (*demoModel, error) {
	text, err := demoFiles.ReadFile("demo/model.yaml")
	if err != nil {
		return nil, err
	}
	s, err := script.Read(bytes.NewReader(bytes.ReplaceAll(text, []byte("{{SHOP}}"), []byte(p.shop))))
	if err != nil {
		return nil, err
	}
	server, err := script.Start(s)
	if err != nil {
		return nil, err
	}
	upstream, err := claudecell.Scripted(server.URL())
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return &demoModel{description: description, upstream: upstream, close: server.Close}, nil
}

// envCommand has what starts this program where it is not on the PATH, as make demo sets it.
const envCommand = "DROVER_COMMAND"

// A demoRecord is what is kept of the demo.
type demoRecord struct {
	session  *session.Session
	store    *record.Store
	recorder *record.Recorder
}

func newDemoRecord() (*demoRecord, error) {
	store, err := openRuns("")
	if err != nil {
		return nil, err
	}
	opts := &record.RecorderOptions{Secrets: secretValues(nil), Name: "demo", Versions: map[string]string{"drover": builtVersion()}, Command: os.Args}
	return &demoRecord{session: session.New(nil), store: store, recorder: record.NewRecorder(store, opts)}, nil
}

// print prints the cost, the events and the files of a run. resp is nil if it failed.
func (r *demoRecord) print(w io.Writer, resp *root.Response[review], m *demoModel, runID string) {
	fmt.Fprintln(w)
	if resp != nil {
		charged := ""
		if m.upstream != nil {
			charged = ", not charged"
		}
		fmt.Fprintf(w, "Cost     %s of %s for %s tokens in %s%s\n", safetext.Dollars(resp.CostUSD()), safetext.Dollars(demoUSD),
			safetext.Thousands(resp.Usage.InputTokens()+resp.Usage.OutputTokens()), safetext.Plural(resp.Turns, "model call"), charged)
	}
	r.printEvents(w)
	if run, err := r.store.Find(runID); err == nil {
		fmt.Fprintf(w, "Record   %s\n", run.Path)
		fmt.Fprintf(w, "         look at it: %s runs show %s\n", cmp.Or(os.Getenv(envCommand), "drover"), runs.ShortID(run.ID))
	}
}

// printEvents prints the number of events of each kind, the most frequent first.
func (r *demoRecord) printEvents(w io.Writer) {
	counts, all := map[event.Kind]int{}, 0
	for e := range r.session.Events() {
		counts[e.Kind]++
		all++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b event.Kind) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	fmt.Fprintf(w, "Events   %d in the session\n", all)
	for some := range slices.Chunk(kinds, 3) { // which 80 columns have room for
		line := "        "
		for _, kind := range some {
			line += fmt.Sprintf(" %3d %-19s", counts[kind], kind)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}
