// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/claude/script"
	"github.com/drover-agents/drover/schema"
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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), cmd.OutOrStdout())
		},
	}
}

// runDemo prints what happens while it happens, then the answer.
func runDemo(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "drover-demo-")
	if err != nil {
		return err
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
	opts, err := demoOptions(dir, work, model.URL())
	if err != nil {
		return err
	}
	return converse(ctx, opts, newPrinter(out, work))
}

// converse has the conversation. The summary comes also when it is stopped.
func converse(ctx context.Context, opts *claude.Options, p *printer) error {
	client, err := claude.Connect(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	p.setUp(client.Initialized())
	var answer *claude.ResultMessage
	for m, err := range client.Turn(ctx, claude.Text("Review the code under shop.")) {
		if err != nil {
			p.stopped(err)
			return err
		}
		p.message(m)
		if end, ok := m.(*claude.TurnEnd); ok {
			answer = end.Answer
		}
	}
	if answer == nil {
		return claude.ErrNoAnswer
	}
	p.done(answer)
	return p.review(answer.StructuredOutput)
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

// demoOptions closes the run off: an environment of its own, a fake key, a model on loopback.
func demoOptions(dir, work, url string) (*claude.Options, error) {
	answer, err := schema.For[review]()
	if err != nil {
		return nil, err
	}
	tools, err := demoTools(work)
	if err != nil {
		return nil, err
	}
	env := map[string]string{
		"PATH":               os.Getenv("PATH"),
		"HOME":               filepath.Join(dir, "home"),
		"CLAUDE_CONFIG_DIR":  filepath.Join(dir, "config"),
		"TMPDIR":             filepath.Join(dir, "tmp"),
		"CLAUDE_CODE_TMPDIR": filepath.Join(dir, "tmp"),
		"ANTHROPIC_BASE_URL": url,
		"ANTHROPIC_API_KEY":  "sk-ant-demo-opens-nothing",

		"DISABLE_AUTOUPDATER":                      "1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
	}
	if err := os.MkdirAll(env["TMPDIR"], 0o700); err != nil {
		return nil, err
	}
	return &claude.Options{
		Dir:            work,
		Env:            claude.ExactEnv(env),
		Tools:          []string{"Read", "Bash"},
		AllowedTools:   []string{"Read", "Bash(grep *)", "mcp__demo__count_lines"},
		MCPServers:     map[string]claude.MCPServer{"demo": tools},
		StrictMCP:      true,
		SettingSources: []string{},
		OutputSchema:   answer.JSON(),
		NoPersistence:  true,
	}, nil
}

// demoTools is a server in this process with one tool.
func demoTools(work string) (*claude.MCPInProcess, error) {
	type input struct {
		Dir string `json:"dir" doc:"folder below the project"`
	}
	count, err := claude.NewTool("count_lines", "Count the lines of all files in a folder.",
		func(_ context.Context, in input) (claude.ToolResult, error) {
			root, err := os.OpenRoot(work)
			if err != nil {
				return claude.ToolResult{}, err
			}
			defer func() { _ = root.Close() }()
			n, err := countLines(root.FS(), in.Dir)
			return claude.TextResult(fmt.Sprintf("%d lines", n)), err
		})
	if err != nil {
		return nil, err
	}
	server, err := claude.NewToolServer("demo", claude.Version, nil, count)
	if err != nil {
		return nil, err
	}
	return server.Server(), nil
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
