// SPDX-License-Identifier: Apache-2.0

// Command refactor has an agent rewrite copies of a project, shows what it did, and writes it back only on
// request, and only if the same files have not changed meanwhile.
//
//	refactor ~/src/shop          # shows what would be written
//	refactor -apply ~/src/shop
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/workspace"
)

// Refactored is the answer.
type Refactored struct {
	Summary string `json:"summary" doc:"what was changed and why, one sentence"`
}

func main() {
	apply := flag.Bool("apply", false, "write the changes to the project")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: refactor [-apply] FOLDER")
	}
	back := &workspace.WriteBackOptions{DryRun: !*apply}
	if err := run(context.Background(), os.Stdout, &claude.Options{}, flag.Arg(0), back); err != nil {
		log.Fatal(err)
	}
}

// run takes what the CLI is started with, and how the changes are written back.
func run(ctx context.Context, out io.Writer, opts *claude.Options, project string, back *workspace.WriteBackOptions) (err error) {
	s := session.New(nil)
	w, err := workspace.Open(ctx, &workspace.Options{
		Session: s,
		Mounts: []workspace.HostMount{
			{HostPath: filepath.Join(project, "src"), MountPath: "project/src", Include: []string{"*.py"}, MaxBytes: new(int64(1_000_000))},
			{HostPath: filepath.Join(project, "tests"), MountPath: "project/tests", Include: []string{"test_*.py"}},
		},
		AllowedHostRoots: []string{project},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	p, err := prompt.NewPrompt[Refactored]("refactor", "codebase",
		w.Section(),
		prompt.Markdown("task", "Task", "Refactor the code in project/src so that it is easier to read."),
	)
	if err != nil {
		return err
	}
	opts.PermissionMode = claude.ModeAcceptEdits
	resp, err := drover.Evaluate(ctx, claudecode.New(opts), p, &drover.Options{Session: s, Settings: agent.Settings{Workspace: w}})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, resp.Output.Summary)
	if err := show(ctx, out, s, w); err != nil {
		return err
	}
	return bring(ctx, out, w, back)
}

// show records the changes of the agent in the session, and prints them from there.
func show(ctx context.Context, out io.Writer, s *session.Session, w *workspace.Workspace) error {
	synced, err := workspace.Sync(ctx, s, w)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d files are new or changed, %d are gone\n", synced.Count, len(synced.Deleted))
	files, _ := session.Query[workspace.VirtualFileSystem](s).Latest()
	for f := range files.All() {
		fmt.Fprintf(out, "%s: %d bytes (v%d)\n", f.Path, f.SizeBytes, f.Version)
	}
	modified, _, err := workspace.Modified(s, w)
	if err != nil {
		return err
	}
	for _, f := range modified {
		text, err := w.ReadText(ctx, f)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "--- %s\n%s", f.Path, text)
	}
	return nil
}

// bring writes everything back to the host, or nothing.
func bring(ctx context.Context, out io.Writer, w *workspace.Workspace, back *workspace.WriteBackOptions) error {
	result, err := w.WriteBack(ctx, back)
	if conflict, ok := errors.AsType[*workspace.ConflictError](err); ok {
		for _, c := range conflict.Conflicts {
			fmt.Fprintf(out, "conflict: %s %s\n", c.Path, c.Reason)
		}
		fmt.Fprintln(out, "Nothing was written. This is what the agent did:")
		_, err := w.Diff(ctx, out, nil)
		return err
	}
	if err != nil {
		return err
	}
	if result.DryRun {
		fmt.Fprintln(out, "Nothing was written. These would be:")
	}
	for _, path := range result.Written {
		fmt.Fprintf(out, "written: %s\n", path.Path)
	}
	for _, path := range result.Deleted {
		fmt.Fprintf(out, "deleted: %s\n", path.Path)
	}
	for _, left := range result.Skipped {
		fmt.Fprintf(out, "left out: %s, which %s\n", left.Path, left.Reason)
	}
	return nil
}
