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
	"slices"
	"strings"

	"github.com/drover-agents/drover/event"
	"github.com/drover-agents/drover/guard"
	"github.com/drover-agents/drover/internal/safetext"
	"github.com/drover-agents/drover/prompt"
	"github.com/drover-agents/drover/tool"
)

//go:embed demo
var demoFiles embed.FS

// EventKind is the name of a review in the session.
func (review) EventKind() event.Kind { return "demo:review" }

// A project is the bundled one, unpacked.
type project struct {
	dir  string // all of it
	work string // where the agent works, which is empty
	shop string // what it reviews, and cannot change
}

func unpackProject(dir string) (project, error) {
	p := project{dir: dir, work: filepath.Join(dir, "work"), shop: filepath.Join(dir, "shop")}
	shop, err := fs.Sub(demoFiles, "demo/shop")
	if err != nil {
		return p, err
	}
	if err := os.Mkdir(p.work, 0o700); err != nil {
		return p, err
	}
	if err := os.CopyFS(p.shop, shop); err != nil {
		return p, err
	}
	sources, err := filepath.Glob(filepath.Join(p.shop, "*.go.txt"))
	for _, path := range sources {
		if err == nil {
			err = os.Rename(path, strings.TrimSuffix(path, ".txt"))
		}
	}
	return p, err
}

// prompt is the task, with a tool of ours.
func (p project) prompt() (*prompt.Prompt[review], error) {
	template, err := prompt.New[review]("demo", "review", &prompt.Section{
		Key: "task", Title: "Task", Text: demoTask, Params: prompt.ParamsOf[demoParams](), Tools: []*tool.Tool{p.countLines()},
	})
	if err != nil {
		return nil, err
	}
	return template.Bind(demoParams{Folder: p.shop})
}

type demoParams struct {
	Folder string `json:"folder"`
}

// countLines is a tool in this process.
func (p project) countLines() *tool.Tool {
	return tool.Must("count_lines", countLinesDescription,
		func(_ context.Context, in countLinesInput) (string, error) {
			root, err := os.OpenRoot(p.shop)
			if err != nil {
				return "", err
			}
			defer func() { _ = root.Close() }()
			text, err := root.ReadFile(in.File)
			return safetext.Plural(bytes.Count(text, []byte("\n")), "line"), err
		}, tool.ReadOnly)
}

// check sends a review back that leaves out a file.
func (p project) check() guard.Checker {
	return guard.CheckerFunc(func(_ context.Context, a guard.Attempt) (guard.Completion, error) {
		var r review
		if len(a.Output) == 0 {
			return guard.Incomplete(reviewMissing), nil
		}
		if err := json.Unmarshal(a.Output, &r); err != nil {
			return guard.Completion{}, err
		}
		sources, err := filepath.Glob(filepath.Join(p.shop, "*.go"))
		for _, path := range sources {
			if name := filepath.Base(path); !slices.ContainsFunc(r.Files, func(f string) bool { return filepath.Base(f) == name }) {
				return guard.Incomplete(fmt.Sprintf(reviewIncomplete, name)), nil
			}
		}
		return guard.Complete(), err
	})
}

func writeReview(w io.Writer, done event.Done) error {
	var r review
	if err := json.Unmarshal(done.Output, &r); err != nil {
		return fmt.Errorf("the answer is not a review: %w", err)
	}
	fmt.Fprintf(w, "Review\n  Summary  %s\n  Files    %s\n", r.Summary, strings.Join(r.Files, ", "))
	for i, x := range r.Issues {
		label := ""
		if i == 0 {
			label = "Issues"
		}
		fmt.Fprintf(w, "  %-8s %-6s  %s:%d  %s\n", label, x.Severity, x.File, x.Line, x.Problem)
	}
	return nil
}
