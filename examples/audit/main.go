// SPDX-License-Identifier: Apache-2.0

// Command audit has an agent look for weak spots in a project that it cannot harm: it works on copies, without
// files with secrets, and its tools reach no host.
//
//	audit ~/src/shop
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/isolation"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

// Findings are the answer.
type Findings struct {
	Risk   string   `json:"risk" enum:"none,low,high"`
	Issues []string `json:"issues" doc:"where it is and what it allows, one sentence each"`
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: audit FOLDER")
	}
	if err := run(context.Background(), os.Stdout, &claude.Options{}, os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, opts *claude.Options, project string) (err error) {
	s := session.New(nil)
	w, err := workspace.Open(ctx, &workspace.Options{
		Session: s,
		Mounts: []workspace.HostMount{{
			HostPath:  project,
			MountPath: "repo",
			Exclude:   []string{"**/*.pyc", "**/__pycache__/", "**/.env", ".git/"},
			MaxBytes:  new(int64(1_000_000)),
		}},
		AllowedHostRoots: []string{filepath.Dir(project)},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()

	p, err := prompt.NewPrompt[Findings]("audit", "code",
		prompt.Markdown("task", "Task", "Look for weak spots in the code."),
		w.Section(),
	)
	if err != nil {
		return err
	}
	auditor := claudecode.New(opts).In(&isolation.Isolation{
		Network: isolation.NoNetwork(),
		Sandbox: &isolation.Sandbox{ReadablePaths: []string{w.Root()}}, // it is anyway, as the working directory
		Host:    isolation.Host{Environ: opts.Environ},
	})
	resp, err := drover.Evaluate(ctx, auditor, p, &drover.Options{Session: s, Settings: agent.Settings{Workspace: w}})
	if err != nil {
		return err
	}
	for _, preview := range w.Previews() {
		fmt.Fprintf(out, "%s: %d files, %d bytes\n", preview.MountPath, preview.Files, preview.BytesCopied)
	}
	fmt.Fprintf(out, "risk: %s\n", resp.Output.Risk)
	for _, issue := range resp.Output.Issues {
		fmt.Fprintf(out, "- %s\n", issue)
	}
	return nil
}
