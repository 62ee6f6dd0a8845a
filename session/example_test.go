// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"context"
	"fmt"
	"slices"

	"github.com/drover-agents/drover/session"
	"github.com/drover-agents/drover/tool"
)

// AnalysisState is what has been analysed so far.
type AnalysisState struct {
	FilesAnalyzed []string
	IssuesFound   int
}

// FileAnalyzed: a file has been analysed.
type FileAnalyzed struct {
	Path   string
	Issues int
}

type AnalyzeParams struct {
	FilePath string `json:"file_path"`
}

func doAnalysis(string) []string { return []string{"unused import", "long line"} }

// analyze is a tool that reads and writes the state of the session that it is called in.
var analyze = tool.Must("analyze", "Analyze a source file for issues",
	func(ctx context.Context, p AnalyzeParams) (string, error) {
		s, _ := session.From(ctx)
		state, _ := session.Query[AnalysisState](s).Latest()
		if slices.Contains(state.FilesAnalyzed, p.FilePath) {
			return "Already analyzed: " + p.FilePath, nil
		}
		issues := doAnalysis(p.FilePath)
		if _, err := s.Dispatch(ctx, FileAnalyzed{p.FilePath, len(issues)}); err != nil {
			return "", err
		}
		return fmt.Sprintf("Found %d issues", len(issues)), nil
	})

func ExampleReduce() {
	s := session.New(nil)
	session.Reduce(s, func(state AnalysisState, e FileAnalyzed) AnalysisState {
		return AnalysisState{
			FilesAnalyzed: append(slices.Clip(state.FilesAnalyzed), e.Path),
			IssuesFound:   state.IssuesFound + e.Issues,
		}
	})

	ctx := session.With(context.Background(), s)
	tools := tool.MustRegistry(nil, analyze)
	for _, path := range []string{"main.py", "util.py", "main.py"} {
		input := fmt.Appendf(nil, `{"file_path":%q}`, path)
		fmt.Println(tools.Execute(ctx, tool.Call{Name: "analyze", Input: input}).Value)
	}

	state, _ := session.Query[AnalysisState](s).Latest()
	fmt.Printf("%d issues in %v\n", state.IssuesFound, state.FilesAnalyzed)
	// Output:
	// Found 2 issues
	// Found 2 issues
	// Already analyzed: main.py
	// 4 issues in [main.py util.py]
}

func ExampleSession_After() {
	s := session.New(nil)
	ctx := context.Background()
	_, _ = s.Dispatch(ctx, FileAnalyzed{"main.py", 2})
	seen, _ := s.Dispatch(ctx, FileAnalyzed{"util.py", 0})
	_, _ = s.Dispatch(ctx, FileAnalyzed{"test.py", 1})
	_ = s.Close() // a reader would follow an open session

	for entry, err := range s.After(ctx, seen) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(entry.Pos, entry.Event.Payload.(session.Value).Get())
	}
	// Output: 3 {test.py 1}
}

func ExampleSession_Begin() {
	s := session.New(nil)
	ctx := context.Background()
	call := func(id string, fails bool) {
		ctx, tx := s.Begin(ctx, id)
		defer func() { _ = tx.Rollback("the call failed") }() // does nothing after Commit
		_, _ = s.Dispatch(ctx, FileAnalyzed{id + ".py", 1})
		if !fails {
			_ = tx.Commit()
		}
	}
	call("one", false)
	call("two", true)
	call("three", false)
	for e := range session.Query[FileAnalyzed](s).All() {
		fmt.Println(e.Path)
	}
	// Output:
	// one.py
	// three.py
}

func ExampleUpsert() {
	s := session.New(nil)
	session.Define(s, session.SliceOptions[FileAnalyzed]{Key: func(f FileAnalyzed) any { return f.Path }})
	session.Upsert(s, func(e FileAnalyzed) FileAnalyzed { return e })
	ctx := context.Background()
	for _, e := range []FileAnalyzed{{"main.py", 2}, {"util.py", 1}, {"main.py", 0}} {
		_, _ = s.Dispatch(ctx, e)
	}
	fmt.Println(slices.Collect(session.Query[FileAnalyzed](s).All()))
	// Output: [{main.py 0} {util.py 1}]
}

func ExampleSubscribe() {
	s := session.New(nil)
	sub := session.Subscribe(s, 0, func(pos int64, e FileAnalyzed) { fmt.Println(pos, e.Path) })
	ctx := context.Background()
	_, _ = s.Dispatch(ctx, "some other event")
	_, _ = s.Dispatch(ctx, FileAnalyzed{"main.py", 2})
	_ = s.Close()
	<-sub.Done() // everything was handed over
	// Output: 2 main.py
}
