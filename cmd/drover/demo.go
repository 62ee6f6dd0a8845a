// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/gate"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/schema"
	"github.com/drover-agents/drover/tool"
)

//go:embed demo
var demoFiles embed.FS

// review is the answer that the demo asks for.
type review struct {
	Summary string   `json:"summary" doc:"two sentences"`
	Issues  []string `json:"issues" doc:"file:line and what is wrong"`
}

func newDemoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Review a small bundled project with the real CLI and a scripted model",
		Long: `Demo runs the real Claude Code CLI on a small bundled project. The model is a script on
loopback, so no key is needed and nothing leaves this machine; the tools are really run.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return guardedDemo(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// guardedDemo ends the demo when nobody can be shown anything.
func guardedDemo(parent context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	if _, is := terminal(out); !is { // those are never lost without a signal
		out = &guardedWriter{to: out, failed: func(err error) { cancel(outputLost{err}) }}
	}
	err := runDemo(ctx, in, out)
	if lost, is := errors.AsType[outputLost](context.Cause(ctx)); is {
		return ending{exitError, lost.told()}
	}
	return err
}

// runDemo shows what happens while it happens, then the answer.
func runDemo(ctx context.Context, in io.Reader, out io.Writer) error {
	dir, err := os.MkdirTemp("", "drover-demo-")
	if err != nil {
		return fmt.Errorf("a private folder for the demo: %w\n  next: set TMPDIR to a folder that can be written to", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	work, err := unpackDemo(dir)
	if err != nil {
		return err
	}
	model, err := startDemoModel(work)
	if err != nil {
		return err
	}
	defer func() { _ = model.Close() }()
	upstream, err := scripted(model.URL())
	if err != nil {
		return err
	}
	req, err := demoRequest(work)
	if err != nil {
		return err
	}
	// Where there is no cell the sandbox of the CLI will do for a model whose every word is known.
	adapter := claudecode.New(demoOptions()).In(&isolation.Isolation{Upstream: upstream, Weakest: isolation.LevelSandbox})
	ready := adapter.Ready(ctx)
	if err := ready.Err(); err != nil {
		return err
	}
	state := strings.ReplaceAll(string(ready.State), string(agent.StateReady), "ok")
	fmt.Fprintf(out, "set-up    claude %s  %s    model: scripted, no key needed\n", ready.Version, state)
	fmt.Fprintf(out, "run       review of the bundled shop, with Read, Write, Bash and one Go tool\n\n")
	return watchDemo(ctx, adapter, req, in, out)
}

// watchDemo has the agent work and shows it. The summary comes also when it is stopped.
func watchDemo(ctx context.Context, adapter agent.Adapter, req agent.Request, in io.Reader, out io.Writer) error {
	display, approver := newDisplay(in, out, displayOptions{
		Dir: req.Dir, MaxUSD: req.MaxBudgetUSD, Answer: writeReview,
	})
	defer display.close()
	runner, err := agent.NewRunner(adapter, &agent.RunnerOptions{Approver: approver})
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, display.stopping)()
	for e, err := range runner.Run(ctx, req) {
		if err != nil {
			return err
		}
		display.show(e)
		if done, ok := e.Payload.(event.Done); ok && done.Status != event.DoneSuccess {
			return fmt.Errorf("the run ended with %s: %s", done.Status, cmp.Or(done.Result, done.Reason))
		}
	}
	return nil
}

// writeReview writes the answer for people.
func writeReview(w io.Writer, done event.Done) error {
	var r review
	if err := json.Unmarshal(done.Output, &r); err != nil {
		return fmt.Errorf("the answer is no review: %w", err)
	}
	fmt.Fprintf(w, "Review\n  Summary  %s\n", r.Summary)
	for i, issue := range r.Issues {
		label := ""
		if i == 0 {
			label = "Issues"
		}
		fmt.Fprintf(w, "  %-8s %d. %s\n", label, i+1, issue)
	}
	return nil
}

// unpackDemo writes the bundled project below dir and returns the folder that holds it.
func unpackDemo(dir string) (string, error) {
	work := filepath.Join(dir, "work")
	shop, err := fs.Sub(demoFiles, "demo/shop")
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(filepath.Join(work, "shop"), shop); err != nil {
		return "", err
	}
	sources, err := filepath.Glob(filepath.Join(work, "shop", "*.go.txt"))
	for _, path := range sources {
		if err == nil {
			err = os.Rename(path, strings.TrimSuffix(path, ".txt"))
		}
	}
	return work, err
}

func startDemoModel(work string) (*script.Server, error) {
	text, err := demoFiles.ReadFile("demo/model.yaml")
	if err != nil {
		return nil, err
	}
	s, err := script.Read(bytes.NewReader(bytes.ReplaceAll(text, []byte("{{WORK}}"), []byte(work))))
	if err != nil {
		return nil, err
	}
	return script.Start(s)
}

// demoOptions keep nothing of the run, and show the tool of ours at once.
func demoOptions() *claude.Options {
	return &claude.Options{
		Env: claude.InheritEnv(map[string]string{"ENABLE_TOOL_SEARCH": "false"}), StrictMCP: true, NoPersistence: true,
	}
}

// demoRequest is the task, with a tool of ours, and with a gate that lets files be.
func demoRequest(work string) (agent.Request, error) {
	answer, err := schema.For[review]()
	if err != nil {
		return agent.Request{}, err
	}
	tools, err := tool.NewRegistry(nil, demoTool(work))
	if err != nil {
		return agent.Request{}, err
	}
	return agent.Request{
		Prompt:       "Review the code under shop.",
		Dir:          work,
		AllowedTools: []string{"Read", "Write", "Bash(grep *)", "count_lines"},
		Tools:        tools,
		Permissions:  &gate.Permissions{FileWrite: gate.LevelDeny, ShellExecute: gate.LevelAllow},
		MaxBudgetUSD: 0.5,
		OutputSchema: answer.JSON(),
		PartialText:  true,
	}, nil
}

// demoTool is a tool in this process.
func demoTool(work string) *tool.Tool {
	type input struct {
		Dir string `json:"dir" doc:"folder below the project"`
	}
	return tool.Must("count_lines", "Count the lines of all files in a folder.",
		func(_ context.Context, in input) (string, error) {
			root, err := os.OpenRoot(work)
			if err != nil {
				return "", err
			}
			defer func() { _ = root.Close() }()
			n, err := countLines(root.FS(), in.Dir)
			return fmt.Sprintf("%d lines", n), err
		}, tool.ReadOnly)
}

func countLines(files fs.FS, dir string) (int, error) {
	n := 0
	err := fs.WalkDir(files, dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		n += bytes.Count(text, []byte("\n"))
		return err
	})
	return n, err
}
