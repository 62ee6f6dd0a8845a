// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

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
func runDemo(ctx context.Context, out io.Writer) (err error) {
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
	return demoRun(ctx, opts, newPrinter(out))
}

// demoRun is the conversation.
func demoRun(ctx context.Context, opts *claude.Options, p *printer) error {
	client, err := claude.Connect(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	p.setUp(client.Initialized())
	var answer *claude.ResultMessage
	for m, err := range client.Turn(ctx, claude.Text("Review the code under shop.")) {
		if err != nil {
			return err
		}
		p.message(m)
		if end, ok := m.(*claude.TurnEnd); ok {
			answer = end.Answer
		}
	}
	return p.review(answer)
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

// A printer writes what happens as lines that a person can follow.
type printer struct {
	out     io.Writer
	started time.Time
	calls   map[string]toolCall
	tools   int
}

type toolCall struct {
	name  string
	begun time.Time
}

func newPrinter(out io.Writer) *printer {
	return &printer{out: out, started: time.Now(), calls: map[string]toolCall{}}
}

func (p *printer) line(what, text, note string) {
	fmt.Fprintf(p.out, "  %04.1f  %-12s %-58s %s\n", time.Since(p.started).Seconds(), what, text, note)
}

func (p *printer) setUp(init *claude.InitializeResult) {
	fmt.Fprintf(p.out, "set-up    claude %s  ok    model: scripted, no key needed\n", init.Version)
	fmt.Fprintf(p.out, "run       review of the bundled shop, with Read, Bash and one Go tool\n\n")
}

func (p *printer) message(m claude.Message) {
	switch m := m.(type) {
	case *claude.AssistantMessage:
		for _, b := range m.Content {
			p.block(b)
		}
	case *claude.UserMessage:
		for _, b := range m.Content {
			if r, ok := b.(*claude.ToolResultBlock); ok {
				p.toolResult(r)
			}
		}
	case *claude.APIRetry:
		p.line("retry", m.Error, "")
	}
}

func (p *printer) block(b claude.Block) {
	switch b := b.(type) {
	case *claude.TextBlock:
		p.line("model", clip(b.Text), "")
	case *claude.ThinkingBlock:
		p.line("thinking", clip(b.Thinking), "")
	case *claude.ToolUseBlock:
		p.calls[b.ID] = toolCall{strings.TrimPrefix(b.Name, "mcp__demo__"), time.Now()}
	}
}

func (p *printer) toolResult(r *claude.ToolResultBlock) {
	call := p.calls[r.ToolUseID]
	p.tools++
	note := fmt.Sprintf("%.1f ms", float64(time.Since(call.begun).Microseconds())/1000)
	if r.IsError {
		note = "failed, " + note
	}
	p.line(call.name, clip(r.Text()), note)
}

// clip is the first line of text, cut to fit.
func clip(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(first); len(runes) > 57 {
		return string(runes[:56]) + "…"
	}
	return first
}

// review prints the answer and what the run cost.
func (p *printer) review(answer *claude.ResultMessage) error {
	if answer == nil {
		return claude.ErrNoAnswer
	}
	var r review
	if err := json.Unmarshal(answer.StructuredOutput, &r); err != nil {
		return fmt.Errorf("the answer is no review: %w", err)
	}
	p.line("done", answer.Subtype(), fmt.Sprintf("%d tool calls  $%.4f  %.1f s", p.tools, answer.TotalCostUSD, time.Since(p.started).Seconds()))
	fmt.Fprintf(p.out, "\nReview\n  Summary  %s\n", r.Summary)
	for i, issue := range r.Issues {
		label := ""
		if i == 0 {
			label = "Issues"
		}
		fmt.Fprintf(p.out, "  %-8s %d. %s\n", label, i+1, issue)
	}
	return nil
}
