// SPDX-License-Identifier: Apache-2.0

// Command analyse has an agent look for what is left to do in the Python files of a folder, with a tool
// of this program. Its findings are in a session, and the session is a file: a program that is
// started again knows which files it need not look at.
//
//	analyse -log analysis.jsonl project
//
// Each call of the tool is a transaction: one that fails in the middle of a file leaves no trace in the state.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/drover-agents/drover"
	"github.com/drover-agents/drover/agent/claudecode"
	"github.com/drover-agents/drover/claude"
	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// AnalysisState is a slice of the session: how far the analysis has come.
type AnalysisState struct {
	FilesAnalyzed []string
	IssuesFound   int
}

// with is the reducer. It gets a state that others still look at, and returns a new one.
func (s AnalysisState) with(e FileAnalyzed) AnalysisState {
	return AnalysisState{
		FilesAnalyzed: append(slices.Clip(s.FilesAnalyzed), e.Path),
		IssuesFound:   s.IssuesFound + e.Issues,
	}
}

// FileAnalyzed is the event that changes it.
type FileAnalyzed struct {
	Path   string `json:"path"`
	Issues int    `json:"issues"`
}

// An Issue is an event too. It has no reducer: its slice has all of them.
type Issue struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// EventKind names the events in the log, so that it can be read also if the types are called otherwise.
func (FileAnalyzed) EventKind() event.Kind { return "analysis:file" }

// EventKind does the same for issues.
func (Issue) EventKind() event.Kind { return "analysis:issue" }

// AnalysisReport is the answer.
type AnalysisReport struct {
	Summary string `json:"summary"`
}

func main() {
	file := flag.String("log", "analysis.jsonl", "file of the session")
	flag.Parse()
	s, err := open(*file, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = run(context.Background(), os.Stdout, &claude.Options{Dir: cmp.Or(flag.Arg(0), ".")}, s)
	if err := errors.Join(err, s.Close()); err != nil {
		log.Fatal(err)
	}
}

// open begins a session in a file, or goes on with the one that is there.
func open(file string, opts *session.Options) (*session.Session, error) {
	store, err := session.OpenFile(file, nil)
	if err != nil {
		return nil, err
	}
	s, err := session.Open(store, opts)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	session.Reduce(s, AnalysisState.with)
	return s, nil
}

// run takes what the CLI is started with; Dir is the project.
func run(ctx context.Context, out io.Writer, opts *claude.Options, s *session.Session) error {
	project, err := os.OpenRoot(opts.Dir)
	if err != nil {
		return err
	}
	defer project.Close()
	p, err := prompt.NewPrompt[AnalysisReport]("analysis", "codebase",
		prompt.Markdown("task", "Task", "Analyze all Python files in the project").With(analyzeTool(project)),
	)
	if err != nil {
		return err
	}
	resp, err := drover.Evaluate(ctx, claudecode.New(opts), p, &drover.Options{Session: s})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, resp.Output.Summary)
	state, _ := session.Query[AnalysisState](s).Latest()
	fmt.Fprintf(out, "Analyzed %d files\n", len(state.FilesAnalyzed))
	fmt.Fprintf(out, "Found %d total issues\n", state.IssuesFound)
	for issue := range session.Query[Issue](s).All() {
		fmt.Fprintf(out, "%s:%d: %s\n", issue.Path, issue.Line, issue.Text)
	}
	return nil
}

// AnalyzeParams are what the tool is called with.
type AnalyzeParams struct {
	FilePath string `json:"file_path" doc:"path of the file in the project"`
}

func analyzeTool(project *os.Root) *tool.Tool {
	return tool.Must("analyze", "Analyze a source file for issues", func(ctx context.Context, p AnalyzeParams) (string, error) {
		s, _ := session.From(ctx) // drover.Evaluate has put it there
		state, _ := session.Query[AnalysisState](s).Latest()
		if slices.Contains(state.FilesAnalyzed, p.FilePath) {
			return "Already analyzed: " + p.FilePath, nil
		}
		source, err := project.ReadFile(p.FilePath)
		if err != nil {
			return "", err
		}
		n, err := findIssues(ctx, s, p.FilePath, source)
		if err != nil {
			return "", err
		}
		if _, err := s.Dispatch(ctx, FileAnalyzed{Path: p.FilePath, Issues: n}); err != nil {
			return "", err
		}
		return fmt.Sprintf("Found %d issues", n), nil
	}, tool.WithAlwaysLoad())
}

// findIssues dispatches what it finds as it goes.
func findIssues(ctx context.Context, s *session.Session, path string, source []byte) (n int, err error) {
	number := 0
	for line := range bytes.Lines(source) {
		number++
		if !utf8.Valid(line) {
			return n, tool.Errorf(tool.CategoryValidation, "Line %d of %s is no text.", number, path)
		}
		_, text, found := bytes.Cut(line, []byte("TODO"))
		if !found {
			continue
		}
		if _, err := s.Dispatch(ctx, Issue{path, number, string(bytes.Trim(text, ": \n"))}); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
